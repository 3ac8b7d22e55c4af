//! Lines in what a connection brings: they end in a newline, with or without a carriage return before it.

/// The most bytes of a line.
pub const LONGEST_LINE: usize = 1023;

/// The bytes of a line that has not ended yet.
#[derive(Clone, Default, Debug)]
pub struct PoolLines {
    begun: Vec<u8>,
    /// Whether the line was too long, and its rest is passed over.
    is_skipped: bool,
}

/// A line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PoolLine {
    /// It has ended.
    Whole(Vec<u8>),
    /// It is longer than a line may be. What comes of it after this is passed over.
    TooLong,
}

// === impl PoolLines ===

impl PoolLines {
    /// Takes bytes from the beginning of `rest` up to the end of a line, and returns that line; all of them, and nothing, where
    /// none ends.
    pub fn next(&mut self, rest: &mut &[u8]) -> Option<PoolLine> {
        loop {
            let end = rest.iter().position(|&byte| byte == b'\n');
            let part = &rest[..end.unwrap_or(rest.len())];
            let is_long = self.begun.len() + part.len() > LONGEST_LINE;
            if !self.is_skipped && !is_long {
                self.begun.extend_from_slice(part);
            }
            *rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
            match (end, self.is_skipped) {
                (Some(_), true) => self.is_skipped = false,
                (None, true) => return None,
                (_, false) if is_long => {
                    self.begun.clear();
                    self.is_skipped = end.is_none();
                    return Some(PoolLine::TooLong);
                }
                (None, false) => return None,
                (Some(_), false) => {
                    self.begun.pop_if(|&mut byte| byte == b'\r');
                    return Some(PoolLine::Whole(std::mem::take(&mut self.begun)));
                }
            }
        }
    }
}
