# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disk images that the lab's virtual machines start from: a recipe, built once, kept under the recipe's hash.

An image is made of the distribution's own packages, from the mirrors that the machine's apt uses. Nothing of it is
a host's own: name, keys and interfaces come to each host by its seed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import tempfile
import time
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common import command
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._common.paths import IMAGE_DIR
from ansible_collections.fastpath.bench.plugins.module_utils._lab import machine
from ansible_collections.fastpath.bench.plugins.module_utils._lab.machine import LabError

#: Counted up when images have to be built anew though no text in the recipe changed.
FORMAT = 1

BUILD_LIMIT_S = 3600.0
LOCK_POLL_S = 0.5
#: The disk's size as the guest sees it; what is not written takes no room.
DISK_BYTES = 10 << 30

#: The root file system's.
ROOT_LABEL = "fastpath-root"

#: The kernel without drivers for bare hardware, by distribution and architecture.
KERNELS = {
    ("debian", "x86_64"): "linux-image-cloud-amd64",
    ("ubuntu", "x86_64"): "linux-image-virtual",
}

#: What Ansible, the collection's roles and a person who looks at a fault need in each guest.
BASE_PACKAGES = (
    "apt-utils",
    "ca-certificates",
    "dbus",
    "e2fsprogs",
    "ethtool",
    "iperf",
    "iproute2",
    "iputils-ping",
    "kmod",
    "nftables",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "sudo",
    "systemd-sysv",
    "tcpdump",
    "udev",
)

#: What the distribution does by itself now and then, which would disturb a measurement or a slow start.
QUIET_UNITS = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
)

#: The serial line by which a guest tells the lab that it is up, or why it cannot be.
READY_DEVICE = "/dev/ttyS1"
#: The serial number of the disk that holds a host's seed, a tar archive.
SEED_SERIAL = "seed"

#: The rest of the set-up comes with the seed, so that an image outlives changes of it.
_SETUP = f"""#!/bin/sh
# Makes this machine the lab host that its seed describes. Runs at each boot, before the network and sshd.
set -u
modprobe virtio_net
tries=0
while [ $tries -lt 300 ]; do
    for disk in /sys/block/vd*; do
        serial=
        read -r serial <"$disk/serial"
        if [ "$serial" = {SEED_SERIAL} ] && [ -b "/dev/${{disk##*/}}" ]; then
            tar -xf "/dev/${{disk##*/}}" -C / etc/fastpath-lab && exec /etc/fastpath-lab/setup "/dev/${{disk##*/}}"
        fi
    done
    tries=$((tries + 1))
    sleep 0.1
done
echo "failed: no disk with the host's seed" >{READY_DEVICE}
exit 1
"""

_SETUP_UNIT = """[Unit]
Description=Be the lab host that the seed describes
DefaultDependencies=no
After=systemd-remount-fs.service systemd-modules-load.service
Before=network-pre.target ssh.service shutdown.target
Wants=network-pre.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/fastpath-lab-setup

[Install]
WantedBy=multi-user.target
"""

_READY_UNIT = f"""[Unit]
Description=Tell the lab that this host is up
After=fastpath-lab-setup.service ssh.service
Requires=fastpath-lab-setup.service ssh.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'echo ready >{READY_DEVICE}'

[Install]
WantedBy=multi-user.target
"""

#: A small initial RAM disk: what a virtual machine's root needs, instead of every driver there is.
_INITRAMFS_HOOK = """#!/bin/sh
set -e
[ "$1" = prereqs ] && exit 0
. /usr/share/initramfs-tools/hook-functions
manual_add_modules virtio_pci virtio_blk ext4
"""

#: Path in the image: text and mode. Written before the packages are installed.
FILES: dict[str, tuple[str, int]] = {
    "/etc/initramfs-tools/conf.d/fastpath-lab": ("MODULES=list\nRESUME=none\nCOMPRESS=gzip\n", 0o644),
    "/etc/initramfs-tools/hooks/fastpath-lab": (_INITRAMFS_HOOK, 0o755),
    "/etc/systemd/system/fastpath-lab-setup.service": (_SETUP_UNIT, 0o644),
    "/etc/systemd/system/fastpath-lab-ready.service": (_READY_UNIT, 0o644),
    "/etc/systemd/journald.conf.d/fastpath-lab.conf": ("[Journal]\nStorage=volatile\n", 0o644),
    "/etc/fstab": (f"LABEL={ROOT_LABEL} / ext4 defaults,noatime 0 0\n", 0o644),
    "/usr/local/sbin/fastpath-lab-setup": (_SETUP, 0o755),
}

#: Settings of the machine's apt that the build needs to reach the mirrors.
APT_OPTIONS = re.compile(r'Acquire::(?:https?::Proxy(?:::[^ ]+)?|Check-Valid-Until|Check-Date|Retries) "[^"]*";')

_RUN_IN_ROOT = (
    "rm -f /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub /etc/apt/apt.conf.d/99mmdebstrap",
    "systemctl --quiet enable fastpath-lab-setup.service fastpath-lab-ready.service ssh.service",
    f"systemctl --quiet mask {' '.join(QUIET_UNITS)}",
    # An empty file is no first boot; the lab gives each host an id of its own.
    ": >/etc/machine-id",
    "rm -f /var/lib/dbus/machine-id",
)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What an image is made of. The mirrors are left out: the packages are the same wherever they come from."""

    distribution: str
    release: str
    architecture: str
    packages: tuple[str, ...]

    @property
    def key(self) -> str:
        text = json.dumps([FORMAT, dataclasses.astuple(self), FILES, _RUN_IN_ROOT, DISK_BYTES], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]

    def describe(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "packages": list(self.packages)}


@dataclasses.dataclass(frozen=True)
class Image:
    folder: str

    @property
    def disk(self) -> str:
        return f"{self.folder}/root.img"

    @property
    def kernel(self) -> str:
        return f"{self.folder}/vmlinuz"

    @property
    def initrd(self) -> str:
        return f"{self.folder}/initrd.img"

    def exists(self) -> bool:
        return os.path.isdir(self.folder)


def image(key: str) -> Image:
    return Image(f"{IMAGE_DIR}/{key}")


def keys() -> list[str]:
    """The images that are there."""
    try:
        names = os.listdir(IMAGE_DIR)
    except FileNotFoundError:
        return []
    return [name for name in names if "." not in name]


def recipe(extra: t.Iterable[str]) -> Recipe:
    """The recipe for this machine's own distribution, with packages beyond the usual ones."""
    found = parse_os_release(_read("/etc/os-release"))
    distribution, release = found.get("ID", ""), found.get("VERSION_CODENAME", "")
    architecture = os.uname().machine
    kernel = KERNELS.get((distribution, architecture))
    if kernel is None or not release:
        known = ", ".join(sorted(f"{name} on {arch}" for name, arch in KERNELS))
        raise LabError(
            f"images of virtual machines cannot be built on {distribution or 'this system'} on {architecture}",
            remedy=f"Known are {known}; hosts of kind linux work here",
            code="no_image_for_system",
        )
    return Recipe(distribution, release, architecture, tuple(sorted({kernel, *BASE_PACKAGES, *extra})))


def parse_os_release(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not name.startswith("#"):
            found[name.strip()] = "".join(shlex.split(value))
    return found


# -- the machine's mirrors ---------------------------------------------------------------------------------


def mirrors(release: str, folder: str = "/etc/apt") -> list[str]:
    """The machine's own sources of a release, one line each. Sources of others are not for a test machine."""
    lines: list[str] = []
    paths = [f"{folder}/sources.list"]
    with contextlib.suppress(FileNotFoundError):
        paths += [f"{folder}/sources.list.d/{name}" for name in sorted(os.listdir(f"{folder}/sources.list.d"))]
    for path in paths:
        if path.endswith(".sources"):
            lines += parse_deb822(_read(path))
        elif path.endswith(".list"):
            with contextlib.suppress(FileNotFoundError):
                lines += parse_one_line(_read(path))
    wanted = re.compile(rf"deb (?:\[[^]]*\] )?\S+ {re.escape(release)}(?:-updates|-security)? ")
    chosen = [line for line in dict.fromkeys(lines) if wanted.match(line)]
    if not chosen:
        raise LabError(
            f"apt has no source of {release}",
            where=folder,
            remedy="The image of virtual machines is made of the machine's own distribution",
            code="no_mirror",
        )
    return chosen


def parse_one_line(text: str) -> list[str]:
    lines = []
    for raw in text.splitlines():
        line = " ".join(raw.partition("#")[0].split())
        if line.startswith("deb "):
            lines.append(line)
    return lines


def parse_deb822(text: str) -> list[str]:
    """Sources in the form of paragraphs, as lines."""
    lines = []
    for paragraph in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        name = ""
        for line in paragraph.splitlines():
            if line.startswith("#") or not line.strip():
                continue
            if line[0] in " \t":
                fields[name] = f"{fields.get(name, '')} {line.strip()}"
            else:
                name, _colon, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        signed = fields.get("signed-by", "")
        option = f"[signed-by={signed}] " if signed.startswith("/") else ""
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                lines.append(f"deb {option}{uri} {suite} {fields.get('components', '')}".strip())
    return lines


def apt_options() -> list[str]:
    """Proxies and the like, as the machine's apt has them; they do not stay in the image."""
    printed = machine.run(["apt-config", "dump"]).stdout
    return [line for line in printed.splitlines() if APT_OPTIONS.fullmatch(line)]


# -- building ----------------------------------------------------------------------------------------------


def build(wanted: Recipe) -> Image:
    """Make an image unless it is there. It appears whole or not at all; two callers do not build it twice."""
    done = image(wanted.key)
    with _locked(done.folder):
        if done.exists():
            return done
        _remove_unfinished(wanted.key)
        folder = tempfile.mkdtemp(prefix=f"{wanted.key}.new-", dir=IMAGE_DIR)
        try:
            _make(wanted, Image(folder))
            os.chmod(folder, 0o755)
            os.rename(folder, done.folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return done


def _remove_unfinished(own_key: str) -> None:
    """Remove what calls left that were killed. Whose lock is held is at work."""
    for name in os.listdir(IMAGE_DIR):
        key, new, _random = name.partition(".new-")
        if not new:
            continue
        with open(f"{IMAGE_DIR}/{key}.lock", "a", encoding="ascii") as lock:
            if key != own_key:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
            shutil.rmtree(f"{IMAGE_DIR}/{name}")


def bootstrap_command(
    wanted: Recipe, root: str, overlay: str, sources: t.Sequence[str], options: t.Sequence[str]
) -> list[str]:
    """What makes the root folder: mmdebstrap, which dies with its caller and leaves no mount."""
    return [
        # Whoever kills the caller kills this, and with it all processes and mounts that it made.
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
        "mmdebstrap",
        "--mode=root",
        "--variant=apt",
        "--format=directory",
        f"--architectures={'amd64' if wanted.architecture == 'x86_64' else wanted.architecture}",
        f"--include={','.join(wanted.packages)}",
        *(f"--aptopt={option.rstrip(';')}" for option in options),
        # Before any package: the files are part of what the packages' scripts see.
        f'--essential-hook=cp -a {shlex.quote(overlay)}/. "$1"/',
        *(f'--customize-hook=chroot "$1" sh -c {shlex.quote(line)}' for line in _RUN_IN_ROOT),
        wanted.release,
        root,
        *sources,
    ]


def _make(wanted: Recipe, new: Image) -> None:
    root, overlay = f"{new.folder}/root", f"{new.folder}/overlay"
    for path, (text, mode) in FILES.items():
        target = overlay + path
        os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(target, mode)
    os.chmod(overlay, 0o755)
    argv = bootstrap_command(wanted, root, overlay, mirrors(wanted.release), apt_options())
    try:
        command.run(
            argv, limit_s=BUILD_LIMIT_S, env={"TMPDIR": new.folder, "DEBIAN_FRONTEND": "noninteractive"}
        ).check()
        for name, path in (("vmlinuz", new.kernel), ("initrd.img", new.initrd)):
            shutil.copyfile(_boot_file(root, name), path)
        with open(new.disk, "wb") as disk:
            disk.truncate(DISK_BYTES)
        command.run(["mke2fs", "-q", "-F", "-t", "ext4", "-L", ROOT_LABEL, "-d", root, new.disk], limit_s=900).check()
    except command.CommandError as error:
        said = error.stderr.strip() or error.stdout.strip()
        raise LabError(
            f"the image cannot be built: {' '.join(error.argv[:1])} ... {error.what[-300:]}",
            where=f"image {wanted.key}",
            remedy=f"Its last words: {said[-1500:]}",
            code="image_not_built",
        ) from error
    shutil.rmtree(root)
    shutil.rmtree(overlay)
    with open(f"{new.folder}/recipe.json", "w", encoding="utf-8") as target_file:
        json.dump({**wanted.describe(), "built": int(time.time())}, target_file, indent=1, sort_keys=True)


def _boot_file(root: str, name: str) -> str:
    """The kernel's link lies in / or in /boot, and is written as seen inside."""
    for link in (f"{root}/{name}", f"{root}/boot/{name}"):
        if os.path.lexists(link):
            target = os.readlink(link) if os.path.islink(link) else link
            inside = os.path.join(os.path.dirname(link)[len(root) :] or "/", target)
            return target if not os.path.islink(link) else root + os.path.normpath(inside)
    raise LabError(f"no {name} after the packages were installed", where=root, code="image_not_built")


@contextlib.contextmanager
def _locked(folder: str) -> t.Iterator[None]:
    """Hold an image's lock; the kernel gives it back when its holder is killed."""
    os.makedirs(IMAGE_DIR, exist_ok=True)
    deadline = time.monotonic() + BUILD_LIMIT_S
    with open(folder + ".lock", "a", encoding="ascii") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise BenchError(
                        f"another call has built it for {BUILD_LIMIT_S:.0f} s", where=f"image {folder}", code="locked"
                    ) from None
                time.sleep(LOCK_POLL_S)
        yield


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as source:
        return source.read()
