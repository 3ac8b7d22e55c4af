//! The search for a byte among eight, by a few operations on one word and without a branch that could be guessed wrong.

/// A bit for each place in which something is.
pub(super) type Places = u16;

/// Which of eight bytes are that one: the upper bit of each.
#[inline]
pub(super) fn alike(tag: u8, eight: [u8; 8]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // Zero where they are alike.
    let other = u64::from_le_bytes(eight) ^ u64::from_le_bytes([tag; 8]);
    // No byte carries into the next.
    !(((other & LOW) + LOW) | other | LOW)
}

/// The upper bits of eight bytes, side by side.
#[inline]
pub(super) fn gathered(upper: u64) -> Places {
    // Each finds its place in the uppermost byte, and none finds that of another.
    ((upper >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as Places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_found_where_they_are(eight in prop::array::uniform8(prop_oneof![0..3u8, 0x7e..0x83u8, 0xfd..=0xffu8]), tag: u8) {
            for tag in eight.into_iter().chain([tag]) {
                let places = (0..8).filter(|&place| eight[place] == tag);
                prop_assert_eq!(gathered(alike(tag, eight)), places.fold(0, |places, place| places | 1 << place));
            }
        }
    }
}
