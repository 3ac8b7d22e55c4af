//! The simulation on one clock: the real node and the real sessions of clients, with a network between them that delays and
//! loses, all from one seed.
//!
//! Nothing here waits: time jumps from event to event. After every event an oracle that is too simple to be wrong adds up
//! what all clients believe they may use. The same seed gives the same trace, and so the same hash of it, everywhere.
//!
//! ```
//! use lessor_proto::Time;
//! use lessor_sim::plan::SimulationPlan;
//! use lessor_sim::simulation::Simulation;
//!
//! // Two regions of three clients each, who want 50 of 200 each.
//! let mut simulation = Simulation::new(7, &SimulationPlan::tree(&[2], 3, 200.0, 50.0));
//! simulation.run_until(Time::from_nanos(60_000_000_000)).expect("no rule is broken");
//! assert!(simulation.total_believed(0) <= 200_000_000);
//! ```

mod actor;
pub mod big;
mod client;
pub mod clock;
mod counts;
mod directory;
pub mod disk;
pub mod doorman;
pub mod etcd;
mod event;
pub mod event_queue;
pub mod faults;
mod holding;
pub mod jobs;
mod legacy;
pub mod measure;
#[cfg(feature = "mutations")]
pub mod mutation;
pub mod net;
mod open_node;
pub mod oracle;
pub mod plan;
mod process;
mod program;
mod programs;
pub mod raise;
pub mod registry;
pub mod report;
mod resource;
pub mod rng;
mod rule_book;
mod rules;
pub mod scenario;
mod shared_domain;
pub mod simulation;
mod site;
pub mod spare;
mod stream;
mod svg;
pub mod swarm;
pub mod tenants;
pub mod tiers;
mod trace;
pub mod windows;
pub mod workload;
