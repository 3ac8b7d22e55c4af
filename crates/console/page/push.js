// What whoever looks may do: a script that the port of operators alone has. Nothing is pushed that was not planned.

/** The acts; nothing where nobody can push, or whoever asks may not. */
export async function open({ h, section, refill, table, plain, time, count, get, answered, headers }) {
  /** Calls an act, as no page but this one can. */
  const act = async (method, name, body) => answered(await fetch(`/admin/${name}`, {
    method, headers: headers({ 'content-type': 'application/json', 'lessor-page': 'console' }), body: body && JSON.stringify(body), cache: 'no-store',
  }));
  const who = await act('GET', 'whoami');
  if (!who.roles.some((role) => role === 'push' || role === 'all')) return null;
  await act('GET', 'push');

  const labelled = (title, input) => [h('label', { for: input.id }, title), input];
  const problem = (text) => h('p', { class: 'problem' }, plain(text));
  const frozen = ({ until, by, message }) => `Nobody may push until ${until}: ${by} says: ${message}`;

  /** The documents of a revision; none of none. */
  async function documentsOf(number) {
    if (!number) return [];
    const { documents, texts } = await get('revision', { number });
    return documents.map((document, index) => ({ for: document.for, name: document.name, text: texts[index] }));
  }

  /** What a push needs of the view of plans: the documents of a whole revision, and the form below a plan. Whether that is whole already. */
  async function plan(view, back) {
    let { head, freeze } = await act('GET', 'push');
    const number = Number(back) || head;
    let documents = await documentsOf(number);
    const names = () => documents.map((document) => `${plain(document.name)} for ${plain(document.for)}`).join(', ');
    const hint = h('p', { class: 'hint' }, back ? `The content of revision ${number}: ${names()}.` : '');
    view.nodes.parentNode.after(hint);
    if (back) {
      view.text.value = documents.map((document) => document.text).join('\n');
      view.text.disabled = view.nodes.disabled = true;
      view.documents = () => documents;
      view.form = (made) => form(made, [freeze && frozen(freeze)], { rollback_of: number });
      return true;
    }
    let taken = 0;
    const load = h('button', { type: 'button', class: 'quiet', onclick: () => look().then(() => {
      const document = documents.find((one) => one.for === view.nodes.value) ?? documents[0];
      [view.text.value, view.nodes.value, taken] = [document.text, document.for, head];
    }).catch((fault) => refill(hint, fault.message)) });
    const say = () => {
      load.hidden = !head;
      load.textContent = `Take it from revision ${head}`;
      refill(hint, head ? `In force is revision ${head}: ${names()}. What is for other nodes stays as it is.` : 'Nothing has been pushed yet.');
    };
    const look = async () => {
      const before = head;
      ({ head, freeze } = await act('GET', 'push'));
      if (head !== before) documents = await documentsOf(head);
      say();
    };
    say();
    view.nodes.parentNode.append(load);
    // One document takes its place among the others of what is in force now, which stay as they are.
    view.documents = async () => {
      await look();
      const own = { for: view.nodes.value, name: 'console.yaml', text: view.text.value };
      const at = documents.findIndex((document) => document.for === own.for);
      return at < 0 ? [own, ...documents] : documents.map((document, index) => (index === at ? { ...own, name: document.name } : document));
    };
    view.form = (made, pushed) => form(made, [freeze && frozen(freeze),
      taken && taken !== made.base && `This was taken from revision ${taken}, and ${made.base} is in force: what came between is undone by it, unless it stands here as well.`], { documents: pushed });
    return false;
  }

  /** The form below a plan: why, and the push. */
  function form(made, warnings, what) {
    const why = h('input', { id: 'why', size: 44, maxlength: 2000 });
    const ticket = h('input', { id: 'ticket', size: 10, maxlength: 200, spellcheck: 'false' });
    const said = h('div', { 'aria-live': 'polite' });
    const button = h('button', { type: 'button', class: 'main', onclick: push }, what.rollback_of ? `Go back to revision ${what.rollback_of}` : 'Push it');
    async function push() {
      if (!why.value.trim()) {
        refill(said, problem('It takes a reason, which stands in the history.'));
        why.focus();
        return;
      }
      button.disabled = true;
      const { digest, base, at, moved } = made;
      try {
        const done = await act('POST', 'push', { ...what, message: why.value.trim(), ticket: ticket.value.trim() || undefined, plan: { digest, base, at, moved } });
        refill(said, h('p', { class: 'verdict' }, done.outcome === 'same' ? `Revision ${done.number} has that content already.` : `Revision ${done.number} is in force. `, h('a', { href: `#/history/${done.number}` }, 'What it changed, and which tasks have it')),
          done.notes?.map((note) => h('p', { class: 'hint' }, plain(note))));
      } catch (fault) {
        refill(said, fault.body?.outcome === 'faster' && fault.body.theirs ? overtaken(fault.body) : problem(fault.message));
        button.disabled = false;
      }
    }
    return section('Put it in force', warnings.filter(Boolean).map(problem), h('div', { class: 'tools' }, labelled('Why', why), labelled('Ticket', ticket), button),
      h('p', { class: 'hint' }, `As ${plain(who.identity)}, in the place of ${made.base ? `revision ${made.base}` : 'nothing'}: at every task at once, or at none. The plan above counts for 15 minutes.`), said);
  }

  const SIDES = { conflict: 'both, not the same', theirs: 'them', mine: 'you', both: 'both, the same' };

  /** Who was faster, and how what both have changed goes together. */
  function overtaken({ theirs, base, conflicts, age_seconds: age, documents }) {
    const side = (name, title) => ({ title, of: (row) => plain(row[name] ?? '–') });
    const fields = table({
      caption: 'What both have changed', key: (row) => `${row.nodes} ${row.template} ${row.field}`,
      columns: [
        { title: 'Field', of: (row) => plain(`${row.template} ${row.field}`.trim()) }, side('nodes', 'For'),
        { title: 'Changed by', of: (row) => h(row.changed_by === 'conflict' ? 'strong' : 'span', null, SIDES[row.changed_by]) },
        side('base', base ? `In ${base}` : 'Before'), side('theirs', `In ${theirs.number}`), side('mine', 'Yours'),
      ],
    });
    fields.set(documents.flatMap((document) => document.fields.map((field) => ({ ...field, nodes: document.for }))), 'No field differs.');
    return [problem(`Somebody was faster: revision ${theirs.number} by ${theirs.by.name}, ${time(age)} ago: ${theirs.message.split('\n')[0]}. Nothing of yours was pushed.`),
      h('p', null, conflicts ? `${count(conflicts, 'field')} changed by both, each to something else. Look whether the rest goes together, and plan again.` : 'No field was changed by both to something else. Plan again on top of it.'), fields.element];
  }

  /** What is done about pushes in the view of the history. Returns what each revision has of it. */
  function history(main) {
    const place = h('div');
    main.append(place);
    const look = async () => {
      const { freeze } = await act('GET', 'push');
      const [why, long, said] = [h('input', { id: 'freeze-why', size: 30, maxlength: 2000 }), h('input', { id: 'freeze-for', size: 5, value: '2h', spellcheck: 'false' }), h('div', { 'aria-live': 'polite' })];
      const button = (title, method, body) => h('button', { type: 'button', onclick: () => act(method, 'push-freeze', body()).then(look).catch((fault) => refill(said, problem(fault.message))) }, title);
      refill(place, section('Pushes', freeze && problem(frozen(freeze)),
        h('div', { class: 'tools' }, freeze ? button('Let everybody push again', 'DELETE', () => ({}))
          : [labelled('Let nobody push for', long), labelled('because', why), button('Freeze pushes', 'POST', () => ({ message: why.value, for: long.value }))]),
        !freeze && h('p', { class: 'hint' }, 'Everybody may push who has the role.'), said));
    };
    look().catch((fault) => refill(place, problem(fault.message)));
    return (element, row, newest) => {
      element.back ??= element.appendChild(h('button', { type: 'button', class: 'quiet', 'aria-label': `go back to revision ${row.number}`, onclick: () => { location.hash = `#/plan?back=${row.number}`; } }, 'go back'));
      element.back.style.visibility = row.number === newest.number ? 'hidden' : '';
    };
  }

  return { plan, history };
}
