# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""iperf3: its command lines and its reports."""

from __future__ import annotations

import dataclasses
import math

from ansible_collections.fastpath.bench.plugins.module_utils._traffic import iperf3_json, iperf3_text
from ansible_collections.fastpath.bench.plugins.module_utils._traffic import options as opt
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import (
    BOTH,
    CLIENT,
    FORWARD,
    RECEIVER,
    REVERSE,
    Measurement,
)


def client_command(program: str, options: opt.TrialOptions, version: opt.ToolVersion) -> list[str]:
    """The command line of a client, checked against the release that will run it."""
    opt.check_version(options, version)
    udp = options.protocol == "udp"
    rate = options.target_bps()
    words = opt.flags(
        (
            ("-p", options.port),
            ("-J", True),
            # whole seconds only: what is over is left out of the window
            ("-t", math.ceil(options.total_s - 1e-9)),
            ("-i", f"{options.interval_s:g}"),
            ("--get-server-output", opt.has(version, "the server's report (--get-server-output)")),
            ("-P", options.parallel if options.parallel > 1 else None),
            ("-u", udp),
            ("-b", opt.per_stream(round(rate), options.parallel) if rate else ("0" if udp else None)),
            ("-l", options.datagram_bytes if udp else options.length_bytes),
            ("-M", options.mss_bytes),
            ("-w", options.window_bytes),
            ("-B", options.bind_address),
            ("-S", options.tos),
            ("-C", options.congestion_control),
            ("-6", options.ipv6),
            ("-R", options.direction == REVERSE),
            ("--bidir", options.direction == BOTH),
        )
    )
    return [program, "-c", options.server, *words]


def server_command(
    program: str, *, port: int, interval_s: float, bind_address: str | None = None, ipv6: bool = False
) -> list[str]:
    """The command line of a server. The client asks for protocol and sizes."""
    return [
        program,
        "-s",
        *opt.flags((("-p", port), ("-J", True), ("-i", f"{interval_s:g}"), ("-B", bind_address), ("-6", ipv6))),
    ]


def parse(text: str, *, end: str = CLIENT, stderr: str = "", interval_s: float | None = None) -> Measurement:
    """Read a report, JSON or text."""
    if "{" not in text and "[ ID]" in text:
        return iperf3_text.parse_text(text, end=end, stderr=stderr, interval_s=interval_s)
    return iperf3_json.parse_json(text, end=end, stderr=stderr, interval_s=interval_s)


def parse_client(text: str, *, stderr: str = "", interval_s: float | None = None) -> Measurement:
    """Read a client's report. Where it carries the server's own, that one's intervals stand in for the
    receiver's final row, which knows of no warm-up."""
    own = parse(text, end=CLIENT, stderr=stderr, interval_s=interval_s)
    if "{" not in text:
        return own
    other = iperf3_json.server_output(text, interval_s=interval_s)
    if other is None:
        return own
    received = [flow for flow in other.flows if flow.role == RECEIVER and flow.direction == FORWARD and flow.intervals]
    if not received:
        return own
    kept = [
        flow for flow in own.flows if not (flow.peer_report and flow.role == RECEIVER and flow.direction == FORWARD)
    ]
    return dataclasses.replace(own, flows=(*kept, *received))
