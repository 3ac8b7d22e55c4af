//! Seeds as they are written on a command line: `1..8`.

use std::str::FromStr;

/// From the first seed to the last, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seeds {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// A text that is no range of seeds.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("found {0:?}, wanted two whole numbers as in 1..8, the second not below the first")]
pub(crate) struct BadSeeds(String);

// === impl Seeds ===

impl Seeds {
    /// All of them, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = u64> {
        self.first..=self.last
    }

    /// The number of seeds.
    pub(crate) fn count(self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}

impl FromStr for Seeds {
    type Err = BadSeeds;

    fn from_str(text: &str) -> Result<Seeds, BadSeeds> {
        let parse = || {
            let (first, last) = text.split_once("..")?;
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some(Seeds { first, last })
        };
        parse().ok_or_else(|| BadSeeds(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_belong_to_it() {
        assert_eq!("1..8".parse(), Ok(Seeds { first: 1, last: 8 }));
        assert_eq!("3..3".parse(), Ok(Seeds { first: 3, last: 3 }));
        assert_eq!((Seeds { first: 1, last: 8 }.count(), Seeds { first: 3, last: 3 }.count()), (8, 1));
    }

    #[test]
    fn other_words_are_refused() {
        for text in ["", "5", "8..1", "1..", "-1..3", "1..=3", "1...3", "a..b"] {
            assert_eq!(text.parse::<Seeds>(), Err(BadSeeds(text.to_owned())));
        }
    }
}
