//! The record that a leader leaves to the next one: its keys and values.
//!
//! ```text
//! <prefix>/<node>/leader           1 nonce 00000000000000a1 address 10.0.0.7:5101
//! <prefix>/<node>/epoch            1 epoch 12 write 3 longest_lease_ns 60000000000 authority_ns 4000000000 closed no config_version 2
//! <prefix>/<node>/stop             1 epoch 12 write 3 clock_ns 5000000000
//! <prefix>/<node>/cluster          1 id 14841639068965178418 term 7
//! <prefix>/<node>/earlier          1 epoch 12 stopped 11 clock_ns 7000000000 until_ns 65000000000
//! <prefix>/<node>/mark/<resource>  1 millionths 120000000
//! <prefix>/<node>/mark/<resource>  1 millionths 120000000 of_epoch 5 of_seq 7 token 05c1e0
//! <prefix>/<node>/mark/<resource>  1 millionths 120000000 rest 20000000 in_epoch 12
//! ```
//!
//! The second form is of a node that holds a lease from the one above: a later leader of it shows that lease there.
//! Behind the millionths stands `kind rate` or `kind gauge`: which of them they count. Where neither does, that is not known.
//! In the third, so much of the mark was left from before the leader of that epoch, whose own part is what is beyond it; both forms
//! may be one. It counts beside `rest_over_ns 30000000000 safe_rest_over_ns 0` at the end of `leadership`: so long after this was
//! written, at the latest, nothing of that is out, of all but floors and of floors. Every write puts that anew while it counts, and
//! under another epoch, or without it, all of the mark is the leader's own.
//! The name of the node has its slashes and per cent signs escaped, so that no node's keys begin like another's. The first word is
//! the version of the form. Behind `longest_lease_ns` stands `longest_safe_lease_ns 3600000000000` where there are floors.
//! At the end stands `unknown yes` while the leader does not know what was out before it, or `unknown floors` while that is so of
//! floors only, and `line 5577006791947779410`: drawn
//! by the first who led by this record, and the same for all who do after it; behind it `since 12` is the epoch of that first one,
//! where that is known. `epoch` and `write` say whose write was
//! the last, and which of them; every write puts them,
//! and comes right behind the one before it or not at all. `stop` is put with the write that closes an epoch, and says what the
//! clock of its leader showed then; beside another write it says nothing.
//! `earlier` says of each leader before this one whose leases may count still when it had stopped, by its own clock, and until when
//! they count at this one, by this one's; beside another epoch it says nothing. It is put with the write that begins an epoch.
//! `cluster` is the etcd at which the leader read the record before it began, put with its first write: who reads it at another
//! one, or at that one in an earlier term, has a copy that may be old. A leader of a version that does not know the key leaves it
//! as it is.

mod cluster;
mod fault;
mod mark;

use std::collections::BTreeMap;
use std::str::SplitWhitespace;
use std::time::Duration;

use lessor_proto::{Epoch, ResourceId, Time};

pub use self::fault::BadRecord;
use self::fault::bad;
pub(super) use self::fault::{FORM, later};
pub(super) use self::mark::{Mark, Rest};
use super::call::Stored;
use crate::record::{EarlierStop, EtcdCluster, Record, RestOver, Terms, Unknown};

/// The keys of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordKeys {
    /// The key of the leader.
    pub leader: String,
    /// The last write.
    pub epoch: String,
    /// When the leader that wrote last had stopped.
    pub stop: String,
    /// When those before it had.
    pub earlier: String,
    /// The etcd at which the record was written.
    pub cluster: String,
    /// With that the keys of all marks begin.
    pub marks: String,
    /// With that all of them begin.
    pub node: String,
}

/// The value of the key `leadership`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RecordHeader {
    pub(super) epoch: Epoch,
    pub(super) write: u64,
    pub(super) closed: bool,
    pub(super) terms: Terms,
    pub(super) line: u64,
    pub(super) first_epoch: Epoch,
}

/// The value of the key `stop`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stop {
    pub(super) epoch: Epoch,
    pub(super) write: u64,
    pub(super) clock: Time,
}

/// The value of the key `earlier`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct EarlierStops {
    pub(super) epoch: Epoch,
    pub(super) stops: Vec<EarlierStop>,
}

/// The value of the key `leader`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KeyHolder {
    pub(super) nonce: u64,
    pub(super) address: String,
}

const HEADER: &str = "1 epoch _ write _ longest_lease_ns _ [longest_safe_lease_ns _] authority_ns _ closed yes|no \
                      config_version _ [unknown yes|floors] [line _ [since _]] [rest_over_ns _ safe_rest_over_ns _] (numbers for _)";
const STOP: &str = "1 epoch _ write _ clock_ns _ (numbers for _)";
const EARLIER: &str = "1 epoch _ and of each stopped _ clock_ns _ until_ns _ (numbers for _)";
const HOLDER: &str = "1 nonce _ address _";

/// The number of an epoch that begins at `date`, in milliseconds, after one of the number `last` by its record; 0 where nothing is
/// known of one.
///
/// Holders keep to the highest number that they have heard of. Records are lost and restored, and a server may get another one
/// or none, so the number goes by the date: it is above all before it, wherever they were written down, and above the last of
/// this record also when the date was set back. The date decides who is listened to, and never how much is out.
#[must_use]
pub fn next_epoch(last: Epoch, date: u64) -> Epoch {
    Epoch(last.0.saturating_add(1).max(date.saturating_mul(1 << 16)))
}

/// The number of an epoch as [`next_epoch`] has it, where leaders may have led that the record does not know of; `draw` is random.
///
/// Where the date was set back they have counted on from the last that it knows, as this one would: so it leaves out more than
/// there can have been, and some more, so that no two that go on from one copy have the same.
pub(super) fn epoch_apart(last: Epoch, date: u64, draw: u64) -> Epoch {
    Epoch(next_epoch(last, date).0.saturating_add(APART + draw % APART))
}

/// The least number of epochs that are left out: a quarter of a second by the date.
const APART: u64 = 1 << 24;

// === impl RecordKeys ===

impl RecordKeys {
    /// Of a node, under a prefix.
    #[must_use]
    pub fn new(prefix: &str, node: &str) -> RecordKeys {
        let node = node.replace('%', "%25").replace('/', "%2F");
        let node = format!("{}/{node}/", prefix.trim_end_matches('/'));
        RecordKeys {
            leader: format!("{node}leader"),
            epoch: format!("{node}reign"),
            stop: format!("{node}stop"),
            earlier: format!("{node}earlier"),
            cluster: format!("{node}cluster"),
            marks: format!("{node}mark/"),
            node,
        }
    }

    /// Of the mark of a resource.
    #[must_use]
    pub fn mark(&self, resource: &ResourceId) -> String {
        format!("{}{resource}", self.marks)
    }
}

// === impl Record ===

impl Record {
    /// Whether nobody ever led: nothing is out, as far as the record can tell.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.epoch == Epoch(0)
    }

    /// Of all keys of the node; also the header, and when it was written. The key of the leader and others that are not of the
    /// record are passed over.
    pub(in crate::election) fn decode(
        keys: &RecordKeys,
        stored: &[Stored],
    ) -> Result<(Record, u64), BadRecord> {
        let (mut header, mut marks, mut proofs) = (None, BTreeMap::new(), BTreeMap::new());
        let (mut rests, mut kinds) = (Vec::new(), BTreeMap::new());
        let (mut stop, mut earlier, mut cluster) = (None, None, None);
        for stored in stored {
            if stored.key == keys.epoch.as_bytes() {
                header = Some((RecordHeader::decode(stored)?, stored.mod_revision));
            } else if stored.key == keys.stop.as_bytes() {
                stop = Some(Stop::decode(stored)?);
            } else if stored.key == keys.earlier.as_bytes() {
                earlier = Some(EarlierStops::decode(stored)?);
            } else if stored.key == keys.cluster.as_bytes() {
                cluster = Some(EtcdCluster::decode(stored)?);
            } else if let Some(resource) = stored.key.strip_prefix(keys.marks.as_bytes()) {
                let resource = std::str::from_utf8(resource).ok();
                let resource = resource.and_then(|text| ResourceId::new(text, usize::MAX).ok());
                let resource =
                    resource.ok_or_else(|| bad(stored, "the mark of a resource with a legal name"))?;
                let Mark { amount, kind, rest, proof } = Mark::decode(stored)?;
                kinds.extend(kind.map(|kind| (resource.clone(), kind)));
                proofs.extend(proof.map(|proof| (resource.clone(), proof)));
                rests.extend(rest.map(|rest| (resource.clone(), rest)));
                marks.insert(resource, amount);
            }
        }
        match header {
            Some((RecordHeader { epoch, write, closed, terms, line, first_epoch }, mod_revision)) => {
                let is_of_it = |stop: &Stop| closed && (stop.epoch, stop.write) == (epoch, write);
                let Terms { longest_lease, longest_safe_lease, authority, config_version, .. } = terms;
                let counts = |rest: &Rest| rest.epoch == epoch && terms.rest_over.is_some();
                let rests = rests.into_iter().filter(|(_, rest)| counts(rest));
                let read = Record {
                    epoch,
                    longest_lease,
                    authority,
                    closed,
                    stopped: stop.filter(is_of_it).map(|stop| stop.clock),
                    earlier: earlier
                        .filter(|earlier| earlier.epoch == epoch)
                        .map_or(Vec::new(), |earlier| earlier.stops),
                    config_version,
                    marks,
                    kinds,
                    rests: rests.map(|(resource, rest)| (resource, rest.amount)).collect(),
                    rest_over: terms.rest_over.unwrap_or_default(),
                    proofs,
                    longest_safe_lease,
                    unknown: terms.unknown,
                    line,
                    first_epoch,
                    written_at: cluster,
                    ..Record::default()
                };
                Ok((read, mod_revision))
            }
            None if marks.is_empty() => Ok((Record::default(), 0)),
            // Somebody has deleted it: how long what is out may last is not known.
            None => Err(BadRecord::Nonsense {
                key: keys.epoch.clone(),
                found: "nothing, though there are marks".to_owned(),
                wanted: HEADER,
            }),
        }
    }
}

// === impl RecordHeader ===

impl RecordHeader {
    pub(super) fn encode(&self) -> String {
        let Terms { longest_lease, longest_safe_lease, authority, config_version, unknown, rest_over } =
            self.terms;
        let unknown = match unknown {
            Unknown::Nothing => "",
            Unknown::Floors => " unknown floors",
            Unknown::All => " unknown yes",
        };
        let line = match self.line {
            0 => String::new(),
            line if self.first_epoch == Epoch::default() => format!(" line {line}"),
            line => format!(" line {line} since {}", self.first_epoch),
        };
        let rest = rest_over.map_or(String::new(), |RestOver { lease, safe_lease }| {
            format!(" rest_over_ns {} safe_rest_over_ns {}", lease.as_nanos(), safe_lease.as_nanos())
        });
        let floors = match longest_safe_lease.as_nanos() {
            0 => String::new(),
            nanos => format!(" longest_safe_lease_ns {nanos}"),
        };
        format!(
            "1 epoch {} write {} longest_lease_ns {}{floors} authority_ns {} closed {} config_version {config_version}{unknown}{line}{rest}",
            self.epoch,
            self.write,
            longest_lease.as_nanos(),
            authority.as_nanos(),
            if self.closed { "yes" } else { "no" },
        )
    }

    pub(super) fn decode(stored: &Stored) -> Result<RecordHeader, BadRecord> {
        let read = || {
            let mut words = std::str::from_utf8(&stored.value).ok()?.split_whitespace();
            (words.next()? == "1").then_some(())?;
            let header = RecordHeader {
                epoch: Epoch(number(&mut words, "epoch")?),
                write: number(&mut words, "write")?,
                terms: Terms {
                    longest_lease: Duration::from_nanos(number(&mut words, "longest_lease_ns")?),
                    longest_safe_lease: Duration::from_nanos(
                        if_there(&mut words, "longest_safe_lease_ns")?.unwrap_or(0),
                    ),
                    authority: Duration::from_nanos(number(&mut words, "authority_ns")?),
                    ..Terms::default()
                },
                line: 0,
                first_epoch: Epoch::default(),
                closed: match after(&mut words, "closed")? {
                    "yes" => true,
                    "no" => false,
                    _ => return None,
                },
            };
            let config_version = number(&mut words, "config_version")?;
            let unknown = unknown(&mut words)?;
            let line = if_there(&mut words, "line")?;
            let first_epoch = line.map_or(Some(None), |_| if_there(&mut words, "since"))?;
            let rest_over = match if_there(&mut words, "rest_over_ns")? {
                Some(lease) => {
                    let safe_lease = number(&mut words, "safe_rest_over_ns")?;
                    let [lease, safe_lease] = [lease, safe_lease].map(Duration::from_nanos);
                    Some(RestOver { lease, safe_lease })
                }
                None => None,
            };
            let terms = Terms { config_version, unknown, rest_over, ..header.terms };
            let (line, first_epoch) = (line.unwrap_or(0), Epoch(first_epoch.unwrap_or(0)));
            words.next().is_none().then_some(RecordHeader { terms, line, first_epoch, ..header })
        };
        read().ok_or_else(|| bad(stored, HEADER))
    }
}

// === impl Stop ===

impl Stop {
    pub(super) fn encode(&self) -> String {
        format!("1 epoch {} write {} clock_ns {}", self.epoch, self.write, self.clock.as_nanos())
    }

    pub(super) fn decode(stored: &Stored) -> Result<Stop, BadRecord> {
        let read = || {
            let mut words = std::str::from_utf8(&stored.value).ok()?.split_whitespace();
            (words.next()? == "1").then_some(())?;
            let (epoch, write) = (Epoch(number(&mut words, "epoch")?), number(&mut words, "write")?);
            let clock = Time::from_nanos(number(&mut words, "clock_ns")?);
            words.next().is_none().then_some(Stop { epoch, write, clock })
        };
        read().ok_or_else(|| bad(stored, STOP))
    }
}

// === impl EarlierStops ===

impl EarlierStops {
    pub(super) fn encode(&self) -> String {
        let stops = self.stops.iter().map(|EarlierStop { epoch, stop, until }| {
            format!(" stopped {epoch} clock_ns {} until_ns {}", stop.as_nanos(), until.as_nanos())
        });
        format!("1 epoch {}{}", self.epoch, stops.collect::<String>())
    }

    pub(super) fn decode(stored: &Stored) -> Result<EarlierStops, BadRecord> {
        let read = || {
            let text = std::str::from_utf8(&stored.value).ok()?;
            let mut words = text.split_whitespace();
            (words.next()? == "1").then_some(())?;
            let epoch = Epoch(number(&mut words, "epoch")?);
            let mut stops = Vec::new();
            while words.clone().next().is_some() {
                let epoch = Epoch(number(&mut words, "stopped")?);
                let stop = Time::from_nanos(number(&mut words, "clock_ns")?);
                let until = Time::from_nanos(number(&mut words, "until_ns")?);
                stops.push(EarlierStop { epoch, stop, until });
            }
            Some(EarlierStops { epoch, stops })
        };
        read().ok_or_else(|| bad(stored, EARLIER))
    }
}

// === impl KeyHolder ===

impl KeyHolder {
    pub(super) fn encode(&self) -> String {
        format!("1 nonce {:016x} address {}", self.nonce, self.address)
    }

    pub(super) fn decode(stored: &Stored) -> Result<KeyHolder, BadRecord> {
        let read = || {
            let text = std::str::from_utf8(&stored.value).ok()?;
            let (nonce, address) = text.strip_prefix("1 nonce ")?.split_once(" address ")?;
            Some(KeyHolder { nonce: u64::from_str_radix(nonce, 16).ok()?, address: address.to_owned() })
        };
        read().ok_or_else(|| bad(stored, HOLDER))
    }
}

fn after<'a>(words: &mut SplitWhitespace<'a>, name: &str) -> Option<&'a str> {
    (words.next()? == name).then(|| words.next())?
}

/// The number after `name`, if that comes next; nothing at all if something else than a number comes after it.
fn if_there(words: &mut SplitWhitespace<'_>, name: &str) -> Option<Option<u64>> {
    match words.clone().next() {
        Some(word) if word == name => number(words, name).map(Some),
        _ => Some(None),
    }
}

/// The resources of which nothing is known, if that comes next.
fn unknown(words: &mut SplitWhitespace<'_>) -> Option<Unknown> {
    if words.clone().next() != Some("unknown") {
        return Some(Unknown::Nothing);
    }
    match after(words, "unknown")? {
        "yes" => Some(Unknown::All),
        "floors" => Some(Unknown::Floors),
        _ => None,
    }
}

fn number(words: &mut SplitWhitespace<'_>, name: &str) -> Option<u64> {
    after(words, name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use lessor_client::internals::holding::Proof;
    use lessor_proto::Amount;
    use lessor_proto::message::Order;
    use proptest::prelude::*;

    use super::*;
    use crate::repository::Kind;

    fn stored(key: &str, value: &str) -> Stored {
        Stored { key: key.into(), value: value.into(), create_revision: 1, mod_revision: 5, lease: None }
    }

    fn resource(name: &str) -> ResourceId {
        ResourceId::new(name, 256).unwrap()
    }

    const HEADER: &str = "1 epoch 7 write 2 longest_lease_ns 60 authority_ns 4 closed no config_version 3";

    #[test]
    fn keys_of_nodes_do_not_begin_like_each_other() {
        let (outer, inner) = (RecordKeys::new("lessor", "a"), RecordKeys::new("lessor/", "a/mark"));
        assert_eq!(outer.mark(&resource("b/leader")), "lessor/a/mark/b/leader");
        assert_eq!(inner.leader, "lessor/a%2Fmark/leader");
        assert_ne!(RecordKeys::new("p", "a%2Fb"), RecordKeys::new("p", "a/b"));
    }

    #[test]
    fn a_record_that_makes_no_sense_is_shown() {
        let keys = RecordKeys::new("lessor", "root");
        let decode = |stored: &[Stored]| Record::decode(&keys, stored).unwrap_err().to_string();
        let mark = stored("lessor/root/mark/db", "1 something else");
        assert_eq!(
            decode(&[mark]),
            "key \"lessor/root/mark/db\" holds \"1 something else\", and not 1 millionths _ [kind rate|gauge] [rest _ in_epoch _] \
             [of_epoch _ of_seq _ token _] (numbers for _, of the token hex or \"-\")"
        );
        let lonely = decode(&[stored("lessor/root/mark/db", "1 millionths 5")]);
        assert!(lonely.starts_with("key \"lessor/root/reign\" holds \"nothing, though"), "{lonely}");
        for value in [
            "",
            "1",
            "1 epoch x",
            &HEADER.replace("no", "perhaps"),
            &format!("{HEADER} more"),
            &HEADER.replace("60", "60 longest_safe_lease_ns x"),
        ] {
            assert!(decode(&[stored("lessor/root/reign", value)]).contains("lessor/root/reign"), "{value}");
        }
    }

    #[test]
    fn a_value_of_a_later_form_is_refused_by_its_number() {
        let keys = RecordKeys::new("lessor", "root");
        let later = "which a later version has written: form 2, and this one reads form 1";
        for key in [&keys.epoch, &keys.stop, &keys.earlier, &keys.mark(&resource("db"))] {
            let read = Record::decode(&keys, &[stored(key, "2 what a later version knows")]);
            let said = format!("key {key:?} holds \"2 what a later version knows\", {later}");
            assert_eq!(read.unwrap_err().to_string(), said);
        }
        let holder = KeyHolder::decode(&stored(&keys.leader, "2 nonce 1 address a:1")).unwrap_err();
        assert!(holder.to_string().ends_with(later), "{holder}");
    }

    #[test]
    fn what_is_not_of_the_record_is_passed_over() {
        let keys = RecordKeys::new("lessor", "root");
        let leader = stored(&keys.leader, "anything");
        assert_eq!(Record::decode(&keys, &[leader]).unwrap(), (Record::default(), 0));
        let (read, mod_revision) = Record::decode(&keys, &[stored(&keys.epoch, HEADER)]).unwrap();
        assert_eq!((read.epoch, read.config_version, mod_revision, read.is_first()), (Epoch(7), 3, 5, false));
        assert_eq!(read.longest_safe_lease, Duration::ZERO);
        let floors = HEADER.replace("60 auth", "60 longest_safe_lease_ns 900 auth");
        let (read, _) = Record::decode(&keys, &[stored(&keys.epoch, &floors)]).unwrap();
        assert_eq!(read.longest_safe_lease, Duration::from_nanos(900));
    }

    #[test]
    fn what_is_left_from_before_is_that_of_the_leader_that_wrote_last() {
        let keys = RecordKeys::new("lessor", "root");
        let mark = |epoch| stored("lessor/root/mark/db", &format!("1 millionths 9 rest 4 in_epoch {epoch}"));
        let read = |header: &str, epoch| {
            Record::decode(&keys, &[stored(&keys.epoch, header), mark(epoch)]).unwrap().0
        };
        let over = format!("{HEADER} rest_over_ns 30 safe_rest_over_ns 50");
        let found = read(&over, 7);
        assert_eq!(found.rests, [(resource("db"), Amount::from_micros(4))].into());
        assert_eq!(found.rest_over.lease, Duration::from_nanos(30));
        assert_eq!(found.rest_over.safe_lease, Duration::from_nanos(50));
        assert_eq!(found.marks, [(resource("db"), Amount::from_micros(9))].into());
        assert!(read(&over, 6).rests.is_empty(), "an earlier leader wrote it");
        assert!(read(HEADER, 7).rests.is_empty(), "how long that lasts is not said");
    }

    #[test]
    fn a_stop_is_that_of_the_write_beside_which_it_stands() {
        let keys = RecordKeys::new("lessor", "root");
        let closed = HEADER.replace("closed no", "closed yes");
        let read = |header: &str, stop: &str| {
            let stored = [stored(&keys.epoch, header), stored(&keys.stop, stop)];
            Record::decode(&keys, &stored).unwrap().0.stopped
        };
        let header = RecordHeader::decode(&stored("k", &closed)).unwrap();
        let RecordHeader { epoch, write, .. } = header;
        let stop = |write| Stop { epoch, write, clock: Time::from_nanos(77) }.encode();
        assert_eq!(read(&closed, &stop(write)), Some(Time::from_nanos(77)));
        assert_eq!(read(&closed, &stop(write + 1)), None);
        assert_eq!(read(HEADER, &stop(write)), None);
        let bad = Record::decode(&keys, &[stored(&keys.stop, "1 epoch 2")]).unwrap_err().to_string();
        assert!(bad.contains("lessor/root/stop"), "{bad}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            epoch in any::<u64>().prop_map(Epoch), write: u64, longest_lease: u64, longest_safe_lease: u64, authority: u64, closed: bool, config_version: u64, micros: u64,
            unknown in 0..3_u8, line: u64, first_epoch: u64, rest_over: Option<(u64, u64)>, rest: Option<(u64, u64)>,
            kind in 0..3_u8, nonce: u64, address in "[a-z0-9:. -]{1,40}", token in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            let terms = Terms {
                longest_lease: Duration::from_nanos(longest_lease),
                longest_safe_lease: Duration::from_nanos(longest_safe_lease),
                authority: Duration::from_nanos(authority),
                config_version,
                unknown: [Unknown::Nothing, Unknown::Floors, Unknown::All][usize::from(unknown)],
                rest_over: rest_over.map(|(lease, safe_lease)| RestOver {
                    lease: Duration::from_nanos(lease),
                    safe_lease: Duration::from_nanos(safe_lease),
                }),
            };
            // Only a line has a first epoch.
            let first_epoch = Epoch(if line == 0 { 0 } else { first_epoch });
            let header = RecordHeader { epoch, write, closed, terms, line, first_epoch };
            prop_assert_eq!(RecordHeader::decode(&stored("k", &header.encode())).unwrap(), header);
            let holder = KeyHolder { nonce, address };
            prop_assert_eq!(KeyHolder::decode(&stored("k", &holder.encode())).unwrap(), holder);
            let rest = rest.map(|(amount, epoch)| Rest { amount: Amount::from_micros(amount), epoch: Epoch(epoch) });
            let kind = [None, Some(Kind::Rate), Some(Kind::Gauge)][usize::from(kind)];
            let lone = Mark { amount: Amount::from_micros(micros), kind, rest, proof: None };
            prop_assert_eq!(Mark::decode(&stored("k", &lone.encode())).unwrap(), lone.clone());
            let proof = Proof { order: Order { epoch, seq: write }, token: token.into() };
            let shown = Mark { proof: Some(proof), ..lone };
            prop_assert_eq!(Mark::decode(&stored("k", &shown.encode())).unwrap(), shown);
        }
    }
}
