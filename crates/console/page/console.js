// The console: views by the address, one stream of changes, and what is said of both.


const VIEWS = { tree: openTree, r: openResource, domains: openDomains, findings: openFindings, tiers: openTiers, overrides: openOverrides, history: openHistory, plan: openPlan, check: openPlan };
const NAMES = [['tree', 'Tree'], ['domains', 'Domains'], ['findings', 'Findings'], ['overrides', 'Overrides'], ['tiers', 'Tiers'], ['history', 'History'], ['plan', 'Plan']];

const [main, nav, pulse, pulseText, foot, spoken, button] = ['main', 'nav', 'pulse', 'pulse-text', 'foot', 'spoken', 'pause'].map((id) => document.getElementById(id));
const badge = h('span', { class: 'badge', hidden: true });
const links = new Map(NAMES.map(([view, name]) => [view, h('a', { href: `#/${view}` }, name, view === 'findings' && badge)]));
nav.append(...links.values());

let view = null;
let shown = '';

/** The view that the address names: `#/r/NAME?query`. */
function address() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const [name, ...rest] = path.split('/');
  let of;
  try {
    of = rest.length ? decodeURIComponent(rest.join('/')) : undefined;
  } catch {
    of = undefined;
  }
  return { name: name in VIEWS && (name !== 'r' || of) ? name : 'tree', of, query: new URLSearchParams(query) };
}

function route() {
  const { name, of, query } = address();
  const key = `${name}/${of ?? ''}`;
  // The simulator writes its own state into the address.
  if (key === shown && name === 'tiers') return;
  const isFirst = !shown;
  shown = key;
  view?.close();
  main.replaceChildren();
  attr(main, 'data-view', name);
  view = VIEWS[name](main, of, query);
  for (const [link, element] of links) {
    if (link === name || (name === 'r' && link === 'tree') || (name === 'check' && link === 'plan')) element.setAttribute('aria-current', 'page');
    else element.removeAttribute('aria-current');
  }
  nav.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  title();
  if (!isFirst) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function title() {
  document.title = `${view?.title ?? 'Lessor'} · ${plain(live.node?.node ?? 'Lessor')}`;
}

const PULSES = { connecting: 'connecting', live: 'live', late: 'late', gone: 'away', paused: 'paused', denied: 'not allowed' };
let before = '';

function update() {
  const { node, state } = live;
  attr(pulse, 'data-state', state);
  const path = node ? (node.path ?? [node.node]).map(plain).join(' › ') : '';
  say(pulseText, state === 'live' && node ? `${path} · ${node.leads && !live.from ? 'leads' : 'follows'}` : `${path ? `${path} · ` : ''}${PULSES[state]}`);
  pulse.title = live.why;
  if (state !== before) {
    const words = { live: before && before !== 'connecting' ? 'The server answers again.' : '', gone: `The server is away: ${live.why}.`, late: `The server is late: ${live.why}.`, paused: 'Paused.', denied: '' };
    if (words[state]) say(spoken, words[state]);
    before = state;
    attr(document.body, 'data-state', state);
    if (state === 'denied') askForToken();
  }
  const wrong = live.findings.filter((found) => found.severity !== 'note').length;
  badge.hidden = !wrong;
  say(badge, String(wrong));
  attr(badge, 'aria-label', `${wrong} to see to`);
  if (node) {
    say(foot, `Lessor ${node.version}${node.commit ? ` (${node.commit.slice(0, 9)})` : ''} · epoch ${node.epoch}${node.leads ? ` · leading for ${time(node.leading_seconds)}` : ''}${node.is_of_operators ? ' · port of operators' : ''}${live.from ? ` · from ${live.from}, which leads` : ''}`);
  }
  title();
}

/** Whoever asks has to show a token where rules of access want one. */
function askForToken() {
  const input = h('input', { type: 'password', id: 'token', autocomplete: 'off', spellcheck: 'false' });
  const form = h('section', { class: 'token', 'aria-label': 'Token' }, h('h1', null, 'Who are you?'), h('p', { class: 'lead' }, live.why),
    h('div', { class: 'tools' }, h('label', { for: 'token' }, 'Token'), input, h('button', { type: 'button', class: 'main', onclick: () => { showToken(input.value); shown = ''; route(); } }, 'Show it')),
    h('p', { class: 'hint' }, 'One of `lessor token new`, with the role see; explain for the reasons. It is kept until this tab is closed.'));
  view?.close();
  view = { title: 'Token', close() {} };
  main.replaceChildren(form);
  input.focus();
}

button.addEventListener('click', () => {
  const is = !isPaused();
  setPaused(is);
  attr(button, 'aria-pressed', is);
  say(button, is ? 'Go on' : 'Pause');
});
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener('hashchange', route);
listen(update);
route();
restart();
