//! Tokens of pollers: holders that draw no incarnation, as Doorman's clients, and echo what they do not know.
//!
//! Such a holder says nothing of itself but its id. Which life of it has what, until when, and by whose clock, stands in
//! the token of its lease: so a later leader can answer it with the very lease that it shows, and tell which grants of an
//! earlier leader counted still when that one stopped.

use lessor_proto::message::Order;
use lessor_proto::{Amount, Epoch, Incarnation, Time};

use super::{Bearer, Doubt, Key, SEAL, TokenKeys};

/// The lease of a poller, as its token states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolledLease {
    /// The life of the poller.
    pub life: PollerLife,
    /// Which grant it is.
    pub order: Order,
    /// The amount that it gave.
    pub amount: Amount,
    /// When it is certainly over, on the clock of the leader of the epoch `origin`.
    pub ends: Time,
    /// The Unix time, in seconds, at which it ends for its holder.
    pub expiry: u64,
    /// The epoch whose leader has charged it.
    pub origin: Epoch,
}

/// One life of a poller, under every leader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PollerLife {
    /// The epoch in which it was first granted something.
    pub epoch: Epoch,
    /// Its number within that epoch.
    pub session: Incarnation,
}

/// Bytes of what such a token says, before its seal.
const CONTENT: usize = 64;

// === impl TokenKeys ===

impl TokenKeys {
    /// A token for the poller `bearer` that says `lease`.
    #[must_use]
    pub fn poller_token(&self, bearer: &Bearer<'_>, lease: PolledLease) -> Vec<u8> {
        let said = lease.to_bytes();
        let mut token = said.to_vec();
        token.extend_from_slice(&self.current.poller_seal(bearer, &said));
        token
    }

    /// The lease that `token` states, if it was made for the poller `bearer`.
    ///
    /// # Errors
    /// When there is none, or it was not.
    pub fn open_poller(&self, bearer: &Bearer<'_>, token: &[u8]) -> Result<PolledLease, Doubt> {
        let lease = PolledLease::read(token)?;
        let (said, seal) = token.split_at_checked(CONTENT).ok_or(Doubt::Forged)?;
        self.check(seal, |key| key.poller_seal(bearer, said)).map(|()| lease)
    }
}

// === impl Key ===

impl Key {
    /// Which life it is stands in the content.
    fn poller_seal(&self, bearer: &Bearer<'_>, content: &[u8]) -> [u8; SEAL] {
        self.seal_form(2, &Bearer { incarnation: Incarnation::default(), ..*bearer }, content)
    }
}

// === impl PolledLease ===

impl PolledLease {
    /// The token of a node that has no keys: it says so much, and nobody vouches for it.
    #[must_use]
    pub fn unsealed(&self) -> Vec<u8> {
        self.to_bytes().to_vec()
    }

    /// The lease that a token states, sealed or not.
    ///
    /// # Errors
    /// When it is none of a poller's.
    pub fn read(token: &[u8]) -> Result<PolledLease, Doubt> {
        if token.is_empty() {
            return Err(Doubt::Missing);
        }
        if token.len() != CONTENT && token.len() != CONTENT + SEAL {
            return Err(Doubt::Forged);
        }
        let mut numbers = token[..CONTENT]
            .chunks_exact(8)
            .filter_map(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        let mut next = || numbers.next().ok_or(Doubt::Forged);
        Ok(PolledLease {
            life: PollerLife { epoch: Epoch(next()?), session: Incarnation(next()?) },
            order: Order { epoch: Epoch(next()?), seq: next()? },
            amount: Amount::from_micros(next()?),
            ends: Time::from_nanos(next()?),
            expiry: next()?,
            origin: Epoch(next()?),
        })
    }

    fn to_bytes(self) -> [u8; CONTENT] {
        let PolledLease { life, order, amount, ends, expiry, origin } = self;
        let numbers = [
            life.epoch.0,
            life.session.0,
            order.epoch.0,
            order.seq,
            amount.as_micros(),
            ends.as_nanos(),
            expiry,
            origin.0,
        ];
        let mut bytes = [0; CONTENT];
        for (bytes, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use lessor_proto::ResourceId;
    use lessor_proto::message::HolderKind;
    use proptest::prelude::*;

    use super::*;
    use crate::token::Content;

    fn lease() -> PolledLease {
        PolledLease {
            life: PollerLife { epoch: Epoch(2), session: Incarnation(11) },
            order: Order { epoch: Epoch(3), seq: 9 },
            amount: Amount::from_units(40),
            ends: Time::from_nanos(5_000_000_007),
            expiry: 1_700_000_000,
            origin: Epoch(3),
        }
    }

    fn resource(name: &str) -> ResourceId {
        ResourceId::new(name, 256).unwrap()
    }

    fn bearer(resource: &ResourceId) -> Bearer<'_> {
        Bearer {
            node: "root",
            kind: HolderKind::Client,
            holder: "web-1",
            incarnation: Incarnation(0),
            resource,
        }
    }

    #[test]
    fn a_token_says_what_it_was_made_of_and_is_good_for_nobody_else() {
        let (db, queue, keys) = (resource("db"), resource("queue"), TokenKeys::new(Key::new([7; 32])));
        let token = keys.poller_token(&bearer(&db), lease());
        assert_eq!(token.len(), 80);
        assert_eq!(keys.open_poller(&bearer(&db), &token), Ok(lease()));
        let others = [
            Bearer { node: "leaf", ..bearer(&db) },
            Bearer { kind: HolderKind::Node, ..bearer(&db) },
            Bearer { holder: "web-2", ..bearer(&db) },
            Bearer { resource: &queue, ..bearer(&db) },
        ];
        for other in others {
            assert_eq!(keys.open_poller(&other, &token), Err(Doubt::Forged), "{other:?}");
        }
    }

    #[test]
    fn tokens_of_other_forms_are_no_tokens_of_pollers() {
        let (db, keys) = (resource("db"), TokenKeys::new(Key::new([7; 32])));
        let content = Content { order: lease().order, amount: lease().amount };
        for token in [keys.token(&bearer(&db), content), 7_u64.to_le_bytes().to_vec()] {
            assert_eq!(keys.open_poller(&bearer(&db), &token), Err(Doubt::Forged));
        }
        assert_eq!(keys.open_poller(&bearer(&db), &[]), Err(Doubt::Missing));
        // Without a seal it is read where nobody has keys, and only there.
        let open = lease().unsealed();
        assert_eq!(PolledLease::read(&open), Ok(lease()));
        assert_eq!(keys.open_poller(&bearer(&db), &open), Err(Doubt::Forged));
    }

    proptest! {
        #[test]
        fn a_token_that_was_touched_is_forged(at in 0usize..80, bit in 0u8..8) {
            let (db, keys) = (resource("db"), TokenKeys::new(Key::new([7; 32])));
            let mut token = keys.poller_token(&bearer(&db), lease());
            token[at] ^= 1 << bit;
            prop_assert_eq!(keys.open_poller(&bearer(&db), &token), Err(Doubt::Forged));
        }
    }
}
