//! The parts of a record: the values of its keys, as they are read one after the other.

use std::collections::BTreeMap;

use lessor_client::internals::holding::Proof;
use lessor_proto::{Amount, ResourceId};

use super::fault::{BadRecord, bad};
use super::header::{HEADER, RecordHeader};
use super::keys::RecordKeys;
use super::mark::{Mark, Rest};
use super::stops::{EarlierStops, Stop};
use crate::election::call::Stored;
use crate::record::{EtcdCluster, Record};
use crate::repository::Kind;

/// The parts of a record that have been read.
#[derive(Default)]
pub(super) struct RecordParts {
    /// The header, and when it was written.
    header: Option<(RecordHeader, u64)>,
    stop: Option<Stop>,
    earlier: Option<EarlierStops>,
    cluster: Option<EtcdCluster>,
    marks: BTreeMap<ResourceId, Amount>,
    kinds: BTreeMap<ResourceId, Kind>,
    rests: Vec<(ResourceId, Rest)>,
    proofs: BTreeMap<ResourceId, Proof>,
}

// === impl RecordParts ===

impl RecordParts {
    /// Reads the value of one key, and passes over what is not of the record.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn read(&mut self, keys: &RecordKeys, stored: &Stored) -> Result<(), BadRecord> {
        if stored.key == keys.epoch.as_bytes() {
            self.header = Some((RecordHeader::decode(stored)?, stored.mod_revision));
        } else if stored.key == keys.stop.as_bytes() {
            self.stop = Some(Stop::decode(stored)?);
        } else if stored.key == keys.earlier.as_bytes() {
            self.earlier = Some(EarlierStops::decode(stored)?);
        } else if stored.key == keys.cluster.as_bytes() {
            self.cluster = Some(EtcdCluster::decode(stored)?);
        } else if let Some(resource) = stored.key.strip_prefix(keys.marks.as_bytes()) {
            self.read_mark(resource, stored)?;
        }
        Ok(())
    }

    fn read_mark(&mut self, resource: &[u8], stored: &Stored) -> Result<(), BadRecord> {
        let resource = std::str::from_utf8(resource).ok();
        let resource = resource.and_then(|text| ResourceId::new(text, usize::MAX).ok());
        let resource = resource.ok_or_else(|| bad(stored, "the mark of a resource with a legal name"))?;
        let Mark { amount, kind, rest, proof } = Mark::decode(stored)?;
        self.kinds.extend(kind.map(|kind| (resource.clone(), kind)));
        self.proofs.extend(proof.map(|proof| (resource.clone(), proof)));
        self.rests.extend(rest.map(|rest| (resource.clone(), rest)));
        self.marks.insert(resource, amount);
        Ok(())
    }

    /// The record that they make up, and when its header was written.
    ///
    /// # Errors
    /// When there are marks without a header: how long what is out may last is not known then.
    pub(super) fn join(self, keys: &RecordKeys) -> Result<(Record, u64), BadRecord> {
        let Some((RecordHeader { epoch, write, closed, terms, line, first_epoch }, mod_revision)) =
            self.header
        else {
            if self.marks.is_empty() {
                return Ok((Record::default(), 0));
            }
            // Somebody has deleted it.
            return Err(BadRecord::Nonsense {
                key: keys.epoch.clone(),
                found: "nothing, though there are marks".to_owned(),
                wanted: HEADER,
            });
        };
        let is_of_it = |stop: &Stop| closed && (stop.epoch, stop.write) == (epoch, write);
        let earlier = self.earlier.filter(|earlier| earlier.epoch == epoch);
        let counts = |rest: &Rest| rest.epoch == epoch && terms.rest_over.is_some();
        let rests = self.rests.into_iter().filter(|(_, rest)| counts(rest));
        let read = Record {
            epoch,
            longest_lease: terms.longest_lease,
            longest_safe_lease: terms.longest_safe_lease,
            authority: terms.authority,
            closed,
            stopped: self.stop.filter(is_of_it).map(|stop| stop.clock),
            earlier: earlier.map_or(Vec::new(), |earlier| earlier.stops),
            config_version: terms.config_version,
            marks: self.marks,
            kinds: self.kinds,
            rests: rests.map(|(resource, rest)| (resource, rest.amount)).collect(),
            rest_over: terms.rest_over.unwrap_or_default(),
            proofs: self.proofs,
            unknown: terms.unknown,
            line,
            first_epoch,
            written_at: self.cluster,
            ..Record::default()
        };
        Ok((read, mod_revision))
    }
}
