//! A grantor that only counts: what it sent until that ends, less what reports promise, longer by what renewals say.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lessor_proto::message::{Down, Grant, Order, StreamReport, Up};
use lessor_proto::{Amount, Epoch, ReportId, ResourceId, Time};

/// The way in which a grantor decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mood {
    pub(crate) amount: u16,
    pub(crate) millis: u64,
    pub(crate) ack: bool,
    /// Heartbeats are answered with grants.
    pub(crate) full: bool,
}

/// The books of one epoch.
#[derive(Default)]
pub(crate) struct Books {
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
    pub(crate) charges: BTreeMap<ResourceId, Vec<Charge>>,
    pub(crate) basis: BTreeMap<ResourceId, (u64, Time)>,
    /// The last stream that said hello: what still comes from those before counts no more.
    pub(crate) stream: u64,
}

pub(crate) struct Charge {
    pub(crate) seq: u64,
    pub(crate) amount: Amount,
    pub(crate) end: Time,
}

/// A stream, and what is on its way.
pub(crate) struct Wire {
    pub(crate) id: u64,
    pub(crate) epoch: usize,
    pub(crate) up: VecDeque<(Time, Up)>,
    pub(crate) down: VecDeque<(Time, Down)>,
    /// The last grant of each resource: its number and length.
    pub(crate) last: BTreeMap<ResourceId, (u64, Duration)>,
    pub(crate) grants: u64,
    /// The last message with grants.
    pub(crate) pushed: Option<Down>,
}

// === impl Books ===

impl Books {
    pub(crate) fn counted(&self, now: Time, resource: &ResourceId) -> Amount {
        let charges = self.charges.get(resource).into_iter().flatten();
        charges.filter(|charge| now < charge.end).map(|charge| charge.amount).max().unwrap_or_default()
    }

    pub(crate) fn hear(&mut self, now: Time, report: &StreamReport) {
        for report in &report.reports {
            let Some(has) = &report.has else { continue };
            let (order, held) = (has.order.unwrap(), report.held.expect("a report of a lease promises"));
            let charges = self.charges.entry(report.resource.clone()).or_default();
            // What is shown of an earlier epoch is counted as grant 0, once.
            let seq = if order.epoch == Epoch(self.epoch) { order.seq } else { 0 };
            if seq == 0 && charges.iter().all(|charge| charge.seq > 0) {
                charges.push(Charge { seq, amount: held, end: now + Duration::from_secs(60) });
            }
            for charge in charges.iter_mut().filter(|charge| charge.seq <= seq) {
                charge.amount = charge.amount.min(held);
            }
        }
        for resource in report.reports.iter().map(|report| &report.resource) {
            self.basis.insert(resource.clone(), (report.id.0, now));
        }
    }

    /// Charges first, then grants.
    pub(crate) fn grant(&mut self, now: Time, resource: &ResourceId, mood: Mood) -> Option<(Grant, u64)> {
        let (basis, heard) = *self.basis.get(resource)?;
        let length = Duration::from_millis(mood.millis);
        let end = heard + length;
        if end <= now {
            return None;
        }
        let amount = Amount::from_units(mood.amount.into());
        let ack_wanted = mood.ack || self.counted(now, resource) > amount;
        self.seq += 1;
        let seq = self.seq;
        self.charges.entry(resource.clone()).or_default().push(Charge { seq, amount, end });
        let grant = Grant {
            resource: resource.clone(),
            capacity: amount,
            length,
            refresh_interval: Duration::from_secs(2),
            order: Some(Order { epoch: Epoch(self.epoch), seq }),
            basis: Some(ReportId(basis)),
            token: Vec::new(),
            ack_wanted,
            safe_leased: false,
            learning: false,
            learning_left: None,
            safe_capacity: None,
            burst: None,
            due: None,
            window: None,
            generation: None,
            sharing: None,
            domains: None,
            before: None,
            earlier: None,
            bound_by: None,
            unenforced: false,
            beside: false,
        };
        Some((grant, seq))
    }

    /// Extends what was granted last on a stream, where it has not ended.
    pub(crate) fn renew(&mut self, now: Time, id: u64, wire: &Wire) {
        for (resource, &(seq, length)) in &wire.last {
            let charges = self.charges.get_mut(resource).into_iter().flatten();
            for charge in charges.filter(|charge| charge.seq == seq && now < charge.end) {
                charge.end = charge.end.max(now + length);
            }
            self.basis.insert(resource.clone(), (id, now));
        }
    }
}

// === impl Wire ===

impl Wire {
    pub(crate) fn grant(&mut self, grants: Vec<(Grant, u64)>) -> Down {
        for (grant, seq) in &grants {
            self.last.insert(grant.resource.clone(), (*seq, grant.length));
        }
        self.grants += grants.len() as u64;
        let down = Down::Grants(grants.into_iter().map(|(grant, _)| grant).collect());
        self.pushed = Some(down.clone());
        down
    }

    /// Sends `down`, to arrive no earlier than what was said before it.
    pub(crate) fn answer(&mut self, arrival: Time, down: Down) {
        let arrival = self.down.back().map_or(arrival, |(last, _)| arrival.max(*last));
        self.down.push_back((arrival, down));
    }

    /// When the next message arrives, and whether it goes up.
    pub(crate) fn next(&self) -> Option<(Time, bool)> {
        let up = self.up.front().map(|(time, _)| (*time, true));
        let down = self.down.front().map(|(time, _)| (*time, false));
        up.into_iter().chain(down).min()
    }
}
