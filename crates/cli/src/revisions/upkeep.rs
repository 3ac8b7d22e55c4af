//! `lessor push-freeze` and `lessor prune`: nobody pushes for a while; old revisions go.

use std::time::{Duration, SystemTime};

use anyhow::bail;
use clap::Args;
use hyper::Method;
use lessor_client::internals::clock;
use lessor_server::revision::{FORM, PushFreeze};
use serde_json::json;

use super::{StoreFlags, proposal};
use crate::office::{Office, OfficeFlags};

/// Lets nobody push for a while, or everybody again. What is in force stays in force
#[derive(Debug, Args)]
pub(crate) struct PushFreezing {
    /// The time after which everybody may push again, from 1s to 7days
    #[arg(long = "for", value_name = "DURATION", default_value = "2h", value_parser = humantime::parse_duration)]
    time: Duration,
    /// Why: whoever wants to push is told that
    #[arg(short, long, value_name = "TEXT", value_parser = proposal::message, required_unless_present = "lift")]
    message: Option<String>,
    /// Let everybody push again now
    #[arg(long, conflicts_with = "message")]
    lift: bool,
    #[command(flatten)]
    office: OfficeFlags,
}

/// Removes old revisions, and documents that belong to none that is kept
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// The number of revisions to keep, the newest; that in force is one of them
    #[arg(long, value_name = "N", default_value_t = 200)]
    keep: usize,
    #[command(flatten)]
    store: StoreFlags,
}

/// The longest time for which nobody may push.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

// === impl PushFreezing ===

impl PushFreezing {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let place = self.office.open()?;
        let Some(message) = self.message else {
            let was_frozen = match &place {
                Office::Etcd(store) => store.lift_freeze().await?,
                Office::Admin(port) => {
                    let answer = port.call(Method::DELETE, "push-freeze", Some(json!({}))).await?;
                    answer["was_frozen"] == true
                }
            };
            match was_frozen {
                true => println!("everybody may push again"),
                false => println!("nobody had forbidden it"),
            }
            return Ok(());
        };
        if self.time < Duration::from_secs(1) || self.time > LONGEST {
            bail!("--for {:?}: wanted 1s to 7days", self.time);
        }
        let store = match &place {
            Office::Etcd(store) => store,
            Office::Admin(port) => {
                let time = humantime::format_duration(self.time).to_string();
                let body = json!({"message": message, "for": time});
                let answer = port.call(Method::POST, "push-freeze", Some(body)).await?;
                println!("nobody may push until {}", answer["freeze"]["until"].as_str().unwrap_or_default());
                return Ok(());
            }
        };
        let until = SystemTime::UNIX_EPOCH + clock::wall().since_epoch + self.time;
        let until = humantime::format_rfc3339_seconds(until).to_string();
        let freeze = PushFreeze { form: FORM, by: self.office.author().name, message, until };
        store.set_freeze(&freeze, self.time).await?;
        println!("nobody may push until {}", freeze.until);
        Ok(())
    }
}

// === impl Prune ===

impl Prune {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        if self.keep == 0 {
            bail!("--keep 0: wanted 1 at least");
        }
        let swept = self.store.open()?.sweep(self.keep).await?;
        println!("removed: revisions {}, documents {}", swept.revisions, swept.documents);
        Ok(())
    }
}
