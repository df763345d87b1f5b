# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page's style sheet. Colours are variables, so that dark, light and print are one list each."""

from __future__ import annotations

STYLE = """
:root{--paper:#fff;--panel:#f6f8fa;--ink:#1b222c;--muted:#5a6573;--line:#dfe4ea;--accent:#1d5fa6;--dot:#1b222c;
--good:#1a6b3c;--warn:#8a5300;--bad:#b3261e;--calm:#3d5a80;
--s0:#a9b4c0;--s1:#6fa3d8;--s2:#e0a060;--s3:#74b58c;--s4:#b08fc7;--s5:#d98a8a;--s6:#9aa35a;
--sans:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;
--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14181e;--panel:#1c222a;--ink:#e6eaef;--muted:#9aa6b4;
--line:#303944;--accent:#7db4ee;--dot:#f2f5f8;--good:#6fcf97;--warn:#f0b35a;--bad:#ff8a80;--calm:#9dbbe0;
--s0:#566373;--s1:#2f6aa8;--s2:#a8682a;--s3:#37784f;--s4:#71508a;--s5:#994f4f;--s6:#666e30}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 var(--sans)}
main{max-width:1440px;margin:0 auto;padding:40px 32px 64px}
h1{font-size:30px;line-height:1.2;margin:0 0 20px;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:21px;line-height:1.3;margin:0 0 16px;letter-spacing:-.005em}
h3,.h3{font-size:16px;line-height:1.4;font-weight:650}
h3{margin:24px 0 8px}
p{margin:0 0 10px}
section{margin-top:44px;padding-top:28px;border-top:1px solid var(--line)}
.eyebrow{color:var(--accent);font-weight:650;font-size:13px;letter-spacing:.04em;margin:0 0 4px}
.note{color:var(--muted)}
.small{font-size:12.5px;line-height:1.4;color:var(--muted);display:inline-block;max-width:260px}
.small b{color:var(--ink)}
.facts{display:flex;flex-wrap:wrap;gap:14px 36px;margin:0 0 12px}
.facts dt{color:var(--muted);font-size:12.5px}
.facts dd{margin:0;font-variant-numeric:tabular-nums}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:16px}
.card{background:var(--panel);border:1px solid var(--line);border-top:3px solid var(--calm);border-radius:6px;
padding:14px 20px 16px}
.card.can{border-top-color:var(--good)}
.card.cannot{border-top-color:var(--warn)}
.card h3{margin:0 0 6px}
.card ul,.sentences{margin:0;padding-left:18px}
.card li+li,.sentences li+li{margin-top:5px}
.sentences{font-variant-numeric:tabular-nums}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:6px 22px;margin:0 0 8px;padding:0;font-size:13.5px}
.swatch{display:inline-block;width:12px;height:12px;border-radius:2px;margin-right:3px;vertical-align:-1px}
.swatch.s0{background:var(--s0)}.swatch.s1{background:var(--s1)}.swatch.s2{background:var(--s2)}
.swatch.s3{background:var(--s3)}.swatch.s4{background:var(--s4)}.swatch.s5{background:var(--s5)}
.swatch.s6{background:var(--s6)}
figure{margin:14px 0 6px}
.chart{display:block;width:100%;max-width:960px;height:auto}
details{margin:10px 0}
summary{cursor:pointer;padding:4px 0}
details.group{margin:18px 0 26px;content-visibility:auto;contain-intrinsic-size:auto 600px}
.scroll{overflow-x:auto;margin:8px 0 14px}
table{border-collapse:collapse;width:100%;font-size:13px;line-height:1.4;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:7px 10px 7px 0;border-bottom:1px solid var(--line)}
th:last-child,td:last-child{padding-right:0}
thead th{color:var(--muted);font-weight:600;font-size:12.5px;vertical-align:bottom;
border-bottom:1.5px solid var(--muted)}
tbody th{font-weight:500;white-space:nowrap}
td.n,th.n{text-align:right;white-space:nowrap}
td.strong{font-weight:650}
td.against{min-width:168px}
table.text tbody th{white-space:normal;min-width:180px}
table.findings td:nth-child(3),table.findings td:nth-child(5){min-width:260px}
.pairs th{font-family:var(--mono);font-size:12px}.pairs td{overflow-wrap:anywhere}
code,pre{font-family:var(--mono);font-size:12.5px}
pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:14px;overflow-x:auto}
.badge{display:inline-block;font-size:12px;line-height:1.35;font-weight:600;padding:1px 8px;border-radius:9px;
border:1px solid currentColor;color:var(--calm);white-space:nowrap}
.badge.ok{color:var(--good)}.badge.warning{color:var(--warn)}.badge.error{color:var(--bad)}
.codes{margin-top:3px;white-space:nowrap}
.code{display:block;font-family:var(--mono);font-size:11px;color:var(--muted)}
.hint{text-decoration:underline dotted;text-underline-offset:3px}
.words{display:grid;grid-template-columns:max-content 1fr;gap:4px 24px;font-size:13.5px}
.words dt{color:var(--muted)}.words dd{margin:0}
@media (max-width:720px){main{padding:24px 16px 48px}.words{grid-template-columns:1fr}.words dd{margin-bottom:6px}}
@media print{body{font-size:10.5pt}main{max-width:none;padding:0}section{break-inside:auto}
tr,figure,.card{break-inside:avoid}.scroll{overflow:visible}table{font-size:8.5pt}thead{display:table-header-group}
details.group{content-visibility:visible}th,td{padding:3px 6px 3px 0}}
"""
