// The console: views by the address, one stream of changes, and what is said of both.

const VIEWS = {
  tree: ['Tree', openTree], r: ['Resource', openResource], domains: ['Domains', openDomains], findings: ['Findings', openFindings],
  overrides: ['Overrides', openOverrides], tiers: ['Tiers', openTiers], history: ['History', openHistory], plan: ['Plan', openPlan],
};

const [main, nav, pulse, pulseText, foot, spoken, pause] = ['main', 'nav', 'pulse', 'pulse-text', 'foot', 'spoken', 'pause'].map((id) => document.getElementById(id));
const badge = h('span.badge', { hidden: true });
const links = Object.entries(VIEWS).filter(([view]) => view !== 'r')
  .map(([view, [name]]) => h('a', { href: `#/${view}` }, name, view === 'findings' && badge));
nav.append(...links);

let view = null;
let shown = '';

/** The place of a view: a headline with a sentence below it, what has failed, and what the view adds. It ends when the next begins. */
function newPage(name) {
  view?.end();
  const end = new AbortController();
  const { signal } = end;
  const [headline, lead, problem] = [h('h1'), h('p.lead'), h('p.problem', { role: 'alert', hidden: true })];
  const title = h('div.title', headline, lead);
  const faults = new Map();
  main.replaceChildren(title, problem);
  view = {
    name, title, signal,
    end: () => end.abort(),
    add: (...parts) => { if (!signal.aborted) fill(main, parts); },
    head(first, second = '') {
      say(headline, first);
      say(lead, second);
    },
    /** Calls what may fail. What it fails by is shown until it succeeds. */
    async attempt(act) {
      try {
        await act(signal);
        faults.delete(act);
      } catch (fault) {
        faults.set(act, fault.message);
      }
      problem.hidden = !faults.size;
      say(problem, [...new Set(faults.values())].join('\n'));
    },
    /** Calls it again and again, but for when the page is hidden or paused. */
    async every(interval, act) {
      for (; !signal.aborted; await rest(interval, signal)) if (!document.hidden && !paused) await this.attempt(act);
    },
    listen: (listener) => listen(listener, signal),
  };
  return view;
}

/** The view that the address names: `#/r/NAME?query`. */
function address() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const [name, ...rest] = path.split('/');
  let of = '';
  try {
    of = decodeURIComponent(rest.join('/'));
  } catch {
    // It is no name.
  }
  return { name: name in VIEWS && (name !== 'r' || of) ? name : 'tree', of, query: new URLSearchParams(query) };
}

function route() {
  const { name, of, query } = address();
  const key = `${name}/${of}`;
  // The simulator writes its own state into the address.
  if (key === shown && name === 'tiers') return;
  const isFirst = !shown;
  shown = key;
  attr(main, { 'data-view': name });
  const [title, open] = VIEWS[name];
  open(newPage(name === 'r' ? plain(of) : title), of, query);
  for (const element of links) {
    if (element.hash === `#/${name === 'r' ? 'tree' : name}`) element.setAttribute('aria-current', 'page');
    else element.removeAttribute('aria-current');
  }
  nav.querySelector('[aria-current]').scrollIntoView({ block: 'nearest', inline: 'center' });
  entitle();
  if (!isFirst) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function entitle() {
  document.title = `${view.name} · ${plain(live.node?.node ?? 'Lessor')}`;
}

const PULSES = { gone: 'away', denied: 'not allowed' };
let before = 'connecting';

function update() {
  const { node, state, why, from } = live;
  const path = node && (node.path ?? [node.node]).map(plain).join(' › ');
  attr(pulse, { 'data-state': state, title: why });
  say(pulseText, dots(path, state !== 'live' ? PULSES[state] ?? state : node.leads && !from ? 'leads' : 'follows'));
  if (state !== before) {
    const words = { live: before !== 'connecting' && 'The server answers again.', gone: `The server is away: ${why}.`, late: `The server is late: ${why}.`, paused: 'Paused.' };
    if (words[state]) say(spoken, words[state]);
    before = state;
    attr(document.body, { 'data-state': state });
    if (state === 'denied') askForToken();
  }
  const many = wrong().length;
  badge.hidden = !many;
  say(badge, String(many));
  attr(badge, { 'aria-label': `${many} to see to` });
  if (node) {
    say(foot, dots(`Lessor ${node.version}${node.commit ? ` (${node.commit.slice(0, 9)})` : ''}`, `epoch ${node.epoch}`,
      node.leads && `leading for ${time(node.leading_seconds)}`, node.is_of_operators && 'port of operators', from && `from ${from}, which leads`));
  }
  entitle();
}

/** Whoever asks has to show a token where rules of access want one. */
function askForToken() {
  const input = h('input', { type: 'password', id: 'token', ...verbatim });
  const show = () => {
    showToken(input.value);
    shown = '';
    route();
  };
  const page = newPage('Token');
  page.head('Who are you?', live.why);
  page.add(tools(labelled('Token', input), button('Show it', show, { class: 'main' })),
    hint('One of `lessor token new`, with the role see; explain for the reasons. It is kept until this tab is closed.'));
  input.focus();
}

pause.addEventListener('click', () => {
  setPaused(!paused);
  attr(pause, { 'aria-pressed': paused });
  say(pause, paused ? 'Go on' : 'Pause');
});
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener('hashchange', route);
route();
listen(update);
restart();

export { ask, button, column, count, get, h, hint, labelled, plain, refill, section, table, time, tools, verbatim };
