# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The five files of a report, made from what is stored and from nothing else: made again, they are the same."""

from __future__ import annotations

import dataclasses
import pathlib

from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import (
    html,
    junit,
    layout,
    markdown,
    table,
    verdict,
)
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import (
    RunStore,
    encode,
    explained,
)
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import RunSummary, summarise_run
from ansible_collections.fastpath.bench.plugins.module_utils._common.files import replace_file


@dataclasses.dataclass(frozen=True)
class Report:
    """What was made, and where it is."""

    summary: RunSummary
    #: Name of the kind (``html``, ``markdown``, ``csv``, ``json``, ``junit``) to path.
    files: dict[str, str]
    changed: list[str]
    verdict: list[str]
    table: list[str]
    comparisons: list[str]


def make_report(store: RunStore, *, with_charts: bool = True, write: bool = True) -> Report:
    """Bring the report of a run up to date. Without ``write`` it is only found out what would change."""
    summary = summarise_run(store)
    contents = {
        "html": ("report.html", html.render(summary, with_charts=with_charts).encode()),
        "markdown": ("report.md", markdown.render(summary).encode("utf-8", "replace")),
        "csv": ("summary.csv", table.render(summary).encode("utf-8", "replace")),
        "json": ("summary.json", encode(summary.as_dict())),
        "junit": ("junit.xml", junit.render(summary).encode()),
    }
    files, changed = {}, []
    for kind, (name, content) in contents.items():
        path = store.path / name
        files[kind] = str(path)
        if not _same(path, content):
            changed.append(name)
            if write:
                with explained(path):
                    replace_file(path, content)
    points = layout.ordered(summary)
    return Report(
        summary,
        files,
        changed,
        verdict.verdict(summary, points),
        verdict.table(summary, points),
        verdict.versus(summary, points),
    )


def _same(path: pathlib.Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False
