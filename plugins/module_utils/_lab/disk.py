# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab host's disk: the machine's own root below, a private layer above.

What makes the copy a host of its own (name, identity, no services of the machine) is
written straight into the upper layer before it is ever mounted.
"""

from __future__ import annotations

import os
import shutil
import stat
import typing as t
import urllib.parse
import uuid

from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import STATE_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._lab.machine import Mount

#: An overlay of / shows nothing of what is mounted below it, so these get an overlay each where they are mounts.
CARRIED = ("/usr", "/var", "/etc", "/home", "/opt", "/srv", "/root")
DISK_FILESYSTEMS = (
    "ext2",
    "ext3",
    "ext4",
    "xfs",
    "btrfs",
    "f2fs",
    "bcachefs",
    "zfs",
    "overlay",
    "tmpfs",
    "nfs",
    "nfs4",
)

INIT_PATH = "/etc/fastpath-lab/init"
READY_PATH = "/run/.fastpath-lab/ready"
TARGET = "fastpath-lab.target"
READY_UNIT = "fastpath-lab-ready.service"

UNIT_FOLDERS = ("/usr/lib/systemd/system", "/lib/systemd/system", "/usr/local/lib/systemd/system")
GENERATOR_FOLDERS = (
    "/usr/lib/systemd/system-generators",
    "/lib/systemd/system-generators",
    "/usr/local/lib/systemd/system-generators",
    "/etc/systemd/system-generators",
)

#: Of the units that a distribution starts unasked, a lab host needs these.
KEPT_UNITS = frozenset(
    {
        "systemd-journald.service",
        "systemd-journald.socket",
        "systemd-journald-dev-log.socket",
        "systemd-tmpfiles-setup.service",
        "systemd-tmpfiles-setup-dev.service",
        "systemd-tmpfiles-setup-dev-early.service",
        "systemd-sysctl.service",
        "dbus.service",
        "dbus-broker.service",
        "dbus.socket",
        "dev-hugepages.mount",
        "dev-mqueue.mount",
    }
)
#: These would look after devices, addresses, time and logins, which here are the lab's or the machine's.
MASKED_UNITS = (
    "systemd-udevd.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-networkd.service",
    "systemd-networkd.socket",
    "systemd-networkd-wait-online.service",
    "systemd-resolved.service",
    "systemd-timesyncd.service",
    "systemd-logind.service",
    "systemd-remount-fs.service",
    "getty@.service",
    "serial-getty@.service",
    "console-getty.service",
    "tmp.mount",
)

_TARGET_UNIT = f"""[Unit]
Description=A host of the fastpath lab
Requires=basic.target
After=basic.target
Wants={READY_UNIT}
AllowIsolate=yes
"""

_READY_UNIT = f"""[Unit]
Description=Tell the lab that this host is up
After=basic.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/touch {READY_PATH}
"""

# systemd-nspawn shows parts of /sys read-only. A host gets the whole of it, with its own network namespace's
# interfaces writable (RPS masks), and the rest read-only: that is the machine's.
_INIT = """#!/bin/sh
# The first process of a lab host: gives it its /sys, then becomes systemd.
set -eu
mkdir -p /run/.fastpath-lab/cgroup
mount --bind /sys/fs/cgroup /run/.fastpath-lab/cgroup
umount --recursive --lazy /sys
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs /sys
mount --bind /run/.fastpath-lab/cgroup /sys/fs/cgroup
umount --lazy /run/.fastpath-lab/cgroup
rmdir /run/.fastpath-lab/cgroup
mount --bind /sys/devices/virtual/net /sys/devices/virtual/net
mount -o remount,rw,nosuid,nodev,noexec /sys/devices/virtual/net
for init in /usr/lib/systemd/systemd /lib/systemd/systemd; do
    if [ -x "$init" ]; then
        exec "$init" systemd.unit={target}
    fi
done
echo "systemd is not installed"
exit 1
""".replace("{target}", TARGET)


def layers(found: t.Iterable[Mount]) -> list[str]:
    """The mount points that a host's disk is put together from, outermost first."""
    wanted = {"/"}
    for mount in found:
        inside = any(mount.target == top or mount.target.startswith(top + "/") for top in CARRIED)
        if inside and mount.fstype in DISK_FILESYSTEMS and not set(mount.target) & set(":,\\\n ") and _is_folder(mount):
            wanted.add(mount.target)
    return sorted(wanted)


def single_files(found: t.Iterable[Mount]) -> list[str]:
    """Files mounted one by one, as container engines do with /etc/hosts."""
    return [mount.target for mount in found if mount.target.startswith("/etc/") and os.path.isfile(mount.target)]


def _is_folder(mount: Mount) -> bool:
    return os.path.isdir(mount.target)


def layer_folder(disk: str, layer: str) -> str:
    return f"{disk}/{urllib.parse.quote(layer, safe='')}"


class Disk:
    """The upper layers of one host, not mounted. Paths are the host's own, absolute."""

    def __init__(self, folder: str, layers: t.Sequence[str]) -> None:
        self.folder = folder
        self.layers = layers

    def make_folders(self) -> None:
        for layer in self.layers:
            base = layer_folder(self.folder, layer)
            os.makedirs(f"{base}/upper")
            os.makedirs(f"{base}/work")
            shutil.copystat(layer, f"{base}/upper")

    def _upper(self, path: str) -> str:
        layer = max((top for top in self.layers if path.startswith(top.rstrip("/") + "/")), key=len)
        return f"{layer_folder(self.folder, layer)}/upper/{os.path.relpath(path, layer)}"

    def _parents(self, path: str) -> str:
        """Make the folders above ``path`` look as in the layer below; returns where to write."""
        parent = os.path.dirname(path)
        if parent not in self.layers:
            upper = self._upper(parent)
            if not os.path.isdir(upper):
                self._parents(parent)
                os.mkdir(upper)
                if os.path.isdir(parent):
                    status = os.stat(parent)
                    os.chown(upper, status.st_uid, status.st_gid)
                    os.chmod(upper, stat.S_IMODE(status.st_mode))
        return self._upper(path)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        upper = self._parents(path)
        with open(upper, "w", encoding="utf-8") as target:
            target.write(text)
        os.chmod(upper, mode)

    def copy(self, path: str) -> None:
        shutil.copy2(path, self._parents(path))

    def mask(self, unit: str) -> None:
        upper = self._parents(f"/etc/systemd/system/{unit}")
        if not os.path.lexists(upper):
            os.symlink("/dev/null", upper)

    def hide(self, path: str) -> None:
        """Make a file or folder of the machine absent."""
        if os.path.lexists(path):
            os.mknod(self._parents(path), stat.S_IFCHR, os.makedev(0, 0))

    def empty(self, path: str) -> None:
        """Make a folder of the machine empty."""
        upper = self._parents(f"{path}/.")
        os.setxattr(upper, "trusted.overlay.opaque", b"y")


def prepare(folder: str, host: str, found: t.Sequence[Mount]) -> list[str]:
    """Write a host's disk unless it has one; returns its layers. A disk half written is written anew."""
    parts = layers(found)
    done = f"{folder}/.prepared"
    if not os.path.exists(done):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        disk = Disk(folder, parts)
        disk.make_folders()
        _personalise(disk, host, found)
        with open(done, "w", encoding="ascii"):
            pass
    return parts


def _personalise(disk: Disk, host: str, found: t.Sequence[Mount]) -> None:
    for path in single_files(found):
        disk.copy(path)
    disk.write("/etc/hostname", f"{host}\n")
    disk.write("/etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {host}\n::1 localhost ip6-localhost ip6-loopback\n")
    disk.write("/etc/machine-id", uuid.uuid4().hex + "\n", 0o444)
    disk.write("/etc/fstab", "")
    disk.write(INIT_PATH, _INIT, 0o755)
    disk.write(f"/etc/systemd/system/{TARGET}", _TARGET_UNIT)
    disk.write(f"/etc/systemd/system/{READY_UNIT}", _READY_UNIT)
    disk.write("/etc/systemd/journald.conf.d/fastpath-lab.conf", "[Journal]\nStorage=volatile\nRuntimeMaxUse=32M\n")
    # The machine's own journal of changed settings would be replayed in the host.
    disk.hide(STATE_DIR)
    for name in _names("/etc"):
        if name.startswith("rc") and name.endswith(".d") and len(name) == len("rcX.d"):
            disk.empty(f"/etc/{name}")
    for name in _names("/etc/systemd/system"):
        if name.endswith((".wants", ".requires", ".upholds", ".target.d")):
            disk.empty(f"/etc/systemd/system/{name}")
    for folder in GENERATOR_FOLDERS:
        for name in _names(folder):
            upper = disk._parents(f"/etc/systemd/system-generators/{name}")
            if not os.path.lexists(upper):
                os.symlink("/dev/null", upper)
    for unit in sorted({*MASKED_UNITS, *units_started_unasked()} - KEPT_UNITS):
        disk.mask(unit)


def units_started_unasked() -> set[str]:
    """The units that the distribution's targets pull in by themselves."""
    units: set[str] = set()
    for folder in UNIT_FOLDERS:
        for target in _names(folder):
            if target.endswith((".target.wants", ".target.requires", ".target.upholds")):
                units |= {unit for unit in _names(f"{folder}/{target}") if not unit.endswith(".target")}
    return units


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
