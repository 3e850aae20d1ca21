"""The look of a report's page: one style sheet, nothing fetched from elsewhere."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfdfb; --ink: #20262b; --soft: #5c6770; --line: #e2e4e0; --panel: #f5f6f3;
  --accent: #2f62a8; --cbad: #c4321f; --cother: #8d959c;
  --c0: #3a6fb0; --c1: #2b9383; --c2: #d98324; --c3: #8561b5;
  --c4: #b3568c; --c5: #7d8f2c; --c6: #94684a; --c7: #3b9bbd;
  --serif: Charter, 'Bitstream Charter', 'Iowan Old Style', 'Source Serif 4', Georgia, serif;
  --sans: system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif;
  --mono: ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181b; --ink: #e3e6e8; --soft: #9ba5ad; --line: #2d3338; --panel: #1c2024;
    --accent: #82b1ec; --cbad: #f0705e; --cother: #7d868e;
    --c0: #6ba0e0; --c1: #4fbfae; --c2: #eda657; --c3: #b294de;
    --c4: #da86b6; --c5: #b0c25c; --c6: #c29878; --c7: #6cc3e0;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 var(--serif); }
main { max-width: 1000px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 30px; line-height: 1.2; font-weight: 600; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 20px; font-weight: 600; margin: 52px 0 4px; }
p { margin: 6px 0; max-width: 70ch; }
.lead, .note, .none { color: var(--soft); }
.lead { font-size: 15px; margin-bottom: 16px; }
.note { font: 12.5px/1.5 var(--sans); max-width: none; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 20px 32px;
  margin: 26px 0 0; padding: 18px 0; border: solid var(--line); border-width: 1px 0; }
.facts div { display: flex; flex-direction: column; }
.facts dt { font: 13px var(--sans); color: var(--soft); order: 2; }
.facts dd { font-size: 28px; line-height: 1.25; margin: 0; font-variant-numeric: tabular-nums; }
.facts .wide { grid-column: span 2; }
.facts .arrow { color: var(--soft); padding: 0 4px; }
.failure { border-left: 3px solid var(--cbad); padding: 2px 0 2px 16px; margin: 28px 0 0; }
.failure h2 { margin: 0; font-size: 17px; color: var(--cbad); }
pre { font: 12.5px/1.5 var(--mono); margin: 8px 0; white-space: pre-wrap; overflow-wrap: anywhere;
  max-height: 420px; overflow: auto; }

figure { margin: 0; min-width: 0; display: flex; flex-direction: column;
  justify-content: space-between; }
figcaption { font: 13px/1.4 var(--sans); display: flex; flex-wrap: wrap; gap: 2px 14px;
  margin-bottom: 10px; }
figcaption b { font-weight: 600; overflow-wrap: anywhere; }
.unit { color: var(--soft); margin-left: -8px; }
.unit:empty { display: none; }
.key { color: var(--soft); white-space: nowrap; }
.key::before { content: ''; display: inline-block; width: 12px; height: 3px; border-radius: 2px;
  background: var(--c); margin-right: 6px; vertical-align: 3px; }
.key.dots::before { width: 8px; height: 8px; border-radius: 50%; vertical-align: 0; }
.key.faint::before { opacity: .35; }
.legend { font: 13px/1.6 var(--sans); max-width: none; margin: 12px 130px 6px 0; }
.legend .key { margin-right: 18px; display: inline-block; }
.key.box::before { width: 10px; height: 10px; vertical-align: -1px; }
td .key, th .key { color: inherit; }
.slim { max-width: 480px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr));
  gap: 28px 40px; margin-top: 18px; }
.many { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 210px), 1fr));
  gap: 30px 30px; margin-top: 18px; }
.plot { display: grid; grid-template-columns: 46px minmax(0, 1fr); position: relative; }
.many .plot { grid-template-columns: 42px minmax(0, 1fr); }
.area { height: 230px; position: relative; }
.many .area { height: 96px; }
.plot svg, .gantt svg { display: block; width: 100%; height: 100%; overflow: visible; }
.gantt svg { overflow: hidden; }
.y, .x { font: 11.5px/1 var(--sans); color: var(--soft); font-variant-numeric: tabular-nums;
  position: relative; }
.y span { position: absolute; right: 8px; transform: translateY(50%); white-space: nowrap; }
.x { grid-column: 2; height: 22px; }
.x span { position: absolute; top: 8px; transform: translateX(-50%); white-space: nowrap; }
svg path { fill: none; vector-effect: non-scaling-stroke; }
.grid { stroke: var(--line); }
.line { stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
.faint { stroke: var(--c); stroke-width: 1; opacity: .4; }
path.dots { stroke: var(--c); stroke-width: 1.2; stroke-dasharray: 3 4; }
.dot { stroke: var(--c); stroke-width: 5; stroke-linecap: round; }
.dots + .dot { stroke-width: 8; }
.cross { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--soft); opacity: .6;
  pointer-events: none; }
.tip { position: absolute; z-index: 2; pointer-events: none; white-space: pre; padding: 6px 9px;
  font: 12px/1.45 var(--sans); background: var(--paper); color: var(--ink); max-width: 90vw;
  border: 1px solid var(--line); border-radius: 4px; box-shadow: 0 2px 8px rgb(0 0 0 / .12); }

.timeline { margin-top: 14px; font: 13px var(--sans); }
.timeline > input { position: absolute; opacity: 0; }
.timeline > label { display: inline-block; padding: 3px 2px; margin-right: 16px; cursor: pointer;
  color: var(--soft); border-bottom: 2px solid transparent; }
.timeline > input:checked + label { color: var(--ink); border-color: var(--accent); }
.timeline > input:focus-visible + label { outline: 2px solid var(--accent); }
.view { display: none; position: relative; padding: 0 22px 0 2px; }
#view0:checked ~ .view0, #view1:checked ~ .view1 { display: block; }
.view:focus { outline: none; }
.view:focus-visible .gantt { outline: 2px solid var(--accent); outline-offset: 3px; }
.gantt { position: relative; border: solid var(--line); border-width: 0 0 1px; cursor: grab;
  touch-action: pan-y; user-select: none; }
.gantt.held { cursor: grabbing; }
path.bars { fill: var(--c); }
.marks { stroke: var(--soft); opacity: .35; stroke-dasharray: 2 3; }
.band { position: absolute; left: 0; font: 12px/18px var(--sans); color: var(--ink);
  pointer-events: none; max-width: 100%; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
.zoom { float: right; margin-top: -30px; }
.zoom button { font: 13px/1 var(--sans); color: var(--ink); background: var(--panel);
  border: 1px solid var(--line); border-radius: 4px; padding: 6px 10px; margin-left: 4px;
  cursor: pointer; }

.scroll { overflow-x: auto; }
table { border-collapse: collapse; font: 13.5px/1.45 var(--sans); margin-top: 12px; width: 100%;
  font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 12.5px; }
th, td { padding: 5px 16px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { border-bottom-color: var(--soft); vertical-align: bottom; }
.n { text-align: right; white-space: nowrap; }
th.t { overflow-wrap: anywhere; min-width: 120px; }
tbody th { font-weight: 400; color: var(--ink); font-size: inherit; }
.share { display: inline-block; width: 84px; height: 8px; background: var(--panel);
  margin-left: 10px; border-radius: 2px; overflow: hidden; }
.share i { display: block; height: 100%; background: var(--accent); opacity: .75; }
.columns { columns: 2 340px; column-gap: 40px; margin-top: 12px; }
.columns table { margin: 0 0 18px; break-inside: avoid; }
.columns td { font: 12.5px/1.5 var(--mono); overflow-wrap: anywhere; }
.columns tbody th { width: 42%; overflow-wrap: anywhere; }
.columns caption { text-align: left; font: 600 12.5px var(--sans); color: var(--soft);
  padding-bottom: 3px; border-bottom: 1px solid var(--soft); }
details { margin-top: 14px; }
summary { font: 13px var(--sans); color: var(--accent); cursor: pointer; }
.graph { margin-top: 14px; overflow-x: auto; }
.graph svg { max-width: 100%; height: auto; }
footer { margin-top: 56px; font: 12.5px var(--sans); color: var(--soft); }

@media (max-width: 600px) {
  main { padding: 24px 16px 40px; }
  h1 { font-size: 24px; }
  .many { grid-template-columns: 1fr 1fr; gap: 24px 18px; }
  .facts { grid-template-columns: 1fr 1fr; gap: 16px 20px; }
  .facts dd { font-size: 23px; }
  .graph svg { max-width: none; }
  .share { display: none; }
  .zoom { float: none; margin: 4px 0 0 -4px; }
  .legend { margin-right: 0; }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --panel: #eee; --ink: #000; --soft: #444;
    --line: #ccc; }
  main { max-width: none; padding: 0; }
  .zoom, summary { display: none; }
  figure, tr, .facts, .failure, .view { break-inside: avoid; }
  h2 { break-after: avoid; }
  pre { max-height: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
