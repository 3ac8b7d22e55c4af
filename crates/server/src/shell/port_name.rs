//! The ports of a server by name, as figures and messages have them.

use super::measure::Label;

/// A port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shell) enum Port {
    /// That of gRPC, with pages.
    Main,
    /// That of pages alone.
    Http,
    /// That of operators.
    Admin,
}

// === impl Port ===

impl Label for Port {
    const NAME: &'static str = "port";
    const VALUES: &'static [&'static str] = &["main", "http", "admin"];

    fn place(self) -> usize {
        self as usize
    }
}
