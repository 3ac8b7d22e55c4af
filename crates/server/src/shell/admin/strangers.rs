//! The calls of those who may nothing: so many of each identity are written down, and the rest are counted.
//!
//! Each record is a write to a disk that must be there before the call is answered: whoever may not do anything must not fill it,
//! nor wear it out.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lessor_proto::Time;

use crate::access::Tempo;

/// The identities whose calls come to nothing.
#[derive(Debug, Default)]
pub(super) struct Strangers(Mutex<BTreeMap<Box<str>, Stranger>>);

#[derive(Debug)]
struct Stranger {
    records: Tempo,
    /// Calls since the last one that was written down.
    left_out: u64,
}

/// A call that is not written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeftOut {
    /// Whether it is the first one after one that was.
    pub(super) is_first: bool,
}

/// Records of one identity in the long run.
pub(super) const PER_SECOND: f64 = 1.0;
/// The time in which records may come that are then written at once.
const BURST: Duration = Duration::from_secs(20);
/// Identities that are kept before those are looked for that have not called for long.
const SWEPT: usize = 1_024;

// === impl Strangers ===

impl Strangers {
    /// Takes a record of one more call. Returns the number of those that were left out before it.
    ///
    /// # Errors
    /// When there have been too many.
    pub(super) fn take(&self, identity: &str, now: Time) -> Result<u64, LeftOut> {
        let mut strangers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if strangers.len() >= SWEPT && !strangers.contains_key(identity) {
            strangers.retain(|_, stranger| !stranger.records.is_idle(now));
        }
        let stranger = strangers
            .entry(identity.into())
            .or_insert_with(|| Stranger { records: Tempo::new(PER_SECOND, BURST), left_out: 0 });
        if stranger.records.take(now).is_ok() {
            return Ok(std::mem::take(&mut stranger.left_out));
        }
        stranger.left_out += 1;
        Err(LeftOut { is_first: stranger.left_out == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_identity_has_a_burst_and_is_told_how_many_were_left_out() {
        let strangers = Strangers::default();
        let start = Time::ZERO + Duration::from_secs(100);
        let calls: Vec<_> = (0..50).map(|_| strangers.take("plain", start)).collect();
        assert!(calls[..20].iter().all(|call| *call == Ok(0)), "{calls:?}");
        assert_eq!(calls[20], Err(LeftOut { is_first: true }));
        assert!(calls[21..].iter().all(|call| *call == Err(LeftOut { is_first: false })), "{calls:?}");
        assert_eq!(strangers.take("other", start), Ok(0));
        let later = start + Duration::from_secs(1);
        assert_eq!((strangers.take("plain", later), strangers.take("other", later)), (Ok(30), Ok(0)));
    }

    #[test]
    fn identities_that_are_quiet_are_forgotten() {
        let strangers = Strangers::default();
        for name in 0..5_000u64 {
            let now = Time::ZERO + Duration::from_secs(name);
            assert_eq!(strangers.take(&name.to_string(), now), Ok(0));
        }
        assert!(strangers.0.lock().expect("nobody panics").len() <= SWEPT);
    }
}
