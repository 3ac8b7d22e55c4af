//! The way to speak to servers: over a stream, or by polling.

/// The way a session speaks to servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    /// Over a stream; by polling where a server has none.
    #[default]
    Stream,
    /// By polling.
    Poll,
}
