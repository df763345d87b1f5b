# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes ``ansible_collections.fastpath.bench`` importable here as in the unit tests."""

from __future__ import annotations

import pathlib
import runpy

runpy.run_path(str(pathlib.Path(__file__).resolve().parents[2] / "unit" / "conftest.py"))
