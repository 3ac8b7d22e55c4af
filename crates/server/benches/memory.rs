//! The memory that a lease costs: the growth of the resident set over a million leases, and what is left of it when
//! they have ended. Allocators keep some of what they are given back; the second filling shows that it is used again.
//!
//! `cargo bench -p lessor-server --bench memory`

#[allow(dead_code, reason = "the decision bench uses the rest")]
mod population;

use std::time::Duration;

use lessor_proto::{Amount, Epoch, Time};
use lessor_server::node::{Node, NodeConfig};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use population::{Wants, ask, repository};

const LEASES: usize = 1_000_000;
const PAGE: usize = 4096;

/// Which population a child process measures.
const POPULATION: &str = "LESSOR_BENCH_POPULATION";

fn main() {
    let kinds = [Wants::Fixed, Wants::Uniform, Wants::Zipf];
    let asked = std::env::var(POPULATION).ok();
    if let Some(wants) = kinds.into_iter().find(|kind| asked.as_deref() == Some(kind.name())) {
        return measure(wants);
    }
    // Each in a process of its own: what an allocator keeps of one would be missing in the next.
    let program = std::env::current_exe().expect("this program has a path");
    for kind in kinds {
        let child = std::process::Command::new(&program).env(POPULATION, kind.name()).status();
        assert!(child.expect("it can be started").success(), "{} failed", kind.name());
    }
}

fn measure(wants: Wants) {
    let capacity = Amount::from_units(10_000_000);
    let mut node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(capacity));
    let before = resident();
    let full = fill(&mut node, Time::ZERO, wants);
    println!("{:8} {:6.1} bytes a lease at {LEASES}", wants.name(), per_lease(full, before));
    let later = Time::ZERO + Duration::from_secs(120);
    node.advance(later);
    println!(
        "{:8} {:6.1} bytes a lease kept by the allocator when all have ended",
        "",
        per_lease(resident(), before)
    );
    let again = fill(&mut node, later, wants);
    println!("{:8} {:6.1} bytes a lease filled again", "", per_lease(again, before));
}

/// The resident set when a million clients hold a lease.
fn fill(node: &mut Node, now: Time, wants: Wants) -> usize {
    let mut dice = Pcg64::seed_from_u64(1);
    for number in 0..LEASES {
        node.ask(now, &ask(number, wants.draw(&mut dice))).expect("a template covers it");
    }
    resident()
}

fn per_lease(now: usize, before: usize) -> f64 {
    now.saturating_sub(before) as f64 / LEASES as f64
}

/// In bytes, as the system counts it.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("the second number is the resident set") * PAGE
}
