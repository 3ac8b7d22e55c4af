/**
 * A lease of a rate, held by polling: a client of lessor serve in one file, to be read and copied.
 *
 * It asks a server every few seconds for so much a second of one resource, and is given a lease: this much, until then.
 * `tryAcquire` and `acquire` take units from a bucket that the lease fills, and look at no network. Each field that is sent
 * and heeded here stands in docs/wire.md, with its rule.
 *
 * Left out are gauges, streams, the measuring of demand (`wants` is what the program says), burst tiers of domains, and safe
 * capacity: from the end of its lease on it uses nothing. One resource goes in a request, so a refusal is about that one.
 *
 * The messages are those of proto/doorman.proto, which is loaded at run time. What that file does not name is dropped when a
 * message is decoded, so `has` hands back the fields of a lease that are in it and no others; a server of a later version
 * may count a client without its own new fields for longer, until its file is as new.
 */
import { randomBytes } from "node:crypto";
import * as grpc from "@grpc/grpc-js";
import * as protoLoader from "@grpc/proto-loader";

/** Numbers of 64 bits come as text, and optional fields that are not there as undefined. */
interface Lease {
  expiry_time: string;
  refresh_interval: string;
  capacity: number;
  epoch?: string;
  seq?: string;
  duration_ms?: string;
  basis?: string;
  ack_wanted?: boolean;
  generation?: number;
  burst_us?: string;
  due_us?: string;
}

interface Answer {
  response?: { resource_id: string; gets: Lease }[];
  mastership?: { master_address?: string };
  epoch?: string;
  retry_ms?: number;
}

interface Service extends grpc.Client {
  GetCapacity(request: object, options: grpc.CallOptions, done: grpc.requestCallback<Answer>): grpc.ClientUnaryCall;
  ReleaseCapacity(request: object, options: grpc.CallOptions, done: grpc.requestCallback<object>): grpc.ClientUnaryCall;
}

interface Waiter {
  units: number;
  resolve: () => void;
  reject: (why: Error) => void;
  timer: NodeJS.Timeout;
}

/** The server has understood, and says no: another one would say the same. */
const REFUSALS = new Set<number | undefined>([
  grpc.status.INVALID_ARGUMENT,
  grpc.status.NOT_FOUND,
  grpc.status.FAILED_PRECONDITION,
  grpc.status.PERMISSION_DENIED,
  grpc.status.UNAUTHENTICATED,
  grpc.status.RESOURCE_EXHAUSTED,
]);

// Times are milliseconds.
const GENERATION = 1; // Lease.generation of a rate
const TIMEOUT = 5000; // of one request
const SOON = 50; // no two reports are closer, but for redirects and a change of wants
const NEVER = 60_000; // nothing is to be had before an answer comes, which ends the wait
const LONGEST = 2 ** 31 - 1; // that setTimeout can wait

/**
 * A clock that nobody sets: CLOCK_MONOTONIC, as process.hrtime. It stands still while the machine is suspended, and Node.js
 * has none that goes on. So the end of a lease is kept by the date as well, and a lease that is over by either is over: by
 * the date after a suspension, from the moment at which the date is right again; by this clock where the date was set back.
 */
const now = (): number => performance.now();

/** Nothing was taken: `message` says why. */
export class Denied extends Error {}

/** So much a second of one resource. */
export class Rate {
  private readonly incarnation = randomBytes(8).readBigUInt64LE().toString(); // the process before is another
  private readonly service: grpc.ServiceClientConstructor;
  private readonly connections = new Map<string, Service>();
  private readonly running: Promise<void>;
  private closed = false;
  private wake: () => void = () => {};
  private call?: grpc.ClientUnaryCall;

  private lease?: Lease; // the one adopted last, as it came
  private capacity = 0; // units a second that may be used: nothing once the lease is over
  private end = 0; // of the lease, by our clock
  private endDate = 0; // and by the date
  private saved = 0; // units in the bucket
  private at = now(); // when it was filled last
  private burst = 0; // what may be saved up, as the time in which the lease brings it
  private unitDue?: number; // when the next unit is due, of a lease that is too small to save one up
  private fault?: string = "no server has answered yet"; // why nothing is leased
  private waiters: Waiter[] = [];
  private served?: NodeJS.Timeout; // when to look at the first of them again

  private due = 0; // when to report next, but not before
  private notBefore = 0; // a server that failed or refused has had its rest
  private reportId = 0;
  private readonly sent = new Map<string, { at: number; date: number }>(); // when the last reports were sent
  private fence = 0n; // the greatest epoch of any answer
  private leader = ""; // whom a server has named; "" for the one of the list whose turn it is
  private turn = 0; // whose turn that is
  private hops = 0; // servers in a row that named another one
  private failures = 0; // in a row
  private refused = 0; // in a row

  /**
   * Leases up to `wants` units a second of `resource` from `servers`, HOST:PORT each, of which one leads. No other process
   * may have the name `client` at a time. `proto` is where doorman.proto is.
   */
  constructor(
    private readonly client: string,
    private readonly resource: string,
    private wants: number,
    private readonly servers: readonly string[],
    proto: string,
    private readonly credentials = grpc.credentials.createInsecure(),
  ) {
    if (servers.length === 0) throw new RangeError("servers: none is given, wanted HOST:PORT at least once");
    checkWants(wants);
    const definition = protoLoader.loadSync(proto, { keepCase: true, longs: String });
    const { Capacity } = grpc.loadPackageDefinition(definition).doorman as grpc.GrpcObject;
    this.service = Capacity as grpc.ServiceClientConstructor;
    this.running = this.run();
  }

  /** Uses nothing from here on, and says so; where no server hears it the lease counts until it ends. */
  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.served);
    for (const waiter of this.waiters.splice(0)) {
      clearTimeout(waiter.timer);
      waiter.reject(this.denied());
    }
    this.call?.cancel();
    this.wake();
    await this.running;
    const release = {
      client_id: this.client,
      resource_id: [this.resource],
      incarnation: this.incarnation,
      report_id: this.reportId + 1,
    };
    await new Promise<void>((done) => {
      this.connect().ReleaseCapacity(release, { deadline: Date.now() + TIMEOUT }, () => done());
    });
    for (const connection of this.connections.values()) connection.close();
  }

  /** Says how many units a second the program could use, and reports it at once. */
  setWants(wants: number): void {
    checkWants(wants);
    this.wants = wants;
    this.due = 0;
    this.wake();
  }

  /** Takes `n` units if they are there, and says whether. It does not wait. */
  tryAcquire(n = 1): boolean {
    return this.take(now(), n) === 0;
  }

  /**
   * Takes `n` units as the lease brings them, and is done when it has the last one. Those who wait are served in order. What
   * it has taken when the time is over is lost, as it may not be used at another moment than when it was taken.
   */
  acquire(n: number, timeoutMs: number): Promise<void> {
    checkUnits(n);
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(this.denied());
      const timer = setTimeout(() => {
        this.waiters = this.waiters.filter((other) => other !== waiter);
        reject(this.denied(`not within ${timeoutMs} ms`));
        this.serve();
      }, Math.min(timeoutMs, LONGEST));
      const waiter: Waiter = { units: n, resolve, reject, timer };
      this.waiters.push(waiter);
      this.serve();
    });
  }

  private serve(): void {
    clearTimeout(this.served);
    for (let first = this.waiters[0]; first !== undefined; first = this.waiters[0]) {
      const bit = Math.max(1, Math.min(first.units, Math.floor(this.depth())));
      const wait = this.take(now(), bit);
      if (wait > 0) {
        this.served = setTimeout(() => this.serve(), Math.min(wait, NEVER));
        return;
      }
      first.units -= bit;
      if (first.units === 0) {
        clearTimeout(first.timer);
        this.waiters.shift();
        first.resolve();
      }
    }
  }

  private denied(why = ""): Denied {
    if (this.closed) return new Denied(`${this.resource}: closed`);
    return new Denied(`${this.resource}: ${why}: ${this.fault ?? "all of the lease is used, or it is over"}`);
  }

  // === the bucket ===

  private isOver(now: number): boolean {
    return now >= this.end || Date.now() >= this.endDate;
  }

  /**
   * The units that may be saved up: what the lease brings in the burst, and where that is less one, or none if the server
   * says when one is due.
   */
  private depth(): number {
    if (this.capacity === 0 || this.unitDue !== undefined) return 0;
    return Math.max(1, (this.capacity * this.burst) / 1000);
  }

  /** Fills the bucket with what the lease has brought, and empties it when the lease is over. */
  private flow(now: number): void {
    if (this.isOver(now)) {
      this.capacity = 0;
      this.unitDue = undefined;
    }
    this.saved = Math.min(this.saved + (this.capacity * (now - this.at)) / 1000, this.depth());
    this.at = now;
  }

  /** Takes `n` units and returns 0, or says after how long it is worth while to try again. */
  private take(now: number, n: number): number {
    checkUnits(n);
    this.flow(now);
    if (this.closed || this.capacity === 0) return NEVER;
    if (this.unitDue !== undefined) return this.takeDue(now, n, this.unitDue);
    if (n > this.depth()) return NEVER; // so many never come together
    if (this.saved < n) return Math.max(0.001, ((n - this.saved) / this.capacity) * 1000);
    this.saved -= n;
    return 0;
  }

  /** Takes the unit that is due, within the burst; whom it finds absent loses it. */
  private takeDue(now: number, n: number, unitDue: number): number {
    const every = 1000 / this.capacity;
    const late = now - this.burst - unitDue;
    const due = late >= 0 ? unitDue + (Math.floor(late / every) + 1) * every : unitDue;
    this.unitDue = due;
    if (n > 1) return NEVER;
    if (due > now) return due - now;
    this.unitDue = due + every;
    return 0;
  }

  // === the lease ===

  /** What is wanted and what is held. The limit is lowered first, so that nobody can take what the report gives back. */
  private report(now: number): object {
    this.flow(now);
    this.capacity = Math.min(this.capacity, this.wants);
    this.flow(now);
    const report = { resource_id: this.resource, priority: 0, wants: this.wants, integer: false };
    const lease = this.lease;
    if (lease === undefined) return report;
    const isOver = this.isOver(now);
    if (lease.seq === undefined) return isOver ? report : { ...report, has: { ...lease, capacity: this.capacity } };
    // All of the lease with what is held of it, also when that is nothing, or we would pass for a newcomer.
    const has = { ...lease, capacity: this.capacity };
    if (isOver || this.fence <= BigInt(lease.epoch ?? 0)) return { ...report, has, held: this.capacity };
    // To a leader that did not grant it.
    const remaining = Math.min(this.end - now, this.endDate - Date.now());
    const remaining_ms = Math.max(1, Math.floor(remaining));
    return { ...report, has: { ...has, remaining_ms }, held: this.capacity };
  }

  /** Takes up a grant. It counts from when the report was sent that it answers, not from when the answer came. */
  private adopt(now: number, sent: { at: number; date: number }, lease: Lease): void {
    if (lease.seq !== undefined) {
      const [epoch, seq, last] = [BigInt(lease.epoch ?? 0), BigInt(lease.seq), this.lease];
      if (epoch < this.fence) return; // of a leader that was succeeded
      if (last?.seq !== undefined) {
        const lastEpoch = BigInt(last.epoch ?? 0);
        if (epoch < lastEpoch || (epoch === lastEpoch && seq <= BigInt(last.seq))) return; // a later one has overtaken it
      }
    }
    // A server of Doorman's says only the date.
    const lasts =
      lease.duration_ms === undefined
        ? Math.min(Number(lease.expiry_time) * 1000 - sent.date, 3_600_000)
        : Number(lease.duration_ms);
    if (sent.at + lasts <= now || sent.date + lasts <= Date.now()) return;
    this.flow(now);
    this.lease = lease;
    [this.end, this.endDate] = [sent.at + lasts, sent.date + lasts];
    const isOther = lease.generation !== undefined && lease.generation !== GENERATION;
    this.capacity = isOther ? 0 : Math.max(0, lease.capacity);
    this.fault = isOther ? "it is a gauge" : undefined;
    // A little earlier than asked for, each client at another moment, and never later than at two thirds of the lease.
    const refresh = Math.max(1, Number(lease.refresh_interval)) * 1000 * (0.9 + 0.1 * Math.random());
    this.due = sent.at + Math.min(refresh, (lasts * 2) / 3);
    // Somebody waits for what this takes away, and of a rate nothing stays in use.
    if (lease.ack_wanted === true || isOther) this.due = Math.max(now, sent.at + SOON);
    this.burst = lease.burst_us === undefined ? 50 : Number(lease.burst_us) / 1000;
    const before = this.unitDue;
    this.unitDue = undefined;
    if (lease.due_us !== undefined && this.capacity > 0) {
      const every = 1000 / this.capacity;
      this.unitDue = sent.at + Number(lease.due_us) / 1000;
      // A unit that was taken already is not due again.
      if (before !== undefined && before > now) {
        this.unitDue += Math.max(0, Math.ceil((before - this.unitDue - every / 2) / every)) * every;
      }
    }
    this.flow(now); // down to what the bucket holds from here on
  }

  // === the network ===

  private async run(): Promise<void> {
    while (!this.closed) {
      const wait = Math.max(this.due, this.notBefore) - now();
      if (wait <= 0) {
        await this.ask();
        this.serve();
        continue;
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(wait, NEVER));
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** Makes one request and takes up its answer. No other is under way. */
  private async ask(): Promise<void> {
    const sent = { at: now(), date: Date.now() }; // before it is sent
    const wants = this.wants;
    const report = this.report(sent.at);
    this.reportId += 1;
    this.sent.set(String(this.reportId), sent);
    this.sent.delete(String(this.reportId - 8));
    const request = {
      client_id: this.client,
      incarnation: this.incarnation,
      report_id: this.reportId,
      resource: [report],
      ...(this.fence > 0n && { target_epoch: this.fence.toString() }),
    };
    // A lease that ends soon leaves less time to ask another server.
    const limit = this.isOver(sent.at) ? TIMEOUT : Math.min(TIMEOUT, Math.max(1000, (this.end - sent.at) / 3));
    try {
      const answer = await new Promise<Answer>((resolve, reject) => {
        const done: grpc.requestCallback<Answer> = (error, answer) =>
          answer === undefined ? reject(error) : resolve(answer);
        this.call = this.connect().GetCapacity(request, { deadline: Date.now() + limit }, done);
      });
      this.answered(answer);
    } catch (error) {
      const { code, details } = error as grpc.ServiceError;
      if (REFUSALS.has(code)) {
        this.failures = 0;
        this.refused += 1;
        this.fault = details;
        this.due = 0;
        this.notBefore = now() + backOff(this.refused);
      } else {
        this.failed(details ?? String(error));
      }
    }
    if (this.wants !== wants) this.due = 0; // that is news
  }

  /** The service of the server to be asked, over a connection that is kept. */
  private connect(): Service {
    const address = this.leader || (this.servers[this.turn] ?? "");
    let connection = this.connections.get(address);
    if (connection === undefined) {
      // Its own back-off would come on top of ours.
      const options = { "grpc.initial_reconnect_backoff_ms": 250, "grpc.max_reconnect_backoff_ms": 1000 };
      connection = new this.service(address, this.credentials, options) as unknown as Service;
      this.connections.set(address, connection);
    }
    return connection;
  }

  private answered(answer: Answer): void {
    const epoch = BigInt(answer.epoch ?? 0);
    if (epoch > this.fence) this.fence = epoch;
    if (answer.mastership) {
      // Another one leads.
      this.leader = answer.mastership.master_address ?? "";
      this.hops += 1;
      this.due = 0;
      if (this.leader === "" || this.hops > 5) this.failed("no server leads");
      return;
    }
    this.failures = this.refused = this.hops = 0;
    const again = answer.retry_ms === undefined ? 1000 : Math.max(SOON, answer.retry_ms);
    this.due = now() + again; // unless there is a grant
    for (const { resource_id, gets } of answer.response ?? []) {
      // A grant on a report that is not known here is too old.
      const sent = this.sent.get(gets.basis ?? String(this.reportId));
      if (sent !== undefined && resource_id === this.resource) this.adopt(now(), sent, gets);
    }
    // There may be more before the refresh interval is over.
    if (answer.retry_ms !== undefined && this.capacity < this.wants) this.due = Math.min(this.due, now() + again);
  }

  /** Goes on to the next server of the list, after a wait that doubles with every round over all of them. */
  private failed(why: string): void {
    if (this.leader === "") this.turn = (this.turn + 1) % this.servers.length;
    this.due = 0;
    this.notBefore = now() + backOff(Math.floor(this.failures / this.servers.length));
    this.leader = "";
    this.hops = 0;
    this.failures += 1;
    if (this.isOver(now())) this.fault = why;
  }
}

function checkUnits(n: number): void {
  if (!Number.isSafeInteger(n) || n < 1) throw new RangeError(`n: ${n} is no number of units, wanted 1 or more`);
}

function checkWants(wants: number): void {
  if (!(wants >= 0)) throw new RangeError(`wants: ${wants}, wanted units a second, 0 or more`);
}

/** A quarter of a second, doubled so many times, 16 seconds at the most; half of it is drawn at random. */
function backOff(times: number): number {
  return Math.min(250 * 2 ** times, 16_000) * (0.5 + 0.5 * Math.random());
}
