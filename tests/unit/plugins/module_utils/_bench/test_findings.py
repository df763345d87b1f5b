# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._bench import findings, observed
from ansible_collections.fastpath.bench.plugins.module_utils._bench.findings import PointView, RunView, assess
from ansible_collections.fastpath.bench.plugins.module_utils._bench.stats import summarise
from ansible_collections.fastpath.bench.plugins.module_utils._vpp import runtime
from ansible_collections.fastpath.bench.tests.unit.fake_run import metric, sample, trial, vpp_runtime

DOC = pathlib.Path(__file__).parents[5] / "docs" / "findings.md"
BOTH = "lab.routed.kernel.tcp_large.both"
#: Recorded in the lab: TCP through VPP's af_packet between veth pairs, on two busy CPUs.
RECORDED = pathlib.Path(__file__).parents[3] / "fixtures" / "bench" / "trial-vpp-af_packet.json"
UDP = "lab.routed.kernel.udp_small.forward"


def codes(made):
    return {finding.code for finding in assess(made).findings}


def evidence(made, code):
    found = [finding.evidence for finding in assess(made).findings if finding.code == code]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    "point_id",
    ["lab.routed.kernel.tcp_large.forward", "lab.direct.none.tcp_large.reverse", BOTH, "lab.direct.none.x.both"],
)
def test_a_good_trial_has_no_finding(point_id):
    assessment = assess(trial(point_id))
    assert assessment.findings == []
    assert assessment.status == "ok"


def with_metrics(made, **values):
    for key, value in values.items():
        made["metrics"][key]["value"] = value
    return made


def with_dut(made, **more):
    made["dut"] = {"dut": sample(**{"rx": {"eth1": (863_259, 1_306_974_126), "eth2": (400_000, 26_400_000)}, **more})}
    return made


# -- trial --------------------------------------------------------------------------------------------------------


def test_nothing_received_is_invalid_and_no_zero():
    made = with_metrics(trial(), goodput_forward=0)
    assessment = assess(made)
    assert (assessment.status, assessment.code) == ("invalid", "nothing_received")
    assert "0 bit/s forward" in assessment.reason


def test_nothing_received_in_both_directions():
    made = with_metrics(trial(BOTH), goodput_forward=0, goodput_reverse=0, goodput_total=0)
    assert assess(made).code == "nothing_received"


@pytest.mark.parametrize(("dead", "alive"), [("forward", "reverse"), ("reverse", "forward")])
def test_one_dead_direction_is_not_hidden_by_the_sum(dead, alive):
    made = with_metrics(trial(BOTH), **{f"goodput_{dead}": 0})
    assessment = assess(made)
    assert (assessment.status, assessment.code) == ("invalid", "one_direction_dead")
    assert assessment.reason == f"{dead} received 0 bit/s while {alive} received 2.50 Gbit/s"


def test_an_unknown_direction_is_not_a_dead_one():
    assert "one_direction_dead" not in codes(with_metrics(trial(BOTH), goodput_reverse=None))


def test_more_received_than_sent_is_implausible():
    made = with_metrics(trial(), goodput_forward=51e9, sent_rate_forward=1e6)
    assert evidence(made, "implausible_rate") == "forward: 51.0 Gbit/s received of 1.00 Mbit/s sent"
    assert assess(made).status == "invalid"


def test_more_received_than_asked_for_is_implausible():
    made = trial(UDP, rate_bps=512e6)
    made["metrics"]["offered_rate_forward"] = metric(1000, "packet/s", "forward", "offered")
    assert "of 1.00 kpps asked for" in evidence(made, "implausible_rate")


def test_more_received_than_sent_in_the_window_alone_is_its_edge():
    """Seen on a busy machine: 5.46 of 5.05 Gbit/s, and not a byte more over the whole run."""
    made = with_metrics(trial(), goodput_forward=5.46e9, sent_rate_forward=5.05e9)
    assert codes(made) == set()
    made = with_metrics(made, goodput_forward=7.5e9)
    assert "implausible_rate" in codes(made)
    made["counts"] = {"forward": {"sent_bytes": 2_000_000_000, "received_bytes": 2_000_000_000}}
    assert codes(made) == set()


@pytest.mark.parametrize(
    ("counts", "odd"),
    [
        ({"sent_bytes": 1_000_000, "received_bytes": 1_000_000}, False),
        ({"sent_bytes": 1_000_000, "received_bytes": 1_100_000}, True),
        ({"sent_packets": 1000, "received_packets": 1040}, False),
        ({"sent_packets": 100_000, "received_packets": 102_000}, True),
        ({"sent_packets": 100_000, "received_packets": 90_000, "sent_bytes": 1, "received_bytes": 5}, False),
        ({"sent_bytes": None, "received_bytes": 5}, False),
    ],
)
def test_more_received_than_sent_over_the_whole_run_is_invalid(counts, odd):
    made = trial(counts={"forward": counts})
    assert ("more_received_than_sent" in codes(made)) == odd
    assert assess(made).status == ("invalid" if odd else "ok")


def test_a_rate_above_the_link_is_implausible_when_the_link_did_not_count_it():
    made = with_dut(trial(rate_bps=15e9), rx={"eth1": (4_000_000, 2_400_000_000)})
    assert "dut eth1, a link of 10.0 Gbit/s that counted 9.60 Gbit/s" in evidence(made, "implausible_rate")


def test_the_speed_that_a_veth_pair_names_is_not_believed():
    made = with_dut(trial(rate_bps=20e9), rx={"eth1": (100_000, 5_100_000_000)})
    assert "implausible_rate" not in codes(made)


@pytest.mark.parametrize("point_id", ["lab.routed.kernel.tcp_large.forward", UDP, BOTH])
def test_traffic_that_did_not_pass_the_dut_is_invalid(point_id):
    made = with_dut(trial(point_id), rx={"eth1": (120, 9_000), "eth2": (100, 7_000)})
    assessment = assess(made)
    assert (assessment.status, assessment.code) == ("invalid", "dut_saw_no_traffic")
    assert "the endpoints received" in assessment.reason


@pytest.mark.parametrize(("payload", "mtu", "cut"), [(64, 1500, 0), (1472, 1500, 0), (1473, 1500, 1), (8000, 9000, 0)])
def test_datagrams_that_do_not_fit_are_fragments(payload, mtu, cut):
    made = with_metrics(trial(UDP), goodput_forward=8e4 * payload, forwarding_rate_forward=1e4)
    made["endpoints"] = {"client": sample(rx={"eth1": (1000, 100_000), "eth9": (0, 0)})}
    made["endpoints"]["client"]["interfaces"]["eth1"]["mtu_bytes"] = mtu
    made["endpoints"]["client"]["interfaces"]["eth9"]["mtu_bytes"] = 576
    made["dut"] = {}
    assert [f.evidence for f in assess(made).findings if f.code == "fragmented_datagrams"] == [
        f"forward: datagrams of {payload:,} bytes and 28 bytes of headers, client eth1 has MTU {mtu:,}"
    ] * cut


def test_a_dut_that_tells_packets_only_is_held_against_the_packet_rate():
    made = with_dut(trial(UDP), rx={"eth1": (120, 0)})
    made["dut"]["dut"]["interfaces"]["eth1"]["rx_bytes"] = None
    assert "pps" in evidence(made, "dut_saw_no_traffic")


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"dut": {}},
        {"dut": None},
        {"dut": {"dut": None}},
        {
            "dut": {
                "dut": {"cpu": None, "interfaces": None, "softnet": None, "window": {}, "reason": "the sampler died"}
            }
        },
        {"dut": {"dut": {"cpu": {"cpus": [{"cpu": 0, "busy": None}]}, "interfaces": {"eth1": {"rx_bytes": None}}}}},
    ],
)
def test_a_dut_that_was_not_observed_is_told_and_leads_to_no_other_conclusion(broken):
    assert codes(trial(**{"dut": {}, **broken})) == {"dut_not_observed"}


def test_the_reason_of_a_missing_sample_is_the_evidence():
    made = trial(dut={"dut": {"reason": "the sampler died", "window": {}}})
    assert evidence(made, "dut_not_observed") == "dut: the sampler died"


def test_segments_larger_than_the_mtu_are_not_packets():
    made = with_dut(trial(), rx={"eth1": (40_000, 40_000 * 33_000)})
    assert evidence(made, "gso_segments") == (
        "dut eth1: mean received frame 33,000 bytes, MTU 1,500 + 14 bytes of header"
    )
    assert assess(made).status == "ok"


def test_a_full_frame_is_a_packet():
    assert "gso_segments" not in codes(with_dut(trial(), rx={"eth1": (1_000_000, 1_514_000_000)}))


def test_an_unknown_mtu_leads_to_no_conclusion():
    made = with_dut(trial(), rx={"eth1": (40_000, 40_000 * 33_000)})
    made["dut"]["dut"]["interfaces"]["eth1"]["mtu_bytes"] = None
    assert "gso_segments" not in codes(made)


def test_one_core_at_its_limit_names_what_it_did():
    made = with_dut(trial(), cpus=(0.1, 0.99, 0.2, 0.0))
    assert evidence(made, "single_core_saturated") == (
        "dut: CPU 1 99 % busy, mostly softirq (74 %), the other 3 on average 10 %"
    )


@pytest.mark.parametrize("cpus", [(0.94, 0.0), (0.99,), (0.99, 0.98), (0.99, 0.99, 0.2)])
def test_other_loads_are_not_one_core_at_its_limit(cpus):
    assert "single_core_saturated" not in codes(with_dut(trial(), cpus=cpus))


def test_a_polling_worker_of_vpp_is_no_sign_of_load():
    made = with_dut(trial(), cpus=(0.05, 1.0, 0.1), vpp={"version": "26.06"})
    made["dut"]["dut"]["cpu"]["cpus"][1].update(user=0.99, softirq=0.0, system=0.01)
    assert "single_core_saturated" not in codes(made)


def test_a_generator_at_its_limit():
    made = trial(endpoints={"client": sample(rx={}, cpus=(0.97, 0.96))})
    assert evidence(made, "endpoint_cpu_saturated").startswith("client: CPU 0 97 % busy")


def test_drops_in_softnet():
    made = with_dut(trial(), softnet={"dropped": 1234, "time_squeeze": 0})
    assert evidence(made, "softnet_drops") == "dut: 1,234 packets dropped in softnet during the trial"


def test_drops_and_errors_of_an_interface():
    made = with_dut(trial())
    made["dut"]["dut"]["interfaces"]["eth2"].update(rx_dropped=5, tx_errors=1)
    assert evidence(made, "interface_drops") == "dut eth2: 5 received and dropped, 1 send errors"


def test_a_stall_that_the_mean_hides():
    made = trial()
    made["intervals"][1]["bytes"] = made["intervals"][2]["bytes"] = 0
    assert evidence(made, "zero_intervals") == "forward: 2 of 4 intervals received 0 bytes"


def test_unknown_intervals_are_not_zero():
    made = trial()
    for interval in made["intervals"]:
        interval["bytes"] = None
    assert "zero_intervals" not in codes(made)


def test_many_retransmits():
    made = with_metrics(trial(rate_bps=1e9), retransmits_forward=3000)
    assert evidence(made, "retransmits_high") == (
        "forward: 3,000 retransmits in 2.00 s at 1.00 Gbit/s, about 1.7 % of the bytes"
    )
    assert "retransmits_high" not in codes(with_metrics(trial(rate_bps=1e9), retransmits_forward=1000))


def test_a_sender_that_could_not_send_as_asked():
    made = trial(UDP)
    made["metrics"]["offered_rate_forward"] = metric(2e8, "packet/s", "forward", "offered")
    assert "of 200 Mpps asked for" in evidence(made, "offered_below_intended")


def test_more_than_one_try():
    assert evidence(trial(tries=3), "setup_retried") == "set up at try 3"


def test_a_power_profile_without_effect():
    made = trial(power={"profile": "static_high", "effective": False, "reason": "800 MHz under load, asked for 3000"})
    assert evidence(made, "profile_not_effective") == "static_high: 800 MHz under load, asked for 3000"
    assert codes(trial(power={"effective": None})) == codes(trial(power={"effective": True})) == set()


# -- assessment ---------------------------------------------------------------------------------------------------


def test_what_the_trial_carries_counts_once():
    stored = {"code": "setup_retried", "severity": "info", "evidence": "stored", "remedy": "r"}
    made = trial(tries=2, findings=[stored])
    assert [finding.as_dict() for finding in assess(made).findings] == [stored]


def test_a_finding_of_a_generator_is_kept():
    stored = {"code": "one_way_traffic", "severity": "odd", "evidence": "e", "remedy": "r"}
    (found,) = assess(trial(findings=[stored, "nonsense", {"severity": "info"}])).findings
    assert (found.code, found.severity) == ("one_way_traffic", "warning")


def test_an_assessment_of_an_assessment_is_the_same():
    made = with_metrics(trial(BOTH), goodput_forward=0)
    first = assess(made)
    made.update(
        status=first.status, code=first.code, reason=first.reason, findings=[f.as_dict() for f in first.findings]
    )
    assert assess(made) == first


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_a_trial_without_figures_is_not_judged(status):
    made = with_metrics(trial(status=status, reason="no route", dut={}), goodput_forward=0)
    assessment = assess(made)
    assert (assessment.status, assessment.reason, assessment.findings) == (status, "no route", [])


# -- VPP ----------------------------------------------------------------------------------------------------------

DROPS = {
    "packets": 1234,
    "interfaces": {"host-eth1": {"drops": 1234, "rx-miss": 0}},
    "reasons": [
        {"node": "ip4-lookup", "reason": "no route", "count": 1200, "severity": "error"},
        {"node": "arp-input", "reason": "unresolved", "count": 34, "severity": None},
    ],
}


def recorded():
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def test_a_recorded_trial_of_vpp_is_read_whole():
    use = observed.host_use(recorded()["dut"]["dut"]).vpp
    assert (use.busiest.name, use.busiest.vectors_per_call, use.busiest.clocks_per_packet) == (
        "vpp_wk_0", 2.08, 190652.9,
    )  # fmt: skip
    assert (use.busiest.packets, use.busiest.cpu_ratio, use.busiest.receives_by) == (26701, 0.303, "interrupt")
    assert [node.name for node in use.costly_nodes[:3]] == ["host-eth2-tx", "host-eth1-tx", "af-packet-input"]
    assert (use.dropped, use.lost, use.reasons) == (0, {}, {})
    assert use.meaning.startswith("A few packets a call")


def test_a_recorded_trial_of_vpp_says_what_it_cannot_carry():
    assert evidence(recorded(), "af_packet_path") == "dut: af-packet-input took 26,701 packets"
    assert not {"vpp_saturated", "vpp_drops"} & codes(recorded())


def test_vpp_of_a_card_that_it_drives_itself_is_not_af_packet():
    assert codes(with_dut(trial(), vpp=vpp_runtime())) == set()


@pytest.mark.parametrize(
    ("per_call", "full"), [(256.0, True), (200.0, True), (199.9, False), (2.0, False), (None, False)]
)
def test_a_thread_of_vpp_that_is_full(per_call, full):
    made = with_dut(trial(), vpp=vpp_runtime(per_call))
    assert ("vpp_saturated" in codes(made)) == full
    if per_call == 256.0:
        assert (
            evidence(made, "vpp_saturated")
            == "dut: vpp_wk_0 256 packets a call, of 256 that fit, 1,900 clocks a packet"
        )


def test_full_is_what_the_module_calls_saturated():
    assert runtime.batching(findings.VPP_SATURATED) == "saturated"
    assert runtime.batching(findings.VPP_SATURATED - 0.1) != "saturated"


def test_drops_of_vpp_with_their_reasons():
    made = with_dut(trial(), vpp=vpp_runtime(drops=DROPS))
    assert evidence(made, "vpp_drops") == (
        "dut: host-eth1 drops 1,234; ip4-lookup: no route 1,200; arp-input: unresolved 34"
    )


@pytest.mark.parametrize(
    ("drops", "words"),
    [
        ({"packets": 7, "interfaces": {}, "reasons": []}, "dut: 7 dropped"),
        ({"packets": None, "interfaces": {}, "reasons": [DROPS["reasons"][1]]}, "dut: arp-input: unresolved 34"),
        ({"packets": 0, "interfaces": {"e": {"rx-miss": 3}}, "reasons": []}, "dut: e rx-miss 3"),
    ],
)
def test_whatever_vpp_tells_of_its_drops_is_enough(drops, words):
    assert evidence(with_dut(trial(), vpp=vpp_runtime(drops=drops)), "vpp_drops") == words


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"version": "26.06"},
        {"reason": "VPP ended", "threads": None, "nodes": None, "busiest_thread": None, "drops": None},
        {
            "threads": [None, {}],
            "nodes": ["x"],
            "busiest_thread": 0,
            "drops": {"reasons": [{}], "interfaces": {"e": None}},
        },
    ],
)
def test_what_vpp_did_not_tell_leads_to_no_conclusion(odd):
    assert codes(with_dut(trial(), vpp=odd)) == set()
    assert not list(findings.REGISTRY["vpp_not_the_limit"].check(vpp_point([1e9] * 3, odd, direct=[9e9] * 3)))


@pytest.mark.parametrize(
    ("per_call", "polling", "word"),
    [(2.0, ["af-packet-input"], "polling"), (120.0, ["dpdk-input"], "polling"), (2.0, [], "interrupt"),
     (120.0, [], None), (None, [], None)],
)  # fmt: skip
def test_how_a_thread_receives_as_far_as_its_counters_tell(per_call, polling, word):
    use = observed.host_use({"vpp": vpp_runtime(per_call, polling=polling)}).vpp
    assert use.threads[1].receives_by == word


def vpp_point(values, vpp, **more):
    use = observed.host_use({"vpp": vpp}).vpp
    return dataclasses.replace(view(values, **more), vpp={"dut": use})


@pytest.mark.parametrize(
    ("values", "per_call", "more", "words"),
    [
        ([3e9] * 3, 2.08, {"direct": [10e9] * 3}, "30 % of the direct path (d), while vpp_wk_0 of dut handled 2.08 "
         "packets a call and was on a CPU 30 % of the time"),
        ([5e4] * 3, 15.9, {"loss": 0.37, "unit": "packet/s"}, "37.0 % of the frames lost, while vpp_wk_0 of dut "
         "handled 15.9 packets a call and was on a CPU 30 % of the time"),
        ([3e9] * 3, 16.0, {"direct": [10e9] * 3}, None),
        ([3e9] * 3, 112.0, {"loss": 0.37}, None),
        ([9.6e9] * 3, 2.0, {"direct": [10e9] * 3}, None),
        ([3e9] * 3, 2.0, {"loss": 0.0005}, None),
        ([3e9] * 3, None, {"loss": 0.37}, None),
    ],
)  # fmt: skip
def test_more_asked_for_while_vpp_has_room(values, per_call, more, words):
    found = list(findings.REGISTRY["vpp_not_the_limit"].check(vpp_point(values, vpp_runtime(per_call), **more)))
    assert found == ([words] if words else [])


def test_one_full_thread_is_enough_for_vpp_to_be_the_limit():
    made = vpp_runtime(2.0)
    made["threads"][0]["vectors_per_call"] = 250.0
    assert not list(findings.REGISTRY["vpp_not_the_limit"].check(vpp_point([1e9] * 3, made, loss=0.4)))


# -- IPsec


def with_gateways(made, *, tunnels, cpus=((0.5, 0.4), (0.5, 0.4)), **about):
    """Two gateways: of each tunnel (packets, bytes) from the first one to the second, and a tenth of it back."""
    told = {"mode": "route", "interfaces": list(tunnels), "tunnels": len(tunnels), "outer_pairs": 1, "hash_policy": 1}
    made["dut"] = {}
    for number, host in enumerate(("gw1", "gw2")):
        made["dut"][host] = sample(cpus=cpus[number], rx={"eth1": (863_259, 1_306_974_126), **tunnels})
        made["dut"][host]["ipsec"] = {**told, "kernel": [], **about}
        for name in tunnels:
            row = made["dut"][host]["interfaces"][name]
            row["tx_bytes" if number else "rx_bytes"] //= 10
    return made


SPREAD = {f"ipsec{number}": (200_000, 300_000_000) for number in range(1, 5)}


def test_gateways_that_carried_and_spread_the_traffic_have_no_finding_but_how_it_was():
    made = with_gateways(trial(), tunnels=SPREAD)
    assert {code for code in codes(made) if code.startswith("ipsec")} == {"ipsec_use"}
    told = "4 CHILD_SAs (route) between 1 pair of outer addresses, of what it sent they had 25 %, 25 %, 25 %, 25 %"
    found = [finding.evidence for finding in assess(made).findings if finding.code == "ipsec_use"]
    assert found[0] == f"gw1: {told}, CPU 0 50 % busy, mostly softirq (38 %), the other 1 on average 40 %"
    assert found[1].startswith("gw2: ")


def test_datagrams_that_do_not_fit_into_a_tunnel():
    made = with_gateways(trial(UDP), tunnels={"ipsec1": (200_000, 300_000_000)})
    for host in made["dut"].values():
        host["interfaces"]["ipsec1"]["mtu_bytes"] = 1446
    made["metrics"]["goodput_forward"]["value"] = made["metrics"]["forwarding_rate_forward"]["value"] * 8 * 1460
    assert "has MTU 1,446" in evidence(made, "fragmented_datagrams")


def test_a_path_in_the_clear_is_never_counted_as_an_encrypted_one():
    made = with_gateways(trial(), tunnels={"ipsec1": (10, 1000)})
    assessment = assess(made)
    assert (assessment.status, assessment.code) == ("invalid", "ipsec_not_carried")
    assert "gw1: its tunnels carried 4.40 kbit/s" in assessment.reason


@pytest.mark.parametrize(("carried", "clear"), [(1000, True), (3_000_000_000, False)])
def test_security_associations_of_vpp_prove_it_too(carried, clear):
    made = with_gateways(trial(), tunnels={})
    for host in made["dut"].values():
        host["ipsec"]["tunnels"] = 1
        host["vpp"] = {**vpp_runtime(100.0), "ipsec": {"carried_bytes": carried}}
    assert ("ipsec_not_carried" in codes(made)) == clear


@pytest.mark.parametrize(("carried", "clear"), [(0, True), (1000, True), (3_000_000_000, False)])
def test_the_kernels_associations_prove_it_where_policies_have_no_interface(carried, clear):
    made = with_gateways(trial(), tunnels={}, mode="policy")
    for host in made["dut"].values():
        host["ipsec"]["tunnels"] = 1
        # read half as long as the other counters
        host["esp"] = {"packets": 9, "bytes": carried / 2, "counted_s": host["window"]["counted_s"] / 2, "sas": []}
    assert ("ipsec_not_carried" in codes(made)) == clear


@pytest.mark.parametrize("vpp", [None, {"reason": "VPP was away: it does not answer", "ipsec": None}])
def test_the_kernels_zero_is_no_word_on_a_gateway_that_is_vpp(vpp):
    made = with_gateways(trial(), tunnels={})
    for host in made["dut"].values():
        host["ipsec"] = {"mode": "route", "tunnels": 1, "interfaces": [], "outer_pairs": 1, "engines": ["native"]}
        host["vpp"] = vpp
        host["esp"] = {"packets": 0, "bytes": 0, "counted_s": host["window"]["counted_s"], "sas": []}
    assert "ipsec_not_carried" not in codes(made)


def test_tunnels_that_are_not_counted_prove_nothing_either_way():
    made = with_gateways(trial(), tunnels={"ipsec1": (10, 1000)})
    for host in made["dut"].values():
        del host["interfaces"]["ipsec1"]
    assert "ipsec_not_carried" not in codes(made)


def test_traffic_that_left_by_one_tunnel_only():
    tunnels = {**dict.fromkeys(SPREAD, (10, 1000)), "ipsec2": (800_000, 1_200_000_000)}
    made = with_gateways(trial(), tunnels=tunnels, hash_policy=0)
    found = [finding.evidence for finding in assess(made).findings if finding.code == "ipsec_one_tunnel"]
    assert found[0] == "gw1: ipsec2 of 4 tunnels carried 100 %, hash policy 0"


def test_one_pair_of_outer_addresses_fills_one_cpu():
    cpus = ((0.5, 0.4, 0.1, 0.1), (0.1, 0.99, 0.1, 0.1))
    made = with_gateways(trial(), tunnels=SPREAD, cpus=cpus)
    assert "gw2: 4 tunnels between one pair of addresses, CPU 1 99 % busy" in evidence(made, "ipsec_one_outer_pair")
    made = with_gateways(trial(), tunnels=SPREAD, cpus=cpus, outer_pairs=4)
    assert "ipsec_one_outer_pair" not in codes(made)
    # with one CPU there is nothing to spread to
    made = with_gateways(trial(), tunnels=SPREAD, cpus=((0.99,), (0.99,)))
    assert "ipsec_one_outer_pair" not in codes(made)


def test_a_kernel_without_acceleration():
    driver = "rfc4106(gcm_base(ctr(aes-generic),ghash-generic))"
    made = with_gateways(trial(), tunnels=SPREAD)
    made["dut"]["gw1"]["ipsec"]["kernel"] = [
        {"name": "rfc4106(gcm(aes))", "driver": driver, "accelerated": False},
        {"name": "hmac(sha1)", "driver": None, "accelerated": None},
    ]
    assert evidence(made, "ipsec_no_acceleration") == f"gw1: rfc4106(gcm(aes)) by {driver}"


def test_the_gateway_that_decrypts_is_the_limit():
    made = with_gateways(trial(), tunnels=SPREAD, cpus=((0.7,), (1.0,)))
    told = evidence(made, "ipsec_decrypt_bound")
    assert told.startswith("gw2 decrypts: CPU 0 100 % busy")
    assert told.endswith("gw1 encrypts: at most 70 %")
    assert "ipsec_decrypt_bound" not in codes(with_gateways(trial(), tunnels=SPREAD, cpus=((1.0,), (1.0,))))


# -- point --------------------------------------------------------------------------------------------------------


def view(values, *, asked=3, counted=3, direct=None, loss=None, unit="bit/s"):
    return PointView(
        point={}, asked=asked, counted=counted, unit=unit, headline=summarise(values), loss_ratio=loss,
        offered_limited=False, direct_id="d" if direct else None, direct=summarise(direct) if direct else None,
    )  # fmt: skip


def point_codes(*args, **kwargs):
    return {finding.code for rule in findings.rules(findings.POINT) for finding in rule.findings(view(*args, **kwargs))}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"values": [5e9, 5.01e9, 4.99e9]}, set()),
        ({"values": [5e9, 5.6e9, 4.4e9]}, {"unstable"}),
        ({"values": [5e9, 5e9], "counted": 2}, {"few_repetitions", "incomplete_point"}),
        ({"values": [5e9], "asked": 1, "counted": 1}, {"few_repetitions"}),
        ({"values": [], "counted": 0}, set()),
        ({"values": [5e9] * 3, "direct": [9e9] * 3}, set()),
        ({"values": [9.5e9] * 3, "direct": [10e9] * 3}, {"endpoint_limited"}),
        ({"values": [9.49e9] * 3, "direct": [10e9] * 3}, set()),
        ({"values": [12e9] * 3, "direct": [10e9] * 3}, {"endpoint_limited"}),
        ({"values": [12.0] * 3, "direct": [10.0] * 3, "unit": "ms"}, set()),
        ({"values": [5e9] * 3, "loss": 0.2}, {"loss_at_overload"}),
        ({"values": [5e9] * 3, "loss": 0.0005}, set()),
    ],
)
def test_findings_of_a_point(arguments, expected):
    assert point_codes(**arguments) == expected


# -- run ----------------------------------------------------------------------------------------------------------


def run_evidence(fingerprints, *, hosts=("client", "dut", "server"), finished=2.0, **more):
    run = {
        "testbeds": {"lab": {"hosts": list(hosts), **more.pop("testbed", {})}},
        "fingerprints": fingerprints,
        "finished": finished,
    }
    run_view = RunView(run=run, **{"missing_points": [], "unreadable": [], "without_direct": [], **more})
    return {
        rule.code: [finding.evidence for finding in rule.findings(run_view)]
        for rule in findings.rules(findings.RUN)
        if rule.findings(run_view)
    }


REAL = {
    host: {
        "machine": {"boot_id": host, "kernel_instance": f"k {host}"},
        "hypervisor": None,
        "interfaces": {"eth1": {"driver": "ice"}},
    }
    for host in ("client", "dut", "server")
}


def test_three_real_machines_have_no_finding():
    assert run_evidence(REAL) == {}


def test_virtual_and_shared_cpus_and_veth():
    lab = {
        host: {"machine": {"kernel_instance": "x"}, "hypervisor": "kvm", "interfaces": {"eth1": {"driver": "veth"}}}
        for host in REAL
    }
    assert run_evidence(lab) == {
        "virtual_cpus": ["testbed lab: client, dut, server under kvm"],
        "shared_cpus": ["testbed lab: client, dut, server run on the same machine"],
        "veth_path": ["testbed lab: client eth1, dut eth1, server eth1"],
    }


def test_gateways_that_are_emulated_and_one_that_has_kvm():
    # as host_fingerprint tells of the lab's virtual machines
    by_name = {**REAL["client"], "hypervisor": "qemu", "cpu": {"model": "EPYC", "virtual": True}}
    by_model = {**REAL["dut"], "hypervisor": None, "cpu": {"model": "QEMU TCG CPU version 2.5+", "virtual": True}}
    with_kvm = {**REAL["server"], "hypervisor": "kvm", "cpu": {"model": "AMD EPYC", "virtual": True}}
    found = run_evidence({"client": by_name, "dut": by_model, "server": with_kvm})
    assert found["emulated_cpus"] == ["testbed lab: client, dut by QEMU without KVM"]
    assert "emulated_cpus" not in run_evidence({**REAL, "server": with_kvm})


def test_two_of_three_share_a_machine():
    found = run_evidence({**REAL, "server": {**REAL["server"], "machine": REAL["client"]["machine"]}})
    assert found == {"shared_cpus": ["testbed lab: client, server run on the same machine"]}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # a container sees no boot id, the host itself does
        ([("k", None), ("k", "b"), ("k", None)], [["0", "1", "2"]]),
        # clones started in the same second
        ([("k", "a"), ("k", "b")], [["0"], ["1"]]),
        ([("k", "a"), (None, "a")], [["0", "1"]]),
        ([(None, None), (None, None)], []),
    ],
)
def test_which_hosts_share_a_kernel(words, expected):
    prints = {
        str(number): {"machine": {"kernel_instance": kernel, "boot_id": boot}}
        for number, (kernel, boot) in enumerate(words)
    }
    assert observed.machines(prints) == expected


def test_virtual_machines_of_a_lab_share_what_they_do_not_tell():
    assert list(run_evidence(REAL, testbed={"lab": "default"})) == ["shared_cpus"]


@pytest.mark.parametrize("word", [None, "none", "", False])
def test_no_hypervisor_is_no_finding(word):
    assert run_evidence({host: {**REAL[host], "hypervisor": word} for host in REAL}) == {}


def test_what_is_not_known_of_a_host():
    assert run_evidence({"client": REAL["client"], "dut": None}) == {"no_fingerprint": ["testbed lab: dut, server"]}


def test_the_state_of_the_run():
    found = run_evidence(
        REAL, finished=None, missing_points=[f"p{n}" for n in range(7)], unreadable=[("trials/x.json", "not whole")],
        without_direct=["lab"],
    )  # fmt: skip
    assert found["missing_points"] == ["never run (7): p0, p1, p2, p3, p4 and 2 more"]
    assert found["unreadable_trial"] == ["trials/x.json: not whole"]
    assert {"run_unfinished", "no_direct_path"} <= set(found)


# -- registry -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", findings.REGISTRY.values(), ids=lambda entry: entry.code)
def test_every_rule_says_all_that_a_reader_needs(entry):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", entry.code)
    assert entry.level in (findings.TRIAL, findings.POINT, findings.RUN)
    assert entry.severity in findings.SEVERITIES
    assert entry.effect in (None, findings.INVALIDATES, findings.BOUNDS, findings.BLOCKS)
    assert entry.meaning.endswith(".")
    assert entry.remedy
    assert not entry.remedy.endswith(".")
    assert (entry.effect == findings.INVALIDATES) <= (entry.level == findings.TRIAL and entry.severity == "error")


def test_a_code_is_given_once():
    with pytest.raises(ValueError, match="two findings have the code 'unstable'"):
        findings.rule("unstable", findings.POINT, findings.INFO, remedy="x")(lambda _view: [])


def test_the_documentation_is_the_registry():
    """Run with UPDATE_DOCS=1 to write docs/findings.md anew."""
    if os.environ.get("UPDATE_DOCS"):
        DOC.write_text(findings.reference(), encoding="utf-8")
    assert DOC.read_text(encoding="utf-8") == findings.reference()


# -- NAT ----------------------------------------------------------------------------------------------------------


def held(before, start, end, after=None):
    return {"before": before, "window_start": start, "window_end": end, "most": end, "after": after or end}


def with_nat(levels, **more):
    made = recorded()
    made["dut"]["dut"]["vpp"]["nat44"] = {"ed": levels, "ei": held(0, 0, 0)}
    made["dut"]["dut"].update(more)
    return made


def test_a_nat_with_few_flows_was_only_measured_on_its_established_path():
    said = evidence(with_nat(held(0, 4, 4)), "nat_established_path")
    assert said == "dut: NAT44 ed of VPP held 4 sessions, 0 of them opened in the window"
    assert "nat_established_path" not in codes(with_nat(held(0, 1000, 50_000)))
    assert "nat_established_path" not in codes(recorded())
    made = with_nat(held(0, 0, 0), conntrack=held(1, 5, 5))
    assert "the kernel's conntrack" in evidence(made, "nat_established_path")


def test_a_table_that_was_not_empty_is_told():
    said = evidence(with_nat(held(14_881, 14_885, 14_885)), "nat_dirty_table")
    assert said == "dut: NAT44 ed of VPP held 14,881 sessions before the trial's first packet"
    assert "nat_dirty_table" not in codes(with_nat(held(0, 4, 4)))
