//! Patterns of values: literals, and `*` for any run of bytes between them.

/// A pattern, split at its stars.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The literals; those at the ends are empty where the pattern begins or ends with a star.
    literals: Box<[Box<str>]>,
}

// === impl Pattern ===

impl Pattern {
    /// The pattern that `text` is.
    #[must_use]
    pub fn new(text: &str) -> Pattern {
        Pattern { literals: text.split('*').map(Box::from).collect() }
    }

    /// Whether it has a star, and so means more than itself.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.literals.len() > 1
    }

    /// The literal in front of its first star.
    #[must_use]
    pub fn beginning(&self) -> &str {
        &self.literals[0]
    }

    /// Whether `value` is one of those that it means.
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        let [first, middle @ .., last] = &self.literals[..] else { return *value == *self.literals[0] };
        let Some(rest) = value.strip_prefix(&**first).and_then(|rest| rest.strip_suffix(&**last)) else {
            return false;
        };
        let mut rest = rest;
        for literal in middle {
            // The first place is as good as any: what is left behind it is longest.
            let Some(at) = rest.find(&**literal) else { return false };
            rest = &rest[at + literal.len()..];
        }
        true
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.literals.join("*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_run_of_bytes_anywhere() {
        for (pattern, value, wanted) in [
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("*", "", true),
            ("*", "größe", true),
            ("/api/*", "/api/", true),
            ("/api/*", "/api", false),
            ("*.png", "a.png", true),
            ("*.png", "png", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("ab*bc", "abc", false),
            ("**", "x", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(value), wanted, "{pattern} {value}");
        }
    }
}
