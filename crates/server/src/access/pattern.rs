//! Patterns of names that depend on who bears them: `{last}-*` for whoever is `spiffe://acme/ns/shop/sa/web` is `web-*`.

use std::fmt;

use crate::repository::{BadGlob, Glob};

/// The part of a pattern that stands for what is behind the last slash of an identity.
const LAST: &str = "{last}";

/// A pattern of the names that an identity may bear.
#[derive(Clone, PartialEq, Debug)]
pub struct NamePattern {
    text: Box<str>,
    /// The pattern where it is the same for everybody.
    glob: Option<Glob>,
}

/// Why a text is no pattern of names.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadPattern {
    /// It is malformed as a glob.
    #[error("{text:?} is malformed: {bad}")]
    Glob {
        /// The text.
        text: String,
        /// Its fault.
        bad: BadGlob,
    },
    /// It has a part in braces that stands for nothing.
    #[error("{text:?} has braces that stand for nothing; wanted {{last}}, or none")]
    Braces {
        /// The text.
        text: String,
    },
}

// === impl NamePattern ===

impl NamePattern {
    /// Takes `text` apart.
    ///
    /// # Errors
    /// When it is malformed, whoever the identity.
    pub fn new(text: &str) -> Result<NamePattern, BadPattern> {
        if text.replace(LAST, "").contains(['{', '}']) {
            return Err(BadPattern::Braces { text: text.to_owned() });
        }
        let glob = Glob::new(&text.replace(LAST, "x"))
            .map_err(|bad| BadPattern::Glob { text: text.to_owned(), bad })?;
        let glob = (!text.contains(LAST)).then_some(glob);
        Ok(NamePattern { text: text.into(), glob })
    }

    /// Whether `identity` may bear `name`.
    #[must_use]
    pub fn fits(&self, identity: &str, name: &str) -> bool {
        match &self.glob {
            Some(glob) => glob.matches(name),
            // What an identity ends with is a name, whatever characters it has.
            None => Glob::new(&self.of(identity)).is_ok_and(|glob| glob.matches(name)),
        }
    }

    /// Whether there may be an identity that may bear `name`.
    #[must_use]
    pub fn fits_somebody(&self, name: &str) -> bool {
        match &self.glob {
            Some(glob) => glob.matches(name),
            // What stands behind the last slash of an identity has none.
            None => Glob::new(&self.text.replace(LAST, "*")).is_ok_and(|glob| glob.matches(name)),
        }
    }

    /// Whether it is one name, the same for every identity.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.glob.as_ref().is_some_and(Glob::is_plain)
    }

    /// The pattern for `identity`, as a glob.
    fn of(&self, identity: &str) -> String {
        let last = identity.rsplit('/').next().unwrap_or(identity);
        let mut literal = String::with_capacity(last.len());
        for c in last.chars() {
            if matches!(c, '*' | '?' | '[' | '\\') {
                literal.push('\\');
            }
            literal.push(c);
        }
        self.text.replace(LAST, &literal)
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
