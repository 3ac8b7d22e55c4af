//! Faults of a configuration, and where they are, as a person wants to read them.

use std::fmt;

use crate::node::Place;

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// A description of what was found, and of what was wanted.
    pub message: String,
    /// The line, and below it a mark under the place, both behind a margin with the line's number.
    pub snippet: String,
}

/// Everything that is wrong with one text, in the order of its lines; at least one thing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Faults {
    name: String,
    faults: Vec<Fault>,
    more: usize,
}

/// The most faults that are kept. A file with more is the wrong one.
const MOST: usize = 1_000;
/// The number of characters of a line that are shown before the place, and behind it.
const AROUND: usize = 60;

// === impl Faults ===

impl Faults {
    /// `found` in `text`, which is known as `name`.
    ///
    /// # Panics
    /// When nothing is found.
    #[must_use]
    pub fn new(name: &str, text: &str, mut found: Vec<(Place, String)>) -> Faults {
        assert!(!found.is_empty(), "faults without a fault");
        found.sort_by_key(|(place, _)| *place);
        let more = found.len().saturating_sub(MOST);
        found.truncate(MOST);
        let faults = found.into_iter().map(|(place, message)| Fault::new(text, place, message)).collect();
        Faults { name: name.to_owned(), faults, more }
    }

    /// The faults.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.faults.iter()
    }

    /// The number of faults, those included that are too many to be kept.
    #[must_use]
    pub fn count(&self) -> usize {
        self.faults.len() + self.more
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// For each fault `name:line:column: message` and the snippet below it.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Fault { line, column, message, snippet }) in self.faults.iter().enumerate() {
            let break_ = if index == 0 { "" } else { "\n" };
            write!(f, "{break_}{}:{line}:{column}: {message}\n{snippet}", self.name)?;
        }
        if self.more > 0 {
            write!(f, "\n{}: and {} more", self.name, self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

// === impl Fault ===

impl Fault {
    fn new(text: &str, place: Place, message: String) -> Fault {
        Fault { line: place.line, column: place.column, message, snippet: snippet(text, place) }
    }
}

fn snippet(text: &str, place: Place) -> String {
    let start = floor(text, place.start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = floor(text, place.end.clamp(start, line_end));

    let before = last(text[line_start..start].trim_end_matches('\r'), AROUND);
    let marked = first(&text[start..end], AROUND);
    let behind = if marked.len() == end - start { first(&text[end..line_end], AROUND) } else { "" };
    let indent: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let mark = "^".repeat(marked.trim_end().chars().count().max(1));

    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    let shown = format!("{before}{marked}{behind}");
    format!("{number} | {}\n{margin} | {indent}{mark}", printable(shown.trim_end()))
}

/// A control character must not reach the terminal of the reader.
fn printable(line: &str) -> String {
    line.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

fn first(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

fn last(text: &str, chars: usize) -> &str {
    text.char_indices().rev().nth(chars.saturating_sub(1)).map_or(text, |(start, _)| &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: usize, column: usize, start: usize, end: usize) -> Place {
        Place { line, column, start, end }
    }

    #[test]
    fn snippet_marks_the_place() {
        let text = "a: 1\nb: größe x\nc: 2\n";
        assert_eq!(snippet(text, place(2, 4, 8, 15)), "2 | b: größe x\n  |    ^^^^^");
        assert_eq!(snippet(text, place(3, 1, 18, 99)), "3 | c: 2\n  | ^^^^");
    }

    #[test]
    fn snippet_at_the_end_marks_something() {
        assert_eq!(snippet("", place(1, 1, 0, 0)), "1 | \n  | ^");
        assert_eq!(snippet("a: [", place(1, 5, 4, 4)), "1 | a: [\n  |     ^");
        assert_eq!(snippet("a\n", place(2, 1, 2, 2)), "2 | \n  | ^");
    }

    #[test]
    fn long_line_is_cropped_and_control_characters_do_not_pass() {
        let text = format!("{}X{}", "a".repeat(1_000), "b".repeat(1_000));
        let found = snippet(&text, place(1, 1_001, 1_000, 1_001));
        assert_eq!(found.lines().next().unwrap().len(), 4 + 2 * AROUND + 1);
        assert_eq!(snippet("\u{1b}[31m\t\r\n", place(1, 1, 0, 1)), "1 | \u{fffd}[31m\n  | ^");
    }
}
