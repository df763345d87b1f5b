# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that finds a Python for the virtual environment."""

from __future__ import annotations

import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "pick-python"


def test_a_bare_environment_is_no_obstacle() -> None:
    """Units of systemd and jobs in a pipeline have no HOME."""
    path = f"{pathlib.Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run([SCRIPT], env={"PATH": path}, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    assert pathlib.Path(done.stdout.strip()).is_file()


def test_only_the_versions_asked_for_count() -> None:
    done = subprocess.run([SCRIPT, "2.7"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "no Python 2.7 with the venv module" in done.stderr
