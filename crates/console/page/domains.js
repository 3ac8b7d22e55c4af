// Hot domains: whose burst is on, who rests, who is refused and until when.


const TIER_STATES = { current: 'current', shadowed: 'active below', cooling: 'rests', inactive: 'not active' };

/** Tiers with the name of each: that of the policy as well, where there are several. */
const named = (tiers) => tiers.map((tier) => ({ ...tier, named: tiers.at(-1).policy > 1 ? `policy ${tier.policy}, tier ${tier.tier}` : `tier ${tier.tier}` }));

/** One tier: how full its window is, and what it does. */
function tierLine(tier) {
  const fill = h('i', { class: 'tier-fill' });
  const text = h('span', { class: 'tier-text' });
  const state = h('span', { class: 'tier-state' });
  const element = h('li', { class: 'tier' }, h('span', { class: 'tier-name' }, tier.named), h('span', { class: 'tier-bar', 'aria-hidden': 'true' }, fill), text, state);
  return Object.assign(element, {
    set(next) {
      attr(element, 'data-state', next.state);
      fill.style.transform = `scaleX(${Math.min(1, next.hits / next.limit)})`;
      say(text, `${num(next.hits)} of ${num(next.limit)} in ${time(next.window_seconds)}`);
      const ends = next.ends_in_seconds === null ? '' : next.state === 'cooling' ? ` for ${time(next.ends_in_seconds)}` : ` for ${time(next.ends_in_seconds)} more`;
      say(state, `${TIER_STATES[next.state]}${ends}`);
    },
  });
}

function verdict(row) {
  if (!row.refused_by) return 'granted';
  const by = { tiers: 'its tiers', hard: 'its hard limit', global: 'the global limit', debt: 'its debt' }[row.refused_by];
  return row.refused_seconds === null ? `refused by ${by}` : `refused for ${time(row.refused_seconds)} by ${by}`;
}

function openDomains(main, name) {
  let [sort, where] = ['-used', ''];
  const headline = h('h1');
  const lead = h('p', { class: 'lead' }, 'A domain is a tenant or a user inside a lease. Servers know those of which much is used.');
  const choose = h('select', { id: 'of', onchange: () => { location.hash = choose.value ? link('domains', choose.value) : '#/domains'; } }, h('option', { value: '' }, 'all resources'));
  const filter = h('input', { type: 'search', id: 'sift', placeholder: 'acme  or  used>0.8, refused_by=tiers', spellcheck: 'false', autocomplete: 'off', onchange: () => { where = condition(filter.value, 'domain'); ask().catch(show); } });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const cards = h('ul', { class: 'cards' });
  const near = section('Nearest to a limit', cards);
  const tally = h('p', { class: 'hint' });
  const list = table({
    caption: 'Hot domains', key: (row) => `${row.resource} ${row.domain}`, sort,
    onsort: (column) => {
      sort = sort === `-${column}` ? column : `-${column}`;
      list.mark(sort);
      ask().catch(show);
    },
    columns: [
      { name: 'domain', title: 'Domain', of: (row) => plain(row.domain) },
      { name: 'resource', title: 'Resource', of: (row) => plain(row.resource) },
      { name: 'used', title: 'Used', number: true, of: (row) => percent(row.used) },
      { name: 'hits_in_second', title: 'In 1 s', number: true, of: (row) => num(row.hits_in_second) },
      { name: 'tier', title: 'Tier', number: true, of: (row) => (row.tier ? `${row.tier}` : '–') },
      { name: 'clients', title: 'Clients', number: true, of: (row) => num(row.clients) },
      { name: 'refused_seconds', title: 'One more hit', of: verdict },
    ],
  });
  main.append(
    h('div', { class: 'title hero' }, headline, lead), problem,
    near,
    section('All of them', h('div', { class: 'tools' }, h('label', { for: 'of' }, 'Resource'), choose, h('label', { for: 'sift' }, 'Filter'), filter, tally), list.element),
  );

  function show(fault) {
    problem.hidden = !fault;
    if (fault) say(problem, fault.message);
  }

  function card(row) {
    const title = h('h3');
    const note = h('p', { class: 'card-note' });
    const text = h('p', { class: 'verdict' });
    const tiers = h('ul', { class: 'tiers' });
    return Object.assign(h('li', { class: 'card' }, h('div', { class: 'card-head' }, title, text), note, tiers), {
      set(next) {
        say(title, plain(next.domain));
        say(note, `${plain(next.resource)} · ${count(next.clients, 'client')} · ${count(next.hits_in_second, 'hit')} in the last second`);
        say(text, verdict(next));
        attr(text, 'data-mood', next.refused_by ? 'fault' : next.used > 0.8 ? 'warn' : 'good');
        keyed(tiers, named(next.tiers), (tier) => `${tier.policy}.${tier.tier}`, tierLine, (line, tier) => line.set(tier));
      },
    });
  }

  async function ask(signal) {
    const found = await get('domains', { resource: name, where, sort, limit: 200 }, signal);
    show(null);
    const hot = found.exchanges.reduce((sum, one) => sum + one.hot, 0);
    const refused = found.rows.filter((row) => row.refused_by).length;
    say(headline, !found.exchanges.length ? 'No domains are shared here.' : hot === 0 ? 'No domain is near a limit.' : `${count(hot, 'domain')} near a limit. ${refused ? `${num(refused)} refused.` : 'None is refused.'}`);
    near.hidden = !found.rows.length;
    keyed(cards, found.rows.slice(0, 12), (row) => `${row.resource} ${row.domain}`, card, (element, row) => element.set(row));
    list.set(found.rows, where ? 'No domain matches.' : 'No domain is hot.');
    say(tally, !found.looked_at ? '' : `${num(found.matching)} of ${count(found.looked_at, 'domain')}${found.exchanges.some((one) => one.passed_over) ? '; reports were passed over, as too many are told of' : ''}`);
  }

  function update() {
    const shared = [...live.resources.values()].filter((row) => row.domains_told !== null).map((row) => row.resource).sort();
    keyed(choose, ['', ...shared], (one) => one, (one) => h('option', { value: one }, one ? plain(one) : 'all resources'));
    if (document.activeElement !== choose) choose.value = name ?? '';
  }
  choose.keyed = new Map([['', choose.firstElementChild]]);
  const ends = [listen(update), poll(1000, ask)];
  update();
  return { title: 'Domains', close: () => ends.forEach((end) => end()) };
}
