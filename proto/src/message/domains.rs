//! Domains: their policies as they travel, and what clients tell each other of hits.
//!
//! The meaning of policies is for holders to say, who apply them; what travels has a version, by which both ends know
//! whether they speak of the same.

mod hits;
mod news;
mod report;

pub use hits::{DomainEntry, DomainHits, LONGEST_DOMAIN, MOST_DOMAINS, MOST_ENTRIES};
pub use news::DomainNews;
pub use report::{Census, DomainReport};

use prost::Message;

use crate::wire;

/// The policies under the version that belongs to them, whatever version they had: never 0, and the same wherever the same
/// is configured.
///
/// ```
/// use lessor_proto::{message::sealed, wire::DomainPolicies};
///
/// let open = sealed(DomainPolicies { allow_unconfigured: vec!["".into()], ..DomainPolicies::default() });
/// let other = sealed(DomainPolicies { allow_unconfigured: vec!["a".into()], ..DomainPolicies::default() });
/// assert_ne!(open.version, other.version);
/// assert_eq!(sealed(open.clone()), open);
/// ```
#[must_use]
pub fn sealed(policies: wire::DomainPolicies) -> wire::DomainPolicies {
    let bare = wire::DomainPolicies { version: 0, ..policies };
    let version = digest(&bare.encode_to_vec()).max(1);
    wire::DomainPolicies { version, ..bare }
}

/// FNV-1a, both halves of 64 bits: the same on every machine.
fn digest(bytes: &[u8]) -> u32 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u32 ^ hash as u32
}
