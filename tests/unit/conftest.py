# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes ``ansible_collections.fastpath.bench`` importable from a plain checkout."""

from __future__ import annotations

import os
import pathlib
import sys

from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder
from hypothesis import HealthCheck, settings

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / ".cache" / "collections"


def _link_checkout() -> None:
    link = COLLECTIONS / "ansible_collections" / "fastpath" / "bench"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() and not link.exists():
        link.symlink_to(ROOT, target_is_directory=True)


def _install_finder() -> None:
    if any(type(finder).__name__ == "_AnsibleCollectionFinder" for finder in sys.meta_path):
        return
    _AnsibleCollectionFinder(paths=[str(COLLECTIONS)])._install()


_link_checkout()
_install_finder()


def _settle_hypothesis() -> None:
    """No time limit on an example: on a loaded machine it would fail tests of what has nothing to do with time.

    In CI the same examples each time; by hand new ones, which is how faults are found.
    """
    settings.register_profile(
        "fastpath", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI"))
    )
    settings.load_profile("fastpath")


_settle_hypothesis()
