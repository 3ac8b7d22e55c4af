//! Saved plans: what `lessor push --plan` holds a push against.

use std::path::Path;

use anyhow::{Context, ensure};
use lessor_server::plan::Plan;
use lessor_server::shell::PlannedPush;
use lessor_server::shell::source::DocumentText;
use serde::{Deserialize, Serialize};

use super::ask;
use crate::exit::Exit;
use crate::pages::ServerFlags;
use crate::tls::ClientTlsFlags;

/// A plan, and who made it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct SavedPlan {
    schema: u32,
    /// The servers that were asked.
    servers: Vec<String>,
    plan: Plan,
}

/// The edition of the form.
const SCHEMA: u32 = 1;

// === impl SavedPlan ===

impl SavedPlan {
    pub(crate) fn of(plan: &Plan, servers: &[String]) -> SavedPlan {
        SavedPlan { schema: SCHEMA, servers: servers.to_vec(), plan: plan.clone() }
    }

    /// Writes it, in place of what was there.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    pub(crate) fn read(path: &Path) -> anyhow::Result<SavedPlan> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let saved: SavedPlan =
            serde_json::from_str(&text).with_context(|| format!("{}: is no saved plan", path.display()))?;
        ensure!(saved.schema == SCHEMA, "{}: form {}; wanted {SCHEMA}", path.display(), saved.schema);
        Ok(saved)
    }

    /// The part of it that a push is held against.
    pub(crate) fn planned(&self) -> PlannedPush {
        PlannedPush::of(&self.plan)
    }

    /// Plans once more, as demand may have moved since.
    ///
    /// # Errors
    /// When much more would be lost than the plan has said, or that cannot be found out.
    pub(crate) async fn look_again(
        &self,
        texts: &[DocumentText],
        tls: &ClientTlsFlags,
    ) -> anyhow::Result<()> {
        let servers = ServerFlags { server: self.servers.clone(), tls: tls.clone() };
        let (now, _) =
            ask(&servers, texts, None, Vec::new()).await.context("the plan cannot be looked at again")?;
        self.planned().compare(&now).map_err(|fault| Exit::forbidden(fault.to_string()))
    }
}
