// Charon's simulator, drawn by the code that clients run: press to ask, and see which tier grants it, bursts or refuses.


const STORIES = {
  simple: ['Simple', 'Five in any second, and nothing is saved up.', ['5/1s']],
  penalties: ['Penalties', 'Or fifty in five seconds, and then not again for fifteen.', ['5/1s, 50/5s:5s:15s']],
  prison: ['Prison', 'Who asks for a sixth in a second has one in fifteen seconds.', ['5/1s, 1/15s:15s']],
  batch: ['Batch', 'Fifty in the fifteen seconds from the first on, then closed for thirty.', ['50/15s:15s:30s']],
  contract: ['Contract', 'Two policies, both of which must hold.', ['8/2s', '30/30s']],
};
const MOST_HITS = 4000;
const still = matchMedia('(prefers-reduced-motion: reduce)');

/** A tier as it is written, in fields. */
function parse(text) {
  return text.split(',').map((tier) => tier.trim()).filter(Boolean).map((tier) => {
    const [amount, ...rest] = tier.split(':');
    const [limit, window] = amount.split('/').map((part) => part.trim());
    const counts = rest.filter((part) => /^(exact|fixed|bucket|sliding)/.test(part));
    const times = rest.filter((part) => /^\d/.test(part));
    return { limit, window: window ?? '', active: times[0] ?? window ?? '', cooldown: times[1] ?? '0s', skippable: rest.includes('skippable'), count: counts[0] ?? 'exact' };
  });
}

const write = (tiers) => tiers.map((tier) => [`${tier.limit}/${tier.window}`, tier.active || tier.window, tier.cooldown || '0s', tier.skippable && 'skippable', tier.count !== 'exact' && tier.count].filter(Boolean).join(':')).join(', ');

/** Times of hits as short text: milliseconds from one to the next. */
const pack = (hits) => hits.map((at, index) => Math.round((at - (hits[index - 1] ?? 0)) * 1000).toString(36)).join('.');
function unpack(text) {
  let at = 0;
  return text.split('.').filter(Boolean).map((part) => (at += parseInt(part, 36) / 1000)).filter((value) => Number.isFinite(value)).slice(0, MOST_HITS);
}

function openTiers(main, _, query) {
  let policies = query.getAll('p').map((text) => ({ tiers: parse(text) }));
  if (!policies.length) policies = [{ tiers: parse(STORIES.penalties[2][0]) }];
  policies[0].hard = query.get('hard') ?? '';
  let windows = query.get('windows') === 'reset' ? 'reset' : 'keep';
  let hits = unpack(query.get('hits') ?? '');
  let now = Math.max(Number(query.get('now')) || 0, hits.at(-1) ?? 0);
  let [speed, auto, running, holding, drawn, sending, again, closed] = [Number(query.get('speed')) || 1, 0, true, false, null, false, false, false];
  let [lastFrame, owed, told] = [performance.now(), 0, ''];

  const picture = lanePicture();
  const verdict = h('p', { class: 'verdict-big' }, 'Press to ask');
  const detail = h('p', { class: 'hint' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const press = h('button', { type: 'button', class: 'press' }, h('span', null, 'Ask'), h('small', null, 'hold for more'));
  const tools = h('div', { class: 'tools sim' });
  const form = h('div', { class: 'policies' });
  const command = h('code');
  const notes = h('ul', { class: 'notes' });
  const answers = table({
    caption: 'Answers', key: (row) => row.id,
    columns: [
      { title: 'At', of: (row) => clock(row.at_seconds, 2) },
      { title: 'Answer', of: (row) => (row.granted ? 'granted' : 'refused') },
      { title: 'Tier', number: true, of: (row) => row.tier || '–' },
      { title: 'Hits in it', number: true, of: (row) => `${num(row.hits_in_tier)} of ${num(row.tier_limit)}` },
      { title: 'Bound by', of: (row) => row.bound_by ?? '' },
      { title: 'Again in', number: true, of: (row) => (row.granted || row.retry_at_seconds === null ? '' : time(row.retry_at_seconds - row.at_seconds)) },
      { title: 'Burst', of: (row) => (row.burst ? 'burst' : '') },
    ],
  });
  const stories = h('div', { class: 'stories', role: 'group', 'aria-label': 'Examples' },
    Object.entries(STORIES).map(([id, [title, text, tiers]]) => h('button', { type: 'button', class: 'story', data: { id }, onclick: () => { policies = tiers.map((one) => ({ tiers: parse(one) })); windows = 'keep'; reset(); edit(); } }, h('strong', null, title), h('span', null, text))));

  main.append(
    h('div', { class: 'title hero' }, h('h1', null, 'Burst tiers'), h('p', { class: 'lead' }, 'A burst is allowed, and has its price. Ask, and see what each tier does with it.')),
    stories, problem,
    h('section', { class: 'stage', 'aria-label': 'Simulator' }, h('div', { class: 'desk' }, press, h('div', null, verdict, detail)), tools, picture.element),
    section('The policies', form, notes, h('p', { class: 'hint' }, 'The same in a terminal: ', command)),
    section('Answers', answers.element),
  );

  const range = h('select', { id: 'speed', onchange: () => { speed = Number(range.value); save(); } }, [1, 2, 5, 10, 30, 60].map((value) => h('option', { value }, `${value}×`)));
  range.value = String(speed);
  const asker = h('select', { id: 'auto', onchange: () => { auto = Number(asker.value); } }, [[0, 'only when pressed'], [1, '1 a second'], [4, '4 a second'], [6, '6 a second'], [20, '20 a second']].map(([value, text]) => h('option', { value }, text)));
  const stop = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => { running = !running; say(stop, running ? 'Stop time' : 'Go on'); attr(stop, 'aria-pressed', !running); } }, 'Stop time');
  tools.append(h('label', { for: 'speed' }, 'Speed'), range, h('label', { for: 'auto' }, 'Asks'), asker, stop,
    h('button', { type: 'button', onclick: () => { now += (drawn ? span(drawn.lanes) : 10) / 8; ask(); } }, 'Skip ahead'),
    h('button', { type: 'button', onclick: () => { reset(); ask(); } }, 'Start anew'));

  function reset() {
    [hits, now, owed] = [[], 0, 0];
  }

  function hit() {
    if (hits.length >= MOST_HITS) return fail(new Error(`${num(MOST_HITS)} times is enough for one run: start anew.`));
    hits.push(Math.max(now, hits.at(-1) ?? 0));
  }

  const begin = (event) => {
    if (event.button) return;
    holding = true;
    hit();
    ask();
  };
  press.addEventListener('pointerdown', begin);
  const release = () => { holding = false; };
  addEventListener('pointerup', release);
  addEventListener('pointercancel', release);
  addEventListener('blur', release);
  press.addEventListener('keydown', (event) => {
    if (event.key !== ' ' && event.key !== 'Enter') return;
    event.preventDefault();
    hit();
    ask();
  });
  press.addEventListener('click', (event) => {
    // Of a pointer it was heard already; a screen reader sends this alone.
    if (event.detail === 0) { hit(); ask(); }
  });

  function fail(fault) {
    problem.hidden = !fault;
    if (fault) say(problem, fault.message);
  }

  const question = () => ({
    policies: policies.map((policy) => ({ tiers: write(policy.tiers), windows, ...(policy.hard ? { hard_limit: Number(policy.hard) } : {}) })),
    hits, now_seconds: now, ahead_seconds: Math.max(30, drawn ? span(drawn.lanes) * 3 : 60),
  });

  /** Asks the server what becomes of it, once at a time and not more often than it lets. */
  async function ask() {
    if (closed) return;
    if (sending) { again = true; return; }
    sending = true;
    try {
      drawn = await post('tiers', question());
      drawn.resets = policies.map(() => windows === 'reset');
      fail(null);
      if (!closed) show();
    } catch (fault) {
      if (!closed && fault.status !== 429) fail(fault);
      if (fault.status === 429) again = true;
    }
    setTimeout(() => {
      sending = false;
      if (again) { again = false; ask(); }
    }, 130);
  }

  function show() {
    picture.set(drawn);
    picture.frame(now);
    const last = drawn.answers.at(-1);
    tellDetail();
    if (last) {
      const text = last.granted ? `Granted${last.burst && last.tier > 1 ? ', in a burst' : ''}` : 'Refused';
      if (text !== told) { told = text; say(document.getElementById('spoken'), text); }
      say(verdict, text);
    } else say(verdict, 'Press to ask');
    attr(verdict, 'data-mood', last ? (last.granted ? 'good' : 'fault') : '');
    answers.set(drawn.answers.map((answer, index) => ({ ...answer, id: index })).slice(-60).reverse(), 'Nothing was asked yet.');
    keyed(notes, drawn.notes, (note) => note, (note) => h('li', null, note));
    save();
  }

  /** What the last answer came of, and when the next would be another. */
  function tellDetail() {
    const last = drawn?.answers.at(-1);
    if (!last) return say(detail, '');
    const granted = drawn.answers.filter((answer) => answer.granted).length;
    const by = { tiers: 'the tiers', hard: 'the hard limit', global: 'the global limit', debt: 'the debt' }[last.bound_by];
    const wait = last.retry_at_seconds - now;
    const retry = last.retry_at_seconds === null ? '' : wait > 0 ? `, again in ${time(wait)}` : ', and would be granted by now';
    say(detail, `${last.granted ? `by tier ${last.tier}: ${num(last.hits_in_tier)} of ${num(last.tier_limit)}` : `by ${by}${retry}`} · ${num(granted)} of ${num(drawn.answers.length)} granted`);
  }

  let saving = 0;
  function save() {
    clearTimeout(saving);
    saving = setTimeout(() => {
      if (closed) return;
      const link = new URLSearchParams(policies.map((policy) => ['p', write(policy.tiers)]));
      if (policies[0]?.hard) link.set('hard', policies[0].hard);
      if (windows === 'reset') link.set('windows', windows);
      if (speed !== 1) link.set('speed', speed);
      if (hits.length && hits.length <= 600) {
        link.set('hits', pack(hits));
        link.set('now', now.toFixed(1));
      }
      history.replaceState(null, '', `#/tiers?${link}`);
    }, 400);
  }

  /** The form, from what the policies are. */
  function edit() {
    const field = (title, props) => h('label', null, h('span', null, title), h('input', props));
    const changed = () => { reset(); say(command, line()); ask(); };
    refill(form, ...policies.map((policy, number) => h('fieldset', { class: 'policy' },
      h('legend', null, policies.length > 1 ? `Policy ${number + 1}` : 'Policy'),
      policy.tiers.map((tier, index) => {
        const bind = (name) => ({ value: tier[name], onchange: (event) => { tier[name] = event.target.value.trim(); changed(); }, spellcheck: 'false', autocomplete: 'off' });
        return h('div', { class: 'tier-row', role: 'group', 'aria-label': `Tier ${index + 1}` },
          h('span', { class: 'tier-number' }, `${index + 1}`),
          field('Limit', { ...bind('limit'), inputmode: 'numeric' }), field('Window', bind('window')), field('Active', bind('active')), field('Rests', bind('cooldown')),
          h('label', null, h('span', null, 'Counted'), h('select', { onchange: (event) => { tier.count = event.target.value; changed(); } },
            [...new Set(['exact', 'sliding/10', 'sliding/60', 'fixed', 'bucket', tier.count])].map((kind) => h('option', { value: kind, selected: kind === tier.count }, kind)))),
          h('label', { class: 'tick' }, h('input', { type: 'checkbox', checked: tier.skippable, onchange: (event) => { tier.skippable = event.target.checked; changed(); } }), h('span', null, 'Skippable')),
          h('button', { type: 'button', class: 'quiet', 'aria-label': `Remove tier ${index + 1}`, onclick: () => { policy.tiers.splice(index, 1); if (!policy.tiers.length && policies.length > 1) policies.splice(number, 1); edit(); changed(); } }, 'remove'));
      }),
      h('div', { class: 'tools' },
        h('button', { type: 'button', onclick: () => { policy.tiers.push({ limit: '20', window: '10s', active: '10s', cooldown: '30s', skippable: false, count: 'exact' }); edit(); changed(); } }, 'Add a tier'),
        number === 0 && field('Hard limit, in any second', { value: policy.hard ?? '', inputmode: 'numeric', placeholder: 'none', onchange: (event) => { policy.hard = event.target.value.trim(); changed(); } })))),
      h('div', { class: 'tools' },
        h('button', { type: 'button', onclick: () => { policies.push({ tiers: parse('30/30s') }); edit(); changed(); } }, 'Add a policy that must hold as well'),
        h('label', { for: 'windows' }, 'Hits of an earlier active time'),
        h('select', { id: 'windows', onchange: (event) => { windows = event.target.value; changed(); } }, [['keep', 'count for the whole window'], ['reset', 'are forgotten, as in the paper']].map(([value, text]) => h('option', { value, selected: value === windows }, text)))),
    );
    say(command, line());
    for (const story of stories.children) attr(story, 'aria-pressed', STORIES[story.dataset.id][2].join('|') === policies.map((policy) => shorter(policy.tiers)).join('|'));
    ask();
  }
  const shorter = (tiers) => tiers.map((tier) => `${tier.limit}/${tier.window}${tier.active !== tier.window || tier.cooldown !== '0s' ? `:${tier.active}` : ''}${tier.cooldown !== '0s' ? `:${tier.cooldown}` : ''}${tier.skippable ? ':skippable' : ''}${tier.count !== 'exact' ? `:${tier.count}` : ''}`).join(', ');
  const line = () => {
    const [first, ...others] = policies.map((policy) => shorter(policy.tiers));
    return `lessor sim tiers --tier '${first}'${others.map((one) => ` --and '${one}'`).join('')}${policies[0]?.hard ? ` --hard ${policies[0].hard}` : ''}${windows === 'reset' ? ' --windows reset' : ''} --arrive 20/s`;
  };

  function tick(at) {
    if (closed) return;
    const passed = Math.min(0.25, (at - lastFrame) / 1000);
    if (!still.matches || at - lastFrame > 500) {
      lastFrame = at;
      if (running && !isPaused() && !document.hidden) {
        now += passed * speed;
        const rate = auto * (still.matches ? 1 : speed) || (holding ? 12 : 0);
        owed = rate ? owed + passed * rate : 0;
        const due = Math.floor(owed);
        owed -= due;
        for (let index = 0; index < due; index += 1) hit();
        if (due) ask();
        if (drawn && now > drawn.end_seconds - span(drawn.lanes)) ask();
      }
      picture.frame(now);
      tellDetail();
    }
    requestAnimationFrame(tick);
  }

  const resized = () => { if (drawn) picture.set(drawn); };
  addEventListener('resize', resized);
  edit();
  requestAnimationFrame(tick);
  return {
    title: 'Burst tiers',
    close() {
      closed = true;
      for (const name of ['pointerup', 'pointercancel', 'blur']) removeEventListener(name, release);
      removeEventListener('resize', resized);
    },
  };
}


