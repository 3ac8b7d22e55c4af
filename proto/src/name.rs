//! Names of clients and resources: any text without control characters, one byte or more.
//!
//! How long a name may be is the server's choice ([`crate::message::Limits`]); what it may hold is not.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use compact_str::CompactString;

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
    // Nearly all are plain, and bytes are sooner looked at than characters, all of them sooner than up to the first.
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte);
    if text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        return Ok(());
    }
    match text.chars().find(|c| c.is_control()) {
        Some(control) => Err(BadName::Control(control)),
        None => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident($text:ty)) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($text);

        impl $name {
            /// Checks `text`, which may have up to `max_bytes` bytes.
            ///
            /// # Errors
            /// When it is empty, longer than that, or holds a control character.
            pub fn new(text: impl AsRef<str> + Into<$text>, max_bytes: usize) -> Result<$name, BadName> {
                check(text.as_ref(), max_bytes)?;
                Ok($name(text.into()))
            }

            /// The text.
            #[must_use]
            #[inline]
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
    /// The id of a client, or of a server that acts as one. Every request brings its own, and up to 24 bytes of it lie here.
    ClientId(CompactString)
);
name!(
    /// The id of a resource. Whoever has something of it shares the text.
    ResourceId(Arc<str>)
);

/// With that the name of a floor ends.
const FLOOR: &str = "|safe";

/// With that the name of a domain begins in the name of the resource that is leased for it alone.
const DOMAIN: &str = "|d:";

/// With that the name of a second limit ends.
const BESIDE: &str = "|beside";

/// Between that and another bar the number of workers stands in the name of a pool.
const WORKERS: &str = "|w:";

// === impl ResourceId ===

impl ResourceId {
    /// The bytes that a name may have where nobody says otherwise: servers take no longer ones by default.
    pub const USUAL_BYTES: usize = 256;

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

    /// The resource of which `domain` has a lease of its own, where domains of this one have that: `db` has `db|d:tenant-42`.
    /// Nothing if there can be no such name, because it would have more than `max_bytes` bytes, or a control character, or
    /// would be that of something else: of a floor, or of a domain of another resource.
    #[must_use]
    pub fn of_domain(&self, domain: &str, max_bytes: usize) -> Option<ResourceId> {
        let fits = self.0.len() + DOMAIN.len() + domain.len() <= max_bytes;
        if !fits || self.0.contains(DOMAIN) || domain.chars().any(char::is_control) {
            return None;
        }
        let id = ResourceId(format!("{}{DOMAIN}{domain}", self.0).into());
        (!id.is_floor()).then_some(id)
    }

    /// The *companion* of this one: the resource that the second limit is leased as which is tried beside it. `db` has
    /// `db|beside`. Nothing if there can be no such name, because it would have more than `max_bytes` bytes, or this is itself
    /// the part of a resource.
    #[must_use]
    pub fn companion(&self, max_bytes: usize) -> Option<ResourceId> {
        let fits = self.0.len() + BESIDE.len() <= max_bytes;
        (fits && self.base() == &*self.0).then(|| ResourceId(format!("{}{BESIDE}", self.0).into()))
    }

    /// The resource whose companion this is by its name, if it is of any.
    #[must_use]
    pub fn accompanied(&self) -> Option<ResourceId> {
        let of = ResourceId(self.0.strip_suffix(BESIDE).filter(|of| !of.is_empty())?.into());
        (of.base() == &*of.0).then_some(of)
    }

    /// The name of the resource that this is a part of: of a floor the one whose floor it is, of the lease of a domain the
    /// one whose domain it is, of a companion the one that it is tried beside, and of several of them too; or else its own.
    #[must_use]
    pub fn base(&self) -> &str {
        let name = self.0.strip_suffix(FLOOR).unwrap_or(&self.0);
        let name = name.split_once(DOMAIN).map_or(name, |(of, _)| of);
        let name = name.strip_suffix(BESIDE).unwrap_or(name);
        if name.is_empty() { &self.0 } else { name }
    }

    /// The number of workers that the name of a pool says, if this is one: 2 of `pool|w:2|KEY`.
    ///
    /// ```
    /// use lessor_proto::ResourceId;
    ///
    /// let workers = |name: &str| ResourceId::new(name, 256).ok().and_then(|id| id.workers());
    /// assert_eq!((workers("pool|w:2|key"), workers("pool|w:500|a|w:7|b")), (Some(2), Some(500)));
    /// assert_eq!((workers("pool|w:0|key"), workers("pool|w:02|key"), workers("pool|w:2")), (None, None, None));
    /// ```
    #[must_use]
    pub fn workers(&self) -> Option<u32> {
        let (number, _) = self.0.split_once(WORKERS)?.1.split_once('|')?;
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
        number.parse().ok().filter(|_| is_plain)
    }

    /// Of which resource and which domain of it this is the lease by its name, if of any.
    #[must_use]
    pub fn domained(&self) -> Option<(ResourceId, &str)> {
        let (of, domain) = self.0.split_once(DOMAIN).filter(|(of, _)| !of.is_empty())?;
        (!self.is_floor()).then(|| (ResourceId(of.into()), domain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_part_of_a_resource_has_its_name_for_base() {
        for (name, base) in
            [("db", "db"), ("db|safe", "db"), ("db|d:acme", "db"), ("|safe", "|safe"), ("|d:x", "|d:x")]
        {
            assert_eq!(ResourceId::new(name, 256).unwrap().base(), base);
        }
        for (name, base) in [("db|beside", "db"), ("db|beside|safe", "db"), ("|beside", "|beside")] {
            assert_eq!(ResourceId::new(name, 256).unwrap().base(), base);
        }
    }

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
    fn the_lease_of_a_domain_knows_whose_it_is() {
        let name = |text| ResourceId::new(text, 256).unwrap();
        let of = |resource, domain| name(resource).of_domain(domain, 20);
        for (domain, text) in
            [("a", "db|d:a"), ("", "db|d:"), ("x|d:y", "db|d:x|d:y"), ("a/ß |", "db|d:a/ß |")]
        {
            let id = of("db", domain).unwrap();
            assert_eq!((id.as_str(), id.domained()), (text, Some((name("db"), domain))));
        }
        assert_eq!(of("db|d", ":d:a").unwrap().domained(), Some((name("db|d"), ":d:a")));
        assert_eq!(of("db", "fifteen bytes !").unwrap().as_str().len(), 20);
        // Too long, a control character, a floor, and the domain of another resource.
        let others = [("db", "sixteen bytes !!"), ("db", "a\n"), ("db", "a|safe"), ("db|d:a", "b")];
        for (resource, domain) in others {
            assert_eq!(of(resource, domain), None, "{resource} {domain}");
        }
        for other in ["db", "|d:a", "db|d", "db|d:a|safe"] {
            assert_eq!(name(other).domained(), None, "{other}");
        }
    }

    #[test]
    fn a_companion_knows_whose_it_is() {
        let name = |text| ResourceId::new(text, 256).unwrap();
        let companion = name("db").companion(9).unwrap();
        assert_eq!((companion.as_str(), companion.accompanied()), ("db|beside", Some(name("db"))));
        assert_eq!(name("db").companion(8), None);
        for part in ["db|safe", "db|d:a", "db|beside"] {
            assert_eq!(name(part).companion(256), None, "{part}");
        }
        for other in ["db", "|beside", "db|besides", "db|d:a|beside", "db|safe|beside", "db|beside|safe"] {
            assert_eq!(name(other).accompanied(), None, "{other}");
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
