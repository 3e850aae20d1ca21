"""The script of a report's page: values under the pointer, zoom and pan of the timeline."""

from __future__ import annotations

SCRIPT = """
'use strict';
function show(host, text, x, y) {
  let tip = host.querySelector(':scope > .tip');
  if (!tip) { tip = document.createElement('div'); tip.className = 'tip'; host.append(tip); }
  tip.textContent = text;
  const left = Math.min(x + 14, host.clientWidth - tip.offsetWidth);
  tip.style.left = Math.max(0, left) + 'px';
  tip.style.top = y + 'px';
}
function hide(host) {
  host.querySelectorAll(':scope > .tip, .cross').forEach(e => e.remove());
}
function dataOf(host) {
  return JSON.parse(host.querySelector(':scope > script').textContent);
}

for (const chart of document.querySelectorAll('.chart')) {
  const area = chart.querySelector('.area');
  if (!area) continue;
  const points = dataOf(chart);
  area.addEventListener('pointerleave', () => hide(area));
  area.addEventListener('pointermove', event => {
    const box = area.getBoundingClientRect();
    const at = 1000 * (event.clientX - box.left) / box.width;
    const [x, text] = points.reduce((a, b) => Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a);
    let cross = area.querySelector('.cross');
    if (!cross) {
      cross = document.createElement('div');
      cross.className = 'cross';
      area.append(cross);
    }
    cross.style.left = x / 10 + '%';
    show(area, text, x / 1000 * box.width, 4);
  });
}

const WIDTH = 1e6;
function clock(s, digits) {
  const round = n => String(Number(n.toPrecision(digits)));
  if (s === 0) return '0 s';
  if (s < 1e-3) return round(s * 1e6) + ' \\u00b5s';
  if (s < 1) return round(s * 1e3) + ' ms';
  if (s < 60) return round(s) + ' s';
  const h = Math.floor(s / 3600), min = Math.floor(s % 3600 / 60), rest = Number(round(s % 60));
  return [[h, 'h'], [min, 'min'], [rest, 's']].filter(p => p[0]).map(p => p.join(' ')).join(' ');
}

for (const view of document.querySelectorAll('.view')) {
  const data = dataOf(view), gantt = view.querySelector('.gantt'), axis = view.querySelector('.x');
  const paths = new Map([...gantt.querySelectorAll('.bars')].map(p => [p.dataset.colour, p]));
  let from = 0, to = WIDTH;

  function draw() {
    const scale = 1000 / (to - from), d = new Map([...paths.keys()].map(c => [c, []]));
    for (const [row, start, end, colour] of data.bars) {
      if (end < from || start > to) continue;
      const [top, height] = data.rows[row];
      const left = (Math.max(start, from) - from) * scale;
      const wide = Math.max((Math.min(end, to) - from) * scale - left, 0.6);
      const tall = height - (height > 3 ? 1 : 0.5), w = wide.toFixed(2);
      d.get(colour).push(`M${left.toFixed(2)} ${top}h${w}v${tall}h-${w}z`);
    }
    for (const [colour, path] of paths) path.setAttribute('d', d.get(colour).join(''));
    const marks = data.marks.filter(at => at >= from && at <= to);
    gantt.querySelector('.marks').setAttribute('d', marks.length > data.most ? '' : marks
      .map(at => `M${((at - from) * scale).toFixed(2)} 0v${data.height}`).join(''));
    const a = data.start + from / WIDTH * data.wall, b = data.start + to / WIDTH * data.wall;
    const rough = (b - a) / 6 * 0.999, power = 10 ** Math.floor(Math.log10(rough));
    const steps = [1, 2, 2.5, 5, 10].map(n => n * power);
    const step = (rough > 10 ? [...data.clock, ...steps] : steps).find(n => n >= rough);
    axis.replaceChildren();
    for (let n = Math.ceil(a / step - 1e-9); n * step <= b * (1 + 1e-12); n++) {
      const tick = document.createElement('span');
      tick.textContent = clock(n * step, 9);
      tick.style.left = 100 * (n * step - a) / (b - a) + '%';
      axis.append(tick);
    }
  }
  function move(start, width) {
    from = Math.min(WIDTH - width, Math.max(0, start));
    to = from + width;
    if (data.wall > 0) draw();
  }
  function zoom(factor, share) {
    const width = Math.min(WIDTH, Math.max(50, (to - from) * factor));
    move(from + share * (to - from - width), width);
  }
  const share = event => {
    const box = gantt.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  };

  gantt.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== view) return;
    event.preventDefault();
    zoom(Math.exp(event.deltaY / 400), share(event));
  }, {passive: false});
  let held = null;
  gantt.addEventListener('pointerdown', event => {
    held = {share: share(event), from};
    gantt.setPointerCapture(event.pointerId);
    gantt.classList.add('held');
  });
  for (const end of ['pointerup', 'pointercancel']) {
    gantt.addEventListener(end, () => { held = null; gantt.classList.remove('held'); });
  }
  gantt.addEventListener('dblclick', () => move(0, WIDTH));
  gantt.addEventListener('pointerleave', () => hide(view));
  gantt.addEventListener('pointermove', event => {
    if (held) { move(held.from + (held.share - share(event)) * (to - from), to - from); return; }
    const box = gantt.getBoundingClientRect(), y = event.clientY - box.top;
    const row = data.rows.findIndex(([top, height]) => y >= top && y < top + height);
    const at = from + share(event) * (to - from), near = 3 * (to - from) / box.width;
    const bar = data.bars.find(b => b[0] === row && b[1] - near <= at && at <= b[2] + near);
    if (!bar) { hide(view); return; }
    show(view, bar[4] + '\\n' + clock((bar[2] - bar[1]) / WIDTH * data.wall, 3),
         event.clientX - box.left, y + 18);
  });
  view.addEventListener('keydown', event => {
    const width = to - from;
    const act = {ArrowLeft: () => move(from - width / 5, width),
                 ArrowRight: () => move(from + width / 5, width),
                 '+': () => zoom(0.5, 0.5), '-': () => zoom(2, 0.5), '0': () => move(0, WIDTH)};
    if (act[event.key]) { event.preventDefault(); act[event.key](); }
  });
  const bar = document.createElement('div');
  bar.className = 'zoom';
  for (const [text, name, act] of [['+', 'zoom in', () => zoom(0.5, 0.5)],
      ['\\u2212', 'zoom out', () => zoom(2, 0.5)], ['all', 'show all', () => move(0, WIDTH)]]) {
    const button = document.createElement('button');
    button.textContent = text;
    button.setAttribute('aria-label', name);
    button.addEventListener('click', act);
    bar.append(button);
  }
  view.prepend(bar);
}
"""
