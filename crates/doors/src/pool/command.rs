//! Commands: what a line asks for. Words are separated by any number of spaces.

/// The command of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolCommand<'a> {
    /// A lock is asked for.
    Acquire {
        /// Whether the caller goes on also when somebody else has done the work.
        for_anyone: bool,
        /// The words behind it, which are read once it is known that the caller may ask.
        words: &'a [u8],
    },
    /// The newest lock is given back, or the wait for it given up.
    Release,
    /// Figures of that name are asked for.
    Figures(&'a [u8]),
    /// None of them.
    Unknown,
}

/// The words of a request for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolRequest<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The most workers of the key.
    pub workers: u32,
    /// The most that work or wait for the key at this door.
    pub queue: u32,
    /// The seconds for which the caller waits: none where the word is no natural number.
    pub seconds: u32,
}

// === impl PoolCommand ===

impl PoolCommand<'_> {
    /// The command that a line is.
    #[must_use]
    pub fn read(line: &[u8]) -> PoolCommand<'_> {
        if let Some(words) = line.strip_prefix(b"ACQ4ME ") {
            PoolCommand::Acquire { for_anyone: false, words }
        } else if let Some(words) = line.strip_prefix(b"ACQ4ANY ") {
            PoolCommand::Acquire { for_anyone: true, words }
        } else if line.starts_with(b"RELEASE") {
            PoolCommand::Release
        } else if let Some(name) = line.strip_prefix(b"STATS ") {
            PoolCommand::Figures(name)
        } else {
            PoolCommand::Unknown
        }
    }
}

// === impl PoolRequest ===

impl PoolRequest<'_> {
    /// The request that these words are; nothing without a key, or without workers or a queue that are natural numbers.
    #[must_use]
    pub fn read(words: &[u8]) -> Option<PoolRequest<'_>> {
        let mut words = words.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        let key = words.next()?;
        let mut number = || words.next().map_or(0, natural);
        let [workers, queue, seconds] = [number(), number(), number()];
        (workers > 0 && queue > 0).then_some(PoolRequest { key, workers, queue, seconds })
    }
}

/// The number that a word is, or the greatest there is; 0 if it is none.
fn natural(word: &[u8]) -> u32 {
    let mut digits = word.iter().map(|byte| byte.is_ascii_digit().then(|| u32::from(byte - b'0')));
    let number =
        digits.try_fold(0_u32, |number, digit| Some(number.saturating_mul(10).saturating_add(digit?)));
    number.unwrap_or(0)
}
