//! The town on one clock: the real node and the real sessions of clients, with a network between them that delays and
//! loses, all from one seed.
//!
//! Nothing here waits: time jumps from event to event. After every event an oracle that is too simple to be wrong adds up
//! what all clients believe they may use. The same seed gives the same trace, and so the same hash of it, everywhere.
//!
//! ```
//! use lessor_sim::world::{TownPlan, World};
//!
//! let plan = TownPlan { clients: 5, capacity: 100.0, minutes: 3, ..TownPlan::default() };
//! let first = World::new(7, &plan).run().expect("never above the capacity");
//! let again = World::new(7, &plan).run().expect("never above the capacity");
//! assert_eq!(first.trace_hash, again.trace_hash);
//! assert!(first.utilisation > 0.5, "{first:?}");
//! ```
//!
//! Deliberately absent so far: trees, several tasks, clocks that drift, scenarios and plots.

pub mod network;
pub mod oracle;
pub mod trace;
pub mod world;
