//! The peer of a connection as that itself shows it: no request can claim it, nor a proxy forward it.

use std::borrow::Cow;

use crate::attribute::Attribute;

/// The peer of a connection, as the system and its certificate show it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ShownPeer {
    /// The number of the user at the other end of a socket of the file system.
    pub user: Option<Box<str>>,
    /// The path of the program there, as it was when the connection came.
    pub program: Option<Box<str>>,
    /// The identity in the certificate: its name as a URI, or else as a host.
    pub identity: Option<Box<str>>,
}

/// A peer that shows nothing.
pub static NOBODY: ShownPeer = ShownPeer { user: None, program: None, identity: None };

// === impl ShownPeer ===

impl ShownPeer {
    /// The value of an attribute that a connection shows; absent of all others.
    #[must_use]
    pub fn value(&self, attribute: &Attribute) -> Option<Cow<'_, str>> {
        let shown = match attribute {
            Attribute::PeerUser => &self.user,
            Attribute::PeerProgram => &self.program,
            Attribute::PeerIdentity => &self.identity,
            _ => return None,
        };
        shown.as_deref().map(Cow::Borrowed)
    }
}
