//! The digest of a text: its BLAKE3, by which documents and revisions are named.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// With what its text begins.
const PREFIX: &str = "b3:";

// === impl Digest ===

impl Digest {
    /// That of a text.
    #[must_use]
    pub fn of(text: &str) -> Digest {
        Digest::of_bytes(text.as_bytes())
    }

    /// That of what came as bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Digest {
        Digest(blake3::hash(bytes).into())
    }

    /// Its 64 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.hex())
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Digest, String> {
        let hash = text.strip_prefix(PREFIX).and_then(|hex| blake3::Hash::from_hex(hex).ok());
        let digest = hash.map(|hash| Digest(hash.into()));
        digest.ok_or_else(|| format!("digest {text:?}; wanted {PREFIX} and 64 hexadecimal digits"))
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Digest, String> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}
