# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's virtual machines: QEMU in the network namespace of the node, reached by SSH.

A virtual machine's namespace holds the ends of its cables as any other node's does. Each end is joined to a tap
device, the guest's network card. The port that leads to the guest's sshd is on the namespace's own loopback, so
neither it nor the cards show on the machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import shlex
import subprocess
import tarfile
import time
import typing as t
import uuid

from ansible_collections.fastpath.bench.plugins.module_utils._common import files
from ansible_collections.fastpath.bench.plugins.module_utils._lab import accel, cable, image, launch, machine
from ansible_collections.fastpath.bench.plugins.module_utils._lab.launch import Site
from ansible_collections.fastpath.bench.plugins.module_utils._lab.machine import LabError, Process
from ansible_collections.fastpath.bench.plugins.module_utils._lab.names import LabNames
from ansible_collections.fastpath.bench.plugins.module_utils._lab.topology import MANAGEMENT, Node, Topology

BOOT_TIMEOUT_S = {accel.KVM: 120.0, accel.TCG: 420.0}
POLL_S = 0.2
#: Where systemd starts QEMU: how long until its process must have been seen.
VANISHED_S = 30.0

#: What the kernel says last before it starts again, after a panic too.
RESTARTED = "reboot: Restarting system"

#: tool -> what it comes with, beyond what all labs need.
TOOLS = {
    accel.QEMU: "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "tc": "iproute2",
}

#: The management network has link-local addresses and no route out of it: QEMU's own choice, 10.0.2.0/24, is a
#: network that testbeds use, whose traffic would then leave by the management card.
MANAGEMENT_NETWORK = "169.254.22.0/24"
MANAGEMENT_HOST = "169.254.22.2"
MANAGEMENT_GUEST = "169.254.22.15"
SSH_PORT = 22

# Each program that is started costs an emulated guest a tenth of a second and more: the shell does what it can itself.
_SETUP = f"""#!/bin/sh
# Makes this machine the host that the lab describes. Runs at each boot; its argument is the disk with the seed.
set -eu
fail() {{ echo "failed: $*" >{image.READY_DEVICE}; trap - EXIT; exit 1; }}
trap '[ $? = 0 ] || echo "failed: set-up of the host; see its journal" >{image.READY_DEVICE}' EXIT
folder=/etc/fastpath-lab
# A host that was started again keeps what a role changed of its identity.
if [ ! -e $folder/seeded ]; then
    tar -xf "$1" -C / --no-overwrite-dir --exclude=etc/fastpath-lab
    : >$folder/seeded
fi
find_device() {{
    for path in /sys/class/net/*; do
        [ -e "$path/device" ] && read -r address <"$path/address" || continue
        device=${{path##*/}}
        [ "$address" = "$1" ] && return
    done
    return 1
}}
first= second= last= number=0
while read -r mac name mtu queues; do
    tries=0
    until find_device "$mac"; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "interface $name ($mac) is not there"
        sleep 0.1
    done
    # In two rounds: the name that one is to get may be another's now.
    if [ "$device" != "$name" ]; then
        first="$first
link set $device down name _lab$number"
        second="$second
link set _lab$number name $name"
    fi
    last="$last
link set $name mtu $mtu up"
    number=$((number + 1))
done <$folder/interfaces
said=$(ip -batch - 2>&1 <<END
$first
$second
$last
address replace {MANAGEMENT_GUEST}/24 dev {MANAGEMENT}
END
) || fail "interfaces cannot be set up: $said"
while read -r mac name mtu queues; do
    [ "$queues" = 1 ] || ethtool -L "$name" combined "$queues" || fail "interface $name does not take $queues queues"
done <$folder/interfaces
while read -r name feature long value; do
    said=$(ethtool -K "$name" "$feature" "$value" 2>&1) || :
    ethtool -k "$name" | grep -q "^[[:space:]]*$long: $value" ||
        fail "$name: offload $feature is not $value after ethtool -K${{said:+ ($said)}}"
done <$folder/offloads
"""


@dataclasses.dataclass(frozen=True)
class Card:
    """One network card of a guest."""

    name: str
    mac: str
    queues: int = 1
    mtu_bytes: int = 1500
    offloads: tuple[tuple[str, bool], ...] = ()

    def as_data(self) -> list[t.Any]:
        return [self.name, self.mac, self.queues, self.mtu_bytes, [list(pair) for pair in self.offloads]]


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a virtual machine is like. Another one needs another start, and another image another disk."""

    image: str
    cpus: int
    memory_mib: int
    cards: tuple[Card, ...]

    def as_data(self) -> dict[str, t.Any]:
        """As kept in a file, to be compared with what was read from it."""
        return {
            "image": self.image,
            "cpus": self.cpus,
            "memory_mib": self.memory_mib,
            "cards": [card.as_data() for card in self.cards],
        }


def mac_address(lab: str, node: str, interface: str) -> str:
    """The same at each start; locally administered."""
    digest = hashlib.sha256(f"{lab}/{node}/{interface}".encode("ascii")).hexdigest()
    return ":".join(["02", *(digest[at : at + 2] for at in range(0, 10, 2))])


def spec(topology: Topology, node: Node, image_key: str) -> Spec:
    ends = sorted((end for each in topology.cables for end in each.ends if end.node == node.name), key=lambda e: e.key)
    cards = tuple(
        Card(
            end.interface, mac_address(topology.name, node.name, end.interface), end.queues, end.mtu_bytes, end.offloads
        )
        for end in ends
    )
    return Spec(image_key, node.cpus, node.memory_mib, cards)


def preflight() -> None:
    missing = [tool for tool in TOOLS if not machine.has_tool(tool)]
    if missing:
        raise LabError(
            f"not installed: {', '.join(missing)}, which virtual machines need",
            remedy=f"Install {', '.join(sorted({TOOLS[tool] for tool in missing}))}, or use the role lab, which does",
            code="tool_absent",
        )


def tap(number: int) -> str:
    """The tap device of a guest's card. No interface of a topology can have such a name."""
    return f"{cable.OWN_PREFIX}tap{number}"


# -- finding -----------------------------------------------------------------------------------------------


def find(names: LabNames, host: str, site: Site) -> Process | None:
    """The QEMU process of a host, looked for in its control group."""
    for pid in machine.cgroup_processes(launch.cgroup(names, host, site)):
        if machine.command_name(pid).startswith("qemu-system"):
            return machine.process(pid)
    return None


def is_ready(names: LabNames, host: str, found: Process) -> bool:
    """Whether this very process was seen up and noted for the connection plugin."""
    try:
        with open(names.init_file(host), encoding="utf-8") as source:
            record = json.load(source)
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return bool(Process(record["pid"], record["start_ticks"]) == found and found.alive())


def read_spec(names: LabNames, host: str) -> dict[str, t.Any] | None:
    try:
        with open(names.spec_file(host), encoding="utf-8") as source:
            return t.cast("dict[str, t.Any]", json.load(source))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


# -- starting ----------------------------------------------------------------------------------------------


def qemu_command(names: LabNames, host: str, wanted: Spec, accelerator: str) -> list[str]:
    folder = names.host_folder(host)
    base = image.image(wanted.image)
    # Without an option ROM a card costs the firmware no time.
    device = "virtio-net-pci,romfile="
    argv = [
        *(accel.QEMU, "-name", names.netns(host), "-nodefaults", "-no-user-config", "-display", "none"),
        *("-machine", "q35", *accel.ACCEL_OPTIONS[accelerator]),
        *("-smp", str(wanted.cpus), "-m", str(wanted.memory_mib)),
        *("-kernel", base.kernel, "-initrd", base.initrd, "-append", kernel_line(names, host)),
        *("-drive", f"file={folder}/disk.qcow2,format=qcow2,if=none,id=root,cache=unsafe,discard=unmap"),
        *("-device", "virtio-blk-pci,drive=root"),
        *("-drive", f"file={folder}/seed.tar,format=raw,if=none,id=seed,readonly=on"),
        *("-device", f"virtio-blk-pci,drive=seed,serial={image.SEED_SERIAL}"),
        *("-device", "virtio-rng-pci"),
        *("-serial", f"file:{names.console_log(host)}", "-serial", f"file:{names.ready_file(host)}"),
        "-netdev",
        f"user,id={MANAGEMENT},net={MANAGEMENT_NETWORK},host={MANAGEMENT_HOST},ipv6=off,restrict=on"
        f",hostfwd=tcp:127.0.0.1:{SSH_PORT}-{MANAGEMENT_GUEST}:{SSH_PORT}",
        *("-device", f"{device},netdev={MANAGEMENT},mac={mac_address(names.lab, host, MANAGEMENT)}"),
    ]
    vhost = ",vhost=on" if accelerator == accel.KVM and os.path.exists("/dev/vhost-net") else ""
    for number, card in enumerate(wanted.cards):
        many = f",queues={card.queues}" if card.queues > 1 else ""
        argv += ["-netdev", f"tap,id=card{number},ifname={tap(number)},script=no,downscript=no{many}{vhost}"]
        # One interrupt for each queue and direction, one for the settings, one for the control queue.
        many = f",mq=on,vectors={2 * card.queues + 2}" if card.queues > 1 else ""
        argv += ["-device", f"{device},netdev=card{number},mac={card.mac},host_mtu={card.mtu_bytes}{many}"]
    return argv


def kernel_line(names: LabNames, host: str) -> str:
    identity = uuid.uuid5(uuid.NAMESPACE_DNS, names.netns(host)).hex
    return (
        f"root=LABEL={image.ROOT_LABEL} rw console=ttyS0 quiet net.ifnames=0 panic=10"
        f" systemd.hostname={host} systemd.machine_id={identity} systemd.show_status=1"
        # Nobody logs in on the console. On a busy machine a start takes longer than systemd allows for.
        f" systemd.getty_auto=no systemd.default_timeout_start_sec={BOOT_TIMEOUT_S[accel.TCG]:.0f}"
    )


def seed(names: LabNames, host: str, wanted: Spec, keys: t.Mapping[str, str]) -> bytes:
    """A tar archive of what makes an image this one host."""
    cards = [Card(MANAGEMENT, mac_address(names.lab, host, MANAGEMENT)), *wanted.cards]
    files = {
        "etc/fastpath-lab/setup": (_SETUP, 0o755),
        "etc/fastpath-lab/interfaces": (
            "".join(f"{card.mac} {card.name} {card.mtu_bytes} {card.queues}\n" for card in cards),
            0o644,
        ),
        "etc/fastpath-lab/offloads": (
            "".join(
                f"{card.name} {name} {cable.LONG_NAMES.get(name, name)} {'on' if on else 'off'}\n"
                for card in cards
                for name, on in card.offloads
            ),
            0o644,
        ),
        "etc/hostname": (f"{host}\n", 0o644),
        "etc/hosts": (f"127.0.0.1 localhost\n127.0.1.1 {host}\n::1 localhost ip6-localhost ip6-loopback\n", 0o644),
        "etc/ssh/ssh_host_ed25519_key": (keys["host_private"], 0o600),
        "etc/ssh/ssh_host_ed25519_key.pub": (keys["host_public"], 0o644),
        "root/.ssh/authorized_keys": (keys["user_public"], 0o600),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        folder = tarfile.TarInfo("root/.ssh")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(folder)
        for name, (text, mode) in files.items():
            data = text.encode("utf-8")
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _keys(names: LabNames, host: str) -> dict[str, str]:
    """The lab's key to its hosts and the host's own key, made when they are not there."""
    for path in (names.key_file, names.host_key_file(host)):
        if not os.path.exists(path):
            new = path + ".new"
            for half in (new, new + ".pub"):
                if os.path.exists(half):
                    os.unlink(half)
            machine.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"lab {names.lab}", "-f", new])
            os.replace(new + ".pub", path + ".pub")
            os.replace(new, path)
    return {
        "user_public": _text(names.key_file + ".pub"),
        "host_private": _text(names.host_key_file(host)),
        "host_public": _text(names.host_key_file(host) + ".pub"),
    }


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as source:
        return source.read()


def _write(path: str, text: str, mode: int = 0o644) -> None:
    files.replace_file(path, text.encode(), mode=mode, durable=False)


def ssh_script(names: LabNames, host: str) -> str:
    """An ssh that ends in this host, whatever name it is given: for Ansible, and for a person."""
    script = shlex.quote(names.ssh_script(host))
    return (
        "#!/bin/sh\n"
        f"# ssh to host {host} of lab {names.lab}, from its own network namespace.\n"
        f'[ "$(id -u)" = 0 ] || exec sudo -n {script} "$@"\n'
        f"exec nsenter --net={shlex.quote(names.netns_file(host))} -- ssh -F {shlex.quote(names.ssh_config(host))} "
        '"$@"\n'
    )


def ssh_config(names: LabNames, host: str) -> str:
    return (
        "Host *\n"
        "    HostName 127.0.0.1\n"
        f"    HostKeyAlias {host}\n"
        f"    Port {SSH_PORT}\n"
        "    User root\n"
        f"    IdentityFile {names.key_file}\n"
        "    IdentitiesOnly yes\n"
        f"    UserKnownHostsFile {names.known_hosts(host)}\n"
        "    StrictHostKeyChecking yes\n"
        "    PreferredAuthentications publickey\n"
        # A guest in software answers slowly; one that hangs is to be noticed all the same.
        "    ConnectTimeout 60\n"
        "    ServerAliveInterval 30\n"
        "    ServerAliveCountMax 6\n"
    )


def make_namespace(names: LabNames, host: str, wanted: Spec) -> None:
    """Taps, loopback, and no address of the namespace's own: whatever comes in belongs to the guest."""
    cable.make_netns(names, host)
    lines = []
    for number, card in enumerate(wanted.cards):
        many = " multi_queue" if card.queues > 1 else ""
        lines.append(f"tuntap add dev {tap(number)} mode tap{many}")
        lines.append(f"link set {tap(number)} mtu {card.mtu_bytes} up")
    in_netns = ["nsenter", f"--net={names.netns_file(host)}", "--"]
    quiet = "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6"
    if os.path.isdir("/proc/sys/net/ipv6"):
        machine.run([*in_netns, "sh", "-c", quiet])
    machine.run([*in_netns, "ip", "-batch", "-"], stdin="\n".join(["link set lo up", *lines]) + "\n")


def join(names: LabNames, host: str, wanted: Spec, interfaces: t.Container[str]) -> None:
    """Join the ends of cables to the guest's cards."""
    for number, card in enumerate(wanted.cards):
        if card.name in interfaces:
            cable.join(names, host, card.name, tap(number))


def start(names: LabNames, host: str, wanted: Spec, site: Site) -> subprocess.Popen[bytes] | None:
    """Set a host going on its own disk, which is made when it has none. Its namespace exists already."""
    folder = names.host_folder(host)
    os.makedirs(folder, exist_ok=True)
    base = image.image(wanted.image)
    accelerator = accel.choose(base)
    keys = _keys(names, host)
    disk = f"{folder}/disk.qcow2"
    if not os.path.exists(disk):
        machine.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", base.disk, disk + ".new"])
        os.replace(disk + ".new", disk)
    with open(f"{folder}/seed.tar", "wb") as target:
        target.write(seed(names, host, wanted, keys))
    os.chmod(f"{folder}/seed.tar", 0o600)
    _write(names.known_hosts(host), f"{host} {keys['host_public']}")
    _write(names.ssh_config(host), ssh_config(names, host))
    _write(names.ssh_script(host), ssh_script(names, host), 0o755)
    for path in (names.console_log(host), names.ready_file(host)):
        with open(path, "w", encoding="utf-8"):
            pass  # of the last boot only
    _write(names.spec_file(host), json.dumps({**wanted.as_data(), "accelerator": accelerator}))
    argv = ["nsenter", f"--net={names.netns_file(host)}", "--", *qemu_command(names, host, wanted, accelerator)]
    script = "\n".join([*launch.script_head(names, host, site), f"exec {shlex.join(argv)}"]) + "\n"
    return launch.set_going(names, host, site, script)


def wait_ready(names: LabNames, hosts: t.Mapping[str, subprocess.Popen[bytes] | None], site: Site) -> None:
    """Wait until each guest says that sshd runs. One that cannot come up is stopped, and its console quoted."""
    begun = time.monotonic()
    waiting = list(hosts)
    while waiting:
        for host in list(waiting):
            found = find(names, host, site)
            said = _text(names.ready_file(host)) if os.path.exists(names.ready_file(host)) else ""
            limit_s = BOOT_TIMEOUT_S[(read_spec(names, host) or {}).get("accelerator", accel.TCG)]
            starter = hosts[host]
            how = ""
            if "failed: " in said:
                how = "is not up: " + said.partition("failed: ")[2].strip().splitlines()[0]
            elif found is not None and "ready" in said.split():
                launch.write_init_record(names, host, {"kind": "vm", **dataclasses.asdict(found)})
                waiting.remove(host)
            elif found is None and (
                time.monotonic() - begun > VANISHED_S if starter is None else starter.poll() is not None
            ):
                how = "ended while it started"
            elif RESTARTED in _text(names.console_log(host)):
                how = "restarts before it is up"
            elif time.monotonic() - begun > limit_s:
                how = f"is not up after {limit_s:.0f} s"
            if how:
                failure = launch.failed(names, host, how)
                launch.stop(names, host, site)
                raise failure
        if waiting:
            time.sleep(POLL_S)
