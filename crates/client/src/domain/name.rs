//! The name of a domain, within its record if it is short, so that comparing it is no look at another place in memory.

/// The most bytes of a name that are kept within the record.
const WITHIN: usize = 19;
/// In place of the length: the name is longer than that, and lies elsewhere.
const LONG: u8 = u8::MAX;

/// A name, or the beginning of a long one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    len: u8,
    bytes: [u8; WITHIN],
}

// === impl Name ===

impl Name {
    /// The name, and all of it in a place of its own if it is long.
    pub(super) fn new(name: &str) -> (Name, Option<Box<str>>) {
        let within = name.len().min(WITHIN);
        let mut bytes = [0; WITHIN];
        bytes[..within].copy_from_slice(&name.as_bytes()[..within]);
        match u8::try_from(name.len()) {
            Ok(len) if within == name.len() => (Name { len, bytes }, None),
            _ => (Name { len: LONG, bytes }, Some(name.into())),
        }
    }

    /// Whether it is that name, or begins as that does if `long` has the whole name.
    #[inline]
    pub(super) fn is(&self, name: &str, long: Option<&str>) -> bool {
        match usize::from(self.len) {
            len if len <= WITHIN => self.bytes[..len] == *name.as_bytes(),
            _ => name.as_bytes().starts_with(&self.bytes) && long == Some(name),
        }
    }

    /// The name, which is `long` if it is one.
    pub(super) fn as_str<'a>(&'a self, long: Option<&'a str>) -> &'a str {
        let short = || {
            let text = str::from_utf8(&self.bytes[..usize::from(self.len).min(WITHIN)]);
            text.unwrap_or_else(|_| unreachable!("it was made of text"))
        };
        long.unwrap_or_else(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_they_were_made_of_and_no_other() {
        let names = [
            "",
            "a",
            "tenant-42",
            "größer",
            "a\0",
            "a\0\0",
            &"x".repeat(19),
            &"x".repeat(20),
            &"x".repeat(255),
            &"ö".repeat(10),
            &"ö".repeat(300),
        ];
        for name in names {
            let (made, long) = Name::new(name);
            assert_eq!(made.as_str(long.as_deref()), name);
            for other in names {
                assert_eq!(made.is(other, long.as_deref()), name == other, "{name:?} {other:?}");
            }
        }
    }

    #[test]
    fn short_names_lie_within() {
        assert_eq!(size_of::<Name>(), 20);
        assert!(Name::new(&"x".repeat(WITHIN)).1.is_none());
    }
}
