//! The messages of a grantor on a stream, to and from the wire.

use std::time::Duration;

use super::said;
use crate::message::refusal::Malformed;
use crate::message::{
    DomainNews, Down, Grant, HolderKind, JobNews, Leader, Look, NodeNotice, WallClock, Welcome,
};
use crate::name::{BadName, ResourceId};
use crate::wire::session_down::Message;
use crate::{Epoch, Features, ReportId, wire};

/// Bytes in the name of a resource: servers may be configured for longer ones than they are by default.
pub(super) const LONGEST_NAME: usize = 4096;

// === impl Down ===

impl Down {
    /// As it is said to a holder of this kind at `now` by this process's wall clock.
    #[must_use]
    pub fn to_wire(&self, to: HolderKind, now: WallClock) -> wire::SessionDown {
        let message = match self {
            Down::Welcome(welcome) => Message::Welcome(welcome.to_wire()),
            Down::Grants(grants) => Message::Grants(match to {
                HolderKind::Client => wire::Grants {
                    grant: grants.iter().map(|grant| grant.to_client_wire(now)).collect(),
                    ..wire::Grants::default()
                },
                HolderKind::Node => wire::Grants {
                    server_grant: grants.iter().map(|grant| grant.to_node_wire(now)).collect(),
                    ..wire::Grants::default()
                },
            }),
            Down::Renewed { basis, grants } => {
                Message::Renewed(wire::Renewed { basis: basis.0, grants_sent: *grants })
            }
            Down::Released { id } => Message::Released(wire::Released { release_id: id.0 }),
            Down::Refused { id, why } => {
                Message::Refused(wire::Refused { report_id: id.0, code: None, reason: Some(why.clone()) })
            }
            Down::Domains(news) => Message::Domains(news.to_wire()),
            Down::Units { resource, units, keep } => Message::Units(wire::Units {
                resource_id: resource.to_string(),
                units: *units,
                kept: keep.map(|(kept, _)| kept),
                keep_ms: keep.map(|(_, time)| u32::try_from(time.as_millis()).unwrap_or(u32::MAX)),
            }),
            Down::Notice(notice) => Message::Notice(notice.to_wire()),
            Down::NoticeInGrants(notice) => {
                Message::Grants(wire::Grants { notice: Some(notice.to_wire()), ..wire::Grants::default() })
            }
            Down::Look(look) => Message::Look(look.to_wire()),
            Down::Jobs(jobs) => {
                Message::Jobs(wire::Jobs { job: jobs.iter().map(JobNews::to_wire).collect() })
            }
            Down::Redirect(leader) => Message::Redirect(leader.to_wire()),
        };
        wire::SessionDown { message: Some(message) }
    }

    /// The features that a holder must have to know this kind of message.
    #[must_use]
    pub fn needs(&self) -> Features {
        match self {
            Down::Notice(_) => Features::NOTICE,
            Down::Look(_) => Features::LOOKS,
            Down::Jobs(_) => Features::JOBS,
            Down::Welcome(_)
            | Down::Grants(_)
            | Down::Renewed { .. }
            | Down::Released { .. }
            | Down::Refused { .. }
            | Down::Domains(_)
            | Down::Units { .. }
            | Down::NoticeInGrants(_)
            | Down::Redirect(_) => Features::BASE,
        }
    }

    /// This for a holder of these features: itself where they cover it, and else what says the same to such a holder; nothing
    /// where nothing does.
    #[must_use]
    pub fn known_by(self, features: Features) -> Option<Down> {
        match self {
            known if features.covers(known.needs()) => Some(known),
            Down::Notice(notice) => Some(Down::NoticeInGrants(notice)),
            _ => None,
        }
    }

    /// Checks what came down a stream. Gives back nothing of a message of a kind that is not known, which is to be passed over:
    /// whoever said it is of a later version. `received` by this process's wall clock counts for grants without a length of
    /// their own, whose ends are dates: no other moment is known to be late enough.
    ///
    /// # Errors
    /// With the first thing in it that cannot be.
    pub fn from_wire(down: wire::SessionDown, received: WallClock) -> Result<Option<Down>, Malformed> {
        let Some(message) = down.message else { return Ok(None) };
        Ok(Some(match message {
            Message::Welcome(welcome) => Down::Welcome(Welcome::from_wire(&welcome)?),
            Message::Grants(wire::Grants { notice: Some(notice), .. }) => {
                Down::NoticeInGrants(NodeNotice::from_wire(notice)?)
            }
            Message::Grants(grants) => Down::Grants(grants_from_wire(grants, received)?),
            Message::Renewed(wire::Renewed { basis, grants_sent }) => {
                Down::Renewed { basis: ReportId(basis), grants: grants_sent }
            }
            Message::Released(wire::Released { release_id }) => Down::Released { id: ReportId(release_id) },
            Message::Refused(wire::Refused { report_id, reason, .. }) => {
                Down::Refused { id: ReportId(report_id), why: reason.unwrap_or_default() }
            }
            Message::Domains(news) => Down::Domains(Box::new(DomainNews::from_wire(news)?)),
            Message::Units(wire::Units { resource_id, units, kept, keep_ms }) => {
                let malformed = |bad: BadName| Malformed {
                    field: "units.resource_id".to_owned(),
                    found: bad.to_string(),
                };
                Down::Units {
                    resource: ResourceId::new(resource_id, LONGEST_NAME).map_err(malformed)?,
                    units,
                    keep: kept.map(|kept| (kept, Duration::from_millis(keep_ms.unwrap_or_default().into()))),
                }
            }
            Message::Notice(notice) => Down::Notice(NodeNotice::from_wire(notice)?),
            Message::Look(look) => Down::Look(Box::new(Look::from_wire(look))),
            Message::Jobs(jobs) => Down::Jobs(JobNews::all_from_grantor(jobs)?),
            Message::Redirect(leader) => Down::Redirect(Leader::from_wire(leader)),
        }))
    }
}

fn grants_from_wire(grants: wire::Grants, received: WallClock) -> Result<Vec<Grant>, Malformed> {
    let to_clients = grants.grant.into_iter().enumerate();
    let to_clients =
        to_clients.map(|(index, grant)| Grant::from_client_wire("grants.grant", index, grant, received));
    let to_nodes = grants.server_grant.into_iter().enumerate();
    let to_nodes =
        to_nodes.map(|(index, grant)| Grant::from_node_wire("grants.server_grant", index, grant, received));
    to_clients.chain(to_nodes).collect()
}

// === impl Welcome ===

impl Welcome {
    /// Heartbeats of a grantor that does not say how often it wants them.
    const HEARTBEAT: Duration = Duration::from_secs(5);

    fn from_wire(welcome: &wire::Welcome) -> Result<Welcome, Malformed> {
        if welcome.heartbeat_ms == Some(0) {
            return Err(Malformed { field: "welcome.heartbeat_ms".to_owned(), found: "is 0".to_owned() });
        }
        Ok(Welcome {
            epoch: Epoch(welcome.epoch),
            claims_open: welcome.claims_open.unwrap_or(true),
            claims_open_in: welcome.claims_open_in_ms.map(Duration::from_millis),
            heartbeat: welcome.heartbeat_ms.map_or(Welcome::HEARTBEAT, Duration::from_millis),
            features: welcome.features.map_or(Features::BASE, Features::from_bits),
        })
    }

    fn to_wire(self) -> wire::Welcome {
        wire::Welcome {
            epoch: self.epoch.0,
            claims_open: Some(self.claims_open),
            // Rounded up: who comes a little late is served, who comes too early comes again.
            claims_open_in_ms: self
                .claims_open_in
                .map(|wait| u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)),
            heartbeat_ms: Some(u64::try_from(self.heartbeat.as_millis()).unwrap_or(u64::MAX)),
            features: said(self.features),
        }
    }
}
