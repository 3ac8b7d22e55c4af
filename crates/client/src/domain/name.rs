//! The name of a domain, within its record if it is short, so that comparing it is no look at another place in memory.

/// The most bytes of a name that are kept within the record.
const WITHIN: usize = 22;

/// A name of any length.
#[derive(Clone, Debug)]
pub(super) enum Name {
    Short { len: u8, bytes: [u8; WITHIN] },
    Long(Box<str>),
}

// === impl Name ===

impl Name {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Name::Short { .. } => {
                str::from_utf8(self.as_bytes()).unwrap_or_else(|_| unreachable!("it was made of text"))
            }
            Name::Long(name) => name,
        }
    }

    /// Whether it is that name.
    #[inline]
    pub(super) fn is(&self, name: &str) -> bool {
        self.as_bytes() == name.as_bytes()
    }

    #[inline]
    fn as_bytes(&self) -> &[u8] {
        match self {
            Name::Short { len, bytes } => &bytes[..usize::from(*len).min(WITHIN)],
            Name::Long(name) => name.as_bytes(),
        }
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Name {
        let mut bytes = [0; WITHIN];
        match (bytes.get_mut(..name.len()), u8::try_from(name.len())) {
            (Some(within), Ok(len)) => {
                within.copy_from_slice(name.as_bytes());
                Name::Short { len, bytes }
            }
            _ => Name::Long(name.into()),
        }
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
            &"x".repeat(22),
            &"x".repeat(23),
            &"ö".repeat(300),
        ];
        for name in names {
            assert_eq!(Name::from(name).as_str(), name);
            for other in names {
                assert_eq!(Name::from(name).is(other), name == other, "{name:?} {other:?}");
            }
        }
    }

    #[test]
    fn short_names_lie_within() {
        assert_eq!(size_of::<Name>(), 24);
        assert!(matches!(Name::from(&*"x".repeat(WITHIN)), Name::Short { .. }));
    }
}
