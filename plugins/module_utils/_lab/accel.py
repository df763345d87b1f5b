# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether virtual machines run by the processor's own virtualisation (KVM) or in software.

That /dev/kvm can be opened tells little: under some hypervisors a guest then stands still. So a guest is booted once.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command, files
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import CACHE_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._lab.image import Image

KVM = "kvm"
TCG = "tcg"
KVM_DEVICE = "/dev/kvm"
QEMU = "qemu-system-x86_64"

#: A guest under KVM needs one or two seconds to the end of the probe.
PROBE_LIMIT_S = 20.0
#: The kernel says so when it has started the first program and that has ended.
PROBE_DONE = "Attempted to kill init! exitcode=0x00000000"

#: Unless told otherwise QEMU keeps up to 1 GiB of translated code for each guest.
ACCEL_OPTIONS = {KVM: ("-accel", "kvm", "-cpu", "host"), TCG: ("-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max")}


def choose(image: Image) -> str:
    """The accelerator for this machine. The answer is kept until the machine boots again or QEMU changes."""
    if not os.path.exists(KVM_DEVICE):
        return TCG
    circumstances = _circumstances()
    path = f"{CACHE_DIR}/kvm.json"
    known = _read(path)
    if known.get("circumstances") != circumstances:
        works, why = probe(image, KVM)
        known = {"circumstances": circumstances, "works": works, "why": why}
        _write(path, known)
    return KVM if known.get("works") else TCG


def probe(image: Image, accel: str, limit_s: float = PROBE_LIMIT_S) -> tuple[bool, str]:
    """Boot the image's kernel up to its first program, which ends at once. Returns whether that worked, and why not."""
    with tempfile.TemporaryDirectory(prefix="fastpath-kvm-") as folder:
        console = f"{folder}/console"
        argv = [
            *(QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"),
            *(*ACCEL_OPTIONS[accel], "-m", "256", "-kernel", image.kernel, "-initrd", image.initrd),
            *("-append", "console=ttyS0 loglevel=4 panic=-1 rdinit=/bin/true", "-serial", f"file:{console}"),
        ]
        done = command.run(argv, limit_s=limit_s)
        text = ""
        with contextlib.suppress(FileNotFoundError), open(console, encoding="utf-8", errors="replace") as log:
            text = log.read()
    if PROBE_DONE in text:
        return True, ""
    if done.timed_out:
        return False, f"a guest did not come to its first program within {limit_s:g} s"
    return False, f"qemu ended with {done.rc}: {done.message or text[-300:].strip()}"


def _circumstances() -> list[str]:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
        boot = source.read().strip()
    return [boot, command.run([QEMU, "--version"], limit_s=30).check().stdout.splitlines()[0]]


def _read(path: str) -> dict[str, t.Any]:
    try:
        with open(path, encoding="utf-8") as source:
            found = json.load(source)
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: str, data: dict[str, t.Any]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    files.replace_file(path, json.dumps(data).encode())
