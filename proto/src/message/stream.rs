//! The messages on a stream: a session's reports up, and a grantor's grants down, in order.
//!
//! A stream begins with [`Up::Hello`] and is answered by [`Down::Welcome`]. After that either side speaks when it has
//! something to say. Nothing on it answers one particular message, except that a release is confirmed and a report can be
//! refused. Both ends rely on the order of what arrives, and on nothing arriving after a gap: a stream that has lost a
//! message is broken, and is replaced by another.

mod down;
mod jobs;
#[cfg(test)]
mod tests;
mod up;

use crate::{Epoch, Features, Incarnation, ReportId};
use std::time::Duration;

use super::{Ask, DomainNews, DomainReport, Grant, HolderKind, Leader, Look, NodeNotice, Report, ViewPart};
use crate::name::{ClientId, ResourceId};

/// A message of a holder.
#[derive(Clone, PartialEq, Debug)]
pub enum Up {
    /// My identity: the first message, and only that.
    Hello(Hello),
    /// A report of what I want and hold.
    Report(StreamReport),
    /// I use nothing of these any more, and adopt nothing of them before this is confirmed.
    Release {
        /// The number that the confirmation repeats.
        id: ReportId,
        /// The resources that are given back.
        resources: Vec<ResourceId>,
    },
    /// A report of what domains have done here.
    Domains(Box<DomainReport>),
    /// I ask for units of this, of which I have too little to save one up.
    Units(UnitsAsked),
    /// I have been looked at, and this is a part of what there is to see.
    View(ViewPart),
    /// News of jobs that were done here, and questions for those that are done elsewhere.
    Jobs(Vec<JobNews>),
    /// I use nothing any more, and this is the end.
    Bye,
}

/// The holder that opens a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Whether a client or a node.
    pub kind: HolderKind,
    /// The id of the holder.
    pub holder: ClientId,
    /// Which life of it.
    pub incarnation: Incarnation,
    /// Of a node, the line of succession in which the incarnation stands; absent: a life that nobody has preceded.
    pub line: Option<u64>,
    /// The kinds of message that it knows.
    pub features: Features,
}

/// Units asked for one by one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitsAsked {
    /// Of what.
    pub resource: ResourceId,
    /// The number of units asked for in all, from the beginning of the stream on, those that were sent among them.
    pub asked: u64,
    /// Those for attempts that do not wait may be used so late after they arrive; absent: each when it arrives, or never.
    pub keep: Option<Duration>,
    /// Of those that were not sent yet, the last so many are for attempts that do not wait. Absent: all, if they are kept.
    pub kept: Option<u32>,
    /// Of the units that were sent to be kept, so many have been used or are lost. Absent: they are when their time is over.
    pub done: Option<u64>,
}

/// News of the jobs of a resource. A job is what somebody does with units of a gauge for others who wait until it is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobNews {
    /// Of what.
    pub resource: ResourceId,
    /// One was done so long ago; absent: none that was not said before.
    pub done: Option<Duration>,
    /// The next is to be said, once, and one that was done in the last so long at once; absent: it is not asked for.
    pub asks: Option<Duration>,
}

/// A report on a stream. Resources that it does not speak of are as they were.
#[derive(Clone, PartialEq, Debug)]
pub struct StreamReport {
    /// Grows with every report of one incarnation, on whatever way it is sent.
    pub id: ReportId,
    /// The epoch it is meant for.
    pub target_epoch: Option<Epoch>,
    /// This is a heartbeat: I keep everything that I hold on this stream, so renew it if that is due, and answer.
    pub renew_all: bool,
    /// One report a resource, each resource at most once; a heartbeat may have none.
    pub reports: Vec<Report>,
}

/// A message of a grantor.
#[derive(Clone, PartialEq, Debug)]
pub enum Down {
    /// I lead: the answer to a hello.
    Welcome(Welcome),
    /// Grants, at most one a resource; none as the answer to a heartbeat when nothing is due to be renewed.
    Grants(Vec<Grant>),
    /// Everything granted on this stream lasts longer: each resource as long as its last grant said, counted from the
    /// report `basis`, unless that grant was not adopted.
    Renewed {
        /// The heartbeat.
        basis: ReportId,
        /// The number of grants that were sent on this stream before, by which the holder knows that it missed none.
        grants: u64,
    },
    /// Release `id` counts.
    Released {
        /// Its number.
        id: ReportId,
    },
    /// Report `id` was refused, and nothing of it counts.
    Refused {
        /// Its number.
        id: ReportId,
        /// Why.
        why: String,
    },
    /// News of what domains have done elsewhere.
    Domains(Box<DomainNews>),
    /// More units of this, which may be used at once.
    Units {
        /// Of what.
        resource: ResourceId,
        /// The number of units.
        units: u32,
        /// The number of them to be kept for attempts that do not wait, and the time for which they are, from when they
        /// arrive. Absent: all, for as long as was asked.
        keep: Option<(u32, Duration)>,
    },
    /// To a node: its place in the tree.
    Notice(NodeNotice),
    /// The same to a node that does not know of notices: for such a one it is a message without grants.
    NoticeInGrants(NodeNotice),
    /// To a node: a look at it, and at those below.
    Look(Box<Look>),
    /// News of jobs that were done elsewhere, and questions for those that are done here.
    Jobs(Vec<JobNews>),
    /// Not I: ask there.
    Redirect(Leader),
}

/// The beginning of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// The epoch of the one who welcomes.
    pub epoch: Epoch,
    /// Whether leases of an earlier epoch may be shown to it.
    pub claims_open: bool,
    /// The time until they may, counted from when this was sent; absent: that is not known, or they may be shown
    /// now.
    pub claims_open_in: Option<Duration>,
    /// The heartbeat interval that the grantor asks for.
    pub heartbeat: Duration,
    /// The kinds of message that it knows.
    pub features: Features,
}

/// Features as a greeting says them: none are not said, as in versions that had none.
fn said(features: Features) -> Option<u32> {
    Some(features.bits()).filter(|&bits| bits != 0)
}

// === impl StreamReport ===

impl StreamReport {
    /// The same as it would be asked without a stream.
    #[must_use]
    pub fn into_ask(self, hello: &Hello) -> Ask {
        Ask {
            kind: hello.kind,
            holder: hello.holder.clone(),
            incarnation: Some(hello.incarnation),
            report_id: Some(self.id),
            target_epoch: self.target_epoch,
            line: hello.line,
            reports: self.reports,
        }
    }
}
