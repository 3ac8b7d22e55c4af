//! `lessor freeze`, `drain`, `cap`, `unenforce`, `overrides`, `lift` and `seize`: what operators put above the templates for a while.

use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use hyper::Method;
use lessor_server::overrides::{BadOverride, OverrideAct};
use lessor_server::shell::etcd::OverrideOutcome;
use lessor_server::shell::override_records;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::office::{Office, OfficeFlags};

/// Lets nobody have more of a resource for a while: who has some keeps what it wants of that, and newcomers get nothing
#[derive(Debug, Args)]
pub(crate) struct Freeze {
    /// The name of the resource, or a glob
    resource: String,
    #[command(flatten)]
    flags: OverrideFlags,
}

/// Takes everything back from somebody, and gives it nothing more for a while. What is out stays charged until it is given back or has
/// ended
#[derive(Debug, Args)]
pub(crate) struct DrainCommand {
    #[command(subcommand)]
    whom: DrainTarget,
}

#[derive(Debug, Subcommand)]
enum DrainTarget {
    /// Clients, by id or glob
    Client {
        /// The id of the client, or a glob
        client: String,
        /// Of this resource only, by name or glob
        #[arg(long, value_name = "GLOB")]
        resource: Option<String>,
        /// Refuse whoever asks again; otherwise it is granted nothing
        #[arg(long)]
        deny: bool,
        #[command(flatten)]
        flags: OverrideFlags,
    },
    /// A domain: its policies are closed
    Domain {
        /// The domain
        domain: String,
        /// The resource, by name or glob
        #[arg(long, value_name = "GLOB")]
        resource: String,
        #[command(flatten)]
        flags: OverrideFlags,
    },
    /// A node below others: those below it run dry within a lease
    Node {
        /// The name of the node, or a glob
        node: String,
        #[command(flatten)]
        flags: OverrideFlags,
    },
}

/// Lets there be no more of a resource than that for a while: a cut as any other, and never a raise
#[derive(Debug, Args)]
pub(crate) struct Cap {
    /// The name of the resource, or a glob
    resource: String,
    /// The capacity, in units a second or units
    capacity: f64,
    #[command(flatten)]
    flags: OverrideFlags,
}

/// Has clients let everything of a resource pass for a while, and count what they would refuse: not strict, as more may then be used
/// than there is. Leases go on as ever
#[derive(Debug, Args)]
pub(crate) struct Unenforce {
    /// The name of the resource, or a glob
    resource: String,
    #[command(flatten)]
    flags: OverrideFlags,
}

/// Credits what a client is charged for without its word: the promise holds only if that client has certainly stopped. What it had
/// may be used twice until its lease would have ended (lessor_at_risk)
#[derive(Debug, Args)]
pub(crate) struct Seize {
    #[command(subcommand)]
    whom: SeizeTarget,
}

#[derive(Debug, Subcommand)]
enum SeizeTarget {
    /// A client, in every life of it that is known
    Client {
        /// The id of the client
        client: String,
        /// The resource
        #[arg(long, value_name = "NAME")]
        resource: String,
        /// Now, and not when its lease has ended; to take it back strictly: lessor drain client
        #[arg(long, required = true)]
        now: bool,
        /// It is made sure by other means that it uses nothing any more, as by a machine that is switched off
        #[arg(long, required = true)]
        i_have_fenced_it: bool,
        #[command(flatten)]
        office: OfficeFlags,
    },
}

/// Lists the overrides that are in force
#[derive(Debug, Args)]
pub(crate) struct ListOverrides {
    /// As they stand there, in JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    office: OfficeFlags,
}

/// Ends an override before its time
#[derive(Debug, Args)]
pub(crate) struct Lift {
    /// The id, as `lessor overrides` lists it
    id: String,
    #[command(flatten)]
    office: OfficeFlags,
}

/// The flags of everything that puts an override in force.
#[derive(Debug, Args)]
struct OverrideFlags {
    /// The time after which it ends by itself, from 1s to 24h
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    time: Duration,
    /// Why: everybody who looks is told that
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    office: OfficeFlags,
}

// === impl Freeze ===

impl Freeze {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        self.flags.put(OverrideAct::Freeze { resource: self.resource }).await
    }
}

// === impl DrainCommand ===

impl DrainCommand {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.whom {
            DrainTarget::Client { client, resource, deny, flags } => {
                flags.put(OverrideAct::DrainClient { client, resource, deny }).await
            }
            DrainTarget::Domain { domain, resource, flags } => {
                flags.put(OverrideAct::DrainDomain { domain, resource }).await
            }
            DrainTarget::Node { node, flags } => flags.put(OverrideAct::DrainNode { node }).await,
        }
    }
}

// === impl Cap ===

impl Cap {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        self.flags.put(OverrideAct::Cap { resource: self.resource, capacity: self.capacity }).await
    }
}

// === impl Unenforce ===

impl Unenforce {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        self.flags.put(OverrideAct::Unenforce { resource: self.resource }).await
    }
}

// === impl OverrideFlags ===

impl OverrideFlags {
    async fn put(self, act: OverrideAct) -> anyhow::Result<()> {
        let mut it = override_records::record(act, self.office.author(), &self.reason, self.time.as_secs());
        it.check()?;
        let place = match self.office.open()? {
            Office::Etcd(store) => match store.put_override(&it).await? {
                OverrideOutcome::Put => "etcd".to_owned(),
                OverrideOutcome::Full => return Err(Exit::forbidden(BadOverride::Many.to_string())),
            },
            Office::Admin(port) => {
                let mut body = serde_json::to_value(&it.act)?;
                body["reason"] = self.reason.into();
                body["for"] = format!("{}s", it.seconds).into();
                let answer = port.call(Method::POST, "override", Some(body)).await?;
                it.id = text(&answer["override"]["id"]).to_owned();
                text(&answer["place"]).to_owned()
            }
        };
        println!("override {}: {}, for {}", it.id, it.act, time(self.time.as_secs_f64()));
        println!(
            "{}",
            match place.as_str() {
                "etcd" => "every task that follows these templates goes by it",
                _ => "this leader knows of it, and no later one",
            }
        );
        Ok(())
    }
}

// === impl Seize ===

impl Seize {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let SeizeTarget::Client { client, resource, i_have_fenced_it, office, .. } = self.whom;
        let Office::Admin(port) = office.open()? else {
            bail!("wanted --admin HOST:PORT|unix:PATH: the leader does it, and nobody else")
        };
        let body = json!({"resource": resource, "client": client, "i_have_fenced_it": i_have_fenced_it});
        let answer = port.call(Method::POST, "seize", Some(body)).await?;
        for lease in answer["leases"].as_array().map_or(&[][..], Vec::as_slice) {
            let at_risk = time(lease["at_risk_seconds"].as_f64().unwrap_or_default());
            println!("{} of {resource} are free; at risk for {at_risk}, if {client} lives", lease["amount"]);
        }
        println!("this leader knows of it, and no later one");
        Ok(())
    }
}

// === impl ListOverrides ===

impl ListOverrides {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let answer = match self.office.open()? {
            Office::Admin(port) => port.call(Method::GET, "override", None).await?,
            Office::Etcd(store) => override_records::listing(store.overrides().await?),
        };
        match self.json {
            true => println!("{answer}"),
            false => print!("{}", shown(&answer)),
        }
        Ok(())
    }
}

// === impl Lift ===

impl Lift {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let id = &self.id;
        match self.office.open()? {
            Office::Admin(port) => {
                port.call(Method::DELETE, "override", Some(json!({"id": id}))).await?;
            }
            Office::Etcd(store) if !store.lift_override(id).await? => {
                bail!("there is no override {id:?}: it may have ended")
            }
            Office::Etcd(_) => {}
        }
        println!("override {id} is lifted");
        Ok(())
    }
}

fn shown(answer: &Value) -> String {
    let rows = answer["overrides"].as_array().map_or(&[][..], Vec::as_slice);
    let faults = answer["faults"].as_array().map_or(&[][..], Vec::as_slice);
    let mut shown: String = faults.iter().map(|fault| format!("note: {}\n", text(fault))).collect();
    if rows.is_empty() {
        return shown + "no override is in force\n";
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["id", "what", "for", "by", "reason"]);
    for row in rows {
        let unverified = if row["verified"] == true { "" } else { " (unverified)" };
        table.add_row([
            text(&row["id"]).to_owned(),
            text(&row["what"]).to_owned(),
            time(row["ends_in_seconds"].as_f64().unwrap_or_default()),
            format!("{}{unverified}", text(&row["by"])),
            text(&row["reason"]).to_owned(),
        ]);
    }
    shown.push_str(&format!("{table}\n"));
    shown
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn time(seconds: f64) -> String {
    humantime::format_duration(Duration::from_secs(seconds.max(0.0).ceil() as u64)).to_string()
}
