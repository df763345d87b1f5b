# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VPP process beside the one that is installed: they differ after an upgrade without a restart."""

from __future__ import annotations

import os
import re

from ansible_collections.fastpath.bench.plugins.module_utils._common import command

#: Package that brings the program -> how to ask for its version.
_ASK = (
    ["dpkg-query", "--show", "--showformat=${Version}", "vpp"],
    ["rpm", "--query", "--queryformat", "%{VERSION}", "vpp"],
)
_NUMBER = re.compile(r"^v?(\d+)\.(\d+)(?:\.(\d+))?")


def binary_of(pid: int | None) -> str | None:
    """The program that the process runs, as the kernel names it."""
    try:
        return os.readlink(f"/proc/{pid}/exe") if pid else None
    except OSError:
        return None


def warnings_about(pid: int | None) -> list[str]:
    """Cheap signs that the running VPP is not the installed one."""
    binary = binary_of(pid)
    if binary is not None and binary.endswith(" (deleted)"):
        path = binary[: -len(" (deleted)")]
        return [
            f"VPP (process {pid}) runs a program that is no longer on disk: {path} was replaced or removed since it "
            "started. Restart VPP to run what is installed."
        ]
    return []


def installed_version() -> str | None:
    """The version of the installed package, None where there is none."""
    for argv in _ASK:
        if command.find_program(argv[0]) is None:
            continue
        done = command.run(argv, limit_s=10)
        if done.rc == 0 and done.stdout.strip():
            return done.stdout.strip()
    return None


def version_conflict(running: str, installed: str | None) -> str | None:
    """A sentence when the two are different releases; None when they agree or one cannot be read."""
    here, there = _NUMBER.match(running), _NUMBER.match(installed or "")
    if here is None or there is None or here.groups() == there.groups():
        return None
    return f"VPP {running} runs, but the package installed is {installed}: restart VPP to run what is installed"
