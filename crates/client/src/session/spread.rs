//! Spread without dice: a fraction that depends on who holds and on which attempt it is, and on nothing else.
//!
//! A thousand clients that lost their server in the same instant come back at a thousand different moments, and a run
//! with the same ids replays exactly.

use lessor_proto::{ClientId, Incarnation};

/// The identity of the one who spreads: the client id and its incarnation, hashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spread(u64);

// === impl Spread ===

impl Spread {
    /// FNV-1a over the id, then the incarnation mixed in.
    pub(super) fn new(holder: &ClientId, incarnation: Incarnation) -> Spread {
        let bytes = holder.as_str().bytes();
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Spread(mix(hash ^ mix(incarnation.0)))
    }

    /// From 0 up to but not including 1.
    pub(super) fn fraction(self, attempt: u64) -> f64 {
        // The upper 53 bits fill a double exactly.
        (mix(self.0 ^ mix(attempt)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// One step of SplitMix64.
fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_holders_spread_evenly() {
        let mut tenths = [0_u32; 10];
        for holder in 0..1_000 {
            let holder = ClientId::new(format!("web-{holder}"), 256).unwrap();
            tenths[(Spread::new(&holder, Incarnation(1)).fraction(1) * 10.0) as usize] += 1;
        }
        assert!(tenths.iter().all(|&count| (60..140).contains(&count)), "{tenths:?}");
    }

    #[test]
    fn attempts_of_one_holder_differ_and_replay() {
        let spread = Spread::new(&ClientId::new("web-1", 256).unwrap(), Incarnation(1));
        assert_ne!(spread.fraction(1).to_bits(), spread.fraction(2).to_bits());
        assert_eq!(spread.fraction(7).to_bits(), spread.fraction(7).to_bits());
    }
}
