//! Scope `shared`: what domains do at one client is told to the others that serve them.
//!
//! Clients say what their domains did, sooner or later (see `lessor_client::internals::domain`, which also has the rules by
//! which they decide alone). Of each domain of which anything was said a history is kept for every client, and one of all of them
//! together. When that shows that half of a limit is used up, or that a tier was entered which rests afterwards, the domain
//! is *hot*: all clients are told so, and from then on say everything, and those that serve it are told what the others do.
//!
//! Nothing is granted or refused here, and no lease depends on it. What is lost with this process is told again, to
//! whoever leads next.
//!
//! A history belongs to one life of one client, and outlives its streams. What a client says anew takes the place of what
//! it had said, so nothing is counted twice.

mod hot_set;
mod marking;
mod origin;
mod part;
mod remainder;
mod rounds;
mod schedule;
mod shared;
mod state;
mod subscriber;
mod subscribers;
mod sum;
mod sync;

pub use self::shared::{DomainStatus, DomainTierStatus, DomainsStatus, RehearsedDomain};
pub use self::sync::{DomainEvent, DomainOutput, DomainSync};
