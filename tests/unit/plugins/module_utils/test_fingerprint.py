# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import errno
import json
import os
import pathlib
import struct
import time

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._host import fingerprint, nicinfo

CPUINFO_X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 17
model name\t: AMD EPYC
stepping\t: 1
microcode\t: 0x1000065
flags\t\t: fpu aes avx2 avx512f constant_tsc hypervisor pclmulqdq

processor\t: 1
model name\t: another
"""
CPUINFO_ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd aes pmull sha1 sha2 sve
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd40
CPU revision\t: 1
"""

# iproute2 6.1.0
ADDRESS = [
    {
        "ifindex": 4, "ifname": "eth0", "flags": ["BROADCAST", "UP"], "mtu": 1400,
        "addr_info": [
            {"family": "inet6", "local": "fe80::1", "prefixlen": 64, "scope": "link", "valid_life_time": 4294967295},
            {"family": "inet", "local": "192.0.2.2", "prefixlen": 24, "scope": "global", "label": "eth0",
             "valid_life_time": 80000, "preferred_life_time": 80000},
            {"family": "inet6", "local": "2001:db8::99", "prefixlen": 64, "temporary": True, "valid_life_time": 3},
        ],
    },
]  # fmt: skip
ROUTE4 = [
    {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []},
    {"dst": "10.1.0.0/24", "dev": "eth1", "flags": ["linkdown", "dead"]},
    {"type": "local", "dst": "192.0.2.2", "dev": "eth0", "table": "local", "protocol": "kernel", "flags": []},
]
ROUTE6 = [
    {"dst": "default", "gateway": "fe80::9", "dev": "eth0", "protocol": "ra", "expires": 1700, "flags": []},
    {"dst": "fd00::/64", "dev": "eth0", "protocol": "kernel", "metric": 256, "flags": []},
    {"type": "multicast", "dst": "ff00::/8", "dev": "eth0", "table": "local", "flags": []},
]
ANSWERS = {
    "ethtool": (0, "ethtool version 6.1\n"),
    "ip": (0, "ip utility, iproute2-6.1.0, libbpf 1.1.2\n"),
    "iperf": (0, "iperf version 2.1.8 (12 August 2022) pthreads\n"),
    "iperf3": (0, "iperf 3.12 (cJSON 1.7.15)\nLinux vm 6.18\n"),
    "ping": (0, "ping from iputils 20221126\nlibcap: yes\n"),
    "swanctl": (127, "not installed"),
    "tc": (0, "tc utility, iproute2-6.1.0, libbpf 1.1.2\n"),
    "address": (0, json.dumps(ADDRESS)),
    "route4": (0, json.dumps(ROUTE4)),
    "route6": (0, json.dumps(ROUTE6)),
    "rule4": (0, '[{"priority":0,"src":"all","table":"local"}]'),
    "rule6": (0, "[]"),
    "vm": (0, "kvm\n"),
    "container": (1, "none\n"),
    "deb vpp": (0, "25.06-release"),
    "rpm vpp": (127, "not installed"),
}


def put(root: pathlib.Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    """A host with 256 threads on 128 cores in 2 sockets and one NIC."""
    cpu = "sys/devices/system/cpu"
    files = {
        "proc/cpuinfo": CPUINFO_X86,
        "proc/meminfo": "MemTotal:       24684084 kB\nHugePages_Total:       0\nHugepagesize:       2048 kB\n",
        "proc/stat": "cpu  1 2 3\nbtime 1796035352\n",
        "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro isolcpus=2-3 rd.iscsi.password=hunter2\n",
        "proc/sys/kernel/random/boot_id": "b4118aa8-bfad-4463-b1a6-2af16a976115\n",
        "proc/sys/kernel/osrelease": "6.18.44\n",
        "proc/sys/kernel/version": "#1 SMP\n",
        "proc/sys/net/ipv4/ip_forward": "1\n",
        "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "proc/sys/net/ipv4/conf/all/rp_filter": "0\n",
        "proc/sys/net/ipv4/conf/default/rp_filter": "2\n",
        "proc/sys/net/ipv4/conf/eth0/rp_filter": "1\n",
        "proc/sys/net/ipv4/conf/lo/rp_filter": "0\n",
        "proc/77/comm": "irqbalance\n",
        "etc/os-release": 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n# c\n',
        f"{cpu}/online": "0-255\n",
        f"{cpu}/isolated": "\n",
        f"{cpu}/vulnerabilities/meltdown": "Not affected\n",
        f"{cpu}/cpufreq/policy0/scaling_governor": "powersave\n",
        f"{cpu}/cpufreq/policy0/scaling_driver": "intel_pstate\n",
        f"{cpu}/cpufreq/policy10/scaling_governor": "powersave\n",
        f"{cpu}/intel_pstate/no_turbo": "0\n",
        f"{cpu}/cpu0/cpuidle/state2/disable": "1\n",
        f"{cpu}/cpu0/cpuidle/state1/disable": "0\n",
        "sys/devices/system/node/node0/cpulist": "0-127\n",
        "sys/devices/system/node/node1/cpulist": "128-255\n",
        "sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages": "512\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "512\n",
        "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "0\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
        "sys/class/net/bonding_masters": "\n",
        "sys/class/net/lo/ifindex": "1\n",
    }
    for number in range(256):
        files[f"{cpu}/cpu{number}/topology/physical_package_id"] = f"{number % 128 // 64}\n"
        files[f"{cpu}/cpu{number}/topology/core_id"] = f"{number % 64}\n"
    nic = "sys/class/net/eth0"
    files.update(
        {f"{nic}/{name}": value + "\n" for name, value in
         {"ifindex": "2", "flags": "0x1103", "mtu": "9000", "tx_queue_len": "1000", "speed": "100000", "duplex": "full",
          "device/numa_node": "1", "device/msi_irqs/40": "msix"}.items()}
    )  # fmt: skip
    for queue in range(12):
        files[f"{nic}/queues/rx-{queue}/rps_cpus"] = "00000000,0000000f,fffc0000\n"
        files[f"{nic}/queues/rx-{queue}/rps_flow_cnt"] = "0\n"
        files[f"{nic}/queues/tx-{queue}/xps_cpus"] = "0\n"
    files["proc/irq/40/smp_affinity_list"] = "0-255\n"
    put(tmp_path, files)
    return tmp_path


def ask(_name: str, request: bytes) -> bytes:
    """A NIC that knows its driver, its rings and two offloads."""
    (command,) = struct.unpack_from("=I", request)
    if command == 0x03:
        return struct.pack("=I32s32s32s32s", 3, b"ice", b"1.14", b"4.40 0x8001", b"0000:3b:00.0") + request[132:]
    if command == 0x10:
        return struct.pack("=9I", 0x10, 8160, 0, 0, 8160, 2048, 0, 0, 2048)
    if command == 0x37:
        (mask,) = struct.unpack_from("=Q", request, 8)
        return struct.pack("=IIQI", 0x37, 0, mask & 1 << 4, 3 if mask == 1 << 4 else 0)
    if command == 0x1B:
        return request[:12] + b"".join(name.ljust(32, b"\0") for name in (b"tx-scatter-gather", b"rx-gro", b"highdma"))
    if command == 0x3A:
        return struct.pack("=II4I", 0x3A, 1, 0b011, 0b011, 0b101, 0b100)
    raise OSError(errno.EOPNOTSUPP, "Operation not supported")


def collect(root: pathlib.Path, answers=None, **options):
    told = {**ANSWERS, **(answers or {})}
    options.setdefault("ask", ask)
    return fingerprint.Collector(root=str(root), run=lambda _commands: told, **options).collect()


def test_a_whole_host(root):
    found = collect(root)
    cpu = found["cpu"]
    assert (cpu["threads"], cpu["cores"], cpu["sockets"]) == (256, 128, 2)
    assert cpu["numa_nodes"] == {"0": "0-127", "1": "128-255"}
    assert cpu["microcode"] == "0x1000065"
    assert cpu["vulnerabilities"] == {"meltdown": "Not affected"}
    assert found["hypervisor"] == "kvm"
    assert found["container"] is None
    assert found["kernel"]["isolated_cpus"] == ""  # none, which is not the same as unknown
    assert found["kernel"]["nohz_full_cpus"] is None
    assert "hunter2" not in json.dumps(found)
    assert found["tools"] == {
        "ethtool": "6.1", "ip": "6.1.0", "iperf": "2.1.8", "iperf3": "3.12", "ping": "20221126", "swanctl": None,
        "tc": "6.1.0", "vpp": "25.06-release",
    }  # fmt: skip
    assert found["unknown"]["tools.swanctl"] == "not installed"
    assert list(found["interfaces"]) == ["eth0"]
    nic = found["interfaces"]["eth0"]
    assert (nic["driver"], nic["firmware"], nic["bus"]) == ("ice", "4.40 0x8001", "0000:3b:00.0")
    assert (nic["speed_bps"], nic["numa_node"], nic["rx_queues"]) == (100_000_000_000, 1, 12)
    assert nic["fixed_offloads"] == ["highdma"]
    assert found["memory"]["total_bytes"] == 24684084 * 1024


def test_a_set_of_cpus_that_was_never_set_is_empty(root):
    put(root, {"sys/devices/system/cpu/nohz_full": "  (null)\n"})
    assert collect(root)["kernel"]["nohz_full_cpus"] == ""


def test_its_state(root):
    state = collect(root)["state"]
    assert state["sysctls"]["net/ipv4/conf/eth0/rp_filter"] == "1"
    assert state["sysctls"]["net/ipv4/conf/all/rp_filter"] == "0"
    assert state["sysctls"]["net/ipv4/tcp_rmem"] == "4096 131072 6291456"
    assert "net/ipv4/conf/lo/rp_filter" not in state["sysctls"]
    nic = state["interfaces"]["eth0"]
    assert (nic["up"], nic["promiscuous"], nic["mtu_bytes"]) == (True, True, 9000)
    assert nic["offloads"] == {"rx-gro": False, "tx-scatter-gather": True}
    assert (nic["rings"]["rx"], nic["channels"]) == (2048, None)
    assert list(nic["queues"])[:3] == ["rx-0", "rx-1", "rx-2"]
    assert nic["queues"]["tx-3"] == {"xps_cpus": "0"}
    assert nic["irq_affinity"] is None  # irqbalance runs and moves them
    assert state["services"]["irqbalance"] is True
    assert state["addresses"] == {
        "eth0": [
            {"family": "inet", "local": "192.0.2.2", "prefixlen": 24, "scope": "global", "label": "eth0"},
        ]
    }
    assert [route["dst"] for route in state["routes"]] == ["default", "10.1.0.0/24"]
    assert list(state["power"]["policies"]) == ["policy0", "policy10"]
    assert state["power"]["idle_states_disabled"] == ["cpu0/cpuidle/state2"]
    assert state["memory"]["hugepages"] == {"2097152": 512, "1073741824": 0}
    assert state["memory"]["hugepages_by_node"] == {"1": {"2097152": 512}}
    assert state["memory"]["transparent_hugepages"] == "madvise"


def test_interrupts_stay_when_nobody_moves_them(root):
    os.unlink(root / "proc/77/comm")
    assert collect(root)["state"]["interfaces"]["eth0"]["irq_affinity"] == {"40": "0-255"}


def test_digests_do_not_move_by_themselves(root):
    before = collect(root)
    put(root, {"proc/stat": "btime 1796039999\n", "proc/sys/kernel/random/boot_id": "another\n",
               "proc/sys/net/netfilter/nf_conntrack_max": "262144\n"})  # fmt: skip
    older = copy.deepcopy(ADDRESS)
    older[0]["addr_info"][1]["valid_life_time"] = 79000
    del older[0]["addr_info"][2]
    routes = [dict(ROUTE6[0], expires=1500), *ROUTE6[1:]]
    after = collect(root, {"address": (0, json.dumps(older)), "route6": (0, json.dumps(routes))})
    assert before["digests"] == after["digests"]
    assert before["machine"] != after["machine"]
    assert json.dumps(before["state"]) == json.dumps(after["state"])


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("proc/sys/net/ipv4/ip_forward", "0", "sysctls/net/ipv4/ip_forward"),
        ("sys/class/net/eth0/mtu", "1500", "interfaces/eth0/mtu_bytes"),
        ("sys/class/net/eth0/queues/rx-11/rps_cpus", "0", "interfaces/eth0/queues/rx-11/rps_cpus"),
        (
            "sys/devices/system/cpu/cpufreq/policy10/scaling_governor",
            "performance",
            "power/policies/policy10/scaling_governor",
        ),
        ("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "4", "memory/hugepages/1073741824"),
    ],
)
def test_a_changed_setting_shows(root, path, value, where):
    before = collect(root)
    put(root, {path: value + "\n"})
    after = collect(root)
    assert before["digests"]["identity"] == after["digests"]["identity"]
    assert before["digests"]["state"] != after["digests"]["state"]
    assert [difference["path"] for difference in fingerprint.differences(before["state"], after["state"])] == [where]


def test_changed_hardware_shows_in_the_identity_alone(root):
    before = collect(root)
    put(root, {"proc/cpuinfo": CPUINFO_X86.replace("0x1000065", "0x1000099")})
    after = collect(root)
    assert before["digests"]["state"] == after["digests"]["state"]
    assert before["digests"]["identity"] != after["digests"]["identity"]


def test_a_bare_tree_is_unknown_and_not_zero(tmp_path):
    nothing = dict.fromkeys(ANSWERS, (127, "not installed"))
    found = collect(tmp_path, nothing, ask=None)
    assert found["cpu"]["threads"] is None
    assert found["memory"]["total_bytes"] is None
    assert found["hypervisor"] is None
    assert found["machine"]["kernel_instance"] is None
    assert found["state"]["routes"] is None
    assert found["state"]["power"]["policies"] is None
    assert {"cpu", "cpu.microcode", "hypervisor", "state.addresses", "state.power.policies", "tools.iperf"} <= set(
        found["unknown"]
    )


def test_ip_that_fails_is_unknown(root):
    found = collect(root, {"route4": (1, "RTNETLINK answers: Operation not permitted\n"), "address": (0, "not json")})
    assert found["state"]["routes"] is None
    assert found["unknown"]["state.routes"] == "ip: RTNETLINK answers: Operation not permitted"
    assert found["unknown"]["state.addresses"] == "ip: not JSON"


def test_interface_that_is_not_there(root):
    with pytest.raises(BenchError, match="no interface eth7"):
        collect(root, interfaces=["eth7"])


def test_nspawn_hosts_share_their_kernel(root):
    found = collect(root, {"container": (0, "systemd-nspawn\n")})
    assert found["machine"]["boot_id"] is None
    assert found["machine"]["kernel_instance"] == collect(root)["machine"]["kernel_instance"]


@pytest.mark.parametrize(
    ("vendor", "product", "expected"),
    [
        ("QEMU", "Standard PC (Q35 + ICH9, 2009)", "qemu"),
        ("VMware, Inc.", "VMware Virtual Platform", "vmware"),
        ("Microsoft Corporation", "Virtual Machine", "microsoft"),
        ("Microsoft Corporation", "Surface Laptop", None),
        ("Amazon EC2", "c6i.large", "amazon"),
        ("Amazon EC2", "c6i.metal", None),
        ("Dell Inc.", "PowerEdge R650", None),
        ("", "", None),
    ],
)
def test_hypervisor_by_firmware(vendor, product, expected):
    assert fingerprint.hypervisor_by_firmware(vendor, product) == expected


def test_hypervisor_without_any_tool(root):
    missing = {"vm": (127, "not installed")}
    assert collect(root, missing)["hypervisor"] == "unknown"  # the CPU says that there is one
    put(root, {"sys/class/dmi/id/sys_vendor": "VMware, Inc.\n", "sys/class/dmi/id/product_name": "VMware20,1\n"})
    assert collect(root, missing)["hypervisor"] == "vmware"


@pytest.mark.parametrize(("clocks", "expected"), [("tsc kvm-clock acpi_pm\n", "kvm"), ("tsc hpet acpi_pm\n", "qemu")])
def test_qemu_by_its_firmware_is_an_emulator_only_without_kvm(root, clocks, expected):
    put(root, {"sys/class/dmi/id/sys_vendor": "QEMU\n", "sys/class/dmi/id/product_name": "Standard PC (i440FX)\n",
               "sys/devices/system/clocksource/clocksource0/available_clocksource": clocks})  # fmt: skip
    assert collect(root, {"vm": (127, "not installed")})["hypervisor"] == expected


def test_cpuinfo_of_arm():
    cpu = fingerprint.parse_cpuinfo(CPUINFO_ARM)
    assert cpu["flags"] == ["aes", "pmull", "sha1", "sha2", "sve"]
    assert (cpu["vendor"], cpu["model_number"], cpu["virtual"]) == ("0x41", "0xd40", None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ro quiet isolcpus=2-3 hugepagesz=1G", "ro quiet isolcpus=2-3 hugepagesz=1G"),
        ("root=UUID=a0b1c2d3-0123-4567-89ab-0123456789ab", "root=UUID=a0b1c2d3-0123-4567-89ab-0123456789ab"),
        (
            "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-5.14.0-427.13.1.el9_4.x86_64",
            "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-5.14.0-427.13.1.el9_4.x86_64",
        ),
        ("iommu.passthrough=1 iommu=pt", "iommu.passthrough=1 iommu=pt"),
        ("mitigations=auto,nosmt intel_pstate=passive", "mitigations=auto,nosmt intel_pstate=passive"),
        (
            "root=/dev/mapper/vg-root crashkernel=1G-4G:192M,4G-64G:256M",
            "root=/dev/mapper/vg-root crashkernel=1G-4G:192M,4G-64G:256M",
        ),
        ("a=1 -- --auth=s3cret token", "a=1 -- <redacted>"),
        ("rd.iscsi.password=hunter2", "rd.iscsi.password=<redacted>"),
        ("rd.luks.key=/key", "rd.luks.key=<redacted>"),
        ("netroot=iscsi:bob:pw@10.0.0.1::3260:iqn", "netroot=<redacted>"),
        ("inst.ks=http://bob:pw@h/ks.cfg", "inst.ks=<redacted>"),
        ("inst.ks=http://h/ks.cfg?t=abc", "inst.ks=<redacted>"),
        ('systemd.setenv="API_TOKEN=abc def" ro', "systemd.setenv=<redacted> ro"),
        ("ds=nocloud;password=x", "ds=<redacted>"),
        ("machine=QWxhZGRpbjpvcGVuIHNlc2FtZTEyMzQ1Ng==", "machine=<redacted>"),
        ("c29tZXNlY3JldGJsb2I5OTk5OTk5OTk5", "<redacted>"),
    ],
)
def test_command_line_without_secrets(text, expected):
    assert fingerprint.redact_cmdline(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("iperf version 2.0.5 (08 Jul 2010) pthreads", "2.0.5"),
        ("iperf 3.17.1+ (cJSON 1.7.15)", "3.17.1+"),
        ("ip utility, iproute2-ss190107", None),
        ("ping from iputils s20180629", None),
        ("strongSwan swanctl 5.9.8", "5.9.8"),
        ("ethtool version 6", "6"),
        ("sh: not found", None),
        ("", None),
    ],
)
def test_versions(text, expected):
    assert fingerprint.parse_version(text) == expected


def test_commands_run_side_by_side_and_within_a_bound(monkeypatch):
    monkeypatch.setattr(fingerprint, "_COMMAND_LIMIT_S", 0.4)
    begun = time.monotonic()
    answers = fingerprint.run_all(
        {
            "one": ("sh", "-c", "sleep 0.1; echo 1 >&2"),
            "two": ("sh", "-c", "sleep 0.1; echo 2; exit 3"),
            "hang": ("sleep", "20"),
            "none": ("no-such-tool-at-all",),
        }
    )
    assert time.monotonic() - begun < 2
    assert answers["one"] == (0, "1\n")
    assert answers["two"] == (3, "2\n")
    assert answers["hang"][0] == 124
    assert answers["none"] == (127, "not installed")


def test_differences():
    assert fingerprint.differences({"a": {"b": 1, "c": None}}, {"a": {"b": 2}}) == [
        {"path": "a/b", "before": 1, "after": 2}
    ]
    assert fingerprint.differences({"a": 0}, {"a": None}) == [{"path": "a", "before": 0, "after": None}]


def test_nic_answers_that_do_not_fit_are_errors_of_the_device():
    def gone(_name: str, _request: bytes) -> bytes:
        raise OSError(errno.ENODEV, "No such device")

    with pytest.raises(OSError, match="No such device"):
        nicinfo.Nic("eth0", gone).rings()
    assert nicinfo.Nic("eth0", ask).channels() is None
    assert nicinfo.Nic("eth0", ask).statistic_names() == []
