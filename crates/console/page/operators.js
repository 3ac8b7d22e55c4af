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

function openCheck(main) {
  const text = h('textarea', { id: 'yaml', rows: 16, spellcheck: 'false', placeholder: 'resources:\n  - identifier_glob: "db/orders"\n    capacity: 500' });
  const outcome = h('div', { class: 'outcome', 'aria-live': 'polite' });
  const button = h('button', { type: 'button', class: 'main', onclick: check }, 'Check it');
  const file = h('input', { type: 'file', id: 'file', accept: '.yaml,.yml,.json,text/*', onchange: async () => { if (file.files[0]) text.value = await file.files[0].text(); } });
  main.append(h('div', { class: 'title hero' }, h('h1', null, 'Before it is in force'), h('p', { class: 'lead' }, 'Paste a configuration, and see what is wrong with it. Nothing is put in force from here.')),
    section('The configuration', h('div', { class: 'tools' }, h('label', { for: 'file' }, 'From a file'), file), h('label', { class: 'unseen', for: 'yaml' }, 'Configuration in YAML'), text, h('div', { class: 'tools' }, button)), outcome);
  async function check() {
    button.disabled = true;
    try {
      const said = await post('check', text.value);
      refill(outcome, ...(said.valid
        ? [h('h2', null, `It is valid: ${count(said.templates.length, 'template')}.`),
          h('ul', { class: 'notes' }, said.templates.map((template) => h('li', null, `${plain(template.glob)}: ${num(template.capacity)}${template.description ? `, ${plain(template.description)}` : ''}`)),
            said.never_used.map((glob) => h('li', null, `${plain(glob)} is never used: "*" stands before it`)))]
        : [h('h2', null, `${count(said.faults.length + said.more_faults, 'fault')}`),
          ...said.faults.map((fault) => h('figure', null, h('figcaption', null, `Line ${fault.line}, column ${fault.column}: ${plain(fault.message)}`), h('pre', { tabindex: 0 }, fault.snippet)))]));
    } catch (fault) {
      refill(outcome, h('p', { class: 'problem' }, fault.message));
    }
    button.disabled = false;
  }
  return { title: 'Check', close() {} };
}


