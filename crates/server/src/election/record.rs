//! The record that a leader leaves to the next one: its keys and values.
//!
//! ```text
//! <prefix>/<node>/leader           1 nonce 00000000000000a1 address 10.0.0.7:5101
//! <prefix>/<node>/reign            1 epoch 12 write 3 longest_lease_ns 60000000000 authority_ns 4000000000 closed no config_version 2
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
//! may be one. It counts beside `rest_over_ns 30000000000 safe_rest_over_ns 0` at the end of `reign`: so long after this was
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
mod header;
mod keys;
mod mark;
mod parts;
mod stops;
mod words;

use lessor_proto::Epoch;

pub use self::fault::BadRecord;
use self::fault::bad;
pub(super) use self::fault::{FORM, later};
pub(super) use self::header::RecordHeader;
pub use self::keys::RecordKeys;
pub(super) use self::mark::{Mark, Rest};
use self::parts::RecordParts;
pub(super) use self::stops::{EarlierStops, Stop};
use super::call::Stored;
use crate::record::Record;

/// The value of the key `leader`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KeyHolder {
    pub(super) nonce: u64,
    pub(super) address: String,
}

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

// === impl Record ===

impl Record {
    /// Whether nobody ever led: nothing is out, as far as the record can tell.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.epoch == Epoch(0)
    }

    /// Of all keys of the node; also when its header was written. The key of the leader and others that are not of the record are
    /// passed over.
    pub(in crate::election) fn decode(
        keys: &RecordKeys,
        stored: &[Stored],
    ) -> Result<(Record, u64), BadRecord> {
        let mut parts = RecordParts::default();
        for stored in stored {
            parts.read(keys, stored)?;
        }
        parts.join(keys)
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

#[cfg(test)]
mod tests;
