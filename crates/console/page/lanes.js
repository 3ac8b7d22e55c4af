// The lanes of the simulator: time flows to the left, and what is known of the time to come stands to the right of now.

const [LABEL, LANE, ASKS, TOP, FOOT] = [150, 78, 54, 26, 26];
/** The room for the name of a lane above it, where there is none beside it. */
const HEAD = 20;
const NOW = 0.66;

/** The time that is seen, so that the longest burst with its rest has room. */
const span = (lanes) => 1.45 * Math.max(10, ...lanes.map((lane) => Math.max(lane.window_seconds, lane.active_seconds + lane.cooldown_seconds)));

function lanePicture() {
  const [grid, world, marks, labels] = [s('g.grid'), s('g'), s('g'), s('g')];
  const inner = s('svg', { y: 0 }, grid, world, marks);
  const now = s('line.now', { y1: TOP - 8 });
  const nowText = s('text.strong.middle', { y: TOP - 12 });
  const svg = s('svg.lanes', { role: 'img', 'aria-label': 'What each tier does over time; the table below has every answer' },
    s('pattern', { id: 'hatch', width: 7, height: 7, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, s('line.hatch', { x1: 0, y1: 0, x2: 0, y2: 7 })),
    s('marker', { id: 'head', viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' }, s('path.head', { d: 'M0 0 8 4 0 8Z' })),
    inner, labels, now, nowText);
  const element = h('div.lanes-frame', svg);
  let [drawn, width, label, seen, windows] = [null, 0, LABEL, 10, []];

  /** Draws what the server says, as it lies in time. */
  function set(next) {
    drawn = next;
    const { lanes, answers, now_seconds: moment } = next;
    width = Math.max(300, element.clientWidth || 900);
    const isNarrow = width < 620;
    const head = isNarrow ? HEAD : 0;
    label = isNarrow ? 0 : LABEL;
    seen = span(lanes);
    const laneY = (index) => TOP + head + (lanes.length - 1 - index) * (LANE + head);
    const floor = laneY(-1);
    const height = floor + ASKS + FOOT;
    attr(svg, { viewBox: `0 0 ${width} ${height}`, height });
    attr(inner, { x: label, width: width - label, height, viewBox: `0 0 ${width - label} ${height}` });
    attr(now, { y2: height - FOOT + 4 });
    const from = moment - seen * 1.4;
    const px = (width - label) / seen;

    const phases = lanes.flatMap((lane, index) => lane.phases.filter((phase) => phase.until_seconds >= from).map((phase) => {
      const place = { x: phase.from_seconds * px, y: laneY(index) + 8, width: Math.max(1, (phase.until_seconds - phase.from_seconds) * px), height: LANE - 20, rx: 5 };
      return [s(`rect.phase.${phase.state}`, place), phase.state === 'cooling' && s('rect', { ...place, fill: 'url(#hatch)' })];
    }));
    const granted = lanes.map((lane, index) => {
      const most = Math.max(4, ...lane.granted.map(([, hits]) => hits));
      return lane.granted.filter(([at]) => at >= from)
        .map(([at, hits]) => `M${round(at * px)} ${laneY(index) + LANE - 16}v${-round(10 + ((LANE - 44) * (hits - 1)) / most)}`).join('');
    });
    const bursts = lanes.flatMap((lane, index) => lane.entered.filter(([at]) => at >= from).map(([at, tier]) => {
      const below = tier > 0 ? lanes.findIndex((other) => other.policy === lane.policy && other.tier === tier) : -1;
      if (below < 0 && lane.tier === 1) return null;
      const [x, y, base] = [at * px, laneY(index) + LANE / 2, below < 0 ? floor + 10 : laneY(below) + LANE / 2];
      return s('path.burst', { d: `M${x} ${base}C${x - 16} ${base - 14} ${x - 16} ${y + 14} ${x - 1} ${y}`, 'marker-end': 'url(#head)' });
    }));
    const base = floor + ASKS / 2;
    const asked = (isGranted, sign) => answers.filter((answer) => Boolean(answer.granted) === isGranted && answer.at_seconds >= from)
      .map((answer) => `M${round(answer.at_seconds * px)} ${base}${sign}`).join('');
    refill(world, phases, s('path.granted-ticks', { d: granted.join('') }), bursts,
      s('path.asked-yes', { d: asked(true, 'm0 7v-14') }), s('path.asked-no', { d: asked(false, 'm-3-3l6 6m0-6l-6 6') }));

    windows = lanes.map((lane, index) => {
      const y = laneY(index);
      return {
        lane, y, edge: s('rect.window', { y: y + 4, height: LANE - 12, rx: 6 }), well: s('rect.fullness-well', { y: y + 8, width: 7, height: LANE - 20, rx: 3 }),
        full: s('rect.fullness', { width: 7, rx: 3 }), text: s('text.fullness-text', { y: y + LANE / 2 + 4 }),
      };
    });
    refill(marks, windows.map(({ edge, well, full, text }) => [edge, well, full, text]));
    refill(labels, lanes.map((lane, index) => {
      const y = laneY(index) + (isNarrow ? -3 : 28);
      const rest = lane.cooldown_seconds ? `, rests ${time(lane.cooldown_seconds)}` : '';
      const [name, text] = [tierName(lane, lanes), `${num(lane.limit)} in ${time(lane.window_seconds)}`];
      return isNarrow ? s('text.strong', { x: 6, y }, `${name} · ${text}${rest}`)
        : [s('text.strong', { y }, name), s('text', { y: y + 17 }, text), s('text', { y: y + 33 }, `active ${time(lane.active_seconds)}${rest}`)];
    }), s('text.strong', { x: isNarrow ? 6 : 0, y: base + (isNarrow ? -22 : 5) }, 'asked'));

    const [, step] = ticks(seen, isNarrow ? 4 : 8);
    const first = Math.max(0, Math.floor(from / step));
    refill(grid, Array.from({ length: Math.ceil((moment + seen * 4) / step) - first }, (_, index) => {
      const at = (first + index) * step;
      return [s('line', { x1: at * px, x2: at * px, y1: TOP, y2: height - FOOT }), s('text.middle', { x: at * px, y: height - 8 }, clock(at))];
    }));
  }

  /** Shows the moment `at`. */
  function frame(at) {
    if (!drawn) return;
    const px = (width - label) / seen;
    // At the beginning time is all to come, so now stands further to the left.
    const here = Math.min(NOW * (width - label), 16 + at * px);
    for (const moved of [world, grid]) attr(moved, { transform: `translate(${(here - at * px).toFixed(2)} 0)` });
    const x = label + here;
    attr(now, { x1: x, x2: x });
    attr(nowText, { x });
    say(nowText, clock(at, 1));
    for (const { lane, y, edge, well, full, text } of windows) {
      const hits = inWindow(lane, at, drawn);
      const wide = Math.min(lane.window_seconds * px, here + 20);
      attr(edge, { x: here - wide, width: wide });
      const tall = (LANE - 20) * Math.min(1, hits / lane.limit);
      attr(well, { x: here + 8 });
      attr(full, { x: here + 8, y: y + LANE - 12 - tall, height: tall, 'data-full': hits >= lane.limit });
      attr(text, { x: here + 22 });
      say(text, `${num(hits)} of ${num(lane.limit)}`);
    }
  }
  return { element, set, frame };
}

/** The hits that lie in the window of a lane at a time. */
function inWindow(lane, at, { resets }) {
  if (lane.count !== 'exact' || resets) return lane.fill.findLast(([from]) => from <= at)?.[1] ?? 0;
  let hits = 0;
  for (let index = lane.granted.length - 1; index >= 0; index -= 1) {
    const [when, many] = lane.granted[index];
    if (when < at - lane.window_seconds) break;
    if (when <= at) hits += many;
  }
  return hits;
}

/** A moment of the run. */
function clock(seconds, digits = 0) {
  if (seconds < 120) return `${seconds.toFixed(Number.isInteger(seconds) ? 0 : digits || 1)} s`;
  const [hours, minutes, rest] = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map(Math.floor);
  const two = (value) => String(value).padStart(2, '0');
  return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(rest)}`;
}
