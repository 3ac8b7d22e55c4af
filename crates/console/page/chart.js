// Lines over time, drawn by hand.


/** A path through points [x, y], with gaps where y is null. */
function path(points) {
  let text = '';
  let pen = 'M';
  for (const [x, y] of points) {
    if (y === null) {
      pen = 'M';
      continue;
    }
    text += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = 'L';
  }
  return text;
}

function area(points, floor) {
  const runs = [[]];
  for (const point of points) {
    if (point[1] === null) runs.push([]);
    else runs.at(-1).push(point);
  }
  return runs.filter((run) => run.length > 1)
    .map((run) => `${path(run)}L${run.at(-1)[0].toFixed(1)} ${floor}L${run[0][0].toFixed(1)} ${floor}Z`).join('');
}

/** A small picture without axes: what is out as an area, and what is wanted as a line. */
function spark(width = 132, height = 30) {
  const [under, line, want] = ['spark-area', 'spark-line', 'spark-want'].map((name) => s('path', { class: name }));
  const dot = s('circle', { class: 'spark-dot', r: 2.2 });
  const element = s('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': 'true' }, under, want, line, dot);
  return {
    element,
    set(out, wants = []) {
      const known = out.filter((value) => value !== null);
      if (known.length < 2) return attr(element, 'hidden', '');
      element.removeAttribute('hidden');
      const highest = Math.max(...known, 1e-9);
      const most = Math.min(Math.max(highest, ...wants.filter((value) => value !== null)), highest * 2) * 1.06;
      const step = (width - 6) / (out.length - 1);
      const points = (values) => values.map((value, index) => [2 + index * step, value === null || value > most ? null : height - 3 - (value / most) * (height - 6)]);
      const [area_, high] = [points(out), points(wants)];
      attr(line, 'd', path(area_));
      attr(want, 'd', path(high));
      attr(under, 'd', area(area_, height - 1));
      const last = area_.findLast((point) => point[1] !== null);
      if (last) ['cx', 'cy'].forEach((name, index) => attr(dot, name, last[index]));
    },
  };
}

/** Round numbers from 0 to a little above `most`. */
function ticks(most, about = 4) {
  if (!(most > 0)) return [0, 1];
  const raw = most / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw);
  const found = [];
  for (let at = 0; at < most + step * 0.999; at += step) found.push(at);
  return found;
}

const LINES = [
  ['wants', 'wanted', 'line-wants'],
  ['capacity', 'capacity', 'line-capacity'],
  ['mark', 'mark', 'line-mark'],
];

/** The figures of a resource over time: what is out as an area, the ghost in it, and lines beside it. */
function timeChart() {
  const [height, left, right, top, bottom] = [220, 52, 14, 14, 26];
  const frame = h('div', { class: 'chart' });
  const svg = s('svg', { role: 'img', 'aria-label': 'Capacity, what is out and what is wanted over time; the table below has the numbers' });
  const grid = s('g', { class: 'grid' });
  const out = s('path', { class: 'area-out' });
  const ghost = s('path', { class: 'area-ghost' });
  const edge = s('path', { class: 'line-out' });
  const lines = LINES.map(([, , name]) => s('path', { class: name }));
  const window = s('rect', { x: left });
  svg.append(s('clipPath', { id: 'plot' }, window), grid, s('g', { 'clip-path': 'url(#plot)' }, out, ghost, edge, ...lines));
  const legend = h('ul', { class: 'legend' },
    [['key-out', 'out'], ['key-ghost', 'ghost'], ['key-capacity', 'capacity'], ['key-wants', 'wanted'], ['key-mark', 'mark']]
      .map(([name, text]) => h('li', null, h('i', { class: name, 'aria-hidden': 'true' }), text)));
  frame.append(svg, legend);
  return {
    element: frame,
    set(series, step, unit) {
      const width = Math.max(280, frame.clientWidth || 800);
      attr(svg, 'viewBox', `0 0 ${width} ${height}`);
      const span = series.capacity.length;
      if (!span) return;
      const all = ['capacity', 'outstanding', 'wants'].flatMap((name) => series[name]).filter((value) => value !== null && value < 1e12);
      const caps = series.capacity.filter((value) => value !== null);
      const most = Math.min(Math.max(...all, 1e-9), Math.max(...caps, 1e-9) * 8);
      for (const [name, value] of [['y', top - 4], ['width', width - left - right + 2], ['height', height - top - bottom + 6]]) attr(window, name, value);
      const marks = ticks(most);
      const high = marks.at(-1);
      const points_in_all = Math.max(span, 60);
      const x = (index) => left + ((width - left - right) * (index + points_in_all - span)) / (points_in_all - 1);
      const y = (value) => (value === null ? null : height - bottom - (Math.min(value, high) / high) * (height - top - bottom));
      const points = (name) => series[name].map((value, index) => [x(index), y(value)]);
      refill(grid,
        ...marks.map((mark) => s('g', null,
          s('line', { x1: left, x2: width - right, y1: y(mark), y2: y(mark) }),
          s('text', { x: left - 8, y: y(mark) + 4, 'text-anchor': 'end' }, num(mark) + per(unit)))),
        ...[0, 0.5, 1].map((part) => {
          const seconds = Math.round((1 - part) * (points_in_all - 1) * step);
          const text = seconds === 0 ? 'now' : seconds < 120 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`;
          return s('text', { x: left + (width - left - right) * part, y: height - 6, 'text-anchor': ['start', 'middle', 'end'][part * 2] }, text);
        }),
      );
      attr(out, 'd', area(points('outstanding'), height - bottom));
      attr(ghost, 'd', area(points('ghost').map(([at, value]) => [at, value === height - bottom ? null : value]), height - bottom));
      attr(edge, 'd', path(points('outstanding')));
      LINES.forEach(([name], index) => attr(lines[index], 'd', path(points(name))));
    },
  };
}
