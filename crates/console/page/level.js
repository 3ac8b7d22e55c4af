// The level picture: each holder is a bar as wide as its weight and as high as it wants for each client; the water stands in it
// as high as what it has. Greater priorities are locks further up.

const [ABOVE, BELOW, LEFT, RIGHT, GAP] = [56, 30, 56, 18, 26];

/** The clients that a holder stands for, by priority: a node says how many want how much. */
function pieces(holder) {
  const all = holder.bands.length ? holder.bands : [holder];
  const part = holder.share > 0 ? holder.has / holder.share : 0;
  return all.map((band) => {
    const weight = Math.max(1, band.weight);
    const share = band.share / weight;
    return { priority: band.priority, weight, wants: band.wants / weight, share, has: all.length > 1 ? share * part : holder.has / weight };
  });
}

const byWants = (one, other) => other.wants - one.wants;

/** The holders by priority, the greatest first; in each those who want the most for each client. */
function locks(holders) {
  const bars = holders.flatMap((holder) => [...Map.groupBy(pieces(holder), (piece) => piece.priority)].map(([priority, own]) => {
    const weight = total(own, (piece) => piece.weight);
    return { priority, holder, own: own.sort(byWants), weight, wants: total(own, (piece) => piece.wants * piece.weight) / weight };
  }));
  return [...Map.groupBy(bars, (one) => one.priority)].sort(([one], [other]) => other - one).map(([priority, all]) => ({
    priority,
    bars: all.sort((one, other) => byWants(one, other) || (one.holder.client < other.holder.client ? -1 : 1)),
    weight: total(all, (one) => one.weight),
  }));
}

/** The height up to which is drawn: a few who want very much are cut off. */
function topOf(all, levels) {
  const wants = all.map((piece) => piece.wants).sort((one, other) => one - other);
  const level = Math.max(0, ...levels.values());
  const typical = wants[Math.floor(wants.length / 2)] ?? 0;
  return Math.max(Math.min(wants.at(-1) ?? 0, Math.max(level * 5, typical * 1.3)), level * 1.2, ...all.map((piece) => piece.has * 1.1), 1e-6);
}

/** A wavy line from x to x: the surface. */
const surface = (from, until, y) => `M${from} ${y}${'q6 -2.4 12 0t12 0'.repeat(Math.ceil((until - from) / 24))}`;

const shorten = (text, letters) => (text.length <= letters ? text : `${text.slice(0, Math.max(1, Math.floor(letters) - 1))}…`);

/** The kinds of what is drawn of a holder, by the height of both ends. */
const PARTS = {
  dry: ({ has, wants }) => wants > has && [has, wants],
  wet: ({ has, share }) => [0, Math.min(has, share)],
  over: ({ has, share }) => has > share * 1.001 + 1e-6 && [share, has],
};

function levelPicture(onpick) {
  const [grid, body, hover] = [s('g.grid'), s('g'), s('g.hover')];
  const fade = s('rect.fade', { fill: 'url(#fade)' });
  const svg = s('svg.level', { role: 'img' },
    s('linearGradient', { id: 'fade', x1: 0, x2: 0, y1: 0, y2: 1 }, s('stop', { offset: 0 }), s('stop', { offset: 1, 'stop-opacity': 0 })),
    grid, body, fade, hover);
  const tip = h('div.tip', { hidden: true });
  const element = h('div.level-frame', svg, tip);
  let [bars, width, high] = [[], 0, 340];

  const find = (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * width;
    return bars.find((one) => x >= one.x && x < one.x + one.width);
  };
  const point = (one) => {
    tip.hidden = !one;
    refill(hover, one && s('rect', { x: one.x, y: ABOVE, width: one.width, height: high - ABOVE - BELOW }));
    if (!one) return;
    const { client, has, wants, share, kind, weight, state } = one.holder;
    refill(tip, h('strong', plain(client)), h('span', `has ${num(has)} of ${num(wants)} that it wants`),
      h('span', dots(`share ${num(share)}`, kind === 'node' ? count(weight, 'client') : `weight ${weight}`, state)));
    const at = ((one.x + one.width / 2) / width) * element.clientWidth;
    tip.style.left = `${Math.min(Math.max(at, 110), element.clientWidth - 110)}px`;
  };
  svg.addEventListener('pointermove', (event) => point(find(event)));
  svg.addEventListener('pointerleave', () => point());
  svg.addEventListener('click', (event) => {
    const found = find(event);
    if (found) onpick(found.holder);
  });

  /** Draws one priority from x to x. */
  function draw({ band, from, until, y, level, unit, isOnly, isLast }) {
    const wide = until - from;
    const each = wide / band.bars.length;
    const gap = each > 5 ? 2 : each > 2.5 ? 0.8 : 0;
    const [drawn, nodes, names] = [{ dry: '', wet: '', over: '' }, [], []];
    let x = from;
    for (const { holder, own, weight } of band.bars) {
      const width = (wide * weight) / band.weight;
      const free = Math.max(width - gap, 0.5);
      let left = x + gap / 2;
      if (holder.kind === 'node') nodes.push(`M${round(left)} ${y(0) + 4}h${round(free)}`);
      for (const piece of own) {
        const right = left + (free * piece.weight) / weight;
        for (const [name, ends] of Object.entries(PARTS)) {
          const [base, top] = ends(piece) || [];
          if (top !== undefined) drawn[name] += `M${round(left)} ${round(y(base))}V${round(y(top))}H${round(right)}V${round(y(base))}Z`;
        }
        left = right;
      }
      if (width > 58) names.push(s('text.middle', { x: x + width / 2, y: y(0) + 20 }, shorten(plain(holder.client), width / 7.4)));
      bars.push({ x, width, holder });
      x += width;
    }
    const held = level === undefined ? 'all it wants' : `held to ${amount(level, unit)}`;
    const [at, id] = [y(level ?? 0), `lock-${band.priority}`];
    return s('g', Object.entries(drawn).map(([name, d]) => s(`path.${name}`, { d })), s('path.node-mark', { d: nodes.join('') }), names,
      level !== undefined && [
        s('clipPath', { id }, s('rect', { x: from, y: at - 8, width: wide, height: 16 })),
        s('g.surface', { 'clip-path': `url(#${id})` }, s('path', { d: surface(from - 48, until + 24, at) })),
        wide > 120 && s('text.level-text.end', { x: until - 8, y: Math.max(at - 12, ABOVE + 14) }, `level ${amount(level, unit)}`),
      ],
      !isOnly && wide > 70 && [
        s('text.band-text', { x: from, y: ABOVE - 26 }, `priority ${band.priority}`),
        wide > 130 && s('text', { x: from, y: ABOVE - 10 }, shorten(held, wide / 7.4)),
      ],
      !isLast && s('line.lock', { x1: until + GAP / 2, x2: until + GAP / 2, y1: ABOVE - 38, y2: y(0) }));
  }

  return {
    element,
    /** Draws holders, with the level of each priority where there is one. */
    draw(holders, levels, unit, isCut) {
      width = Math.max(300, element.clientWidth || 900);
      high = width < 520 ? 280 : 360;
      attr(svg, { viewBox: `0 0 ${width} ${high}` });
      const floor = high - BELOW;
      const bands = locks(holders);
      const all = bands.flatMap((band) => band.bars.flatMap((one) => one.own));
      const most = topOf(all, levels);
      const y = (value) => floor - (Math.min(value, most) * (floor - ABOVE)) / most;
      refill(grid, rungs(ticks(most).filter((mark) => mark <= most), [LEFT, width - RIGHT], y),
        s('text', { x: 4, y: ABOVE - (bands.length > 1 ? 26 : 12) }, `${per(unit) || 'units'} each`));
      // Who wants more than is drawn goes on above.
      attr(fade, { x: LEFT, y: ABOVE - 2, width: width - LEFT - RIGHT, height: all.some((piece) => piece.wants > most) ? 34 : 0 });
      const free = width - LEFT - RIGHT - GAP * (bands.length - 1);
      // A lock of few clients is still to be seen beside one of many.
      const weight = total(bands, (band) => band.weight);
      const wides = bands.map((band) => Math.max(Math.min(64, free / bands.length), (free * band.weight) / weight));
      const shrink = free / total(wides, (wide) => wide);
      let from = LEFT;
      bars = [];
      refill(body, bands.map((band, index) => {
        const until = from + wides[index] * shrink;
        const drawn = draw({ band, from, until, y, unit, level: levels.get(band.priority), isOnly: bands.length === 1, isLast: index === bands.length - 1 });
        from = until + GAP;
        return drawn;
      }));
      const short = holders.filter((holder) => holder.wants > holder.has * 1.001 + 1e-6).length;
      attr(svg, { 'aria-label': `${count(holders.length, 'holder')} by what they want for each client${isCut ? ' (those who want the most)' : ''}: ${short} have less than that. The table below has the numbers.` });
    },
  };
}
