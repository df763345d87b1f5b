# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What the modules that change a host's running state share."""

    DOCUMENTATION = r"""
options:
  journal_dir:
    description:
      - Folder of the journal on the host. The value that each setting had before it was first changed is noted there,
        and M(fastpath.bench.host_restore) puts it back.
      - Without it, C(/var/lib/fastpath-bench/journal).
    type: path
  owner:
    description:
      - Who changes the host, for example the run's name. From the first change to the restore, the host belongs to
        this owner, and a call with another owner is refused.
    type: str
    default: ""
  part:
    description:
      - What the change belongs to, for example a role's name. M(fastpath.bench.host_restore) can put back one part
        alone.
    type: str
    default: ""
  force:
    description:
      - Change also what carries the connection to the host. Without it, an interface with the default route, or with
        the address that the SSH connection came to, is left alone, and asking for its change is an error.
    type: bool
    default: false
"""

    ATTRIBUTES = r"""
attributes:
  check_mode:
    support: full
    description: Tells what would change. Nothing is written, not even the journal.
  diff_mode:
    support: full
    description: The settings that differ, before and after.
"""
