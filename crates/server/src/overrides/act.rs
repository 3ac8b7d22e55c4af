//! The act of an override: the thing that it does, and whom it is about.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The act of an override.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OverrideAct {
    /// Nobody has more of a resource: who has some keeps what is wanted of that, and newcomers get nothing.
    Freeze {
        /// A name or a glob.
        resource: String,
    },
    /// Clients get nothing, and what they have is recalled.
    DrainClient {
        /// An id or a glob.
        client: String,
        /// A name or a glob; absent: of everything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<String>,
        /// Whether asking again is refused.
        #[serde(default)]
        deny: bool,
    },
    /// A domain is closed, whatever its policies say.
    DrainDomain {
        /// The domain, and all that begins with it and a slash.
        domain: String,
        /// A name or a glob.
        resource: String,
    },
    /// A node gets nothing from the one above, so that those below it run dry within a lease.
    DrainNode {
        /// A name or a glob.
        node: String,
    },
    /// There is no more of a resource than that.
    Cap {
        /// A name or a glob.
        resource: String,
        /// In units a second, or units.
        capacity: f64,
    },
    /// Clients let everything pass that leases and policies refuse, and count it.
    Unenforce {
        /// A name or a glob.
        resource: String,
    },
}

/// The kind of an override.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OverrideKind {
    /// [`OverrideAct::Freeze`].
    Freeze,
    /// [`OverrideAct::DrainClient`].
    DrainClient,
    /// [`OverrideAct::DrainDomain`].
    DrainDomain,
    /// [`OverrideAct::DrainNode`].
    DrainNode,
    /// [`OverrideAct::Cap`].
    Cap,
    /// [`OverrideAct::Unenforce`].
    Unenforce,
}

// === impl OverrideAct ===

impl OverrideAct {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> OverrideKind {
        match self {
            OverrideAct::Freeze { .. } => OverrideKind::Freeze,
            OverrideAct::DrainClient { .. } => OverrideKind::DrainClient,
            OverrideAct::DrainDomain { .. } => OverrideKind::DrainDomain,
            OverrideAct::DrainNode { .. } => OverrideKind::DrainNode,
            OverrideAct::Cap { .. } => OverrideKind::Cap,
            OverrideAct::Unenforce { .. } => OverrideKind::Unenforce,
        }
    }

    /// The resources that it is about, by name or glob; absent: all.
    #[must_use]
    pub fn resource(&self) -> Option<&str> {
        match self {
            OverrideAct::Freeze { resource }
            | OverrideAct::DrainDomain { resource, .. }
            | OverrideAct::Cap { resource, .. }
            | OverrideAct::Unenforce { resource } => Some(resource),
            OverrideAct::DrainClient { resource, .. } => resource.as_deref(),
            OverrideAct::DrainNode { .. } => None,
        }
    }

    /// The clients or nodes that it drains, by name or glob.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        match self {
            OverrideAct::DrainClient { client: holder, .. } | OverrideAct::DrainNode { node: holder } => {
                Some(holder)
            }
            OverrideAct::Freeze { .. }
            | OverrideAct::DrainDomain { .. }
            | OverrideAct::Cap { .. }
            | OverrideAct::Unenforce { .. } => None,
        }
    }

    pub(super) fn is_denied(&self) -> bool {
        matches!(self, OverrideAct::DrainClient { deny: true, .. })
    }
}

/// In words, as operators read it.
impl fmt::Display for OverrideAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverrideAct::Freeze { resource } => write!(f, "{resource} is frozen"),
            OverrideAct::DrainClient { client, resource, deny } => {
                write!(f, "client {client} gets nothing")?;
                if let Some(resource) = resource {
                    write!(f, " of {resource}")?;
                }
                f.write_str(if *deny { ", and is refused" } else { "" })
            }
            OverrideAct::DrainDomain { domain, resource } => {
                write!(f, "{resource} is closed to domain {domain}")
            }
            OverrideAct::DrainNode { node } => write!(f, "node {node} gets nothing"),
            OverrideAct::Cap { resource, capacity } => write!(f, "{resource} has no more than {capacity}"),
            OverrideAct::Unenforce { resource } => write!(f, "clients let everything of {resource} pass"),
        }
    }
}

// === impl OverrideKind ===

impl OverrideKind {
    /// All of them.
    pub const ALL: [OverrideKind; 6] = [
        OverrideKind::Freeze,
        OverrideKind::DrainClient,
        OverrideKind::DrainDomain,
        OverrideKind::DrainNode,
        OverrideKind::Cap,
        OverrideKind::Unenforce,
    ];

    /// The name, as in figures and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            OverrideKind::Freeze => "freeze",
            OverrideKind::DrainClient => "drain_client",
            OverrideKind::DrainDomain => "drain_domain",
            OverrideKind::DrainNode => "drain_node",
            OverrideKind::Cap => "cap",
            OverrideKind::Unenforce => "unenforce",
        }
    }

    /// Whether it changes a resource itself, and not what single holders have of it.
    pub(super) fn is_about_resource(self) -> bool {
        !matches!(self, OverrideKind::DrainClient | OverrideKind::DrainNode)
    }
}
