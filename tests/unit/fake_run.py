# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that were never measured, in the form in which the engine stores them."""

from __future__ import annotations

import itertools
import random
import typing as t

#: topology, datapath, share of the direct path's rate
PATHS = (("direct", "none", 1.0), ("routed", "kernel", 0.55), ("routed", "vpp_af_packet", 0.66))
TRAFFIC = ("tcp_large", "udp_small")
DIRECTIONS = ("forward", "reverse", "both")


def sample(
    *, window_s: float = 2.0, cpus: t.Sequence[float] = (0.62, 0.58), rx: t.Mapping[str, tuple[int, int]], **more: t.Any
) -> dict[str, t.Any]:
    """A host's sample as dut_sample cuts it; ``rx`` is interface -> (packets, bytes) received."""
    return {
        "window": {"start": 0.0, "end": window_s, "counted_s": window_s, "clipped_s": 0.0},
        "cpu": {
            "cpus": [
                {"cpu": number, "user": 0.02, "system": round(busy * 0.2, 4), "softirq": round(busy * 0.75, 4),
                 "irq": 0.0, "nice": 0.0, "steal": 0.0, "idle": round(1 - busy, 4), "iowait": 0.0, "busy": busy,
                 "reason": None}
                for number, busy in enumerate(cpus)
            ],
        },
        "interfaces": {
            name: {"rx_packets": packets, "rx_bytes": size, "tx_packets": packets, "tx_bytes": size,
                   "rx_dropped": 0, "tx_dropped": 0, "rx_errors": 0, "tx_errors": 0,
                   "mtu_bytes": 1500, "speed_bps": 1e10}
            for name, (packets, size) in rx.items()
        },
        "softnet": {"processed": 1000, "dropped": 0, "time_squeeze": 0},
        "reason": None,
        **more,
    }  # fmt: skip


def vpp_runtime(
    vectors_per_call: float | None = 2.08,
    *,
    polling: t.Sequence[str] = (),
    drops: t.Mapping[str, t.Any] | None = None,
    cpu_ratio: float | None = 0.3,
    meaning: str = "A few packets a call.",
    **more: t.Any,
) -> dict[str, t.Any]:
    """What VPP did in a trial, as module vpp_runtime documents it: an idle main thread and a worker."""
    vectors = 80_000 if vectors_per_call else 0
    ratios = {"vectors_per_call": vectors_per_call, "clocks_per_packet": 1900.5 if vectors_per_call else None}
    return {
        "source": "stats_segment",
        "reason": None,
        "seconds": 2.0,
        "threads": [
            {"thread": 0, "name": "vpp_main", "lcore": 0, "packets": 0, "calls": 0, "vectors": 0,
             "vectors_per_call": None, "clocks_per_packet": None, "cpu_ratio": 0.05, "batching": "idle", "polling": []},
            {"thread": 1, "name": "vpp_wk_0", "lcore": 1, "packets": vectors // 8, "vectors": vectors, **ratios,
             "calls": round(vectors / vectors_per_call) if vectors_per_call else 0, "cpu_ratio": cpu_ratio,
             "batching": "some", "polling": list(polling)},
        ],
        "busiest_thread": 1 if vectors else None,
        "batching": "some",
        "meaning": meaning,
        "nodes": [
            {"thread": 0, "node": "api-rx-from-ring", "calls": 1, "vectors": 1, "suspends": 0,
             "vectors_per_call": 1.0, "clocks_per_packet": 9e9},
            {"thread": 1, "node": "host-eth2-tx", "calls": 900, "vectors": 9_900, "suspends": 0,
             "vectors_per_call": 11.0, "clocks_per_packet": 1200.4},
            {"thread": 1, "node": "ip4-lookup", "calls": 900, "vectors": 10_000, "suspends": 0,
             "vectors_per_call": 11.1, "clocks_per_packet": 31.2},
        ],
        "drops": drops or {"packets": 0, "interfaces": {}, "reasons": []},
        **more,
    }  # fmt: skip


def metric(value: float | None, unit: str, direction: str, kind: str = "received", peak: float | None = None) -> dict:
    layer = None if unit == "count" else "L4"
    return {"value": value, "unit": unit, "layer": layer, "direction": direction, "kind": kind, "peak": peak}


def trial(
    point_id: str = "lab.routed.kernel.tcp_large.forward",
    *,
    testbed: str = "lab",
    point: t.Mapping[str, str] | None = None,
    rate_bps: float = 5e9,
    duration_s: float = 2.0,
    **more: t.Any,
) -> dict[str, t.Any]:
    """A good trial; everything can be replaced."""
    if point is None:
        _bed, *values = point_id.split(".")
        point = dict(zip(("topology", "datapath", "traffic", "direction"), values))
    direction, traffic = point["direction"], point["traffic"]
    ways = ("forward", "reverse") if direction == "both" else (direction,)
    suffix = "total" if direction == "both" else direction
    udp = traffic.startswith("udp")
    rate_pps = rate_bps / (8 * (64 if udp else 1448))
    name, unit, value = ("forwarding_rate", "packet/s", rate_pps) if udp else ("goodput", "bit/s", rate_bps)
    metrics: dict[str, t.Any] = {}
    for key, way, share in [(suffix, direction, 1.0), *((w, w, 1 / len(ways)) for w in ways)]:
        metrics[f"{name}_{key}"] = metric(value * share, unit, way, peak=value * share * 1.03)
        if udp:
            metrics[f"goodput_{key}"] = metric(rate_bps * share, "bit/s", way, peak=rate_bps * share * 1.03)
            metrics[f"sent_packet_rate_{key}"] = metric(value * share * 1.2, "packet/s", way, "sent")
            metrics[f"frame_loss_ratio_{key}"] = metric(1 - 1 / 1.2, "ratio", way, "derived")
        else:
            metrics[f"sent_rate_{key}"] = metric(value * share * 1.001, "bit/s", way, "sent")
            metrics[f"retransmits_{key}"] = metric(12, "count", way, "sent")
    packets = int(rate_pps * duration_s)
    size = 106 if udp else 1514
    dut = {}
    if point["datapath"] != "none":
        dut["dut"] = sample(
            window_s=duration_s, rx={"eth1": (packets, packets * size), "eth2": (packets // 2, packets * 33)}
        )
    return {
        "schema": 1,
        "run_id": "fake",
        "testbed": testbed,
        "point": dict(point),
        "point_id": point_id,
        "repetition": 1,
        "attempt": 1,
        "started": 1_772_366_400.0,
        "duration_s": duration_s,
        "status": "ok",
        "reason": None,
        "code": None,
        "tries": 1,
        "tool": {"name": "iperf", "version": "2.1.8", "command": ["iperf", "-c", "10.0.0.2"]},
        "headline": f"{name}_{suffix}",
        "metrics": metrics,
        "intervals": [
            {"direction": way, "start_s": s / 2, "end_s": s / 2 + 0.5, "bytes": int(rate_bps / 16),
             "rate_bps": rate_bps, "packets": None, "lost": None, "retransmits": None}
            for way in ways for s in range(int(duration_s * 2))
        ],
        "dut": dut,
        "endpoints": {host: sample(window_s=duration_s, rx={"eth1": (packets, packets * size)})
                      for host in ("client", "server")},
        "findings": [],
        "raw": [],
        **more,
    }  # fmt: skip


def fake_run(
    *,
    repeats: int = 3,
    testbeds: t.Sequence[str] = ("lab",),
    streams: t.Sequence[str] = (),
    noise: float = 0.015,
    seed: int = 7,
) -> tuple[dict[str, t.Any], list[dict[str, t.Any]]]:
    """run.json and the trials of a whole run; ``streams`` adds an axis of that name."""
    rng = random.Random(seed)
    points: dict[str, dict[str, t.Any]] = {}
    trials = []
    started = 1_772_366_405.0
    extra = [{"streams": value} for value in streams] or [{}]
    for testbed, (topology, datapath, share), own, traffic, direction in itertools.product(
        testbeds, PATHS, extra, TRAFFIC, DIRECTIONS
    ):
        point = {"topology": topology, "datapath": datapath, **own, "traffic": traffic, "direction": direction}
        point_id = ".".join((testbed, *point.values()))
        rate = (
            (24e9 if traffic == "tcp_large" else 0.35e9)
            * share
            * {"forward": 1, "reverse": 0.97, "both": 1.3}[direction]
        )
        first = None
        for repetition in range(1, repeats + 1):
            made = trial(
                point_id, testbed=testbed, point=point, rate_bps=rate * rng.gauss(1, noise), repetition=repetition,
                started=started,
            )  # fmt: skip
            first = first or made
            trials.append(made)
            started += 2.6
        assert first is not None
        points[point_id] = {
            "testbed": testbed,
            "point": point,
            "headline": first["headline"],
            "setup": f"{topology}-{datapath}",
        }
    hosts = ["client", "dut", "server"]
    run = {
        "schema": 1,
        "run_id": "fake",
        "created": 1_772_366_400.0,
        "finished": started,
        "testbeds": {name: {"hosts": hosts} for name in testbeds},
        "matrix": {
            "axes": {"topology": ["direct", "routed"], "datapath": ["kernel", "vpp_af_packet"],
                     "traffic": list(TRAFFIC), "direction": list(DIRECTIONS)},
            "repeats": repeats,
        },
        "axes": list(next(iter(points.values()))["point"]),
        "baseline": {"topology": "direct"},
        "seed": 42,
        "order": "spread",
        "repeats": repeats,
        "points": points,
        "groups": [],
        "versions": {"fastpath.bench": "0.1.0", "ansible-core": "2.21.5", "python": "3.13.0"},
        "fingerprints": {
            host: {
                "machine": {"boot_id": None, "kernel_instance": "b7f0"},
                "hypervisor": "kvm",
                "kernel": {"release": "6.1.0-28-amd64", "command_line": "ro quiet"},
                "cpu": {"model": "Example CPU @ 2.50GHz", "logical": 2},
                "interfaces": {"eth1": {"driver": "veth", "mtu_bytes": 1500}},
            }
            for host in hosts
        },
        "findings": [],
        "harness": {"wall_s": round(len(trials) * 2.6, 1), "traffic_s": len(trials) * 2.0, "trials": len(trials),
                    "harness_s_per_trial": 0.6},
    }  # fmt: skip
    return run, trials
