//! The arithmetic of sharing a number and of spending one: numbers in, numbers out.
//!
//! A resource has a capacity, and clients want parts of it. [`Shares`] says how much of it each one gets, under one of
//! four [policies](SharePolicy), in time that hardly grows with the number of clients. In a tree of servers a node tells its
//! parent what all its clients want by a [`curve`]. Where units cannot be divided, clients take turns by a [`rotation`]. A
//! client spends what it got through a token [`bucket`], and gives each of its tenants a part in time by burst [`tiers`].
//!
//! ```
//! use lessor_algorithms::{Demand, SharePolicy, Shares};
//!
//! let wants = |wants| Demand { priority: 0, weight: 1, wants };
//! let (greedy, medium, modest) = (wants(1000.0), wants(50.0), wants(10.0));
//!
//! let mut shares = Shares::new(SharePolicy::FairShare, 120.0);
//! shares.insert(&greedy);
//! shares.insert(&medium);
//! shares.insert(&modest);
//! assert_eq!(shares.share(&greedy), 60.0);
//! assert_eq!(shares.share(&medium), 50.0);
//! assert_eq!(shares.share(&modest), 10.0);
//!
//! // The medium one wants less; the difference goes to the one who still lacks something.
//! shares.remove(&medium);
//! shares.insert(&wants(20.0));
//! assert_eq!(shares.share(&greedy), 90.0);
//!
//! // Whoever is of a greater priority is served first.
//! let urgent = Demand { priority: 1, weight: 1, wants: 105.0 };
//! shares.insert(&urgent);
//! assert_eq!(shares.share(&urgent), 105.0);
//! assert_eq!(shares.share(&greedy), 5.0);
//! ```
//!
//! # Deliberately absent
//!
//! - Leases. A share is what a client *should* have. When it may have it, while others still hold what was theirs, is
//!   for the ledger of the server to decide.
//! - Names. A demand is a size; who wants it is known to the caller, who hands the same size back to take it out. Only a
//!   rotation knows its members apart, by an id of the caller's.
//! - Feedback. Shares follow from capacity and wants alone, never from what was granted before, so there is nothing that
//!   could oscillate. A rotation remembers whose turn it was, and that moves no share.
//! - Dependencies, clocks, randomness.

pub mod bucket;
pub mod curve;
mod index;
pub mod rotation;
pub mod share;
pub mod tiers;

pub use curve::Curve;
pub use rotation::{Rotate, Rotation};
pub use share::{Demand, SharePolicy, Shares};
