//! Tokens: what a holder has from a leader of this node, in a form that a later leader can believe.
//!
//! A leader knows nothing of what the leaders before it have granted to whom. So each grant carries a token, which names
//! the epoch, the number and the amount of the grant, and seals them together with the name of the node, the holder and
//! the resource under a key that only the leaders of the node know. A holder shows the token to a new leader together with
//! what it claims.
//!
//! A client is sealed in with its incarnation: another process of the same id has no part in it. Of a node there is one
//! leader at a time that speaks, and all of them hold the same, so it is sealed in by its name alone. Holders that draw no
//! incarnation have tokens of another form: [`PolledLease`].
//!
//! The seal is BLAKE3 with a key, cut to 16 bytes.

mod poller;

use std::fmt;

use lessor_proto::message::{HolderKind, Order};
use lessor_proto::{Amount, Epoch, Incarnation, ResourceId};
use smallvec::{SmallVec, smallvec};

pub use self::poller::{PolledLease, PollerLife};

/// A secret of all leaders of a node.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

/// The keys in force: while they are changed, tokens under the one before are believed too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenKeys {
    /// Tokens are made with it.
    pub current: Key,
    /// Tokens made with it are believed.
    pub previous: Option<Key>,
}

/// The holder and the resource that a token is for.
#[derive(Clone, Copy, Debug)]
pub struct Bearer<'a> {
    /// The name of the node that grants.
    pub node: &'a str,
    /// Whether a client or a node holds.
    pub kind: HolderKind,
    /// Its name.
    pub holder: &'a str,
    /// Which life of it; of no account for a node.
    pub incarnation: Incarnation,
    /// The resource that it holds.
    pub resource: &'a ResourceId,
}

/// The content of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Content {
    /// Which grant.
    pub order: Order,
    /// The amount that it gave.
    pub amount: Amount,
}

/// Why a claim is not honoured, or not in full.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum Doubt {
    /// Nothing stands behind it.
    #[error("a claim without a token")]
    Missing,
    /// The seal is not ours, or was made for somebody or something else.
    #[error("a token whose seal does not fit")]
    Forged,
    /// It is of this epoch or a later one.
    #[error("a token that is not of an earlier epoch")]
    NotEarlier,
    /// It was granted before the line of succession that this leader goes on with; the node above counts it.
    #[error("a token of an epoch before those of the record")]
    BeforeRecord,
    /// More is claimed than was granted.
    #[error("a claim of more than its token says")]
    TooLarge,
}

/// Bytes of what a token says, before its seal: epoch, number and amount.
const CONTENT: usize = 24;
/// Bytes of the seal.
const SEAL: usize = 16;
/// Bytes that are sealed without a place on the heap: what is sealed with names of usual lengths.
const SEALED: usize = 256;

// === impl Key ===

impl Key {
    /// A key of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// A key of its own for what `context` names: a seal of one use fits no other.
    pub(crate) fn derived(&self, context: &str) -> [u8; 32] {
        blake3::derive_key(context, &self.0)
    }

    /// The seal on `content` for `bearer`. Names are sealed with their lengths, so that no two of them can be taken for two
    /// others.
    fn seal(&self, bearer: &Bearer<'_>, content: &[u8]) -> [u8; SEAL] {
        self.seal_form(1, bearer, content)
    }

    /// The same of a token of that form.
    fn seal_form(&self, form: u8, bearer: &Bearer<'_>, content: &[u8]) -> [u8; SEAL] {
        let (kind, incarnation) = match bearer.kind {
            HolderKind::Client => (0, bearer.incarnation),
            HolderKind::Node => (1, Incarnation::default()),
        };
        // All of it at once: a hasher that is told it bit by bit takes longer than the hash.
        let mut sealed: SmallVec<[u8; SEALED]> = smallvec![form, kind];
        sealed.extend_from_slice(&incarnation.0.to_le_bytes());
        sealed.extend_from_slice(content);
        for name in [bearer.node, bearer.holder, bearer.resource.as_str()] {
            sealed.extend_from_slice(&(name.len() as u64).to_le_bytes());
            sealed.extend_from_slice(name.as_bytes());
        }
        let hash = blake3::keyed_hash(&self.0, &sealed);
        let (seal, _) = hash.as_bytes().split_first_chunk().expect("a hash is longer than a seal");
        *seal
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

// === impl TokenKeys ===

impl TokenKeys {
    /// One key, and none before it.
    #[must_use]
    pub const fn new(current: Key) -> TokenKeys {
        TokenKeys { current, previous: None }
    }

    /// A token for `bearer` that says `content`.
    #[must_use]
    pub fn token(&self, bearer: &Bearer<'_>, content: Content) -> Vec<u8> {
        let said = content.to_bytes();
        let mut token = Vec::with_capacity(CONTENT + SEAL);
        token.extend_from_slice(&said);
        token.extend_from_slice(&self.current.seal(bearer, &said));
        token
    }

    /// The content of `token`, if it was made for `bearer`.
    ///
    /// # Errors
    /// When there is none, or it was not.
    pub fn open(&self, bearer: &Bearer<'_>, token: &[u8]) -> Result<Content, Doubt> {
        if token.is_empty() {
            return Err(Doubt::Missing);
        }
        let (said, seal) = token.split_at_checked(CONTENT).ok_or(Doubt::Forged)?;
        self.check(seal, |key| key.seal(bearer, said))?;
        Content::from_bytes(said)
    }

    /// Whether `seal` is the one that one of the keys makes.
    fn check(&self, seal: &[u8], made: impl Fn(&Key) -> [u8; SEAL]) -> Result<(), Doubt> {
        let seal = <[u8; SEAL]>::try_from(seal).map_err(|_| Doubt::Forged)?;
        let mut keys = std::iter::once(&self.current).chain(&self.previous);
        let fits = |key: &Key| constant_time_eq::constant_time_eq_16(&made(key), &seal);
        if keys.any(fits) { Ok(()) } else { Err(Doubt::Forged) }
    }
}

// === impl Content ===

impl Content {
    fn to_bytes(self) -> [u8; CONTENT] {
        let mut bytes = [0; CONTENT];
        let numbers = [self.order.epoch.0, self.order.seq, self.amount.as_micros()];
        for (bytes, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Content, Doubt> {
        let mut numbers =
            bytes.chunks_exact(8).filter_map(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        let mut next = || numbers.next().ok_or(Doubt::Forged);
        let order = Order { epoch: Epoch(next()?), seq: next()? };
        Ok(Content { order, amount: Amount::from_micros(next()?) })
    }
}

#[cfg(test)]
mod tests;
