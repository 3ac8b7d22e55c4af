//! The way to speak to servers: over a stream, or by polling.

use std::fmt;

/// The way a session speaks to servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    /// Over a stream; by polling where a server has none.
    #[default]
    Stream,
    /// By polling.
    Poll,
}

// === impl Transport ===

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Transport::Stream => "stream",
            Transport::Poll => "poll",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_said_in_a_word() {
        assert_eq!([Transport::Stream, Transport::Poll].map(|way| way.to_string()), ["stream", "poll"]);
    }
}
