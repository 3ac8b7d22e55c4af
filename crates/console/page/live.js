// What the server says: one stream of changes, and questions beside it.

const listeners = new Set();
const live = {
  state: 'connecting',
  why: '',
  node: null,
  resources: new Map(),
  findings: [],
  /** When the last message came, by the clock of this page. */
  at: 0,
  messages: 0,
};

let token = sessionStorage.getItem('token') ?? '';
let paused = false;
let running = null;

class Fault extends Error {
  constructor(status, body) {
    super(body?.error ?? body?.detail ?? `the server answered ${status}`);
    this.status = status;
    this.body = body;
  }
}

let desk;
/** What whoever looks may do: that is a script of the port of operators alone. */
const operators = () => (desk ??= get('here').then(async (here) => (here.is_of_operators ? (await import('/push.js')).open({ h, section, refill, table, plain, time, count, get, answered, headers }) : null)).catch(() => { desk = null; }));

const headers = (more) => (token ? { ...more, authorization: `Bearer ${token}` } : { ...more });

async function answered(response) {
  const text = await response.text();
  let body = null;
  try {
    body = JSON.parse(text);
  } catch {
    body = { error: text.trim().slice(0, 500) };
  }
  if (!response.ok) throw new Fault(response.status, body);
  return body;
}

/** Asks `/v1/PATH` with these parameters; those without a value are left out. */
async function get(path, parameters = {}, signal) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== ''));
  const url = `/v1/${path}${query.size ? `?${query}` : ''}`;
  return answered(await fetch(url, { headers: headers(), signal, cache: 'no-store' }));
}

async function post(path, body, signal) {
  const sent = typeof body === 'string' ? body : JSON.stringify(body);
  return answered(await fetch(`/v1/${path}`, { method: 'POST', headers: headers({ 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json' }), body: sent, signal }));
}

/** Calls `listener` after each message, until what it gives back is called. */
function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell() {
  for (const listener of listeners) listener(live);
}

function become(state, why = '') {
  if (live.state === state && live.why === why) return;
  Object.assign(live, { state, why });
  tell();
}

/** From here on it is known who asks. */
function showToken(secret) {
  token = secret.trim();
  sessionStorage.setItem('token', token);
  restart();
}

function setPaused(is) {
  paused = is;
  restart();
}

const isPaused = () => paused;

function restart() {
  running?.abort();
  running = null;
  if (paused) return become('paused');
  if (document.hidden) return;
  running = new AbortController();
  follow(running.signal);
}

document.addEventListener('visibilitychange', restart);

const rest = (time, signal) => new Promise((done) => {
  const timer = setTimeout(done, time);
  signal.addEventListener('abort', () => { clearTimeout(timer); done(); }, { once: true });
});

async function follow(signal) {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 1.6, 8000)) {
    const before = live.messages;
    try {
      await read(signal);
      if (!signal.aborted) become('gone', 'the server has ended the stream');
    } catch (fault) {
      if (signal.aborted) return;
      const denied = fault.status === 401 || fault.status === 403;
      become(denied ? 'denied' : 'gone', fault.message);
      if (denied) return;
    }
    if (live.messages > before) wait = 500;
    await rest(wait, signal);
  }
}

/** Reads the stream to its end. */
async function read(signal) {
  const quiet = new AbortController();
  const both = AbortSignal.any([signal, quiet.signal]);
  // A stream that says nothing for so long is broken, whoever holds it open.
  let timer = 0;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => quiet.abort(), 6000);
  };
  heard();
  try {
    const response = await fetch('/v1/events', { headers: headers({ accept: 'text/event-stream' }), signal: both, cache: 'no-store' });
    if (!response.ok) await answered(response);
    // The task that leads, where another one shows what it says.
    live.from = response.headers.get('lessor-from');
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      const parts = (rest + value).split('\n\n');
      rest = parts.pop();
      for (const part of parts) hear(part);
    }
  } finally {
    clearTimeout(timer);
  }
}

function hear(message) {
  const [, name] = /^event: (.*)$/m.exec(message) ?? [];
  const [, data] = /^data: (.*)$/m.exec(message) ?? [];
  if (!data) return;
  const said = JSON.parse(data);
  if (name === 'end') throw new Fault(403, said);
  if (name === 'fault') return become('late', said.error);
  const now = performance.now();
  if (said.all) live.resources.clear();
  for (const row of said.resources) live.resources.set(row.resource, { ...row, at: now });
  for (const gone of said.gone) live.resources.delete(gone);
  if (said.findings) live.findings = said.findings;
  Object.assign(live, { node: said.node, at: now, state: 'live', why: '' });
  live.messages += 1;
  tell();
}

/** The seconds that are left of a time which a row said. */
const left = (row, seconds) => (seconds === null ? null : Math.max(0, seconds - (performance.now() - row.at) / 1000));

/** Asks again and again, until what it gives back is called: not while the page is hidden or paused. */
function poll(interval, ask) {
  const end = new AbortController();
  (async () => {
    while (!end.signal.aborted) {
      if (!document.hidden && !paused) {
        try {
          await ask(end.signal);
        } catch (fault) {
          if (!end.signal.aborted) console.debug(fault.message);
        }
      }
      await rest(interval, end.signal);
    }
  })();
  return () => end.abort();
}
