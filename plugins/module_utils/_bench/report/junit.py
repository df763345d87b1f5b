# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""junit.xml: a point is a test case, so that a CI system shows what failed, was skipped or is missing."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import verdict
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report.markup import legal
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import (
    FAILED,
    INVALID,
    MISSING,
    OK,
    PARTIAL,
    SKIPPED,
    PointSummary,
    RunSummary,
)

#: State of a point -> element. A point that is not whole must not look green.
_ELEMENT = {PARTIAL: "failure", FAILED: "failure", INVALID: "error", SKIPPED: "skipped", MISSING: "skipped"}


def render(summary: RunSummary) -> str:
    root = ET.Element("testsuites", {"name": legal(summary.run_id)})
    for testbed, points in summary.testbeds.items():
        elements = [_ELEMENT.get(point.status) for point in points]
        suite = ET.SubElement(
            root,
            "testsuite",
            {
                "name": legal(testbed),
                "tests": str(len(points)),
                "failures": str(elements.count("failure")),
                "errors": str(elements.count("error")),
                "skipped": str(elements.count("skipped")),
                "time": f"{sum(_traffic_s(point) for point in points):.3f}",
            },
        )
        for point in points:
            _case(suite, point)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, point: PointSummary) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        {"classname": legal(point.testbed), "name": legal(point.label), "time": f"{_traffic_s(point):.3f}"},
    )
    element = _ELEMENT.get(point.status)
    if element:
        reason = legal(point.reason or point.status)
        detail = ET.SubElement(case, element, {"message": reason})
        if element != "skipped":
            detail.set("type", point.status)
        detail.text = reason
    if point.status in (OK, PARTIAL):
        ET.SubElement(case, "system-out").text = legal(verdict.sentence(point))


def _traffic_s(point: PointSummary) -> float:
    return sum(trial.duration_s or 0.0 for trial in point.trials)
