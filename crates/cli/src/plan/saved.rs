//! Saved plans: what `lessor push --plan` holds a push against.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use lessor_client::internals::clock;
use lessor_server::plan::Plan;
use serde::{Deserialize, Serialize};

use super::ask;
use crate::exit::Exit;
use crate::pages::ServerFlags;
use crate::revisions::files::Text;
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
/// The age from which on a plan says too little of what is so now.
const LONGEST: Duration = Duration::from_secs(15 * 60);
/// The points by which more may be lost than a plan has said, of a hundred of all shares.
const POINTS: f64 = 5.0;

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

    /// Holds a push of these documents on top of revision `head` against it.
    ///
    /// # Errors
    /// When the plan is of something else, or of too long ago.
    pub(crate) fn check(&self, head: u64, texts: &[Text]) -> anyhow::Result<()> {
        let digest = Plan::digest_of(texts.iter().map(|(document, _)| document)).to_string();
        if self.plan.digest != digest {
            return Err(Exit::forbidden("the plan is of other documents; wanted a plan of these".to_owned()));
        }
        if self.plan.base != head {
            let base = self.plan.base;
            return Err(Exit::faster(format!(
                "the plan is against revision {base}, and {head} is in force by now; wanted a new plan"
            )));
        }
        let at = humantime::parse_rfc3339(&self.plan.at).context("the plan does not say when it was made")?;
        let now = SystemTime::UNIX_EPOCH + clock::wall().since_epoch;
        let age = now.duration_since(at).unwrap_or_default();
        if age > LONGEST {
            let minutes = age.as_secs() / 60;
            return Err(Exit::forbidden(format!(
                "the plan is {minutes} minutes old; wanted one of at most {}",
                LONGEST.as_secs() / 60
            )));
        }
        Ok(())
    }

    /// Plans once more, as demand may have moved since.
    ///
    /// # Errors
    /// When much more would be lost than the plan has said, or that cannot be found out.
    pub(crate) async fn look_again(&self, texts: &[Text], tls: &ClientTlsFlags) -> anyhow::Result<()> {
        let servers = ServerFlags { server: self.servers.clone(), tls: tls.clone() };
        let (now, _) =
            ask(&servers, texts, None, Vec::new()).await.context("the plan cannot be looked at again")?;
        let part = |plan: &Plan| match plan.moved {
            [_, 0.0] => 0.0,
            [lost, all] => lost / all * 100.0,
        };
        let (before, now) = (part(&self.plan), part(&now));
        if now > before + POINTS {
            return Err(Exit::forbidden(format!(
                "{now:.1}% of all shares would be lost by now, where the plan has said {before:.1}%; wanted a new plan"
            )));
        }
        Ok(())
    }
}
