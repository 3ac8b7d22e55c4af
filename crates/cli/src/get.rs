//! `lessor get`: what a client would be given.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use lessor_client::internals::clock;
use lessor_client::{Fallback, LeaseState, Resource, Rung, Transport};
use lessor_proto::Amount;

use crate::output;
use crate::pages::ServerFlags;
use crate::signals::Signals;

/// Asks a server for capacity and says what it gives. It is given back at the end.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The resource
    resource: String,
    /// The capacity that is wanted, in units a second or, of a gauge, in units
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    wants: f64,
    /// Hold the lease, renew it, and print each change until SIGINT, SIGTERM or SIGHUP comes, or nobody reads it
    #[arg(long)]
    hold: bool,
    /// The client id; made up without it
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// Greater numbers are served first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    priority: i64,
    /// The resource is a gauge: whole units in use at the same time
    #[arg(long)]
    gauge: bool,
    /// The way to speak to the server; one without streams is polled
    #[arg(long, value_name = "WAY", default_value = "stream")]
    transport: Way,
    #[command(flatten)]
    servers: ServerFlags,
}

/// A way to speak to a server.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    /// Over a stream: what changes is heard at once
    Stream,
    /// By asking again and again
    Poll,
}

const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// The time to wait for more than nothing.
const SECOND_ANSWER: Duration = Duration::from_millis(500);

// === impl Get ===

impl Get {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let client =
            self.servers.client(self.id.as_deref())?.transport(self.transport.into()).connect().await?;
        // Who asks once is gone before a floor is of use.
        let fallback = if self.hold { Fallback::Safe } else { Fallback::Pessimistic };
        let outcome = if self.gauge {
            let opening = client.gauge(&self.resource).wants(self.wants).priority(self.priority);
            self.follow(opening.fallback(fallback).open()?).await
        } else {
            let opening = client.rate(&self.resource).wants(self.wants).priority(self.priority);
            self.follow(opening.fallback(fallback).open()?).await
        };
        client.close().await;
        outcome
    }

    async fn follow<E>(&self, mut resource: Resource<E>) -> anyhow::Result<()> {
        let start = clock::now();
        let first = tokio::time::timeout(FIRST_ANSWER, resource.changed()).await;
        let mut lease = first
            .map_err(|_| anyhow!("no answer from {} in {FIRST_ANSWER:?}", self.servers.server.join(",")))??;
        if let (Some(fault), Rung::Waiting) = (&lease.last_error, lease.rung) {
            bail!("{}: {fault}", self.resource);
        }
        // What is written down first for successors comes a moment later.
        if !self.hold
            && self.wants > 0.0
            && lease.capacity == Some(Amount::ZERO)
            && let Ok(changed) = tokio::time::timeout(SECOND_ANSWER, resource.changed()).await
        {
            lease = changed?;
        }
        if !self.hold {
            println!("{}", self.line(&lease));
            return Ok(());
        }
        // One listener each for all rounds: a signal that comes while a line is printed is not lost.
        let mut signals = Signals::listen()?;
        let mut hang_up = pin!(output::hang_up());
        let mut line = format!("{}\n", self.line(&lease));
        // Whoever goes, or reads no more, gives back what is held.
        while output::write(format_args!("{line}")).context("cannot write to standard output")? {
            tokio::select! {
                changed = resource.changed() => lease = changed?,
                _ = signals.interrupt.recv() => break,
                _ = signals.terminate.recv() => break,
                _ = signals.hang_up.recv() => break,
                () = &mut hang_up => break,
            }
            let after = clock::now().since(start).as_secs_f64();
            line = format!("{} after {after:.1} s\n", self.line(&lease));
        }
        Ok(())
    }

    fn line(&self, lease: &LeaseState) -> String {
        let unit = if self.gauge { "" } else { "/s" };
        let capacity =
            lease.capacity.map_or_else(|| "without limit".to_owned(), |amount| amount.to_string() + unit);
        let until = match (lease.rung, lease.remaining()) {
            // A floor is a lease as well, and advice, which has no end, is none.
            (Rung::Leased | Rung::Safe, Some(remaining)) => format!("for {:.0} s", remaining.as_secs_f64()),
            _ => "no lease".to_owned(),
        };
        let learning = match lease.learns_until {
            Some(until) => {
                let left = until.since(clock::now()).as_secs_f64();
                format!(", learning for another {left:.0} s: the server has just begun")
            }
            None if lease.is_learning => ", learning: the server has just begun".to_owned(),
            None => String::new(),
        };
        let fault = lease.last_error.as_ref().map(|fault| format!(", {fault}")).unwrap_or_default();
        format!(
            "{}: {capacity} of {}{} wanted, {until} ({}{learning}{fault})",
            self.resource,
            self.wants,
            unit,
            lease.rung.name()
        )
    }
}

// === impl Way ===

impl From<Way> for Transport {
    fn from(way: Way) -> Transport {
        match way {
            Way::Stream => Transport::Stream,
            Way::Poll => Transport::Poll,
        }
    }
}
