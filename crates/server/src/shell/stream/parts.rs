//! The parts of a long report, each a turn under the lock of its own.

use std::collections::VecDeque;

use lessor_proto::wire;
use lessor_proto::wire::ReportRequest;
use lessor_proto::wire::session_up_request::Message;

use crate::shell::driver::PART;

/// The parts of a long report, which are heard one after the other, and of which the last renews what it renews; absent of anything
/// else.
pub(super) fn parts(request: &wire::SessionUpRequest) -> Option<VecDeque<wire::SessionUpRequest>> {
    let Some(Message::Report(report)) = &request.message else { return None };
    let ReportRequest { resource, server_resource, .. } = report;
    let chunks: Vec<PartResources> = match (resource.len(), server_resource.len()) {
        (clients, 0) if clients > PART => {
            resource.chunks(PART).map(|part| (part.to_vec(), Vec::new())).collect()
        }
        (0, nodes) if nodes > PART => {
            server_resource.chunks(PART).map(|part| (Vec::new(), part.to_vec())).collect()
        }
        // What has both is refused as a whole.
        _ => return None,
    };
    Some(parts_of(report, chunks))
}

/// The resources of a part of a report: of a client, and of a node.
type PartResources = (Vec<wire::ResourceRequest>, Vec<wire::ServerCapacityResourceRequest>);

fn parts_of(report: &ReportRequest, parts: Vec<PartResources>) -> VecDeque<wire::SessionUpRequest> {
    let last = parts.len() - 1;
    let part = |(number, (resource, server_resource)): (usize, PartResources)| {
        let renew_all = report.renew_all.filter(|_| number == last);
        let ReportRequest { report_id, target_epoch, .. } = *report;
        let part = ReportRequest { report_id, target_epoch, resource, server_resource, renew_all };
        wire::SessionUpRequest { message: Some(Message::Report(part)) }
    };
    parts.into_iter().enumerate().map(part).collect()
}
