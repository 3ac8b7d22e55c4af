// What operators look at: findings, revisions and what tasks have in force, configurations before they are pushed.


const SEVERITIES = { fault: 'Fault', warning: 'Warning', note: 'Note' };

function openFindings(main) {
  const headline = h('h1');
  const lead = h('p', { class: 'lead' });
  const cards = h('ul', { class: 'cards wide' });
  main.append(h('div', { class: 'title hero' }, headline, lead), cards);
  const card = (found) => {
    const about = found.about && live.resources.has(found.about) ? h('a', { href: `#/r/${encodeURIComponent(found.about)}` }, plain(found.about)) : plain(found.about ?? 'this task');
    return h('li', { class: 'card finding', data: { severity: found.severity } },
      h('div', { class: 'card-head' }, h('h2', null, about), h('span', { class: 'badge' }, SEVERITIES[found.severity])),
      h('p', { class: 'what' }, found.what), h('p', { class: 'todo' }, found.todo));
  };
  function update() {
    if (!live.node) return say(headline, 'Looking …');
    const wrong = live.findings.filter((found) => found.severity !== 'note').length;
    const notes = live.findings.length - wrong;
    say(headline, wrong ? `${count(wrong, 'thing')} to see to.` : 'Nothing is wrong.');
    say(lead, notes ? `${count(notes, 'note')} on what passes by itself, or is meant to be so.` : 'No task refuses, no node is short of a lease, no resource is in debt.');
    keyed(cards, live.findings, (found) => `${found.severity} ${found.kind} ${found.about} ${found.what}`, card);
  }
  const end = listen(update);
  update();
  return { title: 'Findings', close: end };
}

function openHistory(main, name) {
  const headline = h('h1', null, 'History');
  const lead = h('p', { class: 'lead' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const tasks = table({
    caption: 'Tasks', key: (row) => `${row.node} ${row.address}`,
    columns: [
      { title: 'Node', of: (row) => plain(row.node) },
      { title: 'Task', of: (row) => plain(row.address) },
      { title: 'Part', of: (row) => (row.leads ? 'leads' : row.stands ? 'stands by' : 'stands aside') },
      { title: 'In force', number: true, of: (row) => num(row.in_force) },
      { title: 'Refused', of: (row) => (row.refused ? `${row.refused.number}: ${plain(row.refused.why[0] ?? '')}` : '') },
      { title: 'Program', of: (row) => plain(row.version) },
    ],
  });
  const list = h('ol', { class: 'revisions' });
  const pushed = section('Revisions', list);
  const shown = h('div', { class: 'diff', hidden: true });
  main.append(h('div', { class: 'title hero' }, headline, lead), problem, pushed, shown, section('Tasks', tasks.element));
  let rows = [];
  let back = null;
  operators().then((desk) => { back = desk?.history(main); });

  const entry = () => {
    const [number, message, by, force] = [h('span', { class: 'number' }), h('strong'), h('span', { class: 'hint' }), h('span', { class: 'force' })];
    const button = h('button', { type: 'button', class: 'quiet' }, 'what changed');
    return Object.assign(h('li', null, number, h('div', null, message, by), force, button), {
      set(row) {
        say(number, `${row.number}`);
        say(message, plain(row.message.split('\n')[0] || 'no message'));
        say(by, `${row.at.replace('T', ' ').replace('Z', ' UTC')} by ${plain(row.by.name)}${row.by.verified ? '' : ' (not verified)'}${row.ticket ? ` · ${plain(row.ticket)}` : ''}${row.rollback_of ? ` · back to ${row.rollback_of}` : ''}`);
        say(force, row.tasks_in_force ? `in force at ${row.tasks_in_force} of ${row.tasks}` : '');
        attr(force, 'data-all', row.tasks_in_force === row.tasks && row.tasks > 0);
        button.onclick = () => { location.hash = `#/history/${row.number}`; };
        button.hidden = !row.parent;
        back?.(this, row, rows[0]);
      },
    });
  };

  async function ask(signal) {
    const [found, all] = await Promise.all([get('history', { limit: 100 }, signal), get('tasks', {}, signal)]);
    ({ rows } = found);
    tasks.set(all.rows);
    say(lead, found.prefix === null ? 'The templates come from a file, so there are no revisions. With --config etcd:PREFIX operators push them, and this shows who did and why.'
      : rows.length ? `Revision ${rows[0].number} is the last that was pushed.` : 'Nothing has been pushed yet.');
    pushed.hidden = !rows.length;
    keyed(list, rows, (row) => row.number, entry, (element, row) => element.set(row));
    problem.hidden = true;
  }

  async function compare(number) {
    const row = rows.find((one) => one.number === number);
    const found = row?.parent ? await get('diff', { from: row.parent, to: number }) : null;
    if (!found) return;
    shown.hidden = false;
    refill(shown, h('h2', null, `What ${number} changed in ${found.from}`),
      ...found.documents.map((document) => h('figure', null, h('figcaption', null, plain(document.document)),
        h('pre', { tabindex: 0, role: 'region', 'aria-label': plain(document.document) }, document.lines.map((line) => h('span', { class: line.what }, `${{ gone: '−', new: '+', same: ' ', skipped: '⋯' }[line.what]} ${plain(line.text)}\n`))))),
      found.documents.length === 0 && h('p', null, 'The documents are the same.'));
  }

  const end = poll(2000, (signal) => ask(signal).catch((fault) => { if (!signal.aborted) { problem.hidden = false; say(problem, fault.message); } }));
  if (name) ask().then(() => compare(Number(name))).catch((fault) => { problem.hidden = false; say(problem, fault.message); });
  return { title: 'History', close: end };
}

const KINDS = { freeze: 'frozen', cap: 'capped', drain_client: 'drained', drain_node: 'drained', drain_domain: 'closed' };

function openOverrides(main) {
  const headline = h('h1', null, 'Looking …');
  const lead = h('p', { class: 'lead' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const cards = h('ul', { class: 'cards wide' });
  main.append(h('div', { class: 'title hero' }, headline, lead), problem, cards, h('p', { class: 'hint' }, 'Somebody with the role override puts them there by ', h('code', null, 'lessor freeze'), ', ', h('code', null, 'cap'), ' and ', h('code', null, 'drain'), ', and takes them away by ', h('code', null, 'lessor lift ID'), '.'));
  const card = () => {
    const [name, kind, reason, ends, by] = [h('h2'), h('span', { class: 'badge' }), h('p', { class: 'what' }), h('strong'), h('span')];
    return Object.assign(h('li', { class: 'card finding' }, h('div', { class: 'card-head' }, name, kind), reason, h('p', { class: 'todo' }, 'Ends in ', ends, by)), {
      set(row) {
        say(name, plain(row.what));
        say(kind, KINDS[row.kind] ?? row.kind);
        say(reason, plain(row.reason));
        say(ends, time(row.ends_in_seconds));
        say(by, ` · by ${plain(row.by)}${row.is_verified ? '' : ' (not verified)'} · ${plain(row.id)}`);
        attr(this, 'data-severity', row.ends_in_seconds < 300 ? 'warning' : 'note');
      },
    });
  };
  async function ask(signal) {
    const { rows, leads } = await get('overrides', {}, signal);
    say(headline, !leads ? 'This task does not lead its node.' : rows.length ? `${count(rows.length, 'override')} in force.` : 'Nothing is overridden.');
    say(lead, !leads ? 'Overrides are known to the task that leads.' : rows.length ? 'Each wins over the templates, and ends by itself.'
      : 'The templates say it all.');
    keyed(cards, rows, (row) => row.id, card, (element, row) => element.set(row));
    problem.hidden = true;
  }
  const end = poll(1000, (signal) => ask(signal).catch((fault) => { if (!signal.aborted) { problem.hidden = false; say(problem, fault.message); } }));
  return { title: 'Overrides', close: end };
}
