// Hot domains: whose burst is on, who rests, who is refused and until when.

const TIER_STATES = { current: 'current', shadowed: 'active below', cooling: 'rests', inactive: 'not active' };
const LIMITS = { tiers: 'tiers', hard: 'hard limit', global: 'global limit', debt: 'debt' };

/** The name of a tier: that of the policy as well, where there are several. */
const tierName = ({ policy, tier }, all) => (all.at(-1).policy > 1 ? `policy ${policy}, tier ${tier}` : `tier ${tier}`);

/** One tier: how full its window is, and what it does. */
function tierLine(name) {
  const [full, text, state] = [bar(), h('span'), h('span.tier-state')];
  const element = h('li.tier', h('span.tier-name', name), full, text, state);
  return Object.assign(element, {
    set({ state: does, hits, limit, window_seconds: window, ends_in_seconds: ends }) {
      attr(element, { 'data-state': does });
      full.set(hits / limit);
      say(text, `${num(hits)} of ${num(limit)} in ${time(window)}`);
      say(state, `${TIER_STATES[does]}${ends === null ? '' : ` for ${time(ends)}${does === 'cooling' ? '' : ' more'}`}`);
    },
  });
}

const verdict = ({ refused_by: by, refused_seconds: seconds }) =>
  (by ? `refused ${seconds === null ? '' : `for ${time(seconds)} `}by ${by === 'global' ? 'the' : 'its'} ${LIMITS[by]}` : 'granted');

function openDomains(page, resource) {
  const choice = resourceChoice('domains');
  const cards = h('ul.cards');
  const near = section('Nearest to a limit', cards);
  const key = (row) => `${row.resource} ${row.domain}`;
  const list = listing({
    caption: 'Hot domains', key, sort: '-used', field: 'domain', example: 'acme  or  used>0.8, refused_by=tiers',
    beside: choice.parts, onchange: () => page.attempt(look),
    columns: [
      column('domain', 'Domain'), column('resource', 'Resource'), figures('used', 'Used', percent), figures('hits_in_second', 'In 1 s'),
      figures('tier', 'Tier', (tier) => tier || '–'), figures('clients', 'Clients'),
      column('refused_seconds', 'One more hit', (_, row) => verdict(row)),
    ],
  });
  page.add(near, section('All of them', list.parts));

  function card(of) {
    const [note, text, tiers] = [h('p.card-note'), h('p.verdict'), h('ul.tiers')];
    return Object.assign(h('li.card', h('div.card-head', h('h3', plain(of.domain)), text), note, tiers), {
      set(row) {
        say(note, dots(plain(row.resource), count(row.clients, 'client'), `${count(row.hits_in_second, 'hit')} in the last second`));
        say(text, verdict(row));
        attr(text, { 'data-mood': row.refused_by ? 'fault' : row.used > 0.8 ? 'warn' : 'good' });
        keyed(tiers, row.tiers, (tier) => tierName(tier, row.tiers), (tier) => tierLine(tierName(tier, row.tiers)));
      },
    });
  }

  async function look(signal) {
    const { where, sort } = list;
    const { rows, exchanges, looked_at: seen, matching } = await get('domains', { resource, where, sort, limit: 200 }, signal);
    const hot = total(exchanges, (one) => one.hot);
    const refused = rows.filter((row) => row.refused_by).length;
    page.head(!exchanges.length ? 'No domains are shared here.' : !hot ? 'No domain is near a limit.' : `${count(hot, 'domain')} near a limit. ${refused ? `${num(refused)} refused.` : 'None is refused.'}`,
      'A domain is a tenant or a user inside a lease. Servers know those of which much is used.');
    near.hidden = !rows.length;
    keyed(cards, rows.slice(0, 12), key, card);
    list.set(rows, 'No domain is hot.');
    say(list.tally, !seen ? '' : `${num(matching)} of ${count(seen, 'domain')}${exchanges.some((one) => one.passed_over) ? '; reports were passed over, as too many are told of' : ''}`);
  }

  page.listen(() => {
    const shared = [...live.resources.values()].filter((row) => row.domains_told !== null).map((row) => row.resource);
    choice.set(['', ...shared.sort()], resource);
  });
  page.every(1000, look);
}
