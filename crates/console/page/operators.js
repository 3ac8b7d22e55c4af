// What operators look at: findings, overrides, revisions and what tasks have in force.

function openFindings(page) {
  const cards = h('ul.cards.wide');
  page.add(cards);
  const card = (found) => {
    const name = plain(found.about ?? 'this task');
    return h('li.card.finding', { data: { severity: found.severity } },
      h('div.card-head', h('h2', live.resources.has(found.about) ? h('a', { href: link('r', found.about) }, name) : name), h('span.badge', found.severity)),
      h('p.what', found.what), h('p.todo', found.todo));
  };
  page.listen(() => {
    if (!live.node) return page.head('Looking …');
    const many = wrong().length;
    const notes = live.findings.length - many;
    page.head(many ? `${count(many, 'thing')} to see to.` : 'Nothing is wrong.',
      notes ? `${count(notes, 'note')} on what passes by itself, or is meant to be so.` : 'No task refuses, no node is short of a lease, no resource is in debt.');
    keyed(cards, live.findings, (found) => dots(found.severity, found.kind, found.about, found.what), card);
  });
}

/** Who did something, as far as that is known. */
const author = (name, isVerified) => `by ${plain(name)}${isVerified ? '' : ' (not verified)'}`;

function openHistory(page, number) {
  const tasks = table({
    caption: 'Tasks', key: (row) => `${row.node} ${row.address}`,
    columns: [
      column('node', 'Node'), column('address', 'Task'),
      column('leads', 'Part', (leads, { stands }) => (leads ? 'leads' : stands ? 'stands by' : 'stands aside')),
      figures('in_force', 'In force'),
      column('refused', 'Refused', (refused) => (refused ? `${refused.number}: ${plain(refused.why[0])}` : '')),
      column('version', 'Program'),
    ],
  });
  const list = h('ol.revisions');
  const pushed = section('Revisions', list);
  const shown = h('div.diff', { hidden: true });
  page.head('History');
  page.add(pushed, shown, section('Tasks', tasks.element));
  let [rows, back] = [[], null];
  operators().then((desk) => { back = desk?.history?.(page); });

  const entry = ({ number, message, at, by, ticket, rollback_of: older, parent }) => {
    const force = h('span.force');
    const line = h('li', h('span.number', String(number)),
      h('div', h('strong', plain(message.split('\n')[0] || 'no message')),
        hint(dots(`${at.replace('T', ' ').replace('Z', ' UTC')} ${author(by.name, by.verified)}`, plain(ticket), older && `back to ${older}`))),
      force, button('what changed', () => { location.hash = `#/history/${number}`; }, { class: 'quiet', hidden: !parent }));
    return Object.assign(line, {
      set({ tasks: all, tasks_in_force: have }) {
        say(force, have ? `in force at ${have} of ${all}` : '');
        attr(force, { 'data-all': have === all });
        back?.(line, number, rows[0].number);
      },
    });
  };

  async function look(signal) {
    const [found, all] = await Promise.all([get('history', { limit: 100 }, signal), get('tasks', {}, signal)]);
    ({ rows } = found);
    tasks.set(all.rows);
    page.head('History', found.prefix === null ? 'The templates come from a file. With --config etcd:PREFIX operators push them, and this shows who did and why.'
      : rows.length ? `Revision ${rows[0].number} is the last that was pushed.` : 'Nothing has been pushed yet.');
    pushed.hidden = !rows.length;
    keyed(list, rows, (row) => row.number, entry);
  }

  const MARKS = { gone: '−', new: '+', same: ' ', skipped: '⋯' };
  async function compare(signal) {
    await look(signal);
    const { parent } = rows.find((row) => row.number === Number(number)) ?? {};
    if (!parent) return;
    const { documents } = await get('diff', { from: parent, to: number }, signal);
    shown.hidden = false;
    refill(shown, h('h2', `What ${number} changed in ${parent}`),
      documents.map(({ document, lines }) => h('figure', h('figcaption', plain(document)),
        h('pre', { tabindex: 0, role: 'region', 'aria-label': plain(document) }, lines.map(({ what, text }) => h(`span.${what}`, `${MARKS[what]} ${plain(text)}\n`))))),
      !documents.length && h('p', 'The documents are the same.'));
  }

  page.every(2000, look);
  if (number) page.attempt(compare);
}

const KINDS = { freeze: 'frozen', cap: 'capped', drain_client: 'drained', drain_node: 'drained', drain_domain: 'closed' };

function openOverrides(page) {
  const cards = h('ul.cards.wide');
  page.head('Looking …');
  page.add(cards, hint('They are put there by ', h('code', 'lessor freeze'), ', ', h('code', 'cap'), ' and ', h('code', 'drain'), ', and taken away by ', h('code', 'lift'), '.'));
  const card = ({ id, what, kind, reason, by, is_verified: isVerified }) => {
    const ends = h('strong');
    const element = h('li.card.finding', h('div.card-head', h('h2', plain(what)), h('span.badge', KINDS[kind] ?? kind)),
      h('p.what', plain(reason)), h('p.todo', 'Ends in ', ends, ` · ${author(by, isVerified)} · ${plain(id)}`));
    return Object.assign(element, {
      set({ ends_in_seconds: seconds }) {
        say(ends, time(seconds));
        attr(element, { 'data-severity': seconds < 300 ? 'warning' : 'note' });
      },
    });
  };
  page.every(1000, async (signal) => {
    const { rows, leads } = await get('overrides', {}, signal);
    if (!leads) page.head('This task does not lead its node.', 'Overrides are known to the task that leads.');
    else if (rows.length) page.head(`${count(rows.length, 'override')} in force.`, 'Each wins over the templates, and ends by itself.');
    else page.head('Nothing is overridden.', 'The templates say it all.');
    keyed(cards, rows, (row) => row.id, card);
  });
}
