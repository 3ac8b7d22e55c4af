//! Names of clients and resources: any text without control characters, one byte or more.
//!
//! How long a name may be is the server's choice ([`crate::message::Limits`]); what it may hold is not.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Why a text is not a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadName {
    /// It has no character at all.
    #[error("is empty")]
    Empty,
    /// It has this many bytes, more than allowed.
    #[error("is {0} bytes long")]
    TooLong(usize),
    /// It has this control character.
    #[error("contains the control character {0:?}")]
    Control(char),
}

fn check(text: &str, max_bytes: usize) -> Result<(), BadName> {
    if text.is_empty() {
        return Err(BadName::Empty);
    }
    if text.len() > max_bytes {
        return Err(BadName::TooLong(text.len()));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(control) => Err(BadName::Control(control)),
        None => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text`, which may have up to `max_bytes` bytes.
            ///
            /// # Errors
            /// When it is empty, longer than that, or holds a control character.
            pub fn new(text: impl AsRef<str> + Into<Arc<str>>, max_bytes: usize) -> Result<$name, BadName> {
                check(text.as_ref(), max_bytes)?;
                Ok($name(text.into()))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name!(
    /// The id of a client, or of a server that acts as one.
    ClientId
);
name!(
    /// The id of a resource.
    ResourceId
);

/// With that the name of a floor ends.
const FLOOR: &str = "|safe";

// === impl ResourceId ===

impl ResourceId {
    /// The resource of which the *floor* of this one is leased: what is reserved of its capacity for those who reach no
    /// server (PROTOCOL.md 7.2). `db` has `db|safe`, which is longer by five bytes.
    #[must_use]
    pub fn floor(&self) -> ResourceId {
        ResourceId(format!("{}{FLOOR}", self.0).into())
    }

    /// Of which resource this is the floor by its name, if of any.
    #[must_use]
    pub fn floored(&self) -> Option<ResourceId> {
        let name = self.0.strip_suffix(FLOOR).filter(|name| !name.is_empty())?;
        Some(ResourceId(name.into()))
    }

    /// Whether it is a floor by its name.
    #[must_use]
    pub fn is_floor(&self) -> bool {
        self.0.len() > FLOOR.len() && self.0.ends_with(FLOOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_knows_whose_it_is() {
        let name = |text| ResourceId::new(text, 256).unwrap();
        let floor = name("db").floor();
        assert_eq!((floor.as_str(), floor.is_floor(), floor.floored()), ("db|safe", true, Some(name("db"))));
        for other in ["db", "|safe", "db|safes"] {
            assert_eq!((name(other).is_floor(), name(other).floored()), (false, None), "{other}");
        }
    }

    #[test]
    fn anything_without_control_characters_is_a_name() {
        assert_eq!(ResourceId::new("db/orders größe", 256).unwrap().as_str(), "db/orders größe");
        assert_eq!(ResourceId::new("", 256), Err(BadName::Empty));
        assert_eq!(ResourceId::new("four", 3), Err(BadName::TooLong(4)));
        assert_eq!(ResourceId::new("a\nb", 256), Err(BadName::Control('\n')));
    }
}
