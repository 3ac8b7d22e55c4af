// Lines over time, drawn by hand.

const round = (value) => value.toFixed(1);

/** A path through points [x, y], with gaps where y is null. */
function path(points) {
  let pen = 'M';
  return points.map(([x, y]) => {
    const step = y === null ? '' : `${pen}${round(x)} ${round(y)}`;
    pen = y === null ? 'M' : 'L';
    return step;
  }).join('');
}

/** What is under that path. */
function area(points, floor) {
  const runs = [[]];
  for (const point of points) {
    if (point[1] === null) runs.push([]);
    else runs.at(-1).push(point);
  }
  return runs.filter((run) => run.length > 1).map((run) => `${path(run)}V${floor}H${round(run[0][0])}Z`).join('');
}

/** A small picture without axes: what is out as an area, and what is wanted as a line. */
function spark(width, height) {
  const [under, want, line, dot] = [s('path.spark-area'), s('path.spark-want'), s('path.spark-line'), s('circle.spark-dot', { r: 2.2 })];
  const element = s('svg.spark', { viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': 'true' }, under, want, line, dot);
  return Object.assign(element, {
    draw(out = [], wants = []) {
      const known = (values) => values.filter((value) => value !== null);
      element.toggleAttribute('hidden', known(out).length < 2);
      if (element.hasAttribute('hidden')) return element;
      const highest = Math.max(...known(out), 1e-9);
      const most = Math.min(Math.max(highest, ...known(wants)), highest * 2) * 1.06;
      const step = (width - 6) / (out.length - 1);
      const points = (values) => values.map((value, index) => [2 + index * step, value === null || value > most ? null : height - 3 - (value / most) * (height - 6)]);
      const had = points(out);
      attr(line, { d: path(had) });
      attr(want, { d: path(points(wants)) });
      attr(under, { d: area(had, height - 1) });
      const [cx, cy] = had.findLast((point) => point[1] !== null);
      attr(dot, { cx, cy });
      return element;
    },
  });
}

/** Round numbers from 0 to a little above `most`. */
function ticks(most, about = 4) {
  if (!(most > 0)) return [0, 1];
  const raw = most / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw);
  return Array.from({ length: Math.ceil(most / step + 0.999) }, (_, index) => index * step);
}

/** Lines across a picture at those heights, each with its number. */
const rungs = (marks, [from, until], y, unit = '') => marks.map((mark) => s('g',
  s('line', { x1: from, x2: until, y1: y(mark), y2: y(mark) }),
  s('text.end', { x: from - 8, y: y(mark) + 4 }, num(mark) + unit)));

const KEYS = { out: 'out', ghost: 'ghost', capacity: 'capacity', wants: 'wanted', mark: 'mark' };
const LINES = ['outstanding', 'wants', 'capacity', 'mark'];

/** The figures of a resource over time: what is out as an area, the ghost in it, and lines beside it. */
function timeChart() {
  const [height, left, right, top, bottom] = [220, 52, 14, 14, 26];
  const [grid, out, ghost, frame] = [s('g.grid'), s('path.area-out'), s('path.area-ghost'), s('rect')];
  const lines = LINES.map((name) => s(`path.line-${name}`));
  const svg = s('svg', { role: 'img', 'aria-label': 'Capacity, what is out and what is wanted over time; the table below has the numbers' },
    s('clipPath', { id: 'plot' }, frame), grid, s('g', { 'clip-path': 'url(#plot)' }, out, ghost, lines));
  const element = h('div.chart', svg, legend(KEYS));
  return {
    element,
    draw(series, step, unit) {
      const known = (name) => series[name].filter((value) => value !== null && value < 1e12);
      const span = series.capacity.length;
      if (!span) return;
      const width = Math.max(280, element.clientWidth || 800);
      const [wide, floor] = [width - left - right, height - bottom];
      attr(svg, { viewBox: `0 0 ${width} ${height}` });
      attr(frame, { x: left, y: top - 4, width: wide + 2, height: floor - top + 6 });
      const most = Math.max(1e-9, ...['capacity', 'outstanding', 'wants'].flatMap(known));
      const marks = ticks(Math.min(most, Math.max(...known('capacity'), 1e-9) * 8));
      const high = marks.at(-1);
      const last = Math.max(span, 60) - 1;
      const y = (value) => (value === null ? null : floor - (Math.min(value, high) / high) * (floor - top));
      const points = (name) => series[name].map((value, index) => [left + (wide * (index + last + 1 - span)) / last, y(value)]);
      refill(grid, rungs(marks, [left, width - right], y, per(unit)), ['start', 'middle', 'end'].map((anchor, half) => {
        const seconds = Math.round((1 - half / 2) * last * step);
        const text = !seconds ? 'now' : `${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`} ago`;
        return s('text', { x: left + (wide * half) / 2, y: height - 6, 'text-anchor': anchor }, text);
      }));
      attr(out, { d: area(points('outstanding'), floor) });
      attr(ghost, { d: area(points('ghost').map(([x, at]) => [x, at === floor ? null : at]), floor) });
      LINES.forEach((name, index) => attr(lines[index], { d: path(points(name)) }));
    },
  };
}
