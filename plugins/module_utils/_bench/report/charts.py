# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Charts as SVG that stands inside the page: no file, no network, the page's own fonts and colours.

Drawn by matplotlib, then made fit: colours become the page's CSS variables (so that dark and light both read well),
identifiers get a prefix (a page holds many charts), and what names another site is taken out.
"""

from __future__ import annotations

import dataclasses
import io
import re
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._bench import units
from ansible_collections.fastpath.bench.plugins.module_utils._bench.report.markup import Markup, escape, legal
from ansible_collections.fastpath.bench.plugins.module_utils._bench.stats import missing_library

#: Colours that stand for a CSS variable until the SVG is made fit. No two are alike, and none is used otherwise.
_INK, _MUTED, _GRID, _PAPER, _DOT = "#010203", "#020304", "#030405", "#040506", "#050607"
_SERIES = ("#060708", "#070809", "#08090a", "#090a0b", "#0a0b0c", "#0b0c0d", "#0c0d0e")
_VARIABLES = {
    _INK: "var(--ink)",
    _MUTED: "var(--muted)",
    _GRID: "var(--line)",
    _PAPER: "var(--paper)",
    _DOT: "var(--dot)",
    **{colour: f"var(--s{number})" for number, colour in enumerate(_SERIES)},
}
SERIES = len(_SERIES)

#: Dots that are drawn of one point; with more they only cover each other.
DOTS_PER_BAR = 200

_WIDTH_PX, _ROW_PX, _TOP_PX, _BOTTOM_PX, _RIGHT_PX = 960, 30, 6, 44, 96
_CHARACTER_PX = 6.6
_CURVES_PX, _CURVES_LEFT_PX = 380, 80
_DPI = 72


@dataclasses.dataclass(frozen=True)
class Bar:
    """One point in a chart."""

    label: str
    median: float | None
    #: Each trial's value and what its tooltip says.
    dots: t.Sequence[tuple[float, str]]
    title: str
    series: int
    #: Written at the bar's end, or in its place when there is no value.
    note: str
    #: Bars of one block stand together; a gap parts it from the next.
    block: str = ""


def bars(name: str, axis_label: str, unit: str, rows: t.Sequence[Bar]) -> Markup:
    """Horizontal bars to the median, every trial a dot, in the order of ``rows``."""
    top = max((value for row in rows for value in (row.median or 0, *(v for v, _title in row.dots))), default=0)
    divisor, written = units.scale_of(top, unit)
    left = min(max((len(row.label) for row in rows), default=0) * _CHARACTER_PX + 14, 380)
    places = _places(rows)
    extent = (places[-1] if places else 0) + 1
    height = _TOP_PX + _BOTTOM_PX + _ROW_PX * extent
    titles: list[str] = []

    def paint(axes: t.Any) -> None:
        axes.set_xlim(0, (top / divisor) * 1.02 or 1)
        axes.set_ylim(extent - 0.5, -0.5)
        axes.set_yticks(places)
        axes.set_yticklabels([_plain(row.label) for row in rows], color=_INK)
        axes.set_xlabel(_plain(f"{axis_label}, {written}"), color=_MUTED)
        axes.tick_params(axis="y", length=0, pad=8)
        axes.xaxis.grid(True, color=_GRID, linewidth=1)
        dots_x: list[float] = []
        dots_y: list[float] = []
        for number, (at_y, row) in enumerate(zip(places, rows)):
            if row.median is not None:
                (patch,) = axes.barh(at_y, row.median / divisor, height=0.62, color=_SERIES[row.series], linewidth=0)
                patch.set_gid(f"bar{number}")
            at = max([row.median or 0, *(value for value, _title in row.dots)]) / divisor
            axes.annotate(
                _plain(row.note),
                (at, at_y),
                xytext=(9, 0),
                textcoords="offset points",
                va="center",
                color=_INK if row.median is not None else _MUTED,
                annotation_clip=False,
            )
            shown = row.dots[:DOTS_PER_BAR]
            for place, (value, title) in enumerate(shown):
                dots_x.append(value / divisor)
                # From the first repetition above to the last below, so that a drift is seen.
                dots_y.append(at_y + (0.36 * (place / (len(shown) - 1) - 0.5) if len(shown) > 1 else 0))
                titles.append(title)
        if dots_x:
            size = 22 if len(dots_x) <= 20 * len(rows) else 8
            dots = axes.scatter(dots_x, dots_y, s=size, color=_DOT, edgecolors=_PAPER, linewidths=0.8, zorder=3)
            dots.set_gid("dots")
            dots.set_clip_on(False)

    svg = _drawn(height, left, paint)
    svg = _titled(svg, {f"bar{n}": row.title for n, row in enumerate(rows)}, titles)
    return Markup(_fit(svg, name, axis_label))


@dataclasses.dataclass(frozen=True)
class Curve:
    """One thing over a logarithmic axis: what is expected as lines, what was measured as dots."""

    label: str
    series: int
    #: Each line's points and whether it is broken.
    lines: t.Sequence[tuple[t.Sequence[tuple[float, float]], bool]]
    dots: t.Sequence[tuple[float, float, str]]


def curves(
    name: str, axis_labels: tuple[str, str], unit: str, ticks: t.Mapping[float, str], those: t.Sequence[Curve]
) -> Markup:
    """Lines and dots over a logarithmic axis with these ticks; both axes are logarithmic."""
    values = [y for one in those for line, _broken in one.lines for _x, y in line]
    values += [y for one in those for _x, y, _title in one.dots if y > 0]
    top, low = max(values, default=1.0), min(values, default=1.0)
    divisor, written = units.scale_of(top, unit)
    titles: list[str] = []

    def paint(axes: t.Any) -> None:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.minorticks_off()
        axes.set_xlim(min(ticks) / 1.3, max(ticks) * 1.3)
        axes.set_ylim(low / divisor / 1.5, top / divisor * 1.5)
        axes.set_xticks(list(ticks), [_plain(text) for text in ticks.values()])
        axes.yaxis.set_major_formatter(lambda value, _place: f"{value:g}")
        axes.set_xlabel(_plain(axis_labels[0]), color=_MUTED)
        axes.set_ylabel(_plain(f"{axis_labels[1]}, {written}"), color=_MUTED)
        axes.tick_params(axis="y", length=0, colors=_MUTED, pad=6)
        axes.grid(True, color=_GRID, linewidth=1)
        dots_x: list[float] = []
        dots_y: list[float] = []
        colours: list[str] = []
        for one in those:
            colour = _SERIES[one.series % SERIES]
            for line, broken in one.lines:
                x, y = zip(*line)
                axes.plot(
                    x, [value / divisor for value in y], color=colour, linewidth=1.6, dashes=(4, 3) if broken else ()
                )
            for at, value, title in one.dots:
                if value > 0:
                    dots_x.append(at)
                    dots_y.append(value / divisor)
                    colours.append(colour)
                    titles.append(title)
        if dots_x:
            dots = axes.scatter(dots_x, dots_y, s=46, c=colours, edgecolors=_PAPER, linewidths=0.8, zorder=3)
            dots.set_gid("dots")
            dots.set_clip_on(False)

    svg = _titled(_drawn(_CURVES_PX, _CURVES_LEFT_PX, paint), {}, titles)
    return Markup(_fit(svg, name, f"{axis_labels[1]} by {axis_labels[0]}"))


def _drawn(height: float, left: float, paint: t.Callable[[t.Any], None]) -> str:
    """What matplotlib makes of one pair of axes."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - only a report needs it, not a target
        from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise missing_library("matplotlib") from error

    settings: dict[t.Any, t.Any] = {
        "svg.fonttype": "none",  # text stays text: it takes the page's font, and can be searched
        "svg.hashsalt": "fastpath.bench",  # the same chart has the same bytes
        "font.size": 12,
        "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(_WIDTH_PX / _DPI, height / _DPI), dpi=_DPI)
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        axes = figure.add_axes(
            (
                left / _WIDTH_PX,
                _BOTTOM_PX / height,
                (_WIDTH_PX - left - _RIGHT_PX) / _WIDTH_PX,
                (height - _TOP_PX - _BOTTOM_PX) / height,
            )
        )
        axes.patch.set_visible(False)
        axes.tick_params(axis="x", length=0, colors=_MUTED, pad=6)
        axes.set_axisbelow(True)
        for side in ("top", "right", "bottom", "left"):
            axes.spines[side].set_visible(False)
        paint(axes)
        output = io.StringIO()
        figure.savefig(output, format="svg", metadata={"Date": None, "Creator": None})
    return output.getvalue()


def _places(rows: t.Sequence[Bar]) -> list[float]:
    places: list[float] = []
    for before, row in zip((None, *rows), rows):
        step = 0.0 if before is None else 1.0 if before.block == row.block else 1.5
        places.append((places[-1] if places else 0.0) + step)
    return places


def _titled(svg: str, bar_titles: t.Mapping[str, str], dot_titles: t.Sequence[str]) -> str:
    """Put tooltips in: SVG's own ``title`` element, which needs no script."""
    for gid, title in bar_titles.items():
        svg = svg.replace(f'<g id="{gid}">', f'<g id="{gid}"><title>{escape(title)}</title>', 1)
    start = svg.find('<g id="dots">')
    if start < 0:
        return svg
    head, tail = svg[:start], svg[start:]
    waiting = iter(dot_titles)
    pieces, position = [], 0
    # Only the drawn dots: the marker's definition is no <use>.
    for match in re.finditer(r"(<use [^>]*)/>", tail):
        text = next(waiting, None)
        if text is None:
            break
        pieces += [tail[position : match.start()], f"{match[1]}><title>{escape(text)}</title></use>"]
        position = match.end()
    return head + "".join(pieces) + tail[position:]


def _fit(svg: str, name: str, label: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", svg)
    svg = svg.replace("xlink:href=", "href=")
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<style.*?</style>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'style="[^"]*"', lambda match: _page_style(match[0]), svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda match: f' id="{name}-{match[1]}"' if match[1] in used else "", svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"\n\s*", "\n", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}" class="chart"', 1).strip()


def _page_style(style: str) -> str:
    style = re.sub("|".join(_VARIABLES), lambda match: _VARIABLES[match[0]], style)
    style = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px; font-family: var(--sans)", style)
    return re.sub(r"font-family: '[^;\"]*", "font-family: var(--sans)", style)


def _plain(text: str) -> str:
    """One line, without what SVG forbids."""
    return " ".join(legal(text).split())
