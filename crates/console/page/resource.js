// One resource: the level picture, its figures over time, its holders, and why each gets what it gets.


const MOST_BARS = 1000;

/** A filter as people type it: a condition, or the beginning of a name. */
function condition(text, field) {
  const typed = text.trim();
  if (!typed) return '';
  return /[=<>]/.test(typed) ? typed : `${field}^=${JSON.stringify(typed)}`;
}

function openResource(main, name) {
  const unit = () => live.resources.get(name)?.unit ?? 'units_per_second';
  let [sort, where, pages, picked] = ['-wants', '', [''], null];

  const subtitle = h('p', { class: 'lead' });
  const figures = {
    capacity: figure('Capacity'), out: figure('Out', 'All that may be in use'), wants: figure('Wanted'),
    short: figure('Short', 'What holders miss of their shares'), level: figure('Level', 'The most that one client of the least priority gets'), clients: figure('Holders'),
  };
  const notes = h('ul', { class: 'notes' });
  const picture = levelPicture({ onpick: (holder) => explain(holder.client) });
  const pictureNote = h('p', { class: 'hint' });
  const chart = timeChart();
  const chartNote = h('p', { class: 'hint' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const why = h('aside', { class: 'why', 'aria-label': 'Why', hidden: true, tabindex: -1 });

  const holders = table({
    caption: 'Holders',
    key: (row) => `${row.client} ${row.session}`,
    sort,
    onsort: (column) => {
      sort = sort === `-${column}` ? column : `-${column}`;
      holders.mark(sort);
      turn(['']);
    },
    columns: [
      { name: 'client', title: 'Holder', of: (row) => plain(row.client) },
      { name: 'has', title: 'Has', number: true, of: (row) => num(row.has) },
      { name: 'wants', title: 'Wants', number: true, of: (row) => num(row.wants) },
      { name: 'share', title: 'Share', number: true, of: (row) => num(row.share), hint: 'What is due to it' },
      { name: 'weight', title: 'Weight', number: true, of: (row) => num(row.weight), hint: 'Clients that it stands for' },
      { name: 'priority', title: 'Priority', number: true, of: (row) => num(row.priority) },
      { name: 'state', title: 'State', of: (row) => row.state },
      { name: 'ends_in_seconds', title: 'Ends in', number: true, of: (row) => time(row.ends_in_seconds) },
      { name: 'heard_seconds_ago', title: 'Heard', number: true, of: (row) => `${time(row.heard_seconds_ago)} ago` },
      { title: h('span', { class: 'unseen' }, 'Why'), sort: false, of: (row) => whyButton(row) },
    ],
  });
  const buttons = new Map();
  const whyButton = (row) => {
    if (buttons.size > 2000) buttons.clear();
    if (!buttons.has(row.client)) {
      buttons.set(row.client, h('button', { type: 'button', class: 'quiet', 'aria-label': `Why ${plain(row.client)} gets what it gets`, onclick: () => explain(row.client) }, 'why'));
    }
    return buttons.get(row.client);
  };
  const filter = h('input', {
    type: 'search', id: 'filter', placeholder: 'web-  or  has<share, priority>0', spellcheck: 'false', autocomplete: 'off',
    onchange: () => { where = condition(filter.value, 'client'); turn(['']); },
  });
  const tally = h('p', { class: 'hint' });
  const back = h('button', { type: 'button', onclick: () => turn(pages.slice(0, -1)) }, 'Back');
  const more = h('button', { type: 'button', onclick: () => turn([...pages, more.dataset.next]) }, 'More');

  main.append(
    h('div', { class: 'title' }, h('p', { class: 'over-title' }, h('a', { href: '#/tree' }, 'Resources')), h('h1', null, plain(name)), subtitle),
    h('dl', { class: 'figures' }, Object.values(figures).map((one) => one.element)),
    notes, problem,
    section('The level', picture.element,
      h('ul', { class: 'legend' }, [['key-out', 'has'], ['key-dry', 'wants, and does not have'], ['key-over', 'is above its share, and gives back']].map(([key, text]) => h('li', null, h('i', { class: key, 'aria-hidden': 'true' }), text))),
      pictureNote),
    why,
    section('Over time', chart.element, chartNote),
    section('Holders',
      h('div', { class: 'tools' }, h('label', { for: 'filter' }, 'Filter'), filter, tally),
      holders.element,
      h('div', { class: 'pager' }, back, more)),
  );

  function turn(to) {
    pages = to.length ? to : [''];
    ask().catch(show);
  }

  function show(fault) {
    problem.hidden = !fault;
    if (fault) say(problem, fault.message);
  }

  async function ask(signal) {
    const asked = { resource: name, sort, where, limit: 50, after: pages.at(-1) };
    const found = await get('holders', asked, signal);
    show(null);
    holders.set(found.rows, where ? 'No holder matches.' : 'Nobody holds or wants it.');
    say(tally, found.matching === found.holders_in_all ? count(found.holders_in_all, 'holder')
      : `${num(found.matching)} of ${count(found.looked_at, 'holder')} match${found.looked_at < found.holders_in_all ? `, of ${num(found.holders_in_all)} in all` : ''}`);
    back.disabled = pages.length < 2;
    more.disabled = !found.next;
    more.dataset.next = found.next ?? '';
  }

  async function draw(signal) {
    const [found, division] = await Promise.all([
      get('holders', { resource: name, sort: '-wants_per_weight', limit: MOST_BARS }, signal),
      get('explain', { resource: name }, signal).then((said) => said.division, () => null),
    ]);
    const levels = new Map();
    for (const band of division?.bands ?? []) if (band.level !== null) levels.set(band.priority, band.level);
    const cut = found.matching > found.rows.length;
    picture.set(found.rows, levels, found.unit, cut);
    say(pictureNote, [
      cut ? `The ${num(found.rows.length)} holders that want the most for each client, of ${num(found.matching)}.` : '',
      levels.size ? 'A bar is as wide as the clients it stands for, and as high as each of them wants. Whoever reaches above the surface gets no more than that.'
        : 'A bar is as wide as the clients it stands for, and as high as each of them wants. There is no level: all have what they want, or it is not divided by one.',
    ].filter(Boolean).join(' '));
  }

  async function trace(signal) {
    try {
      const found = await get('series', { resource: name }, signal);
      chart.set(found.series, found.step_seconds, unit());
      say(chartNote, '');
    } catch (fault) {
      if (fault.status !== 404) throw fault;
      say(chartNote, fault.message);
    }
  }

  async function explain(client) {
    picked = client;
    try {
      const said = await get('explain', { resource: name, client });
      if (picked === client) tellWhy(said, client);
    } catch (fault) {
      refill(why, h('h2', null, plain(client)), h('p', null, fault.message));
    }
    why.hidden = false;
    why.focus({ preventScroll: true });
    why.scrollIntoView({ block: 'nearest', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
  }

  function tellWhy(said, client) {
    const amount = (value) => `${num(value)}${per(unit())}`;
    refill(why,
      h('button', { type: 'button', class: 'close', 'aria-label': 'Close', onclick: () => { why.hidden = true; picked = null; } }, '×'),
      ...said.lives.map((life) => h('div', { class: 'life' },
        h('h2', null, `${plain(life.client)} has ${amount(life.told)} of ${amount(life.wants)} that it wants`),
        h('p', { class: 'bound' }, 'It is bound by ', h('strong', null, what(life.bound_by)), '.'),
        h('p', null, remedy(life.bound_by)),
        h('dl', { class: 'small' },
          [['Would get', life.gets === null ? 'nothing is said yet' : amount(life.gets)], ['Share', amount(life.share)], ['Charged', amount(life.charged)], ['Lease ends in', time(life.ends_in_seconds)], ['Heard', `${time(life.heard_seconds_ago)} ago, by ${life.way}`], ['Life', life.session]]
            .map(([term, value]) => h('div', null, h('dt', null, term), h('dd', null, value)))),
        life.bands.length > 1 && h('p', { class: 'hint' }, life.bands.map((band) => `priority ${band.priority}: ${amount(band.share)} of ${amount(band.wants)}`).join(' · ')),
        life.also.length > 0 && life.bound_by !== 'wants' && h('p', { class: 'hint' }, `Also: ${life.also.map(what).join('; ')}.`))),
      said.above && h('p', { class: 'hint' }, `The capacity is a lease of ${plain(said.above.node ?? said.above.server)}, held there as ${plain(said.above.holder)}${said.above.bound_by ? `, where it is bound by ${what(said.above.bound_by)}` : ''}.`),
      h('p', { class: 'hint' }, 'The same with all nodes up to the root: ', h('code', null, `lessor explain ${JSON.stringify(name)} ${JSON.stringify(client)}`)),
    );
  }

  function update() {
    const row = live.resources.get(name);
    if (!row) {
      if (live.node) say(subtitle, live.node.leads ? 'Nobody holds or wants it now, or it is not among the thousand busiest.' : 'This task does not lead its node.');
      return;
    }
    const amount = (value) => `${num(value)}${per(row.unit)}`;
    say(subtitle, `${row.kind === 'gauge' ? 'Units in use' : 'Units a second'}, ${row.algorithm.toLowerCase().replaceAll('_', ' ')}${row.template ? `, by the template ${row.template}` : ', by no template any more'}`);
    figures.capacity.set(amount(row.capacity));
    figures.out.set(`${amount(row.outstanding)}`, row.overcommitment > 0 ? 'fault' : '');
    figures.wants.set(amount(row.wants), row.wants > row.capacity ? 'warn' : '');
    figures.short.set(row.short >= 0.005 ? amount(row.short) : 'nothing', row.short >= 0.005 ? 'warn' : '');
    figures.level.set(row.level_bottom === null ? 'none' : amount(row.level_bottom));
    figures.clients.set(num(row.clients));
    const said = [
      row.used !== null && `${percent(row.used)} of it is out.`,
      row.in_debt && 'A cut is under way: nobody grows before it is over.',
      row.learning && `It learns what was out before: newcomers get nothing for ${time(left(row, row.learning_ends_in_seconds))}.`,
      row.ghost > 0 && `A ghost of ${amount(row.ghost)}: out under earlier leaders, for ${time(left(row, row.ghost_ends_in_seconds))} at most.`,
      row.lease_ends_in_seconds !== null && `The lease from the node above lasts ${time(left(row, row.lease_ends_in_seconds))}.`,
      row.overcommitment > 0 && `${amount(row.overcommitment)} more is out than may be.`,
    ].filter(Boolean);
    refill(notes, ...said.map((text) => h('li', null, text)));
    attr(notes, 'aria-label', 'What is out of the ordinary');
  }

  const ends = [listen(update), poll(1000, ask), poll(2000, draw), poll(3000, trace)];
  update();
  return { title: plain(name), close: () => ends.forEach((end) => end()) };
}


