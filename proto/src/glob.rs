//! Patterns of resource names: those of Go's `path.Match`, which is what Doorman's configurations are written in.
//!
//! | in a pattern | matches |
//! | --- | --- |
//! | `*` | any number of characters other than `/`; a pattern that is only `*` matches every name, slashes included |
//! | `?` | one character other than `/` |
//! | `[a-z_]` | one character of the class |
//! | `[^a-z_]` | one character outside of it, even `/` |
//! | `\c` | the character `c`, in a class as well |
//! | `c` | itself |
//!
//! There is no `**` (it is two stars, which are one), no `{a,b}`, and `!` does not negate a class.
//! A class may hold neither `-` nor `]` without a backslash, nor be empty.
//!
//! As in Go, what stands between two stars is looked for once: it settles at the first place where it fits, and later
//! places are not tried should the rest of the pattern then fail. That is no restriction, except that a class which
//! matches `/` may be wanted further right: `*[^a]*b` does not match `x/b`. Other than in Go, a star ends between two
//! characters, never within one.

use std::fmt;
use std::sync::Arc;

/// A well-formed pattern.
#[derive(Clone, PartialEq, Eq)]
pub struct Glob {
    text: Arc<str>,
    chunks: Vec<Chunk>,
}

/// The fault of a pattern, and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{fault} at character {at}")]
pub struct BadGlob {
    /// Which character of the pattern, from 1.
    pub at: usize,
    /// The fault at that character.
    pub fault: GlobFault,
}

/// A fault of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GlobFault {
    /// There is nothing; no name is empty.
    #[error("nothing to match")]
    Empty,
    /// A backslash with nothing behind it.
    #[error("nothing behind the backslash")]
    LoneBackslash,
    /// A class without its `]`.
    #[error("no ] for the [")]
    OpenClass,
    /// A class without a character: `[]`, `[^]`.
    #[error("empty class (write \\] for the character itself)")]
    EmptyClass,
    /// A `-` that does not stand between two characters, or a second one.
    #[error("stray - in a class (write \\- for the character itself)")]
    StrayDash,
}

/// A stretch of the pattern without stars, and whether a star stands before it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Chunk {
    star: bool,
    terms: Vec<Term>,
}

/// A part of a pattern that matches one character.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Term {
    Literal(char),
    NotSlash,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

// === impl Glob ===

impl Glob {
    /// The pattern that matches every name.
    pub const EVERYTHING: &str = "*";

    /// Takes `pattern` apart.
    ///
    /// # Errors
    /// When it is malformed, be it in a part that hardly any name would reach.
    pub fn new(pattern: &str) -> Result<Glob, BadGlob> {
        if pattern.is_empty() {
            return Err(BadGlob { at: 1, fault: GlobFault::Empty });
        }
        let chunks = Parser { rest: pattern.chars().collect(), at: 0 }.chunks()?;
        Ok(Glob { text: pattern.into(), chunks })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is `*`, and so matches every name.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        &*self.text == Glob::EVERYTHING
    }

    /// Whether it matches one name only, that which it is.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.text.contains(['*', '?', '[', '\\'])
    }

    /// Whether it matches the whole of `name`.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        if self.is_everything() {
            return true;
        }
        let mut rest = name;
        for (index, chunk) in self.chunks.iter().enumerate() {
            let last = index + 1 == self.chunks.len();
            if last && chunk.star && chunk.terms.is_empty() {
                return !rest.contains('/');
            }
            match chunk.settle(rest, last) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        rest.is_empty()
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

// === impl Chunk ===

impl Chunk {
    /// The rest of `name` behind this chunk, at the first place that the star before lets it have and where it
    /// fits; the last chunk must leave nothing.
    fn settle<'a>(&self, name: &'a str, last: bool) -> Option<&'a str> {
        let mut from = name;
        loop {
            match self.strip(from) {
                Some(behind) if behind.is_empty() || !last => return Some(behind),
                _ if !self.star => return None,
                _ => {}
            }
            let mut chars = from.chars();
            if chars.next()? == '/' {
                return None;
            }
            from = chars.as_str();
        }
    }

    /// The rest of `name` behind this chunk, if `name` begins with it.
    fn strip<'a>(&self, name: &'a str) -> Option<&'a str> {
        let mut chars = name.chars();
        for term in &self.terms {
            if !term.matches(chars.next()?) {
                return None;
            }
        }
        Some(chars.as_str())
    }
}

// === impl Term ===

impl Term {
    fn matches(&self, c: char) -> bool {
        match self {
            Term::Literal(literal) => *literal == c,
            Term::NotSlash => c != '/',
            Term::Class { negated, ranges } => {
                ranges.iter().any(|&(low, high)| low <= c && c <= high) != *negated
            }
        }
    }
}

/// Reads a pattern from left to right.
struct Parser {
    rest: Vec<char>,
    at: usize,
}

// === impl Parser ===

impl Parser {
    fn chunks(mut self) -> Result<Vec<Chunk>, BadGlob> {
        let mut chunks = vec![Chunk { star: false, terms: Vec::new() }];
        while let Some(c) = self.peek() {
            if c == '*' {
                self.at += 1;
                if chunks.last().is_some_and(|chunk| chunk.terms.is_empty()) {
                    chunks.pop();
                }
                chunks.push(Chunk { star: true, terms: Vec::new() });
                continue;
            }
            let term = self.term(c)?;
            chunks.last_mut().expect("there is always a chunk").terms.push(term);
        }
        Ok(chunks)
    }

    /// The term that begins with `c`, which comes next.
    fn term(&mut self, c: char) -> Result<Term, BadGlob> {
        self.at += 1;
        match c {
            '?' => Ok(Term::NotSlash),
            '[' => self.class(),
            '\\' => self.escaped(GlobFault::LoneBackslash, self.at).map(Term::Literal),
            literal => Ok(Term::Literal(literal)),
        }
    }

    /// A class whose `[` has been read.
    fn class(&mut self) -> Result<Term, BadGlob> {
        let open = self.at;
        let negated = self.eat('^');
        let mut ranges = Vec::new();
        while ranges.is_empty() || !self.eat(']') {
            let low = self.class_char(open)?;
            let high = if self.eat('-') { self.class_char(open)? } else { low };
            ranges.push((low, high));
        }
        Ok(Term::Class { negated, ranges })
    }

    /// A character of the class opened at `open`.
    fn class_char(&mut self, open: usize) -> Result<char, BadGlob> {
        let c = self.peek().ok_or(BadGlob { at: open, fault: GlobFault::OpenClass })?;
        self.at += 1;
        match c {
            '-' => Err(BadGlob { at: self.at, fault: GlobFault::StrayDash }),
            ']' if self.rest[self.at - 2] == '-' => {
                Err(BadGlob { at: self.at - 1, fault: GlobFault::StrayDash })
            }
            ']' => Err(BadGlob { at: self.at, fault: GlobFault::EmptyClass }),
            '\\' => self.escaped(GlobFault::OpenClass, open),
            c => Ok(c),
        }
    }

    /// The character behind a backslash; without one, the `fault` at `at`.
    fn escaped(&mut self, fault: GlobFault, at: usize) -> Result<char, BadGlob> {
        let c = self.peek().ok_or(BadGlob { at, fault })?;
        self.at += 1;
        Ok(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }
}

#[cfg(test)]
mod tests;
