//! The words of a trace: what an entry says.

use std::fmt;

use lessor_proto::{Amount, Time};

use super::{Entry, Happening};

/// A moment in full.
pub(super) struct Exact(pub(super) Time);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
        f.pad(&text)
    }
}

/// The text of an entry.
pub(super) struct EntryText<'a>(pub(super) &'a Entry);

/// Calls of etcd, and what becomes of it, by their numbers in lines.
const CALLS: [&str; 7] = ["grant", "keep alive", "campaign", "read", "read record", "write", "revoke"];
const KINDS: [&str; 2] = ["a rate", "a gauge"];
const ETCD: [&str; 5] = ["frozen", "not to be reached", "begun anew", "compacted", "key deleted"];

/// The same of disks, and of ways to remember.
const DISK: [&str; 3] = ["full", "damaged", "without power"];
const KEEPS: [&str; 3] = ["nothing", "in a file", "at etcd"];

/// The same of rights, and of what becomes of a stream.
const RIGHTS: [&str; 4] = ["loses a resource", "is out", "gets all back", "is limited"];
const OVERRIDES: [&str; 4] = ["freezes", "caps", "drains a client of", "drains a node of"];
const REVIEWS: [&str; 4] = ["nothing", "some is recalled", "it says everything again", "it ends"];

// === impl EntryText ===

impl fmt::Display for EntryText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.of_holder(f).or_else(|| self.of_server(f));
        own.unwrap_or_else(|| self.of_fault(f))
    }
}

impl EntryText<'_> {
    /// Something that a holder does, hears or believes.
    fn of_holder(&self, f: &mut fmt::Formatter<'_>) -> Option<fmt::Result> {
        let [x, y, z] = self.0.numbers;
        let time = |nanos| Exact(Time::from_nanos(nanos));
        let amount = Amount::from_micros;
        Some(match self.0.what {
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
            Happening::HearsAnswer => write!(f, "hears the answer to #{x}"),
            Happening::HearsFailure => write!(f, "hears that #{x} failed"),
            Happening::HearsReleased => write!(f, "hears that release #{x} counts"),
            Happening::HearsDown => write!(f, "hears something on stream {x}"),
            Happening::HearsClosed => write!(f, "hears the end of stream {x}"),
            Happening::Wants => write!(f, "wants {} of r{y}", f64::from_bits(x)),
            Happening::Begins => write!(f, "begins life {x}"),
            Happening::Ends => write!(f, "ends life {x}"),
            Happening::Reopens => write!(f, "comes back to r{x} as {}", KINDS[(y % 2) as usize]),
            Happening::Serves => write!(f, "grants {x} of the domain ({y} count, ground {z})"),
            Happening::InUse => write!(f, "uses {} of r{x}", amount(y)),
            _ => return None,
        })
    }

    /// Something that a server does, hears or is told.
    fn of_server(&self, f: &mut fmt::Formatter<'_>) -> Option<fmt::Result> {
        let [x, y, z] = self.0.numbers;
        let time = |nanos| Exact(Time::from_nanos(nanos));
        let amount = Amount::from_micros;
        Some(match self.0.what {
            Happening::Answers => write!(f, "answers holder {x}, #{y}"),
            Happening::Refuses => write!(f, "refuses holder {x}, #{y}"),
            Happening::Sends => write!(f, "sends holder {x} something, as {y}"),
            Happening::Grants => write!(f, "  grants {} as ({y}, {z})", amount(x)),
            Happening::Welcomes => write!(f, "  welcomes as {x}, a heartbeat every {} s", time(y)),
            Happening::Renews => write!(f, "  renews by #{x} after {y} grants"),
            Happening::IsConnected => write!(f, "is connected with stream {x}"),
            Happening::IsDisconnected => write!(f, "loses stream {x}"),
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
            Happening::Reviews => {
                write!(f, "goes by edition {x} of the rules, stream {y}: {}", REVIEWS[(z % 4) as usize])
            }
            Happening::Opens if y == 0 => write!(f, "begins without a state directory"),
            Happening::Opens => write!(f, "begins with a state directory (record {x})"),
            Happening::Loses => write!(f, "has lost {} s", time(x)),
            Happening::Keeps => {
                write!(f, "remembers {} and no more {}", KEEPS[(y % 3) as usize], KEEPS[(x % 3) as usize])
            }
            Happening::Edition => write!(f, "finds edition {x} of {y} of the configuration"),
            Happening::Aside => {
                write!(f, "leaves it to others to lead: it has edition {x}, and {y} was in force")
            }
            Happening::Writes => write!(f, "wants #{x} written: {y} marks and {z} gone"),
            _ => return None,
        })
    }

    /// Something that befalls them, or that operators do.
    fn of_fault(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0.numbers;
        let time = |nanos| Exact(Time::from_nanos(nanos));
        let amount = Amount::from_micros;
        match self.0.what {
            Happening::Freezes => write!(f, "is frozen until {}", time(x)),
            Happening::Thaws => write!(f, "goes on, {x} events late"),
            Happening::Rate => write!(f, "has a clock that runs at {x} ppb"),
            Happening::Cut => write!(f, "is cut off until {} (directions {y})", time(x)),
            Happening::Capacity => write!(f, "has {} of r{x} in all", amount(y)),
            Happening::Lease => write!(f, "grants for {} s", time(x)),
            Happening::Policy => write!(f, "shares r{x} {}", if y == 1 { "fairly" } else { "in proportion" }),
            Happening::Kind => write!(f, "makes r{x} {}", KINDS[(y % 2) as usize]),
            Happening::Limits => write!(f, "allows the domain {x}"),
            Happening::Right => {
                write!(f, "rules: {} {y} {}", ["client", "site"][(x % 2) as usize], RIGHTS[(z % 4) as usize])
            }
            Happening::Caps => write!(f, "caps r{x} at priority {} and {} clients", y as i64, z),
            Happening::Recalls => {
                let whose = ["client", "site"][(z % 2) as usize];
                match y {
                    0 => write!(f, "lifts the recall of r{x} from {whose} {}", z / 2),
                    _ => write!(f, "recalls r{x} from {whose} {} for {} s", z / 2, time(y)),
                }
            }
            Happening::Overrides => match OVERRIDES.get(y as usize) {
                Some(what) => write!(f, "an operator {what} r{x} for {z} s"),
                None => write!(f, "has {x} overrides in force"),
            },
            Happening::Breaks => write!(f, "stream {x} breaks (heard {y})"),
            Happening::Stalls => write!(f, "does not read stream {x} until {}", time(y)),
            Happening::Disk => write!(f, "its disk {} until {}", DISK[(x % 3) as usize], time(y)),
            other => write!(f, "{other:?} {x} {y} {z}"),
        }
    }
}
