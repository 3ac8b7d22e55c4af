// The level picture: each holder is a bar as wide as its weight and as high as it wants for each client; the water stands in it
// as high as what it has. Greater priorities are locks further up.


const [ABOVE, BELOW, LEFT, RIGHT, GAP] = [56, 30, 56, 18, 26];
let numbers = 0;

/** The clients that a holder stands for, by priority: a node says how many want how much. */
function pieces(holder) {
  const all = holder.bands.length ? holder.bands : [{ priority: holder.priority, wants: holder.wants, weight: holder.weight, share: holder.share }];
  const part = holder.share > 0 ? holder.has / holder.share : 0;
  return all.map((band) => {
    const weight = Math.max(1, band.weight);
    const share = band.share / weight;
    return { priority: band.priority, weight, wants: band.wants / weight, share, has: all.length > 1 ? share * part : holder.has / weight };
  });
}

/** The holders by priority, the greatest first; in each those who want the most for each client. */
function locks(holders) {
  const bands = new Map();
  for (const holder of holders) {
    for (const [priority, own] of Map.groupBy(pieces(holder), (piece) => piece.priority)) {
      if (!bands.has(priority)) bands.set(priority, []);
      const sum = (of) => own.reduce((total, piece) => total + of(piece), 0);
      const weight = sum((piece) => piece.weight);
      own.sort((one, other) => other.wants - one.wants);
      bands.get(priority).push({ holder, own, weight, wants: sum((piece) => piece.wants * piece.weight) / weight });
    }
  }
  return [...bands].sort(([one], [other]) => other - one).map(([priority, all]) => ({
    priority,
    bars: all.sort((one, other) => other.wants - one.wants || (one.holder.client < other.holder.client ? -1 : 1)),
    weight: all.reduce((sum, bar) => sum + bar.weight, 0),
  }));
}

/** The height up to which is drawn: a few who want very much are cut off. */
function topOf(bands, levels) {
  const all = bands.flatMap((band) => band.bars.flatMap((bar) => bar.own));
  const wants = all.map((piece) => piece.wants).sort((one, other) => one - other);
  const has = Math.max(0, ...all.map((piece) => piece.has));
  const level = Math.max(0, ...levels.values());
  const typical = wants[Math.floor(wants.length / 2)] ?? 0;
  return Math.max(Math.min(wants.at(-1) ?? 0, Math.max(level * 5, typical * 1.3)), level * 1.2, has * 1.1, 1e-6);
}

/** A wavy line from x to x: the surface. */
function surface(from, until, y) {
  let text = `M${from} ${y}`;
  for (let x = from; x < until; x += 24) text += `q6 -2.4 12 0t12 0`;
  return text;
}

function levelPicture({ onpick }) {
  const id = `clip${(numbers += 1)}`;
  const svg = s('svg', { class: 'level', role: 'img' });
  const grid = s('g', { class: 'grid' });
  const body = s('g');
  const hover = s('g', { class: 'hover' });
  const fade = s('rect', { class: 'fade', fill: `url(#${id})` });
  svg.append(s('linearGradient', { id, x1: 0, x2: 0, y1: 0, y2: 1 }, s('stop', { offset: 0 }), s('stop', { offset: 1, 'stop-opacity': 0 })), grid, body, fade, hover);
  const tip = h('div', { class: 'tip', hidden: true });
  const element = h('div', { class: 'level-frame' }, svg, tip);
  let [bars, width, high] = [[], 0, 340];

  const find = (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * width;
    return bars.find((bar) => x >= bar.x && x < bar.x + bar.width);
  };
  svg.addEventListener('pointermove', (event) => {
    const bar = find(event);
    hover.replaceChildren();
    tip.hidden = !bar;
    if (!bar) return;
    hover.append(s('rect', { x: bar.x, y: ABOVE, width: bar.width, height: high - ABOVE - BELOW }));
    const { holder } = bar;
    refill(tip,
      h('strong', null, plain(holder.client)),
      h('span', null, `has ${num(holder.has)} of ${num(holder.wants)} that it wants`),
      h('span', null, `share ${num(holder.share)} · ${holder.kind === 'node' ? count(holder.weight, 'client') : `weight ${holder.weight}`} · ${holder.state}`),
    );
    const at = ((bar.x + bar.width / 2) / width) * element.clientWidth;
    tip.style.left = `${Math.min(Math.max(at, 110), element.clientWidth - 110)}px`;
  });
  svg.addEventListener('pointerleave', () => { hover.replaceChildren(); tip.hidden = true; });
  svg.addEventListener('click', (event) => { const bar = find(event); if (bar) onpick(bar.holder); });

  const draw = (group, band, { from, until, scale, level, unit, floor, last }) => {
    const wide = until - from;
    const gap = wide / band.bars.length > 5 ? 2 : wide / band.bars.length > 2.5 ? 0.8 : 0;
    const y = (value) => floor - Math.min(value, scale.most) * scale.per;
    let x = from;
    let [dry, wet, over, node] = ['', '', '', ''];
    const labels = [];
    for (const { holder, own, weight } of band.bars) {
      const w = (wide * weight) / band.weight;
      const free = Math.max(w - gap, 0.5);
      let left = x + gap / 2;
      for (const piece of own) {
        const right = left + (free * piece.weight) / weight;
        const box = (top, base) => `M${left.toFixed(1)} ${base.toFixed(1)}V${top.toFixed(1)}H${right.toFixed(1)}V${base.toFixed(1)}Z`;
        const within = Math.min(piece.has, piece.share);
        if (piece.wants > piece.has) dry += box(y(piece.wants), y(piece.has));
        wet += box(y(within), floor);
        if (piece.has > piece.share * 1.001 + 1e-6) over += box(y(piece.has), y(piece.share));
        left = right;
      }
      if (holder.kind === 'node') node += `M${(x + gap / 2).toFixed(1)} ${floor + 4}h${free.toFixed(1)}`;
      if (w > 58) labels.push(s('text', { x: x + w / 2, y: floor + 20, 'text-anchor': 'middle' }, shorten(plain(holder.client), w / 7.4)));
      bars.push({ x, width: w, holder });
      x += w;
    }
    refill(group,
      s('path', { class: 'dry', d: dry }),
      s('path', { class: 'wet', d: wet }),
      s('path', { class: 'over', d: over }),
      s('path', { class: 'node-mark', d: node }),
      s('g', { class: 'names' }, labels),
    );
    const at = level === undefined ? null : floor - Math.min(level, scale.most) * scale.per;
    if (at !== null) {
      group.append(
        s('g', { class: 'surface', 'clip-path': `url(#${id}-lock-${band.priority})` }, s('path', { d: surface(from - 48, until + 24, at) })),
        s('clipPath', { id: `${id}-lock-${band.priority}` }, s('rect', { x: from, y: at - 8, width: wide, height: 16 })),
      );
      if (wide > 120) {
        group.append(s('text', { class: 'level-text', x: until - 8, y: Math.max(at - 12, ABOVE + 14), 'text-anchor': 'end' }, `level ${num(level)}${per(unit)}`));
      }
    }
    if (band.alone === false && wide > 70) {
      group.append(s('text', { class: 'band-text', x: from, y: ABOVE - 26 }, `priority ${band.priority}`));
      if (wide > 130) group.append(s('text', { class: 'band-note', x: from, y: ABOVE - 10 }, shorten(level === undefined ? 'all it wants' : `held to ${num(level)}${per(unit)}`, wide / 7.4)));
    }
    if (!last) group.append(s('line', { class: 'lock', x1: until + GAP / 2, x2: until + GAP / 2, y1: ABOVE - 38, y2: floor }));
  };

  return {
    element,
    /** Draws holders, with the level of each priority where there is one. */
    set(holders, levels, unit, cut) {
      width = Math.max(300, element.clientWidth || 900);
      high = width < 520 ? 280 : 360;
      attr(svg, 'viewBox', `0 0 ${width} ${high}`);
      const floor = high - BELOW;
      const bands = locks(holders);
      const most = topOf(bands, levels);
      const scale = { most, per: (floor - ABOVE) / most };
      const marks = ticks(most).filter((mark) => mark <= most);
      refill(grid, ...marks.map((mark) => s('g', null,
        s('line', { x1: LEFT, x2: width - RIGHT, y1: floor - mark * scale.per, y2: floor - mark * scale.per }),
        s('text', { x: LEFT - 8, y: floor - mark * scale.per + 4, 'text-anchor': 'end' }, num(mark)))),
      s('text', { class: 'axis', x: 4, y: ABOVE - (bands.length > 1 ? 26 : 12) }, `${per(unit) || 'units'} each`));
      bars = [];
      // Who wants more than is drawn goes on above.
      const isCut = bands.some((band) => band.bars.some((bar) => bar.own.some((piece) => piece.wants > most)));
      for (const [name, value] of [['x', LEFT], ['y', ABOVE - 2], ['width', width - LEFT - RIGHT], ['height', isCut ? 34 : 0]]) attr(fade, name, value);
      const free = width - LEFT - RIGHT - GAP * (bands.length - 1);
      // A lock of few clients is still to be seen beside one of many.
      const least = Math.min(64, free / bands.length);
      const total = bands.reduce((sum, band) => sum + band.weight, 0);
      const wides = bands.map((band) => Math.max(least, (free * band.weight) / total));
      const shrink = free / wides.reduce((sum, wide) => sum + wide, 0);
      let from = LEFT;
      const places = bands.map((band, index) => {
        const until = from + wides[index] * shrink;
        const place = { band, from, until, last: index === bands.length - 1 };
        from = until + GAP;
        return place;
      });
      keyed(body, places, ({ band }) => band.priority, () => s('g'), (group, { band, ...place }) => {
        band.alone = bands.length === 1;
        draw(group, band, { ...place, scale, unit, floor, level: levels.get(band.priority) });
      });
      const held = holders.filter((holder) => holder.wants > holder.has * 1.001 + 1e-6).length;
      attr(svg, 'aria-label', `${count(holders.length, 'holder')} by what they want for each client${cut ? ' (those who want the most)' : ''}: ${held} have less than that. The table below has the numbers.`);
    },
  };
}

function shorten(text, letters) {
  return text.length <= letters ? text : `${text.slice(0, Math.max(1, Math.floor(letters) - 1))}…`;
}
