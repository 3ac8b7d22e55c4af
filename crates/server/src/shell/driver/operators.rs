//! The calls of operators: explanations, and leases that they take back.

use std::time::Duration;

use lessor_proto::{ClientId, ResourceId};
use tracing::info;

use super::hold_kind::HoldKind;
use super::{Driver, Unanswered};
use crate::node::{Explanation, NotExplained, NotRecalled, RecallStatus, RecalledLease};

// === impl Driver ===

impl Driver {
    /// Takes back what a holder has of a resource, and gives it nothing more of that for `time`.
    pub(in crate::shell) fn recall(
        &self,
        resource: &ResourceId,
        holder: &ClientId,
        time: Duration,
    ) -> Result<Result<Vec<RecalledLease>, NotRecalled>, Unanswered> {
        let recalled = self.call(HoldKind::Recall, |node, now| node.recall(now, resource, holder, time))?;
        if let Ok(leases) = &recalled {
            info!(%resource, %holder, lives = leases.len(), ?time, "recalled, as an operator wants it");
        }
        Ok(recalled)
    }

    /// The address of the task that leads, if that is another and known.
    pub(in crate::shell) fn leader_elsewhere(&self) -> Option<String> {
        self.identity.another(self.known.load().leader.clone()).address
    }

    /// Lets a holder have of a resource again what is due to it. Returns whether it was held back.
    pub(in crate::shell) fn lift_recall(
        &self,
        resource: &ResourceId,
        holder: &ClientId,
    ) -> Result<bool, Unanswered> {
        self.call(HoldKind::Recall, |node, now| node.lift_recall(now, resource, holder))
    }

    /// Explains how a resource is divided, and why a holder gets what it gets of it.
    pub(in crate::shell) fn explain(
        &self,
        resource: &ResourceId,
        holder: Option<&ClientId>,
    ) -> Result<Result<Explanation, NotExplained>, Unanswered> {
        self.call(HoldKind::Explain, |node, now| node.explain(now, resource, holder))
    }

    /// The recalls that are in force.
    pub(in crate::shell) fn recalls(&self) -> Result<Vec<RecallStatus>, Unanswered> {
        self.call(HoldKind::Recall, |node, now| node.recalls(now).collect())
    }
}
