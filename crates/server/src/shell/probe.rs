//! The first meeting with the node above, before anybody asks this one for anything: an address that was given wrongly shows
//! at the start, and not when the first client comes.
//!
//! All servers that were named are asked who leads, each task of a node for itself, until one of them has answered.

use std::sync::Arc;
use std::time::Duration;

use lessor_client::BearerToken;
use lessor_client::internals::tls::ClientTls;
use lessor_client::internals::{ParentLine, clock};
use lessor_proto::BackOff;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::driver::Driver;
use super::random;

/// The longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Waits between two rounds.
const BACK_OFF: BackOff = BackOff::new(Duration::from_millis(250), 16, 0.5);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A server that answered, with the name of its node where it says that; or what came of it instead.
type Met = Result<Option<String>, String>;

/// The node above.
#[derive(Clone, Debug)]
pub(super) struct NodeAbove {
    /// Its servers.
    pub(super) servers: Vec<Arc<str>>,
    /// The TLS that is spoken with them, if it is.
    pub(super) tls: Option<Arc<ClientTls>>,
    /// The token by which they know this one, if it has one.
    pub(super) token: Option<BearerToken>,
}

// === impl NodeAbove ===

impl NodeAbove {
    /// A line to them, on which nobody waits for an answer for longer than that.
    pub(super) fn line(&self, timeout: Duration) -> ParentLine {
        ParentLine::new(timeout).with_tls(self.tls.clone()).with_token(self.token.clone())
    }
}

/// Asks until a server has answered, or the session with the node above has begun, or this one is stopped.
pub(super) async fn meet_parent(driver: Arc<Driver>, above: NodeAbove, mut stopped: watch::Receiver<bool>) {
    let servers = &above.servers;
    let mut said = vec![None; servers.len()];
    for round in 0.. {
        let met = tokio::select! {
            _ = stopped.wait_for(|&stop| stop) => return,
            met = ask_all(&driver, &above) => met,
        };
        say(servers, &met, &mut said);
        let faults = servers.iter().zip(&met).filter_map(|(server, met)| Some((server, met.as_ref().err()?)));
        let faults: Vec<String> = faults.map(|(server, fault)| format!("{server}: {fault}")).collect();
        if faults.len() < met.len() {
            return driver.reach_parent();
        }
        // The session may have met it meanwhile, at an address to which a server had led.
        if driver.has_reached_parent() != Some(false) {
            return;
        }
        driver.miss_parent(faults.join("; "));
        let next = clock::now() + BACK_OFF.wait(round, LONGEST_WAIT, random::fraction());
        tokio::select! {
            _ = stopped.wait_for(|&stop| stop) => return,
            () = clock::sleep_until(next) => {}
        }
    }
}

/// All of them at once: one that is silent keeps no other waiting.
async fn ask_all(driver: &Arc<Driver>, above: &NodeAbove) -> Vec<Met> {
    let mut asked = JoinSet::new();
    for (place, server) in above.servers.iter().enumerate() {
        let (server, own) = (Arc::clone(server), driver.whereabouts().node);
        let line = above.line(TIMEOUT);
        asked.spawn(async move { (place, ask(line, &server, own).await) });
    }
    let mut met = vec![Err("not asked".to_owned()); above.servers.len()];
    while let Some(answered) = asked.join_next().await {
        // A task that panicked has said so itself.
        let Ok((place, answer)) = answered else { continue };
        met[place] = answer;
    }
    met
}

async fn ask(mut line: ParentLine, server: &Arc<str>, own: Option<String>) -> Met {
    let whereabouts = line.discover(server).await.map_err(|failure| failure.to_string())?;
    match whereabouts.node {
        Some(node) if Some(&node) == own.as_ref() => Err(format!("a server of this node itself, {node:?}")),
        node => Ok(node),
    }
}

/// Each once, and again when something else comes of it.
fn say(servers: &[Arc<str>], met: &[Met], said: &mut [Option<Met>]) {
    for ((server, met), said) in servers.iter().zip(met).zip(said) {
        if said.as_ref() == Some(met) {
            continue;
        }
        match met {
            Ok(node) => info!(%server, above = node.as_deref(), "a server of the node above answers"),
            Err(fault) => warn!(%server, %fault, "a server of the node above does not answer"),
        }
        *said = Some(met.clone());
    }
}
