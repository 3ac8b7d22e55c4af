//! The tempo of computations that a connection may ask for.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lessor_proto::Time;

/// The computations of each connection in the last second.
#[derive(Debug, Default)]
pub(crate) struct Tempo(Mutex<BTreeMap<SocketAddr, Count>>);

/// The computations of one connection.
#[derive(Clone, Copy, Debug)]
struct Count {
    /// When they began to be counted.
    since: Time,
    computations: u32,
}

/// Computations of a connection in a second.
const PER_SECOND: u32 = 10;
const SECOND: Duration = Duration::from_secs(1);
/// Connections that are counted, after which those are forgotten that are quiet.
const SWEPT: usize = 1_024;

// === impl Tempo ===

impl Tempo {
    /// Whether a computation for that connection may begin at `now`.
    pub(crate) fn take(&self, connection: SocketAddr, now: Time) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= SWEPT && !counts.contains_key(&connection) {
            counts.retain(|_, count| now.since(count.since) < SECOND);
            if counts.len() >= SWEPT {
                return false;
            }
        }
        let count = counts.entry(connection).or_insert(Count { since: now, computations: 0 });
        if now.since(count.since) >= SECOND {
            *count = Count { since: now, computations: 0 };
        }
        count.computations += 1;
        count.computations <= PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_ten_a_second_and_others_have_theirs() {
        let (tempo, start) = (Tempo::default(), Time::ZERO + Duration::from_secs(100));
        let [one, other] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let taken = (0..12).filter(|_| tempo.take(one, start)).count();
        assert_eq!((taken, tempo.take(other, start)), (10, true));
        assert!(tempo.take(one, start + SECOND));
    }

    #[test]
    fn connections_that_are_quiet_are_forgotten() {
        let tempo = Tempo::default();
        for port in 0..5_000_u16 {
            let now = Time::ZERO + SECOND * u32::from(port);
            assert!(tempo.take(SocketAddr::from(([127, 0, 0, 1], port)), now));
        }
        assert!(tempo.0.lock().expect("nobody panics").len() <= SWEPT);
    }
}
