# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loss from what one end sent and the other received, over a whole run.

A tool's own figure is computed from sequence numbers that arrived, so it is
blind to datagrams lost at the end. Both figures are given.
"""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.metric import Metric, metric
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.outcome import Finding, finding
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.record import FORWARD

#: Loss as the tool says and as sent and received say may differ by this much.
_LOSS_GAP = 0.005
#: Closing datagrams are in the one count and not in the other.
_CLOSING = 64


def derived_loss(
    client: t.Mapping[str, t.Any], server: t.Mapping[str, t.Any], direction: str
) -> tuple[tuple[str, Metric] | None, list[Finding]]:
    """frame_loss_ratio of one direction from the ``counts`` of both ends, and what is odd about it.

    Without a ratio when the counts contradict each other.

    :param client: a record of iperf_run.
    :param server: the report of its instance, of iperf_server.
    :param direction: forward or reverse.
    """
    sender, receiver = (client, server) if direction == FORWARD else (server, client)
    sent = (sender.get("counts") or {}).get(direction, {}).get("sent_packets")
    counts = (receiver.get("counts") or {}).get(direction, {})
    received, lost = counts.get("received_packets"), counts.get("lost_packets")
    if not sent or received is None:
        return None, []
    # The finding more_received_than_sent tells of it.
    if received > sent * 1.001 + _CLOSING:
        return None, []
    ratio = max(0.0, (sent - received) / sent)
    findings = []
    if lost is not None and lost + received and ratio - lost / (lost + received) > _LOSS_GAP:
        findings.append(
            finding(
                "hidden_loss",
                "warning",
                f"loss {direction} is {ratio:.4%} from sent and received, {lost / (lost + received):.4%} by the tool",
                "The tool does not see datagrams lost at the end of a test: use frame_loss_ratio",
            )
        )
    return metric("frame_loss_ratio", direction, ratio), findings
