//! The messages of a holder on a stream, to and from the wire.

use std::time::Duration;

use super::said;
use crate::message::ask::report;
use crate::message::refusal::{Limits, Refusal};
use crate::message::{
    DomainReport, Hello, HolderKind, JobNews, Report, StreamReport, UnitsAsked, Up, ViewPart, field,
};
use crate::wire::session_up_request::Message;
use crate::{ClientId, Epoch, Features, Incarnation, ReportId, wire};

// === impl Up ===

impl Up {
    /// Checks what came up a stream after its hello, from a holder of that kind. Gives back nothing of a message of a kind that
    /// is not known, which is to be passed over: whoever said it is of a later version.
    ///
    /// # Errors
    /// With the first fault found. What comes out of turn is a fault of the field `message`.
    pub fn from_wire(
        request: wire::SessionUpRequest,
        limits: &Limits,
        kind: HolderKind,
    ) -> Result<Option<Up>, Refusal> {
        let Some(message) = request.message else { return Ok(None) };
        let up = match message {
            Message::Hello(_) => Err(out_of_turn(&message, "a report, a release or a bye after the first")),
            Message::Report(report) => StreamReport::from_wire(report, limits, kind).map(Up::Report),
            Message::Release(release) => release_from_wire(release, limits),
            Message::Bye(wire::ByeRequest {}) => Ok(Up::Bye),
            Message::Units(units) => UnitsAsked::from_wire(units, limits).map(Up::Units),
            Message::Domains(report) => {
                DomainReport::from_wire(report, limits).map(|report| Up::Domains(Box::new(report)))
            }
            Message::View(view) => ViewPart::from_wire(view).map(Up::View),
            Message::Jobs(jobs) => JobNews::all_from_request(jobs, limits).map(Up::Jobs),
        };
        up.map(Some)
    }

    /// The features that a grantor must have to know this kind of message.
    #[must_use]
    pub fn needs(&self) -> Features {
        match self {
            Up::Hello(_) | Up::Report(_) | Up::Release { .. } | Up::Domains(_) | Up::Units(_) | Up::Bye => {
                Features::BASE
            }
            Up::View(_) => Features::LOOKS,
            Up::Jobs(_) => Features::JOBS,
        }
    }

    /// As a holder of this kind says it.
    #[must_use]
    pub fn to_wire(&self, kind: HolderKind) -> wire::SessionUpRequest {
        let message = match self {
            Up::Hello(hello) => Message::Hello(hello.to_wire()),
            Up::Report(report) => Message::Report(report.to_wire(kind)),
            Up::Release { id, resources } => Message::Release(wire::StreamReleaseRequest {
                release_id: Some(id.0),
                resource_id: resources.iter().map(ToString::to_string).collect(),
            }),
            Up::Bye => Message::Bye(wire::ByeRequest {}),
            Up::Domains(report) => Message::Domains(report.to_wire()),
            Up::Units(units) => Message::Units(units.to_wire()),
            Up::View(view) => Message::View(view.to_wire()),
            Up::Jobs(jobs) => {
                Message::Jobs(wire::JobsRequest { job: jobs.iter().map(JobNews::to_wire).collect() })
            }
        };
        wire::SessionUpRequest { message: Some(message) }
    }
}

fn out_of_turn(message: &Message, wanted: &str) -> Refusal {
    let found = match message {
        Message::Hello(_) => "is a hello",
        Message::Report(_) => "is a report",
        Message::Release(_) => "is a release",
        Message::Bye(_) => "is a bye",
        Message::Domains(_) => "is of domains",
        Message::Units(_) => "is of units",
        Message::View(_) => "is a view",
        Message::Jobs(_) => "is of jobs",
    };
    Refusal::invalid("message", found, wanted)
}

fn release_from_wire(release: wire::StreamReleaseRequest, limits: &Limits) -> Result<Up, Refusal> {
    let wanted = "the number that the confirmation repeats";
    let id = release.release_id.ok_or_else(|| Refusal::missing("release.release_id", wanted))?;
    field::check_count(release.resource_id.len(), limits)?;
    let ids = release.resource_id.into_iter().enumerate();
    let resources = ids
        .map(|(index, name)| field::resource(|| format!("release.resource_id[{index}]"), Some(name), limits));
    Ok(Up::Release { id: ReportId(id), resources: resources.collect::<Result<_, _>>()? })
}

// === impl UnitsAsked ===

impl UnitsAsked {
    fn from_wire(request: wire::UnitsRequest, limits: &Limits) -> Result<UnitsAsked, Refusal> {
        let wanted = "how many units are asked for in all";
        Ok(UnitsAsked {
            resource: field::resource(|| "units.resource_id".to_owned(), request.resource_id, limits)?,
            asked: request.asked.ok_or_else(|| Refusal::missing("units.asked", wanted))?,
            keep: request.keep_ms.map(|millis| Duration::from_millis(millis.into())),
            kept: request.kept,
            done: request.done,
        })
    }

    fn to_wire(&self) -> wire::UnitsRequest {
        let millis = |keep: Duration| u32::try_from(keep.as_millis()).unwrap_or(u32::MAX);
        wire::UnitsRequest {
            resource_id: Some(self.resource.to_string()),
            asked: Some(self.asked),
            keep_ms: self.keep.map(millis),
            kept: self.kept,
            done: self.done,
        }
    }
}

// === impl Hello ===

impl Hello {
    /// A holder of this version, in no line of succession.
    #[must_use]
    pub fn new(kind: HolderKind, holder: ClientId, incarnation: Incarnation) -> Hello {
        Hello { kind, holder, incarnation, line: None, features: Features::CURRENT }
    }

    /// Checks the first message of a stream.
    ///
    /// # Errors
    /// With the first fault found; where it is no hello, of the field `message`.
    pub fn first(request: wire::SessionUpRequest, limits: &Limits) -> Result<Hello, Refusal> {
        match request.message {
            Some(Message::Hello(hello)) => Hello::from_wire(hello, limits),
            Some(other) => Err(out_of_turn(&other, "a hello, as the first message")),
            None => Err(Refusal::missing("message", "a hello")),
        }
    }

    fn from_wire(hello: wire::HelloRequest, limits: &Limits) -> Result<Hello, Refusal> {
        let wanted = "a number that no other life of this holder has";
        Ok(Hello {
            kind: if hello.is_node.unwrap_or(false) { HolderKind::Node } else { HolderKind::Client },
            holder: field::holder("hello.id", hello.id, limits)?,
            incarnation: hello
                .incarnation
                .map(Incarnation)
                .ok_or_else(|| Refusal::missing("hello.incarnation", wanted))?,
            line: hello.line,
            features: hello.features.map_or(Features::BASE, Features::from_bits),
        })
    }

    fn to_wire(&self) -> wire::HelloRequest {
        wire::HelloRequest {
            id: Some(self.holder.to_string()),
            incarnation: Some(self.incarnation.0),
            is_node: (self.kind == HolderKind::Node).then_some(true),
            line: self.line,
            features: said(self.features),
        }
    }
}

// === impl StreamReport ===

impl StreamReport {
    fn from_wire(
        report: wire::ReportRequest,
        limits: &Limits,
        kind: HolderKind,
    ) -> Result<StreamReport, Refusal> {
        const CLIENTS: &str = "report.resource";
        const NODES: &str = "report.server_resource";
        let wanted = "a number greater than that of any report before";
        let id = report.report_id.ok_or_else(|| Refusal::missing("report.report_id", wanted))?;
        let not_here = |field: &str, count: usize, other: &str| match count {
            0 => Ok(()),
            _ => Err(Refusal::invalid(field, format!("has {count}"), format!("them in {other}"))),
        };
        let reports = match kind {
            HolderKind::Client => {
                not_here(NODES, report.server_resource.len(), CLIENTS)?;
                report::from_client(CLIENTS, report.resource, limits)?
            }
            HolderKind::Node => {
                not_here(CLIENTS, report.resource.len(), NODES)?;
                report::from_node(NODES, report.server_resource, limits)?
            }
        };
        let renew_all = report.renew_all.unwrap_or(false);
        Ok(StreamReport {
            id: ReportId(id),
            target_epoch: report.target_epoch.map(Epoch),
            renew_all,
            reports,
        })
    }

    fn to_wire(&self, kind: HolderKind) -> wire::ReportRequest {
        let (of_client, of_node): (&[Report], &[Report]) = match kind {
            HolderKind::Client => (&self.reports, &[]),
            HolderKind::Node => (&[], &self.reports),
        };
        wire::ReportRequest {
            report_id: Some(self.id.0),
            target_epoch: self.target_epoch.map(u64::from),
            resource: of_client.iter().map(Report::to_client_wire).collect(),
            server_resource: of_node.iter().map(Report::to_node_wire).collect(),
            renew_all: self.renew_all.then_some(true),
        }
    }
}
