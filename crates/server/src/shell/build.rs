//! The build of a program: its version, and the commit that it comes from.

/// The version of a program, and the commit that it was built from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Build {
    /// The version of the package.
    pub version: String,
    /// The commit; empty where that is not known.
    pub commit: String,
}

// === impl Build ===

impl Default for Build {
    fn default() -> Build {
        Build { version: env!("CARGO_PKG_VERSION").to_owned(), commit: String::new() }
    }
}
