//! `lessor admin`: what an operator does to a server that runs.

mod port;
mod show;

use anyhow::bail;
use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::{Value, json};

pub(crate) use self::port::AdminPort;
use self::port::PortFlags;

/// Acts on a server that runs, over its admin port: an address, or the socket in its state directory. Every call is in the
/// server's audit log. Exit 1: it was not done, and why.
#[derive(Debug, Args)]
pub(crate) struct Admin {
    #[command(subcommand)]
    act: AdminAct,
}

#[derive(Debug, Subcommand)]
enum AdminAct {
    /// Have templates, rules of access, token keys and certificates read again at once (role: push)
    Reload(PortFlags),
    /// Have the task that leads leave its node to another one (role: override)
    Resign(PortFlags),
    /// Take back what a holder has of a resource, and give it nothing more for a while (role: override); list such recalls (see)
    Recall(Recall),
    /// Change what is logged for a while (role: override), or show it (see)
    Log(Log),
    /// List who is connected (role: see)
    Connections(Connections),
    /// Show which rules of access are in force, and what they have denied (role: access)
    Access(PortFlags),
    /// Show who the server takes this for, and what that may do
    Whoami(PortFlags),
}

/// A recall, or all that are in force.
#[derive(Debug, Args)]
struct Recall {
    /// The resource; without it, the recalls that are in force are listed
    #[arg(requires = "holder")]
    resource: Option<String>,
    /// The id of the client or node
    holder: Option<String>,
    /// The time for which it gets nothing more of the resource, from 1s to 24h
    #[arg(long = "for", value_name = "DURATION", requires = "holder", conflicts_with = "lift")]
    time: Option<String>,
    /// Let it have what is due to it again
    #[arg(long, requires = "holder")]
    lift: bool,
    #[command(flatten)]
    port: PortFlags,
}

/// A filter of the log.
#[derive(Debug, Args)]
struct Log {
    /// A level, or TARGET=LEVEL, several with commas between, as in RUST_LOG; without it, the filter in force is shown
    #[arg(requires = "time")]
    filter: Option<String>,
    /// The time after which the filter of before is back, from 1s to 24h
    #[arg(long = "for", value_name = "DURATION", requires = "filter")]
    time: Option<String>,
    /// Go back to the filter of before now
    #[arg(long, conflicts_with = "filter")]
    reset: bool,
    #[command(flatten)]
    port: PortFlags,
}

/// The connections of a server.
#[derive(Debug, Args)]
struct Connections {
    /// The number of connections to show, the oldest first
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    limit: usize,
    #[command(flatten)]
    port: PortFlags,
}

// === impl Admin ===

impl Admin {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.act {
            AdminAct::Reload(port) => {
                call(&port, Method::POST, "reload", Some(json!({})), show::reload).await
            }
            AdminAct::Resign(port) => {
                call(&port, Method::POST, "resign", Some(json!({})), show::resign).await
            }
            AdminAct::Recall(recall) => recall.run().await,
            AdminAct::Log(log) => log.run().await,
            AdminAct::Connections(Connections { limit, port }) => {
                call(&port, Method::GET, &format!("connections?limit={limit}"), None, show::connections).await
            }
            AdminAct::Access(port) => call(&port, Method::GET, "access", None, show::access).await,
            AdminAct::Whoami(port) => call(&port, Method::GET, "whoami", None, show::whoami).await,
        }
    }
}

// === impl Recall ===

impl Recall {
    async fn run(self) -> anyhow::Result<()> {
        let Recall { resource, holder, time, lift, port } = self;
        let (Some(resource), Some(holder)) = (resource, holder) else {
            return call(&port, Method::GET, "recall", None, show::recalls).await;
        };
        let mut body = json!({"resource": resource, "holder": holder});
        if lift {
            return call(&port, Method::DELETE, "recall", Some(body), show::lifted).await;
        }
        let Some(time) = time else { bail!("wanted --for DURATION, as 10m, or --lift") };
        body["for"] = time.into();
        call(&port, Method::POST, "recall", Some(body), show::recalled).await
    }
}

// === impl Log ===

impl Log {
    async fn run(self) -> anyhow::Result<()> {
        let Log { filter, time, reset, port } = self;
        match (filter, time) {
            (Some(filter), Some(time)) => {
                let body = json!({"filter": filter, "for": time});
                call(&port, Method::PUT, "log", Some(body), show::log).await
            }
            _ if reset => call(&port, Method::DELETE, "log", Some(json!({})), show::log).await,
            _ => call(&port, Method::GET, "log", None, show::log).await,
        }
    }
}

/// Calls a server, and prints what it answers: as it says it, or for people.
async fn call(
    flags: &PortFlags,
    method: Method,
    act: &str,
    body: Option<Value>,
    show: fn(&Value) -> String,
) -> anyhow::Result<()> {
    let answer = flags.open()?.call(method, act, body).await?;
    match flags.json {
        true => println!("{answer}"),
        false => print!("{}", show(&answer)),
    }
    Ok(())
}
