//! The calls of operators: explanations, and leases that they take back.

use std::time::Duration;

use lessor_proto::{ClientId, ResourceId};
use tracing::{info, warn};

use super::hold_kind::HoldKind;
use super::{Driver, Unanswered};
use crate::node::{Explanation, NotExplained, NotRecalled, RecallStatus, RecalledLease, SeizedLease};
use crate::overrides::{BadOverride, Override, OverrideStatus};

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

    /// Credits what a client is charged for of a resource, without its acknowledgement.
    pub(in crate::shell) fn seize(
        &self,
        resource: &ResourceId,
        client: &ClientId,
    ) -> Result<Result<Vec<SeizedLease>, NotRecalled>, Unanswered> {
        let seized = self.call(HoldKind::Override, |node, now| node.seize(now, resource, client))?;
        if let Ok(leases) = &seized {
            warn!(%resource, %client, lives = leases.len(), "seized, as an operator wants it: the promise holds only if that client has stopped");
        }
        Ok(seized)
    }

    /// The address that clients are told of this task.
    pub(in crate::shell) fn advertised(&self) -> &str {
        self.identity.address()
    }

    /// Lets a holder have of a resource again what is due to it. Returns whether it was held back.
    pub(in crate::shell) fn lift_recall(
        &self,
        resource: &ResourceId,
        holder: &ClientId,
    ) -> Result<bool, Unanswered> {
        self.call(HoldKind::Recall, |node, now| node.lift_recall(now, resource, holder))
    }

    /// Puts an override in force for so long, at this leader alone.
    pub(in crate::shell) fn put_override(
        &self,
        it: Override,
        time: Duration,
    ) -> Result<Result<(), BadOverride>, Unanswered> {
        let what = it.act.to_string();
        let put = self.call(HoldKind::Override, |node, now| {
            let mut all = node.overrides().at(now);
            all.put(it, now + time)?;
            node.set_overrides(now, &all);
            Ok(())
        })?;
        if put.is_ok() {
            info!(?time, "an operator wants it so: {what}");
        }
        Ok(put)
    }

    /// Ends an override of this leader before its time. Returns whether it was there.
    pub(in crate::shell) fn lift_override(&self, id: &str) -> Result<bool, Unanswered> {
        self.call(HoldKind::Override, |node, now| {
            let mut all = node.overrides().at(now);
            let was_there = all.lift(id);
            node.set_overrides(now, &all);
            was_there
        })
    }

    /// The overrides of this leader.
    pub(in crate::shell) fn overrides(&self) -> Result<Vec<OverrideStatus>, Unanswered> {
        self.call(HoldKind::Override, |node, now| node.override_status(now))
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
