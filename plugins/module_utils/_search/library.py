# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the MLRsearch library comes from: the host's own Python packages, or the wheel that the role brought."""

from __future__ import annotations

import importlib
import pathlib
import sys
import types

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import WHEEL_DIR

PACKAGE = "MLRsearch"
#: The first release whose output has bounds for each goal.
FIRST_RELEASE = "1.2.0"


def load(folder: str = WHEEL_DIR) -> tuple[types.ModuleType, str]:
    """The library and where it was found.

    :raises BenchError: it is not on this host, or too old.
    """
    try:
        library = importlib.import_module(PACKAGE)
    except ImportError:
        library = _from_wheel(folder)
    if not hasattr(library, "GoalResult"):
        raise BenchError(
            f"the package {PACKAGE} in {_origin(library)} is too old",
            remedy=f"Install {FIRST_RELEASE} or newer for {sys.executable}",
            code="mlrsearch_too_old",
        )
    return library, _origin(library)


def _from_wheel(folder: str) -> types.ModuleType:
    # a wheel of pure Python is importable as it is
    for wheel in sorted(pathlib.Path(folder).glob(f"{PACKAGE}-*.whl"), reverse=True):
        sys.path.insert(0, str(wheel))
        try:
            return importlib.import_module(PACKAGE)
        except ImportError:
            sys.path.remove(str(wheel))
    raise BenchError(
        f"the Python package {PACKAGE} is not on this host",
        where=sys.executable,
        remedy=f"Apply the role fastpath.bench.throughput_search to it, or install {PACKAGE} for that Python",
        code="mlrsearch_absent",
    )


def _origin(library: types.ModuleType) -> str:
    return str(pathlib.Path(library.__file__ or "").parent)
