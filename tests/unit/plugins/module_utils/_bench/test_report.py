# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import csv
import errno
import html.parser
import io
import json
import os
import re
import sys
import xml.etree.ElementTree as ET

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._bench import store as store_module
from ansible_collections.fastpath.bench.plugins.module_utils._bench import units
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import charts, make_report, verdict
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report import html as page
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report.markup import Markup, tag
from ansible_collections.fastpath.bench.plugins.module_utils._bench.stats import Difference
from ansible_collections.fastpath.bench.plugins.module_utils._bench.store import RunStore, StoreFullError
from ansible_collections.fastpath.bench.plugins.module_utils._bench.summary import Comparison
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.tests.unit.fake_run import fake_run, trial, vpp_runtime

KERNEL, VPP = "lab.routed.kernel.tcp_large.forward", "lab.routed.vpp_af_packet.tcp_large.forward"
#: Text that would do harm in HTML, Markdown, CSV, XML or matplotlib if it were taken for more than text.
HOSTILE = "<script>alert(1)</script> & \"q\" 'a' | `c` [l](http://x.example) $\\frac{ =1+1 \x00\x1b[31m ]]> \ud800 é"


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


def stored(tmp_path, change=lambda made: made, run_change=lambda run: run, name="fake", **options):
    run, trials = fake_run(**options)
    store = RunStore.create(tmp_path, name, run_change(run))
    for made in trials:
        changed = change(made)
        if changed is not None:
            store.write_trial(changed)
    return store


def troubled(made):
    """A run in which much went wrong."""
    if made["point_id"] == VPP:
        return None
    if made["point_id"] == KERNEL and made["repetition"] == 2:
        return {**made, "status": "failed", "code": "connect", "reason": "Connection refused", "metrics": {}}
    if made["point_id"] == "lab.routed.kernel.udp_small.reverse":
        return {**made, "status": "skipped", "reason": "VPP is not installed", "metrics": {}}
    if made["point_id"] == "lab.routed.kernel.udp_small.forward":
        made["dut"]["dut"]["interfaces"] = {"eth1": {"rx_packets": 1, "rx_bytes": 60}}
    return made


class Page(html.parser.HTMLParser):
    """Checks that elements nest, and gathers what a test asks for."""

    VOID = frozenset({"meta", "br", "hr", "col", "link"})

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.attributes, self.words, self.tags, self.headings = [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [value for key, value in attrs if key == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)
            if self.open[-1] in ("h2", "h3"):
                self.headings.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def read(report, kind):
    with open(report.files[kind], encoding="utf-8") as file:
        return file.read()


@pytest.fixture(name="report")
def _report(tmp_path):
    return make_report(stored(tmp_path, troubled))


def test_the_page_is_well_formed_and_asks_nothing_of_a_network(report):
    text = read(report, "html")
    parsed = Page(text)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(parsed.tags)
    assert "://" not in text
    assert "@import" not in text
    references = [value for _tag, key, value in parsed.attributes if key in ("href", "src", "xlink:href")]
    assert references
    assert all(value.startswith("#") and value[1:] in parsed.ids for value in references)
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {f"#{name}" for name in parsed.ids}


def test_the_page_opens_with_what_the_numbers_carry_then_shows_all_else(report):
    parsed = Page(read(report, "html"))
    text = parsed.text
    order = [
        "What these numbers can and cannot carry",
        "Findings",
        "Results",
        "What the DUT saw",
        "Failed, invalid, skipped and missing",
        "Other metrics",
        "Trials",
        "How it was measured",
        "Fingerprints of the hosts",
    ]
    assert [heading for heading in parsed.headings if heading in order] == order
    for words in (
        "Absolute rates of real hardware: the CPUs are virtual (virtual_cpus).",
        "failed: Connection refused (1 of 3)",
        "skipped: VPP is not installed (3 of 3)",
        "2 of 3",
        "never run",
        "dut_saw_no_traffic",
        "against direct",
        "Example CPU @ 2.50GHz",
        "harness time 0.60 s a trial",
        "Seed 42",
    ):
        assert words in text, words


def with_vpp(made):
    if made["point_id"] == VPP:
        drops = {"packets": 4, "interfaces": {}, "reasons": [{"node": "n|1", "reason": "<b>full", "count": 4}]}
        made["dut"]["dut"]["vpp"] = vpp_runtime(drops=drops)
    elif made["point_id"] == VPP.replace("forward", "reverse"):
        made["dut"]["dut"]["vpp"] = vpp_runtime(None, reason="VPP ended", threads=None, nodes=None)
    return made


def test_what_vpp_did_stands_beside_the_figures(tmp_path):
    report = make_report(stored(tmp_path, with_vpp))
    parsed = Page(read(report, "html"))
    assert parsed.headings.index("What VPP did") == parsed.headings.index("What the DUT saw") + 1
    cells = ["vpp_wk_0, 30 % on a CPU", "2.08", "1,900", "host-eth2-tx 1,200, ip4-lookup 31", "interrupt"]
    assert " ".join([VPP.partition(".")[2].replace(".", " "), "dut", *cells, "n|1: <b>full 12"]) in parsed.text
    assert "none VPP ended" in parsed.text
    markdown = read(report, "markdown")
    lines = markdown.partition("## What VPP did")[2].partition("\n## ")[0].splitlines()
    row = next(line for line in lines if "forward" in line)
    for cell in (*(cell.replace("_", "\\_") for cell in cells), "n\\|1: &lt;b&gt;full 12", "A few packets a call."):
        assert f"| {cell} |" in row
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines if line.startswith("|")}) == 1
    rows = list(csv.DictReader(io.StringIO(read(report, "csv"))))
    found = [row for row in rows if row["metric"] == "vpp_vectors_per_call_forward"]
    assert [(row["point_id"], row["median"], row["n"]) for row in found] == [(VPP, "2.08", "3")]


def test_a_run_without_vpp_does_not_speak_of_it(report):
    assert "What VPP did" not in read(report, "html")
    assert "What VPP did" not in read(report, "markdown")


def test_every_trial_that_counts_is_a_dot_and_has_its_exact_value(report):
    text = read(report, "html")
    counted = sum(point.counted for point in report.summary.points)
    assert text.count("<use ") == counted
    value = report.summary.by_id("lab.direct.none.tcp_large.forward").values[0]
    assert f"repetition 1: {units.exact(value, 'bit/s')}" in text


def test_every_figure_says_unit_layer_and_direction(report):
    parsed = Page(read(report, "html"))
    titles = [value for _tag, key, value in parsed.attributes if key == "title" and value.endswith("received")]
    assert titles
    for title in titles:
        assert re.fullmatch(r"[\d,.]+ (bit/s|packet/s), L4 (forward|reverse|both) received", title), title


def test_text_of_a_user_stays_text_in_every_file(tmp_path):
    def run_change(run):
        point = {"topology": "routed", "datapath": HOSTILE, "traffic": HOSTILE, "direction": "forward"}
        run["points"] = {"evil": {"testbed": HOSTILE, "point": point, "headline": "goodput_forward"}, **run["points"]}
        run["versions"] = {HOSTILE: HOSTILE}
        run["fingerprints"] = {HOSTILE: {HOSTILE: [HOSTILE]}}
        return json.loads(json.dumps(run).replace("\\ud800", "?"))

    def change(made):
        return (
            {**made, "status": "failed", "reason": HOSTILE.replace("\ud800", "?")}
            if made["point_id"] == KERNEL
            else made
        )

    store = stored(tmp_path, change, run_change)
    point = {"topology": "routed", "datapath": "=1", "traffic": HOSTILE, "direction": "forward"}
    path = store.path / "trials" / "evil-r1-a1.json"
    path.write_text(json.dumps({**trial("evil", point=point), "headline": "goodput_forward"}), encoding="utf-8")
    report = make_report(store)
    text = read(report, "html")
    parsed = Page(text)
    assert "script" not in parsed.tags
    assert "<script>alert(1)</script>" in parsed.text
    assert not re.search("[\x00-\x08\x1b]", text)
    assert "<script" not in read(report, "markdown")
    assert "](http" not in read(report, "markdown").replace("\\](", "")
    ET.fromstring(read(report, "junit"))
    for row in csv.reader(io.StringIO(read(report, "csv"))):
        assert not any(cell.startswith(("=", "@", "+")) for cell in row)


def test_made_again_nothing_changes(tmp_path, report):
    assert sorted(report.changed) == ["junit.xml", "report.html", "report.md", "summary.csv", "summary.json"]
    store = RunStore.open(tmp_path)
    before = {name: (store.path / name).stat().st_mtime_ns for name in report.changed}
    assert make_report(store).changed == []
    assert {name: (store.path / name).stat().st_mtime_ns for name in before} == before


def test_the_same_trials_give_the_same_bytes_elsewhere(tmp_path):
    one = make_report(stored(tmp_path / "a", troubled))
    two = make_report(stored(tmp_path / "b", troubled))
    assert all(read(one, kind) == read(two, kind) for kind in one.files)


def test_without_writing_nothing_is_written(tmp_path):
    store = stored(tmp_path)
    assert len(make_report(store, write=False).changed) == 5
    assert sorted(os.listdir(store.path)) == ["raw", "run.json", "trials"]


def test_a_full_disk_leaves_the_old_report(tmp_path, monkeypatch, report):
    store = RunStore.open(tmp_path)
    before = read(report, "html")
    (store.path / "trials" / f"{KERNEL}-r1-a1.json").unlink()

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreFullError):
        make_report(store)
    assert read(report, "html") == before
    assert not [name for name in os.listdir(store.path) if name.endswith(".tmp")]


def test_the_verdict_is_in_sentences(tmp_path):
    report = make_report(stored(tmp_path, noise=0.005))
    lines = "\n".join(report.verdict)
    assert re.search(
        r"routed kernel tcp_large forward: median 13\.\d Gbit/s \(L4 goodput, n 3, spread 0\.\d %\), "
        r"4\d\.\d % below direct \(95 % 4\d\.\d to 4\d\.\d\)",
        lines,
    ), lines
    assert "direct tcp_large forward: median 2" in lines
    assert report.verdict[-1].startswith("harness time 0.60 s a trial")


def test_the_table_is_aligned_and_shows_every_point(report):
    head, *rows = report.table
    assert len(rows) == 18
    column = head.index("state")
    assert {row[column:].strip() for row in rows} == {"ok", "partial", "invalid", "skipped", "missing"}


def test_a_terminal_is_not_flooded(tmp_path):
    report = make_report(stored(tmp_path, streams=[str(n) for n in range(5)], repeats=1), with_charts=False)
    assert len(report.summary.points) == 90
    assert len(report.table) == 62
    assert report.table[-1] == "... and 30 more points: see the report"


def test_csv_has_a_line_for_each_metric_and_for_each_point_without_one(report):
    rows = list(csv.DictReader(io.StringIO(read(report, "csv"))))
    point = report.summary.by_id("lab.routed.kernel.tcp_large.both")
    mine = [row for row in rows if row["point_id"] == point.point_id]
    assert len(mine) == len(point.metrics)
    (headline,) = [row for row in mine if row["headline"] == "true"]
    assert float(headline["median"]) == point.main.summary.median
    assert headline["difference_shown"] == "true"
    (missing,) = [row for row in rows if row["point_id"] == VPP]
    assert (missing["status"], missing["median"], missing["metric"]) == ("missing", "", "")
    assert len({len(row) for row in rows}) == 1
    assert None not in missing.values()


def test_junit_shows_nothing_green_that_is_not_whole(report):
    root = ET.fromstring(read(report, "junit"))
    (suite,) = root
    found = {case.get("name"): [child.tag for child in case if child.tag != "system-out"] for case in suite}
    assert found["routed kernel tcp_large forward"] == ["failure"]
    assert found["routed kernel udp_small reverse"] == ["skipped"]
    assert found["routed kernel udp_small forward"] == ["error"]
    assert found["routed vpp_af_packet tcp_large forward"] == ["skipped"]
    assert found["direct tcp_large both"] == []
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "18",
        "1",
        "1",
        "2",
    )


def test_markdown_tables_have_as_many_cells_as_heads(report):
    width = None
    for line in read(report, "markdown").splitlines():
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        width = width or cells
        assert cells == width, line


def test_a_run_without_any_trial_has_a_report(tmp_path):
    report = make_report(stored(tmp_path, lambda _made: None))
    assert {point.status for point in report.summary.points} == {"missing"}
    assert "Nothing: no point has a result." in Page(read(report, "html")).text


def test_a_run_without_points_has_a_report(tmp_path):
    report = make_report(stored(tmp_path, lambda _made: None, lambda run: {**run, "points": {}, "harness": None}))
    Page(read(report, "html"))
    assert report.table == ["point  median  min  max  spread  n  against the baseline  state"]


def test_testbeds_stand_apart(tmp_path):
    report = make_report(stored(tmp_path, testbeds=("one", "two")))
    text = Page(read(report, "html")).text
    assert text.index("one: tcp_large") < text.index("one: udp_small") < text.index("two: tcp_large")


def test_what_the_page_leaves_out_is_said(tmp_path, monkeypatch):
    for name in ("SENTENCES_SHOWN", "TRIALS_SHOWN", "METRIC_ROWS_SHOWN", "BARS_PER_CHART"):
        monkeypatch.setattr(page, name, 5)
    monkeypatch.setattr(page, "CHARTS_SHOWN", 1)
    text = Page(read(make_report(stored(tmp_path)), "html")).text
    for words in (
        "13 more points are in the tables below",
        "The first 5 of 54 trials are shown; the folder trials/ has them all.",
        "metrics are shown; summary.csv has them all.",
        "The chart shows the first 5 of 9 points; the table has them all.",
        "Charts are drawn for the first 1 of 2 kinds of traffic",
    ):
        assert words in text, words


@pytest.mark.parametrize("library", ["matplotlib", "scipy"])
def test_a_missing_library_is_one_clear_error(tmp_path, monkeypatch, library):
    from ansible_collections.fastpath.bench.plugins.module_utils._bench import stats  # noqa: PLC0415

    stats.t_quantile.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BenchError, match=f"python3 -m pip install {library}") as caught:
        make_report(stored(tmp_path))
    assert caught.value.code == "missing_library"


def test_without_charts_matplotlib_is_not_needed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "Charts were turned off" in read(make_report(stored(tmp_path), with_charts=False), "html")


def test_a_chart_takes_names_as_they_are():
    rows = [charts.Bar("$x$ <b> #010203 \n two", 0.0, [(0.0, "t")], "<i>", 1, "$1 & 2")]
    svg = charts.bars("c", "a & <b>", "bit/s", rows)
    ET.fromstring(svg)
    assert isinstance(svg, Markup)
    assert "$x$ &lt;b&gt; #010203 two" in svg
    assert "&lt;i&gt;" in svg


def test_a_chart_without_any_value_is_drawn():
    ET.fromstring(charts.bars("c", "x", "bit/s", [charts.Bar("a", None, [], "t", 0, "failed")]))
    ET.fromstring(charts.bars("c", "x", "ms", [charts.Bar("a", 0.088, [(0.088, "t")], "t", 6, "0.088 ms")]))


def test_markup_escapes_children_and_attributes():
    assert tag("td", "<&>", None, [1, 2.5], title='"<', class_="n", open=True, id=None) == (
        '<td title="&quot;&lt;" class="n" open>&lt;&amp;&gt;12.5</td>'
    )
    assert tag("br") == "<br>"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12.345e9, "bit/s", "12.3 Gbit/s"), (941e6, "bit/s", "941 Mbit/s"), (999.96e6, "bit/s", "1.00 Gbit/s"),
        (650e3, "packet/s", "650 kpps"), (4.06e6, "packet/s", "4.06 Mpps"), (0, "bit/s", "0 bit/s"),
        (3.21, "packet/s", "3.21 pps"), (0.021, "ratio", "2.10 %"), (1.0, "ratio", "100 %"), (0.088, "ms", "0.088 ms"),
        (1e-9, "ratio", "0.0000001 %"), (12, "count", "12"), (12345, "count", "12,345"), (2.5, "count", "2.50"),
        (1.5e6, "byte", "1.50 MB"), (None, "bit/s", units.UNKNOWN), (-2e9, "bit/s", "-2.00 Gbit/s"),
        (5e15, "bit/s", "5,000 Tbit/s"),
    ],
)  # fmt: skip
def test_numbers_for_people(value, unit, text):
    assert units.human(value, unit) == text


def test_exact_numbers_keep_every_digit():
    assert units.exact(12345678901, "bit/s") == "12,345,678,901 bit/s"
    assert units.exact(0.0883, "ms") == "0.0883 ms"
    assert units.exact(None, "ms") == "not known"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, units.UNKNOWN), (0.62, "0.62 s"), (71.4, "71 s"), (150, "2 min 30 s"), (7260, "2 h 01 min")],
)
def test_times_for_people(value, text):
    assert units.seconds(value) == text


def test_the_latest_link_is_what_the_report_opens(tmp_path):
    stored(tmp_path, name="one", repeats=1)
    stored(tmp_path, name="two", repeats=1)
    assert RunStore.open(tmp_path).run_id == "two"
    assert store_module.LATEST == "latest"


@pytest.mark.parametrize(
    ("ends", "bound", "sentence", "figures"),
    [
        ((-45.2, -49.1, -40.3), None, "45 % below direct (95 % 40 to 49)", "-45 % (-49 to -40)"),
        ((-45.2, -45.4, -45.0), None, "45.2 % below direct (95 % 45.0 to 45.4)", "-45.2 % (-45.4 to -45.0)"),
        ((16.04, 12.1, 20.2), None, "16 % above direct (95 % 12 to 20)", "+16 % (+12 to +20)"),
        ((3.21, 1.1, 5.4), None, "3.2 % above direct (95 % 1.1 to 5.4)", "+3.2 % (+1.1 to +5.4)"),
        ((0.52, 0.47, 0.56), None, "0.52 % above direct (95 % 0.47 to 0.56)", "+0.52 % (+0.47 to +0.56)"),
        # a bound is rounded to the side that it still holds for
        ((50.0, 30.9, 70.1), "at_least", "at least 30 % above direct (bound of the 95 % interval)", None),
        ((-50.0, -70.2, -30.9), "at_most", "at least 30 % below direct (bound of the 95 % interval)", None),
    ],
)
def test_a_difference_in_words(ends, bound, sentence, figures):
    difference = Difference(*ends, shown=True, reason=None)
    against = Comparison("d", "direct", difference, shown=True, reason=None, bound=bound)
    assert verdict.comparison(against) == sentence
    if figures:
        figure, interval = verdict.comparison_figures(*against.figures)
        assert f"{figure} ({interval})" == figures.replace("-", "\N{MINUS SIGN}")
