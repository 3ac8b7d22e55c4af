// One resource: the level picture, its figures over time, its holders, and why each gets what it gets.

const MOST_BARS = 1000;

/** A figure with its name. */
function figure(name, tip) {
  const value = h('dd');
  return Object.assign(h('div.figure', { title: tip }, h('dt', name), value), {
    set(text, mood) {
      say(value, text);
      attr(value, { 'data-mood': mood || '' });
    },
  });
}

function openResource(page, name) {
  const row = () => live.resources.get(name);
  const units = (value) => amount(value, row()?.unit);
  let [pages, picked] = [[''], null];

  const [capacity, out, wanted, short, level, clients] = [
    ['Capacity'], ['Out', 'All that may be in use'], ['Wanted'], ['Short', 'What holders miss of their shares'],
    ['Level', 'The most that one client of the least priority gets'], ['Holders'],
  ].map((of) => figure(...of));
  const remarks = h('ul.notes', { 'aria-label': 'What is out of the ordinary' });
  const [picture, chart] = [levelPicture((holder) => explain(holder.client)), timeChart()];
  const [pictureNote, chartNote] = [hint(), hint()];
  const why = h('aside.why', { 'aria-label': 'Why', hidden: true, tabindex: -1 });

  const whyButton = once((client) => button('why', () => explain(client), { class: 'quiet', 'aria-label': `Why ${plain(client)} gets what it gets` }));
  const holders = listing({
    caption: 'Holders', key: (row) => `${row.client} ${row.session}`, sort: '-wants', field: 'client', example: 'web-  or  has<share, priority>0',
    onchange: () => turn(['']),
    columns: [
      column('client', 'Holder'), figures('has', 'Has'), figures('wants', 'Wants'), figures('share', 'Share', num, 'What is due to it'),
      figures('weight', 'Weight', num, 'Clients that it stands for'), figures('priority', 'Priority'), column('state', 'State'),
      figures('ends_in_seconds', 'Ends in', time), figures('heard_seconds_ago', 'Heard', (seconds) => `${time(seconds)} ago`),
      column('', h('span.unseen', 'Why'), (_, { client }) => whyButton(client)),
    ],
  });
  const back = button('Back', () => turn(pages.slice(0, -1)));
  const more = button('More', () => turn([...pages, more.value]));

  page.title.prepend(h('p.over-title', h('a', { href: '#/tree' }, 'Resources')));
  page.head(plain(name));
  page.add(
    h('dl.figures', capacity, out, wanted, short, level, clients), remarks,
    section('The level', picture.element, legend({ out: 'has', dry: 'wants, and does not have', over: 'is above its share, and gives back' }), pictureNote),
    why,
    section('Over time', chart.element, chartNote),
    section('Holders', holders.parts, h('div.pager', back, more)),
  );

  function turn(to) {
    pages = to;
    page.attempt(list);
  }

  async function list(signal) {
    const { sort, where, tally } = holders;
    const { rows, next, matching, looked_at: seen, holders_in_all: all } = await holdersOf(name, { sort, where, limit: 50, after: pages.at(-1) }, signal);
    holders.set(rows, 'Nobody holds or wants it.');
    say(tally, matching === all ? count(all, 'holder') : `${num(matching)} of ${count(seen, 'holder')} match${seen < all ? `, of ${num(all)} in all` : ''}`);
    back.disabled = pages.length < 2;
    more.disabled = !next;
    more.value = next ?? '';
  }

  async function draw(signal) {
    const [{ rows, unit, matching }, division] = await Promise.all([
      holdersOf(name, { sort: '-wants_per_weight', limit: MOST_BARS }, signal),
      get('explain', { resource: name }, signal).then((said) => said.division, () => null),
    ]);
    const bands = division?.bands.filter((band) => band.level !== null) ?? [];
    const isCut = matching > rows.length;
    picture.draw(rows, new Map(bands.map((band) => [band.priority, band.level])), unit, isCut);
    say(pictureNote, `${isCut ? `The ${num(rows.length)} holders that want the most for each client, of ${num(matching)}. ` : ''}A bar is as wide as the clients it stands for, and as high as each of them wants. ${
      bands.length ? 'Whoever reaches above the surface gets no more than that.' : 'There is no level: all have what they want, or it is not divided by one.'}`);
  }

  async function trace(signal) {
    try {
      const { series, step_seconds: step } = await get('series', { resource: name }, signal);
      chart.draw(series, step, row()?.unit);
      say(chartNote, '');
    } catch (fault) {
      if (fault.status !== 404) throw fault;
      say(chartNote, fault.message);
    }
  }

  async function explain(client) {
    picked = client;
    let told;
    try {
      told = reasons(await get('explain', { resource: name, client }, page.signal), client);
    } catch (fault) {
      told = [h('h2', plain(client)), h('p', fault.message)];
    }
    if (picked !== client) return;
    const close = () => {
      picked = null;
      why.hidden = true;
      whyButton(client).focus();
    };
    refill(why, button('×', close, { class: 'close', 'aria-label': 'Close' }), told);
    why.hidden = false;
    why.focus({ preventScroll: true });
    why.scrollIntoView({ block: 'nearest', behavior: still.matches ? 'auto' : 'smooth' });
  }

  function reasons({ lives, above, words = {} }, client) {
    const what = (reason) => words[reason]?.what ?? reason;
    return [
      lives.map((life) => h('div.life',
        h('h2', `${plain(life.client)} has ${units(life.told)} of ${units(life.wants)} that it wants`),
        h('p.bound', 'It is bound by ', h('strong', what(life.bound_by)), '.'),
        words[life.bound_by] && h('p', `For more: ${words[life.bound_by].remedy}.`),
        h('dl.small', Object.entries({
          'Would get': life.gets === null ? 'nothing is said yet' : units(life.gets), Share: units(life.share), Charged: units(life.charged),
          'Lease ends in': time(life.ends_in_seconds), Heard: `${time(life.heard_seconds_ago)} ago, by ${life.way}`, Life: life.session,
        }).map(([term, value]) => h('div', h('dt', term), h('dd', value)))),
        life.bands.length > 1 && hint(dots(...life.bands.map((band) => `priority ${band.priority}: ${units(band.share)} of ${units(band.wants)}`))),
        life.also.length > 0 && life.bound_by !== 'wants' && hint(`Also: ${life.also.map(what).join('; ')}.`))),
      above && hint(`The capacity is a lease of ${plain(above.node ?? above.server)}, held there as ${plain(above.holder)}${above.bound_by ? `, where it is bound by ${what(above.bound_by)}` : ''}.`),
      hint('The same with all nodes up to the root: ', h('code', `lessor explain ${JSON.stringify(name)} ${JSON.stringify(client)}`)),
    ];
  }

  page.listen(() => {
    const of = row();
    if (!of) {
      if (live.node) page.head(plain(name), live.node.leads ? 'Nobody holds or wants it now, or it is not among the thousand busiest.' : 'This task does not lead its node.');
      return;
    }
    page.head(plain(name), `${of.kind === 'gauge' ? 'Units in use' : 'Units a second'}, ${of.algorithm.toLowerCase().replaceAll('_', ' ')}, by ${of.template ? `the template ${plain(of.template)}` : 'no template any more'}`);
    capacity.set(units(of.capacity));
    out.set(units(of.outstanding), of.overcommitment > 0 && 'fault');
    wanted.set(units(of.wants), of.wants > of.capacity && 'warn');
    const isShort = of.short >= 0.005;
    short.set(isShort ? units(of.short) : 'nothing', isShort && 'warn');
    level.set(of.level_bottom === null ? 'none' : units(of.level_bottom));
    clients.set(num(of.clients));
    refill(remarks, [
      of.used !== null && `${percent(of.used)} of it is out.`,
      of.in_debt && 'A cut is under way: nobody grows before it is over.',
      of.learning && `It learns what was out before: newcomers get nothing for ${time(left(of, of.learning_ends_in_seconds))}.`,
      of.ghost > 0 && `A ghost of ${units(of.ghost)}: out under earlier leaders, for ${time(left(of, of.ghost_ends_in_seconds))} at most.`,
      of.lease_ends_in_seconds !== null && `The lease from the node above lasts ${time(left(of, of.lease_ends_in_seconds))}.`,
      of.overcommitment > 0 && `${units(of.overcommitment)} more is out than may be.`,
    ].map((text) => text && h('li', text)));
  });
  page.every(1000, list);
  page.every(2000, draw);
  page.every(3000, trace);
}
