# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""iperf2: its command lines and its reports."""

from __future__ import annotations

from ansible_collections.fastpath.bench.plugins.module_utils._traffic import options as opt
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.iperf2_csv import parse_csv
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.iperf2_text import parse_text
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import BOTH, REVERSE, Measurement

#: 2.1.8 refuses -b 0 for UDP ("IPG delay target of inf secs"); no machine reaches this rate.
_UNLIMITED = "1000g"


#: Leaves out the exchange of reports at the end of UDP.
NO_FIN = "--no-udp-fin"

#: What a UDP server reads at once unless told otherwise (iperf 2.1.8, "Read buffer size: 1470 Byte").
UDP_BUFFER_BYTES = 1470


def _number(value: float) -> str:
    return f"{value:g}" if value != int(value) else str(int(value))


def client_command(program: str, options: opt.TrialOptions, version: opt.ToolVersion) -> list[str]:
    """The command line of a client, checked against the release that will run it."""
    opt.check_version(options, version)
    return [
        program,
        "-c",
        options.server,
        *opt.flags(
            (
                ("-p", options.port),
                ("-t", _number(options.total_s)),
                ("-i", _number(options.interval_s)),
                ("-f", "b"),
                ("-e", opt.has(version, "enhanced reports (-e)")),
                ("-P", options.parallel if options.parallel > 1 else None),
                ("--incr-dstport", len(options.ports) > 1),
                ("-u", options.protocol == "udp"),
                ("-b", _rate(options)),
                ("-l", options.length_bytes),
                ("-M", options.mss_bytes),
                ("-w", options.window_bytes),
                ("-B", options.bind_address),
                ("-S", options.tos),
                ("-Z", options.congestion_control),
                ("-V", options.ipv6),
                ("--reverse", options.direction == REVERSE),
                ("--full-duplex", options.direction == BOTH),
            )
        ),
    ]


def load_command(
    program: str,
    *,
    server: str,
    port: int,
    length_bytes: int,
    rate_pps: float | None,
    duration_s: float,
    bind_address: str | None = None,
    ipv6: bool = False,
) -> list[str]:
    """The command line of a sender of UDP that waits for no server's report, and prints its final row alone.

    Nobody needs to serve: who counts what arrives is another one's business.
    """
    rate = _UNLIMITED if rate_pps is None else f"{max(1, round(rate_pps))}pps"
    return [
        program,
        *("-c", server, "-p", str(port), "-u", "-l", str(length_bytes), "-b", rate, "-t", _number(duration_s)),
        *("-f", "b", "-e", NO_FIN),
        *opt.flags((("-B", bind_address), ("-V", ipv6))),
    ]


def _rate(options: opt.TrialOptions) -> str | None:
    if options.rate_pps:
        return f"{opt.per_stream(options.rate_pps, options.parallel)}pps"
    if options.rate_bps:
        return str(opt.per_stream(options.rate_bps, options.parallel))
    return _UNLIMITED if options.protocol == "udp" else None


def server_command(
    program: str,
    *,
    ports: range,
    protocol: str,
    interval_s: float,
    version: opt.ToolVersion,
    bind_address: str | None = None,
    length_bytes: int | None = None,
    window_bytes: int | None = None,
    ipv6: bool = False,
) -> list[str]:
    """The command line of a server.

    A UDP server's buffer is never smaller than the tool's own: the first datagrams carry the client's settings, and
    with what does not fit 2.1.8 serves another test (seen with -l 64: a tenth of the rate, one stream of two).
    """
    if protocol == "udp" and (length_bytes or 0) <= UDP_BUFFER_BYTES:
        length_bytes = None
    return [
        program,
        "-s",
        *opt.flags(
            (
                ("-p", f"{ports[0]}-{ports[-1]}" if len(ports) > 1 else ports[0]),
                ("-i", _number(interval_s)),
                ("-f", "b"),
                ("-e", opt.has(version, "enhanced reports (-e)")),
                ("-u", protocol == "udp"),
                ("-B", bind_address),
                ("-l", length_bytes),
                ("-w", window_bytes),
                ("-V", ipv6),
            )
        ),
    ]


def parse(
    text: str,
    *,
    end: str,
    port: int | None = None,
    interval_s: float | None = None,
    stderr: str = "",
    ended: bool = True,
    version: str | None = None,
) -> Measurement:
    """Read a report in whichever of its two forms it is."""
    first = text.lstrip()[:40]
    if first[:5] == "time," or (first[:1].isdigit() and "," in first) or (first[:1] in "+-" and first[5:6] == ":"):
        return parse_csv(text, end=end, port=port, interval_s=interval_s, stderr=stderr, version=version)
    return parse_text(text, end=end, port=port, interval_s=interval_s, stderr=stderr, ended=ended, version=version)
