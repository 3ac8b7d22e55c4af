//! Clients of either version, each a process of `lessor get --hold`, and what they say that they have.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::Time;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use crate::house::{binary, eventually};
use crate::servers::{LEASE, Version, Versions};

/// The time by which a line may come later than what it says: a process prints when it is its turn. Whatever lasts for twice
/// as long is seen.
const LATE: Duration = Duration::from_millis(500);
/// The wants of one: together they want more than there is.
const WANTS: &str = "40";

/// The clients of a test; they end when dropped.
#[derive(Default)]
pub(crate) struct Clients(Vec<Process>);

struct Process {
    name: String,
    _child: Child,
    said: Arc<Mutex<Vec<Belief>>>,
}

/// A belief from that moment on.
#[derive(Clone, Copy, Debug)]
struct Belief {
    at: Time,
    amount: f64,
    is_leased: bool,
}

// === impl Clients ===

impl Clients {
    /// Starts `count` more of that version, which hold a lease from here on.
    pub(crate) async fn hold(&mut self, versions: &Versions, version: Version, servers: &str, count: usize) {
        for _ in 0..count {
            let name = format!("{version:?}-{}", self.0.len());
            let arguments = ["get", "db", "--hold", "--wants", WANTS, "--id", &name, "--server", servers];
            let mut command = binary(versions.program(version), &arguments);
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let said = Arc::<Mutex<Vec<Belief>>>::default();
            let heard = said.clone();
            tokio::spawn(async move {
                while let Ok(Some(line)) = lines.next_line().await {
                    heard.lock().unwrap().push(Belief::read(&line));
                }
            });
            self.0.push(Process { name, _child: child, said });
        }
        let first = self.0.len() - count;
        for process in &self.0[first..] {
            eventually(&format!("{} has a lease", process.name), async || process.has_lease()).await;
        }
    }

    /// Lets so many lease lengths pass: whoever is not renewed has lost its lease by then, and has said so.
    pub(crate) async fn watch_for_leases(&self, lengths: u32) {
        clock::sleep_until(clock::now() + Duration::from_secs((LEASE * lengths).into())).await;
    }

    /// Nobody who had a lease was without one since, and at no time did all together have more than there is.
    pub(crate) fn check(&self, capacity: f64, when: &str) {
        let mut moments = Vec::new();
        for process in &self.0 {
            let said = process.said.lock().unwrap();
            let leased = said.iter().skip_while(|belief| !belief.is_leased);
            let lost = leased.clone().find(|belief| !belief.is_leased);
            assert!(leased.count() > 0, "{when}: {} had no lease: {said:?}", process.name);
            assert!(lost.is_none(), "{when}: {} lost its lease: {said:?}", process.name);
            moments.extend(said.iter().map(|belief| belief.at + LATE));
        }
        let sum = |at| self.0.iter().map(|process| process.least(at)).sum::<f64>();
        let most = moments.iter().map(|&at| sum(at)).fold(0.0, f64::max);
        println!(
            "{when}: {} clients, {} changes, {most} of {capacity} at the most",
            self.0.len(),
            moments.len()
        );
        assert!(most <= capacity + 1e-6, "{when}: {most} of {capacity} was believed");
    }
}

// === impl Process ===

impl Process {
    fn has_lease(&self) -> bool {
        self.said.lock().unwrap().iter().any(|belief| belief.is_leased && belief.amount > 0.0)
    }

    /// The least that it may have believed to have at a moment, as lines come late.
    fn least(&self, at: Time) -> f64 {
        let said = self.said.lock().unwrap();
        let before = said.iter().rev().find(|belief| belief.at + LATE <= at);
        let around = said.iter().filter(|belief| belief.at + LATE > at && belief.at <= at + LATE);
        let least = around.map(|belief| belief.amount).fold(f64::INFINITY, f64::min);
        least.min(before.map_or(0.0, |belief| belief.amount))
    }
}

// === impl Belief ===

impl Belief {
    /// Of `db: 12.5/s of 40/s wanted, for 20 s (leased) after 3.1 s`.
    fn read(line: &str) -> Belief {
        let amount =
            line.split_once(": ").and_then(|(_, rest)| rest.split_once("/s")).map(|(amount, _)| amount);
        let amount = amount.and_then(|amount| amount.parse().ok());
        let amount = amount.unwrap_or_else(|| panic!("{line:?} says no amount"));
        Belief { at: clock::now(), amount, is_leased: line.contains("(leased") }
    }
}
