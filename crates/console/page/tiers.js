// Charon's simulator, drawn by the code that clients run: press to ask, and see which tier grants it, bursts or refuses.

const STORIES = [
  ['Simple', 'Five in any second, and nothing is saved up.', ['5/1s']],
  ['Penalties', 'Or fifty in five seconds, and then not again for fifteen.', ['5/1s, 50/5s:5s:15s']],
  ['Prison', 'Who asks for a sixth in a second has one in fifteen seconds.', ['5/1s, 1/15s:15s']],
  ['Batch', 'Fifty in the fifteen seconds from the first on, then closed for thirty.', ['50/15s:15s:30s']],
  ['Contract', 'Two policies, both of which must hold.', ['8/2s', '30/30s']],
];
const SPEEDS = [1, 2, 5, 10, 30, 60].map((speed) => [speed, `${speed}×`]);
const RATES = [0, 1, 4, 6, 20].map((rate) => [rate, rate ? `${rate} a second` : 'only when pressed']);
const WINDOWS = [['keep', 'count for the whole window'], ['reset', 'are forgotten, as in the paper']];
const COUNTS = ['exact', 'sliding/10', 'sliding/60', 'fixed', 'bucket'];
const MOST_HITS = 4000;

/** Tiers as they are written, in fields. */
function parse(text) {
  return text.split(',').map((tier) => tier.trim()).filter(Boolean).map((tier) => {
    const [hits, ...rest] = tier.split(':');
    const [limit, window = ''] = hits.split('/').map((part) => part.trim());
    const [active = window, cooldown = '0s'] = rest.filter((part) => /^\d/.test(part));
    return { limit, window, active, cooldown, skippable: rest.includes('skippable'), count: rest.find((part) => /^(exact|fixed|bucket|sliding)/.test(part)) ?? 'exact' };
  });
}

/** The same from fields, as short as can be. */
const write = (tiers) => tiers.map(({ limit, window, active, cooldown, skippable, count }) => {
  const rests = cooldown && cooldown !== '0s';
  return [`${limit}/${window}`, (rests || (active && active !== window)) && (active || window), rests && cooldown, skippable && 'skippable', count !== 'exact' && count].filter(Boolean).join(':');
}).join(', ');

/** Times of hits as short text: milliseconds from one to the next. */
const pack = (hits) => hits.map((at, index) => Math.round((at - (hits[index - 1] ?? 0)) * 1000).toString(36)).join('.');
function unpack(text) {
  let at = 0;
  return text.split('.').filter(Boolean).map((part) => (at += parseInt(part, 36) / 1000)).filter(Number.isFinite).slice(0, MOST_HITS);
}

function openTiers(page, _, query) {
  const { signal } = page;
  const given = query.getAll('p');
  let policies = (given.length ? given : STORIES[1][2]).map(parse);
  let [hard, windows, hits, speed] = [query.get('hard') ?? '', query.get('windows') === 'reset' ? 'reset' : 'keep', unpack(query.get('hits') ?? ''), Number(query.get('speed')) || 1];
  let now = Math.max(Number(query.get('now')) || 0, hits.at(-1) ?? 0);
  let [rate, owed, isRunning, isHeld, drawn, isAsking, isStale, lastFrame] = [0, 0, true, false, null, false, false, performance.now()];

  const picture = lanePicture();
  const [outcome, detail, form, command, remarks] = [h('p.verdict-big'), hint(), h('div.policies'), h('code'), h('ul.notes')];
  const press = h('button.press', { type: 'button' }, h('span', 'Ask'), h('small', 'hold for more'));
  const stop = button('Stop time', () => {
    isRunning = !isRunning;
    say(stop, isRunning ? 'Stop time' : 'Go on');
    attr(stop, { 'aria-pressed': !isRunning });
  }, { 'aria-pressed': 'false' });
  const answers = table({
    caption: 'Answers', key: (row) => row.index,
    columns: [
      column('at_seconds', 'At', (at) => clock(at, 2)), column('granted', 'Answer', (isGranted) => (isGranted ? 'granted' : 'refused')),
      figures('tier', 'Tier', (tier) => tier || '–'), figures('hits_in_tier', 'Hits in it', (many, row) => `${num(many)} of ${num(row.tier_limit)}`),
      column('bound_by', 'Bound by'),
      figures('retry_at_seconds', 'Again in', (at, row) => (row.granted || at === null ? '' : time(at - row.at_seconds))),
      column('burst', 'Burst', (isBurst) => (isBurst ? 'burst' : '')),
    ],
  });
  const stories = STORIES.map(([title, text, tiers]) => Object.assign(
    button([h('strong', title), h('span', text)], () => {
      [hard, windows] = ['', 'keep'];
      change(tiers.map(parse));
    }, { class: 'story' }),
    { set(written) { attr(this, { 'aria-pressed': tiers.join() === written }); } },
  ));

  page.head('Burst tiers', 'A burst is allowed, and has its price. Ask, and see what each tier does with it.');
  page.add(
    h('div.stories', { role: 'group', 'aria-label': 'Examples' }, stories),
    h('section.stage', { 'aria-label': 'Simulator' },
      h('div.desk', press, h('div', outcome, detail)),
      tools(
        labelled('Speed', choice(SPEEDS, speed, (value) => { speed = Number(value); save(); }, { id: 'speed' })),
        labelled('Asks', choice(RATES, rate, (value) => { rate = Number(value); }, { id: 'rate' })),
        stop, button('Skip ahead', () => { now += (drawn ? span(drawn.lanes) : 10) / 8; ask(); }), button('Start anew', begin)),
      picture.element),
    section('The policies', form, remarks, hint('The same in a terminal: ', command)),
    section('Answers', answers.element),
  );

  /** Begins anew, with what the policies are. */
  function begin() {
    [hits, now, owed] = [[], 0, 0];
    tellPolicies();
    ask();
  }

  /** The same with others, which the form then has. */
  function change(to) {
    policies = to;
    edit();
    begin();
  }

  function hit(times = 1) {
    for (let time = 0; time < times && hits.length < MOST_HITS; time += 1) hits.push(Math.max(now, hits.at(-1) ?? 0));
    ask();
  }

  press.addEventListener('pointerdown', (event) => {
    if (event.button) return;
    isHeld = true;
    hit();
  });
  for (const name of ['pointerup', 'pointercancel', 'blur']) addEventListener(name, () => { isHeld = false; }, { signal });
  // That of a pointer was heard already; keys and screen readers send this alone.
  press.addEventListener('click', (event) => event.detail || hit());

  /** Asks the server what becomes of it, once at a time and not more often than it lets. */
  async function ask() {
    isStale = isAsking;
    if (isAsking || signal.aborted) return;
    isAsking = true;
    await page.attempt(compute);
    await rest(130, signal);
    isAsking = false;
    if (isStale) ask();
  }

  async function compute() {
    try {
      drawn = await post('tiers', {
        policies: policies.map((tiers, index) => ({ tiers: write(tiers), windows, ...(hard && !index && { hard_limit: Number(hard) }) })),
        hits, now_seconds: now, ahead_seconds: Math.max(30, drawn ? span(drawn.lanes) * 3 : 60),
      });
    } catch (fault) {
      if (fault.status !== 429) throw fault;
      isStale = true;
      return;
    }
    if (signal.aborted) return;
    drawn.resets = windows === 'reset';
    draw();
    const last = drawn.answers.at(-1);
    const text = !last ? 'Press to ask' : last.granted ? `Granted${last.burst && last.tier > 1 ? ', in a burst' : ''}` : 'Refused';
    if (last && text !== outcome.textContent) say(spoken, text);
    say(outcome, text);
    attr(outcome, { 'data-mood': last ? (last.granted ? 'good' : 'fault') : '' });
    tellDetail();
    answers.set(drawn.answers.map((answer, index) => ({ ...answer, index })).slice(-60).reverse(), 'Nothing was asked yet.');
    keyed(remarks, drawn.notes, (note) => note, (note) => h('li', note));
    save();
    if (hits.length === MOST_HITS) throw new Error(`${num(MOST_HITS)} times is enough for one run: start anew.`);
  }

  function draw() {
    if (!drawn) return;
    picture.set(drawn);
    picture.frame(now);
  }

  /** What the last answer came of, and when the next would be another. */
  function tellDetail() {
    const last = drawn?.answers.at(-1);
    if (!last) return say(detail, '');
    const wait = last.retry_at_seconds - now;
    const again = last.retry_at_seconds === null ? '' : wait > 0 ? `, again in ${time(wait)}` : ', and would be granted by now';
    const granted = drawn.answers.filter((answer) => answer.granted).length;
    say(detail, dots(last.granted ? `by tier ${last.tier}: ${num(last.hits_in_tier)} of ${num(last.tier_limit)}` : `by the ${LIMITS[last.bound_by]}${again}`,
      `${num(granted)} of ${num(drawn.answers.length)} granted`));
  }

  let saving = 0;
  function save() {
    clearTimeout(saving);
    saving = setTimeout(() => {
      if (signal.aborted) return;
      const setup = new URLSearchParams(policies.map((tiers) => ['p', write(tiers)]));
      const isShort = hits.length > 0 && hits.length <= 600;
      for (const [name, value] of Object.entries({ hard, windows: windows === 'reset' && windows, speed: speed !== 1 && speed, hits: isShort && pack(hits), now: isShort && now.toFixed(1) })) {
        if (value) setup.set(name, value);
      }
      history.replaceState(null, '', `#/tiers?${setup}`);
    }, 400);
  }

  const field = (title, input) => h('label', h('span', title), input);
  const typed = (title, value, put, more) => field(title, h('input', { value, onchange: (event) => { put(event.target.value.trim()); begin(); }, ...verbatim, ...more }));
  const tierRow = (tier, index, remove) => h('div.tier-row', { role: 'group', 'aria-label': `Tier ${index + 1}` },
    h('span.tier-number', String(index + 1)),
    Object.entries({ limit: 'Limit', window: 'Window', active: 'Active', cooldown: 'Rests' }).map(([name, title]) => typed(title, tier[name], (value) => { tier[name] = value; })),
    field('Counted', choice([...new Set([...COUNTS, tier.count])].map((kind) => [kind, kind]), tier.count, (kind) => { tier.count = kind; begin(); })),
    h('label.tick', h('input', { type: 'checkbox', checked: tier.skippable, onchange: (event) => { tier.skippable = event.target.checked; begin(); } }), h('span', 'Skippable')),
    button('remove', remove, { class: 'quiet', 'aria-label': `Remove tier ${index + 1}` }));

  /** The form, from what the policies are. */
  function edit() {
    const changed = (number, tiers) => change(policies.with(number, tiers).filter((own) => own.length || policies.length === 1));
    refill(form, policies.map((tiers, number) => h('fieldset.policy',
      h('legend', policies.length > 1 ? `Policy ${number + 1}` : 'Policy'),
      tiers.map((tier, index) => tierRow(tier, index, () => changed(number, tiers.toSpliced(index, 1)))),
      tools(button('Add a tier', () => changed(number, [...tiers, ...parse('20/10s:10s:30s')])),
        !number && typed('Hard limit, in any second', hard, (value) => { hard = value; }, { inputmode: 'numeric', placeholder: 'none' })))),
    tools(button('Add a policy that must hold as well', () => change([...policies, parse('30/30s')])),
      labelled('Hits of an earlier active time', choice(WINDOWS, windows, (value) => { windows = value; begin(); }, { id: 'windows' }))));
  }

  function tellPolicies() {
    const written = policies.map(write);
    say(command, `lessor sim tiers ${written.map((tiers, index) => `--${index ? 'and' : 'tier'} '${tiers}'`).join(' ')}${hard && ` --hard ${hard}`}${windows === 'reset' ? ' --windows reset' : ''} --arrive 20/s`);
    stories.forEach((story) => story.set(written.join()));
  }

  function tick(at) {
    if (signal.aborted) return;
    const passed = Math.min(0.25, (at - lastFrame) / 1000);
    if (!still.matches || at - lastFrame > 500) {
      lastFrame = at;
      if (isRunning && !paused && !document.hidden) {
        now += passed * speed;
        const often = rate * (still.matches ? 1 : speed) || (isHeld ? 12 : 0);
        owed = often && owed + passed * often;
        const due = Math.floor(owed);
        owed -= due;
        if (due) hit(due);
        if (drawn && now > drawn.end_seconds - span(drawn.lanes)) ask();
      }
      picture.frame(now);
      tellDetail();
    }
    requestAnimationFrame(tick);
  }

  addEventListener('resize', draw, { signal });
  edit();
  tellPolicies();
  ask();
  requestAnimationFrame(tick);
}
