// The lanes of the simulator: time flows to the left, and what is known of the time to come stands to the right of now.


const [LABEL, LANE, ASKS, TOP, FOOT] = [150, 78, 54, 26, 26];
/** The room for the name of a lane above it, where there is none beside it. */
const HEAD = 20;
const NOW = 0.66;

/** The time that is seen, so that the longest burst with its rest has room. */
function span(lanes) {
  const longest = Math.max(10, ...lanes.map((lane) => Math.max(lane.window_seconds, lane.active_seconds + lane.cooldown_seconds)));
  return longest * 1.45;
}

function lanePicture() {
  const grid = s('g', { class: 'grid' });
  const world = s('g');
  const marks = s('g');
  const labels = s('g', { class: 'lane-labels' });
  const inner = s('svg', { y: 0 }, grid, world, marks);
  const now = s('line', { class: 'now', y1: TOP - 8 });
  const nowText = s('text', { class: 'now-text', y: TOP - 12, 'text-anchor': 'middle' });
  const svg = s('svg', { class: 'lanes', role: 'img', 'aria-label': 'What each tier does over time; the table below has every answer' },
    s('defs', null,
      s('pattern', { id: 'hatch', width: 7, height: 7, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' }, s('line', { class: 'hatch', x1: 0, y1: 0, x2: 0, y2: 7 })),
      s('marker', { id: 'head', viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse' }, s('path', { class: 'head', d: 'M0 0 8 4 0 8Z' }))),
    inner, labels, now, nowText);
  const element = h('div', { class: 'lanes-frame' }, svg);
  let [drawn, width, label, seen, brackets, head] = [null, 0, LABEL, 10, [], 0];
  const scale = () => (width - label) / seen;
  const laneY = (index) => TOP + head + (drawn.lanes.length - 1 - index) * (LANE + head);

  function set(next) {
    drawn = next;
    width = Math.max(300, element.clientWidth || 900);
    [label, head] = width < 620 ? [0, HEAD] : [LABEL, 0];
    seen = span(next.lanes);
    const lanes = next.lanes.length * (LANE + head);
    const height = TOP + lanes + head + ASKS + FOOT;
    attr(svg, 'viewBox', `0 0 ${width} ${height}`);
    attr(svg, 'height', height);
    for (const [name, value] of [['x', label], ['width', width - label], ['height', height], ['viewBox', `0 0 ${width - label} ${height}`]]) attr(inner, name, value);
    attr(now, 'y2', height - FOOT + 4);
    const from = next.now_seconds - seen * 1.4;
    const px = scale();
    const parts = [];
    next.lanes.forEach((lane, index) => {
      const y = laneY(index);
      for (const phase of lane.phases) {
        if (phase.until_seconds < from) continue;
        const wide = Math.max(1, (phase.until_seconds - phase.from_seconds) * px);
        parts.push(s('rect', { class: `phase ${phase.state}`, x: phase.from_seconds * px, y: y + 8, width: wide, height: LANE - 20, rx: 5 }));
        if (phase.state === 'cooling') parts.push(s('rect', { class: 'phase-hatch', x: phase.from_seconds * px, y: y + 8, width: wide, height: LANE - 20, rx: 5, fill: 'url(#hatch)' }));
      }
      const most = Math.max(1, ...lane.granted.map(([, hits]) => hits));
      let d = '';
      for (const [at, hits] of lane.granted) {
        if (at < from) continue;
        const tall = 10 + (LANE - 44) * Math.min(1, (hits - 1) / Math.max(4, most));
        d += `M${(at * px).toFixed(2)} ${y + LANE - 16}v${-tall.toFixed(1)}`;
      }
      parts.push(s('path', { class: 'granted-ticks', d }));
    });
    next.lanes.forEach((lane, index) => {
      for (const [at, tier] of lane.entered) {
        if (at < from) continue;
        const below = tier > 0 ? next.lanes.findIndex((other) => other.policy === lane.policy && other.tier === tier) : -1;
        const y = laneY(index) + LANE / 2;
        const base = below >= 0 ? laneY(below) + LANE / 2 : laneY(0) + LANE + head + 10;
        if (below >= 0 || lane.tier > 1) parts.push(s('path', { class: 'burst', d: `M${at * px} ${base}C${at * px - 16} ${base - 14} ${at * px - 16} ${y + 14} ${at * px - 1} ${y}`, 'marker-end': 'url(#head)' }));
      }
    });
    const base = TOP + lanes + head + ASKS / 2;
    let [yes, no] = ['', ''];
    for (const answer of next.answers) {
      if (answer.at_seconds < from) continue;
      const x = (answer.at_seconds * px).toFixed(2);
      if (answer.granted) yes += `M${x} ${base + 7}v-14`;
      else no += `M${x - 3} ${base - 3}l6 6m0-6l-6 6`;
    }
    parts.push(s('path', { class: 'asked-yes', d: yes }), s('path', { class: 'asked-no', d: no }));
    world.replaceChildren(...parts);
    brackets = next.lanes.map((lane, index) => {
      const y = laneY(index);
      const bracket = s('rect', { class: 'window', y: y + 4, height: LANE - 12, rx: 6 });
      const bar = s('rect', { class: 'fullness', width: 7, rx: 3 });
      const text = s('text', { class: 'fullness-text', y: y + LANE / 2 + 4 });
      const well = s('rect', { class: 'fullness-well', y: y + 8, width: 7, height: LANE - 20, rx: 3 });
      return { lane, y, bracket, bar, text, well };
    });
    marks.replaceChildren(...brackets.flatMap(({ bracket, bar, text, well }) => [bracket, well, bar, text]));
    labels.replaceChildren(
      ...next.lanes.flatMap((lane, index) => {
        const y = laneY(index) + (label ? 28 : -3);
        const name = next.policies.length > 1 ? `policy ${lane.policy}, tier ${lane.tier}` : `tier ${lane.tier}`;
        const rest = lane.cooldown_seconds ? `, rests ${time(lane.cooldown_seconds)}` : '';
        const text = `${num(lane.limit)} in ${time(lane.window_seconds)}`;
        const more = `active ${time(lane.active_seconds)}${rest}`;
        return label
          ? [s('text', { class: 'lane-name', x: 0, y }, name), s('text', { x: 0, y: y + 17 }, text), s('text', { class: 'soft', x: 0, y: y + 33 }, more)]
          : [s('text', { class: 'lane-name', x: 6, y }, `${name} · ${text}${rest}`)];
      }),
      s('text', { class: 'lane-name', x: label ? 0 : 6, y: base + (label ? 5 : -22) }, 'asked'),
    );
    const step = ticks(seen, width < 620 ? 4 : 8)[1];
    const lines = [];
    for (let at = Math.max(0, Math.floor(from / step) * step); at < next.now_seconds + seen * 4; at += step) {
      lines.push(s('line', { x1: at * px, x2: at * px, y1: TOP, y2: height - FOOT }), s('text', { x: at * px, y: height - 8, 'text-anchor': 'middle' }, clock(at)));
    }
    refill(grid, ...lines);
  }

  /** Shows the moment `at`. */
  function frame(at) {
    if (!drawn) return;
    const px = scale();
    // At the beginning time is all to come, so now stands further to the left.
    const here = Math.min(NOW * (width - label), 16 + at * px);
    const shift = here - at * px;
    attr(world, 'transform', `translate(${shift.toFixed(2)} 0)`);
    attr(grid, 'transform', `translate(${shift.toFixed(2)} 0)`);
    const x = label + here;
    for (const end of ['x1', 'x2']) attr(now, end, x);
    attr(nowText, 'x', x);
    say(nowText, clock(at, 1));
    for (const { lane, y, bracket, bar, text, well } of brackets) {
      const hits = inWindow(lane, at, drawn);
      const wide = Math.min(lane.window_seconds * px, here + 20);
      attr(bracket, 'x', here - wide);
      attr(bracket, 'width', wide);
      const tall = (LANE - 20) * Math.min(1, hits / lane.limit);
      attr(bar, 'x', here + 8);
      attr(well, 'x', here + 8);
      attr(bar, 'y', y + 8 + (LANE - 20) - tall);
      attr(bar, 'height', tall);
      attr(bar, 'data-full', hits >= lane.limit);
      attr(text, 'x', here + 22);
      say(text, `${num(hits)} of ${num(lane.limit)}`);
    }
  }
  return { element, set, frame };
}

/** The hits that lie in the window of a lane at a time. */
function inWindow(lane, at, drawn) {
  const inexact = lane.count !== 'exact' || drawn.resets?.[lane.policy - 1];
  if (!inexact) {
    let hits = 0;
    for (let index = lane.granted.length - 1; index >= 0; index -= 1) {
      const [when, many] = lane.granted[index];
      if (when < at - lane.window_seconds) break;
      if (when <= at) hits += many;
    }
    return hits;
  }
  return lane.fill.findLast(([from]) => from <= at)?.[1] ?? 0;
}

function clock(seconds, digits = 0) {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (seconds < 120) return `${seconds.toFixed(Number.isInteger(seconds) ? 0 : digits || 1)} s`;
  const rest = Math.floor(seconds % 60);
  const pad = (value) => String(value).padStart(2, '0');
  return hours ? `${hours}:${pad(minutes)}:${pad(rest)}` : `${minutes}:${pad(rest)}`;
}
