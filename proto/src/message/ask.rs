//! The messages of a holder to a grantor: reports, and releases.

mod bands;
pub(super) mod report;
#[cfg(test)]
mod tests;

use std::time::Duration;

use smallvec::SmallVec;

use self::report::CheckedReports;
use super::field;
use super::refusal::{Limits, Refusal};
use super::{Answer, Leader, Order, RefusedReport, Unenforced};
use crate::name::{ClientId, ResourceId};
use crate::{Amount, Epoch, Incarnation, ReportId, wire};

/// The kind of holder that asks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HolderKind {
    /// A client, for itself.
    Client,
    /// The leader of a node, for everything below it.
    Node,
}

/// One request of a holder, for many resources.
#[derive(Clone, PartialEq, Debug)]
pub struct Ask {
    /// Whether a client or a node asks.
    pub kind: HolderKind,
    /// The holder that asks.
    pub holder: ClientId,
    /// Which life of it; absent from Doorman's clients.
    pub incarnation: Option<Incarnation>,
    /// Grows with every request of one incarnation.
    pub report_id: Option<ReportId>,
    /// The epoch it is meant for.
    pub target_epoch: Option<Epoch>,
    /// Of a node, the line of succession in which its incarnation stands; absent: a life that nobody has preceded.
    pub line: Option<u64>,
    /// One report a resource, each resource at most once.
    pub reports: Vec<Report>,
}

/// The report of a holder about one resource.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The resource.
    pub resource: ResourceId,
    /// The demands: one band from a client, and a second one of [`Band::RESERVE`] if it keeps to windows; any number from a node. Several of one priority are the buckets of its
    /// demand curve.
    pub bands: Bands,
    /// The lease that the holder has.
    pub has: Option<Has>,
    /// The most it uses from here on under grants up to the one in `has`; absent: the capacity in `has`.
    pub held: Option<Amount>,
    /// The version of the policies of domains that it has, 0 if it has none; absent: it does not know of domains.
    pub domains: Option<u32>,
    /// Whether it takes the resource for a gauge, which counts whole units, or still has units of when that was one, or takes it
    /// for a rate; absent: it does not say.
    pub integer: Option<bool>,
    /// The least lease that would have let the last attempts through, in units a second: a claim on what nobody wants, and
    /// on nothing else. Absent: nothing is to be lent beyond the wants.
    pub peak: Option<f64>,
    /// The units that were asked for since the last report while everything was let pass; absent: the holder keeps to its lease,
    /// or does not count them.
    pub unenforced: Option<Unenforced>,
}

/// The demands of one report.
pub type Bands = SmallVec<[Band; 1]>;

/// The demand of one priority.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Band {
    /// Greater numbers are served first.
    pub priority: i64,
    /// The number of clients that it stands for; at least 1.
    pub subclients: u32,
    /// Their wants together, in units a second or units: finite and not negative.
    pub wants: f64,
}

/// The lease that a holder has, as it echoes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Has {
    /// The capacity of the lease.
    pub capacity: Amount,
    /// Which grant it is; absent when a Doorman server granted it or the client forgets unknown fields.
    pub order: Option<Order>,
    /// The token that came with it; empty if none did.
    pub token: Vec<u8>,
    /// The duration of the lease, said to others than the one who granted it; absent: not said.
    pub lasts: Option<Lasts>,
    /// The Unix time, in seconds, at which it ends by the date of the server that granted it; 0 from holders that draw an
    /// incarnation, who go by no date.
    pub expiry: u64,
}

/// The duration of a lease, as its holder tells it to another leader than the one who granted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lasts {
    /// The length that it was granted for.
    pub length: Duration,
    /// The time for which it may still be used; the length of those who do not say.
    pub remaining: Duration,
    /// The time for which what is shown counts for certain at the one who granted it; none of those who do not say.
    pub counts: Duration,
}

/// A holder's promise that it uses nothing of these resources any more.
#[derive(Clone, PartialEq, Debug)]
pub struct Release {
    /// The holder that promises.
    pub holder: ClientId,
    /// Which life of it.
    pub incarnation: Option<Incarnation>,
    /// Its place among the reports of that life: it is not about what is granted on later ones.
    pub report_id: Option<ReportId>,
    /// The resources that it gives back.
    pub resources: Vec<ResourceId>,
}

/// A request, and the resources of it that are left out of that.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckedAsk {
    /// The part of it that can be answered.
    pub ask: Ask,
    /// The resources that are at fault, in their order in the request.
    pub refused: Vec<RefusedReport>,
    /// The fault of the first of them.
    first: Option<Refusal>,
}

// === impl CheckedAsk ===

impl CheckedAsk {
    /// The request, if nothing in it is at fault.
    fn whole(self) -> Result<Ask, Refusal> {
        self.first.map_or(Ok(self.ask), Err)
    }

    /// The same, unless everything in it is at fault.
    fn unless_empty(self) -> Result<CheckedAsk, Refusal> {
        match self.first {
            Some(first) if self.ask.reports.is_empty() => Err(first),
            _ => Ok(self),
        }
    }

    /// The same without the reports that `check` refuses, which it may change otherwise.
    ///
    /// # Errors
    /// When all are refused.
    pub fn check(
        mut self,
        mut check: impl FnMut(&mut Report) -> Result<(), Refusal>,
    ) -> Result<CheckedAsk, Refusal> {
        let mut left_out = self.refused.iter().map(|refused| refused.index).peekable();
        let mut places = (0..).filter(|place| left_out.next_if_eq(place).is_none());
        let (mut refused, mut first) = (Vec::new(), None);
        self.ask.reports.retain_mut(|report| {
            let place = places.next().unwrap_or_default();
            let Err(why) = check(report) else { return true };
            refused.push(RefusedReport::new(place, report.resource.as_str(), &why));
            first.get_or_insert(why);
            false
        });
        self.refused.extend(refused);
        self.refused.sort_by_key(|refused| refused.index);
        self.first = self.first.or(first);
        self.unless_empty()
    }

    /// Completes the answer to what could be answered by what is at fault.
    pub fn complete(self, answer: &mut Answer) {
        if self.refused.is_empty() {
            return;
        }
        let mut left_out = self.refused.iter().map(|refused| refused.index).peekable();
        // Where those stand in the request that are not left out.
        let mut places = (0..).filter(|place| left_out.next_if_eq(place).is_none());
        let mut passed = 0;
        let mut place = |index: usize| {
            let place = places.nth(index - passed).unwrap_or(index);
            passed = index + 1;
            place
        };
        let found = std::mem::take(&mut answer.refused).into_iter().map(|refused| {
            let place = place(refused.index);
            refused.at(place)
        });
        let mut refused: Vec<RefusedReport> = found.collect();
        refused.extend(self.refused);
        refused.sort_by_key(|refused| refused.index);
        answer.refused = refused;
    }
}

impl From<Ask> for CheckedAsk {
    /// A request in which nothing is at fault.
    fn from(ask: Ask) -> CheckedAsk {
        CheckedAsk { ask, refused: Vec::new(), first: None }
    }
}

// === impl Ask ===

impl Ask {
    /// Checks a client's request.
    ///
    /// # Errors
    /// With the first fault found.
    pub fn from_client(request: wire::GetCapacityRequest, limits: &Limits) -> Result<Ask, Refusal> {
        Ask::read_client(request, limits).and_then(CheckedAsk::whole)
    }

    /// The same of what is good in it.
    ///
    /// # Errors
    /// When it is at fault itself, or all of its resources are.
    pub fn read_client(request: wire::GetCapacityRequest, limits: &Limits) -> Result<CheckedAsk, Refusal> {
        let holder = field::holder("client_id", request.client_id, limits)?;
        let CheckedReports { reports, refused, first } =
            report::read_client("resource", request.resource, limits)?;
        let ask = Ask {
            kind: HolderKind::Client,
            holder,
            incarnation: request.incarnation.map(Incarnation),
            report_id: request.report_id.map(ReportId),
            target_epoch: request.target_epoch.map(Epoch),
            line: None,
            reports,
        };
        CheckedAsk { ask, refused, first }.unless_empty()
    }

    /// Checks the request of a server below.
    ///
    /// # Errors
    /// With the first fault found.
    pub fn from_node(request: wire::GetServerCapacityRequest, limits: &Limits) -> Result<Ask, Refusal> {
        Ask::read_node(request, limits).and_then(CheckedAsk::whole)
    }

    /// The same of what is good in it.
    ///
    /// # Errors
    /// When it is at fault itself, or all of its resources are.
    pub fn read_node(
        request: wire::GetServerCapacityRequest,
        limits: &Limits,
    ) -> Result<CheckedAsk, Refusal> {
        let holder = field::holder("server_id", request.server_id, limits)?;
        let CheckedReports { reports, refused, first } =
            report::read_node("resource", request.resource, limits)?;
        let ask = Ask {
            kind: HolderKind::Node,
            holder,
            incarnation: request.holder_epoch.map(Incarnation),
            report_id: request.report_id.map(ReportId),
            target_epoch: request.target_epoch.map(Epoch),
            line: request.line,
            reports,
        };
        CheckedAsk { ask, refused, first }.unless_empty()
    }

    /// A client's request as it goes on the wire.
    #[must_use]
    pub fn to_wire(&self) -> wire::GetCapacityRequest {
        wire::GetCapacityRequest {
            client_id: Some(self.holder.to_string()),
            resource: self.reports.iter().map(Report::to_client_wire).collect(),
            incarnation: self.incarnation.map(u64::from),
            report_id: self.report_id.map(u64::from),
            target_epoch: self.target_epoch.map(u64::from),
        }
    }

    /// A node's request as it goes on the wire. The bands of one priority travel as one aggregate and its buckets.
    #[must_use]
    pub fn to_node_wire(&self) -> wire::GetServerCapacityRequest {
        wire::GetServerCapacityRequest {
            server_id: Some(self.holder.to_string()),
            resource: self.reports.iter().map(Report::to_node_wire).collect(),
            holder_epoch: self.incarnation.map(u64::from),
            report_id: self.report_id.map(u64::from),
            target_epoch: self.target_epoch.map(u64::from),
            line: self.line,
        }
    }
}

// === impl Band ===

impl Band {
    /// One client that wants nothing.
    pub const NOTHING: Band = Band { priority: 0, subclients: 1, wants: 0.0 };
    /// The priority of what is kept at hand: all that anybody wants comes before it.
    pub const RESERVE: i64 = i32::MIN as i64;
}

// === impl Release ===

impl Release {
    /// Checks a release. Empty resource ids are passed over: Doorman's `Close()` sends them.
    ///
    /// # Errors
    /// With the first fault found.
    pub fn from_wire(request: wire::ReleaseCapacityRequest, limits: &Limits) -> Result<Release, Refusal> {
        let holder = field::holder("client_id", request.client_id, limits)?;
        field::check_count(request.resource_id.len(), limits)?;
        let mut resources = Vec::with_capacity(request.resource_id.len());
        for (index, id) in request.resource_id.into_iter().enumerate().filter(|(_, id)| !id.is_empty()) {
            resources.push(field::resource(|| format!("resource_id[{index}]"), Some(id), limits)?);
        }
        let (incarnation, report_id) =
            (request.incarnation.map(Incarnation), request.report_id.map(ReportId));
        Ok(Release { holder, incarnation, report_id, resources })
    }

    /// A release as it goes on the wire.
    #[must_use]
    pub fn to_wire(&self) -> wire::ReleaseCapacityRequest {
        wire::ReleaseCapacityRequest {
            client_id: Some(self.holder.to_string()),
            resource_id: self.resources.iter().map(ToString::to_string).collect(),
            incarnation: self.incarnation.map(u64::from),
            report_id: self.report_id.map(u64::from),
        }
    }

    /// The answer to a release: nothing, or where to send it instead.
    #[must_use]
    pub fn answer(redirect: Option<&Leader>) -> wire::ReleaseCapacityResponse {
        wire::ReleaseCapacityResponse { mastership: redirect.map(Leader::to_wire) }
    }
}
