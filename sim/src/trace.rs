//! The trace of a run: what happened, as numbers, hashed as they come; the last ones are kept for whoever has to read
//! what led to a failure.

use std::collections::VecDeque;
use std::fmt;

use lessor_proto::{Amount, Time};

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Time,
    /// The time on the clock of `who`.
    pub(crate) local: Time,
    pub(crate) who: Speaker,
    pub(crate) what: Happening,
    /// Three numbers, which mean what [`Happening`] says.
    pub(crate) numbers: [u64; 3],
}

/// To whom it happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Speaker {
    /// All of the simulation.
    Simulation,
    Client(u32),
    Task(u32),
    Site(u32),
}

/// The kind of an event, with the meaning of its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Happening {
    /// amount, until, resource
    MayUse,
    /// number
    Asks,
    /// number
    Releases,
    /// stream
    Connects,
    /// stream, report, whether it is a heartbeat
    Reports,
    /// stream
    SendsOther,
    /// stream
    Disconnects,
    /// order, capacity, held: what a report says of a lease
    Holds,
    /// holder, number
    Answers,
    /// holder, number
    Refuses,
    /// holder, epoch
    Sends,
    /// capacity, epoch, seq: what a message to a holder says
    Grants,
    /// epoch, time between heartbeats
    Welcomes,
    /// basis, grants
    Renews,
    /// stream
    IsConnected,
    /// stream
    IsDisconnected,
    /// number
    HearsAnswer,
    /// number
    HearsFailure,
    /// number
    HearsReleased,
    /// stream
    HearsDown,
    /// stream
    HearsClosed,
    /// wants as bits, resource
    Wants,
    /// life
    Begins,
    /// life
    Ends,
    /// until when
    Freezes,
    /// events kept back
    Thaws,
    /// epoch, that of the epoch it has read of, whether that had ended in order
    Leads,
    /// epoch, why
    Falls,
    /// whether authority is there
    Authority,
    /// number, what it is called for
    CallsEtcd,
    /// epoch of the leader it has heard of
    Follows,
    /// what has become of it, until when
    Etcd,
    /// parts per thousand million
    Rate,
    /// until when, direction
    Cut,
    /// resource, capacity
    Capacity,
    /// lease length
    Lease,
    /// resource, whether it is shared fairly
    Policy,
    /// stream, who hears
    Breaks,
    /// stream, until when
    Stalls,
    /// resource, units
    InUse,
    /// number, marks put, marks deleted
    Writes,
    /// whether a record was found, whether one is kept: a state directory
    Opens,
    /// for how long a clock stood still
    Loses,
    /// what has become of it, until when
    Disk,
    /// what it was, what it is: the way in which a site remembers
    Keeps,
    /// edition, the newest
    Edition,
    /// edition, the one that was in force
    Aside,
    /// resource, whether it is a gauge
    Kind,
    /// resource, whether as a gauge
    Reopens,
    /// hits granted, hits that count in the tier, on which ground
    Serves,
    /// limit of the domain
    Limits,
    /// whether a client or a site, which, what has become of its rights
    Right,
    /// edition of the rules, stream, what that means for it
    Reviews,
    /// resource, greatest priority, most clients
    Caps,
    /// resource, for how long (0: lifted), client (even) or site
    Recalls,
}

/// The lines so far.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    hash: u64,
    last: VecDeque<Entry>,
    kept: usize,
}

/// Lines kept, if nobody says otherwise.
pub(crate) const KEPT: usize = 80;

// === impl Trace ===

impl Trace {
    pub(crate) fn new() -> Trace {
        Trace { hash: 0xcbf2_9ce4_8422_2325, last: VecDeque::with_capacity(KEPT), kept: KEPT }
    }

    pub(crate) fn add(&mut self, line: Entry) {
        let who = match line.who {
            Speaker::Simulation => 0,
            Speaker::Client(index) => 1 << 32 | u64::from(index),
            Speaker::Site(index) => 2 << 32 | u64::from(index),
            Speaker::Task(index) => 3 << 32 | u64::from(index),
        };
        let [first, second, third] = line.numbers;
        self.mix(line.at.as_nanos());
        self.mix(who << 8 | line.what as u64);
        self.mix(first);
        self.mix(second);
        self.mix(third);
        if self.last.len() == self.kept {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// Keeps so many from here on, which should not be fewer than before.
    pub(crate) fn keep(&mut self, lines: usize) {
        self.kept = lines.max(self.last.len());
    }

    /// Of all lines.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The last of them, one below the other; `name` says what somebody is called.
    pub(crate) fn tell(&self, name: impl Fn(Speaker) -> String) -> String {
        let line = |line: &Entry| {
            format!(
                "{:>14} [{:>14}] {:<10} {}\n",
                Exact(line.at),
                Exact(line.local),
                name(line.who),
                EntryText(line)
            )
        };
        self.last.iter().map(line).collect()
    }

    fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// A moment in full.
struct Exact(Time);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
        f.pad(&text)
    }
}

struct EntryText<'a>(&'a Entry);

/// Calls of etcd, and what becomes of it, by their numbers in lines.
const CALLS: [&str; 7] = ["grant", "keep alive", "campaign", "read", "read record", "write", "revoke"];
const KINDS: [&str; 2] = ["a rate", "a gauge"];
const ETCD: [&str; 5] = ["frozen", "not to be reached", "begun anew", "compacted", "key deleted"];

/// The same of disks, and of ways to remember.
const DISK: [&str; 3] = ["full", "damaged", "without power"];
const KEEPS: [&str; 3] = ["nothing", "in a file", "at etcd"];

/// The same of rights, and of what becomes of a stream.
const RIGHTS: [&str; 4] = ["loses a resource", "is out", "gets all back", "is limited"];
const REVIEWS: [&str; 4] = ["nothing", "some is recalled", "it says everything again", "it ends"];

impl fmt::Display for EntryText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0.numbers;
        let time = |nanos| Exact(Time::from_nanos(nanos));
        let amount = Amount::from_micros;
        match self.0.what {
            Happening::MayUse => write!(f, "may use {} of r{z} until [{}]", amount(x), time(y)),
            Happening::Asks => write!(f, "asks, #{x}"),
            Happening::Releases => write!(f, "releases, #{x}"),
            Happening::Connects => write!(f, "opens stream {x}"),
            Happening::Reports if z == 1 => write!(f, "heartbeat #{y} on stream {x}"),
            Happening::Reports => write!(f, "report #{y} on stream {x}"),
            Happening::SendsOther => write!(f, "release or bye on stream {x}"),
            Happening::Disconnects => write!(f, "drops stream {x}"),
            Happening::Holds => {
                let (epoch, seq) = (x >> 32, x & 0xffff_ffff);
                write!(f, "  has {} under ({epoch}, {seq}) and holds {}", amount(y), amount(z))
            }
            Happening::Answers => write!(f, "answers holder {x}, #{y}"),
            Happening::Refuses => write!(f, "refuses holder {x}, #{y}"),
            Happening::Sends => write!(f, "sends holder {x} something, as {y}"),
            Happening::Grants => write!(f, "  grants {} as ({y}, {z})", amount(x)),
            Happening::Welcomes => write!(f, "  welcomes as {x}, a heartbeat every {} s", time(y)),
            Happening::Renews => write!(f, "  renews by #{x} after {y} grants"),
            Happening::IsConnected => write!(f, "is connected with stream {x}"),
            Happening::IsDisconnected => write!(f, "loses stream {x}"),
            Happening::HearsAnswer => write!(f, "hears the answer to #{x}"),
            Happening::HearsFailure => write!(f, "hears that #{x} failed"),
            Happening::HearsReleased => write!(f, "hears that release #{x} counts"),
            Happening::HearsDown => write!(f, "hears something on stream {x}"),
            Happening::HearsClosed => write!(f, "hears the end of stream {x}"),
            Happening::Wants => write!(f, "wants {} of r{y}", f64::from_bits(x)),
            Happening::Begins => write!(f, "begins life {x}"),
            Happening::Ends => write!(f, "ends life {x}"),
            Happening::Freezes => write!(f, "is frozen until {}", time(x)),
            Happening::Thaws => write!(f, "goes on, {x} events late"),
            Happening::Leads => write!(f, "begins to lead, epoch {x}, after epoch {y} (closed {z})"),
            Happening::Falls => write!(
                f,
                "leads no more, epoch {x} ({})",
                ["deposed", "crashed", "resigned"][(y % 3) as usize]
            ),
            Happening::Authority => write!(f, "{} authority", if x == 1 { "has" } else { "lacks" }),
            Happening::CallsEtcd => write!(f, "calls etcd, #{x} ({})", CALLS[(y % 7) as usize]),
            Happening::Follows if x == 0 => write!(f, "hears that nobody leads"),
            Happening::Follows => write!(f, "hears of the leader of epoch {x}"),
            Happening::Etcd => write!(f, "etcd {} until {}", ETCD[(x % 5) as usize], time(y)),
            Happening::Rate => write!(f, "has a clock that runs at {x} ppb"),
            Happening::Cut => write!(f, "is cut off until {} (directions {y})", time(x)),
            Happening::Capacity => write!(f, "has {} of r{x} in all", amount(y)),
            Happening::Lease => write!(f, "grants for {} s", time(x)),
            Happening::Policy => write!(f, "shares r{x} {}", if y == 1 { "fairly" } else { "in proportion" }),
            Happening::Kind => write!(f, "makes r{x} {}", KINDS[(y % 2) as usize]),
            Happening::Reopens => write!(f, "comes back to r{x} as {}", KINDS[(y % 2) as usize]),
            Happening::Serves => write!(f, "grants {x} of the domain ({y} count, ground {z})"),
            Happening::Limits => write!(f, "allows the domain {x}"),
            Happening::Right => {
                write!(f, "rules: {} {y} {}", ["client", "site"][(x % 2) as usize], RIGHTS[(z % 4) as usize])
            }
            Happening::Reviews => {
                write!(f, "goes by edition {x} of the rules, stream {y}: {}", REVIEWS[(z % 4) as usize])
            }
            Happening::Caps => write!(f, "caps r{x} at priority {} and {} clients", y as i64, z),
            Happening::Recalls => {
                let whose = ["client", "site"][(z % 2) as usize];
                match y {
                    0 => write!(f, "lifts the recall of r{x} from {whose} {}", z / 2),
                    _ => write!(f, "recalls r{x} from {whose} {} for {} s", z / 2, time(y)),
                }
            }
            Happening::Breaks => write!(f, "stream {x} breaks (heard {y})"),
            Happening::Stalls => write!(f, "does not read stream {x} until {}", time(y)),
            Happening::Opens if y == 0 => write!(f, "begins without a state directory"),
            Happening::Opens => write!(f, "begins with a state directory (record {x})"),
            Happening::Loses => write!(f, "has lost {} s", time(x)),
            Happening::Disk => write!(f, "its disk {} until {}", DISK[(x % 3) as usize], time(y)),
            Happening::Keeps => {
                write!(f, "remembers {} and no more {}", KEEPS[(y % 3) as usize], KEEPS[(x % 3) as usize])
            }
            Happening::Edition => write!(f, "finds edition {x} of {y} of the configuration"),
            Happening::Aside => {
                write!(f, "leaves it to others to lead: it has edition {x}, and {y} was in force")
            }
            Happening::InUse => write!(f, "uses {} of r{x}", amount(y)),
            Happening::Writes => write!(f, "wants #{x} written: {y} marks and {z} gone"),
        }
    }
}
