//! A state file that grows: of a long record each change is added behind it, so that a write costs what it changes.
//!
//! ```text
//! lessor state 2
//! …as in a file that is written as a whole, to its seal…
//! more 231 231
//! boot 5f0c1d0e-3c1b-4f0a-9d57-1f6ad0f1a8b2 4026531834
//! clock_ns 86400500000000
//! state/root/epoch<TAB>1 epoch …
//! state/root/mark/orders<TAB>1 millionths 140000000
//! state/root/mark/gone
//! blake3 90c2…
//! ```
//!
//! A line without a value says that the key is gone. The first line of an addition has its length, twice, and the last one seals it
//! together with the seal before it. Where the file ends within an addition, that was never said to be written, and counts for
//! nothing; anything else that is amiss spoils the whole. When as much has been added as the whole was long, it is written as a
//! whole again.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use super::{BadState, Clock, SEAL, State, damaged, read_clock, sealed, write_clock, write_pair};
use crate::election::files::{Files, add, replace};
use crate::election::record::later;
use crate::record::RecordChange;

/// The form of a file that grows.
pub(super) const GROWING: u32 = 2;
/// The bytes of a record from which on changes are added to it: nobody waits longer for the whole of a shorter one.
const LEAST: usize = 64 << 10;
const MORE: &str = "more ";
/// The name of the file in its directory.
pub const FILE_NAME: &str = "state";

/// The form of a file, by its first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WrittenForm {
    /// It was written as a whole, or its form is no number.
    Whole,
    Growing,
    Later(u32),
}

/// The text to be written for a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileWrite {
    /// The file is to be this.
    Whole(String),
    /// This is to stand behind all that stands there.
    Added(String),
}

/// The length of a file that grows, as far as that is known.
#[derive(Clone, Debug)]
pub struct Growth {
    /// A record of fewer bytes is written as a whole with each change.
    least: usize,
    known: Option<KnownFile>,
}

/// A file as it was written last.
#[derive(Clone, Debug)]
struct KnownFile {
    /// Its last line.
    seal: String,
    /// The bytes that were written as a whole, and those that were added.
    whole: usize,
    added: usize,
}

// === impl FileWrite ===

impl FileWrite {
    /// Does that to the file in `directory`.
    ///
    /// # Errors
    /// The first that the file system tells of.
    pub fn put(&self, files: &mut impl Files, directory: &Path) -> io::Result<()> {
        match self {
            FileWrite::Whole(text) => replace(files, directory, FILE_NAME, text.as_bytes()),
            FileWrite::Added(text) => add(files, directory, FILE_NAME, text.as_bytes()),
        }
    }
}

// === impl Growth ===

impl Default for Growth {
    fn default() -> Growth {
        Growth::from_length(LEAST)
    }
}

impl Growth {
    /// Nothing is known of the file, which grows when its record has at least so many bytes.
    #[must_use]
    pub const fn from_length(least: usize) -> Growth {
        Growth { least, known: None }
    }

    /// The text to be written of `state` for `change`, which it has taken up; absent: it is the first write, or the last. How the
    /// file ends is not known from here on, until [`Growth::wrote`].
    pub fn next(&mut self, state: &State, change: Option<&RecordChange>, clock: &Clock) -> FileWrite {
        let known = self.known.take();
        let Some(change) = change else { return FileWrite::Whole(state.encode(clock)) };
        match known.filter(|known| known.added < known.whole) {
            Some(known) => {
                let text = state.addition(change, clock, &known.seal);
                self.known = Some(known);
                FileWrite::Added(text)
            }
            None if state.bytes() >= self.least => FileWrite::Whole(state.encode_as(GROWING, clock)),
            None => FileWrite::Whole(state.encode(clock)),
        }
    }

    /// That was written, or it is not known how much of it: then the next one is written as a whole.
    pub fn wrote(&mut self, write: &FileWrite, is_done: bool) {
        let before = self.known.take().filter(|_| is_done);
        self.known = match (write, before) {
            (FileWrite::Whole(text), _) if is_done && is_growing(text) => {
                Some(KnownFile { seal: last_line(text), whole: text.len(), added: 0 })
            }
            (FileWrite::Added(text), Some(known)) => {
                Some(KnownFile { seal: last_line(text), added: known.added + text.len(), ..known })
            }
            _ => None,
        };
    }
}

// === impl State ===

impl State {
    /// The change, which this has taken up, as it is added behind `seal`.
    fn addition(&self, change: &RecordChange, clock: &Clock, seal: &str) -> String {
        let mut text = String::new();
        write_clock(&mut text, clock);
        write_pair(&mut text, &self.keys.epoch, &self.header.encode());
        let marks = change.marks.keys().chain(&change.deletes).map(|resource| self.keys.mark(resource));
        let earlier = change.earlier.iter().map(|_| self.keys.earlier.clone());
        for key in marks.chain(earlier) {
            match self.marks.get(&key) {
                Some(value) => write_pair(&mut text, &key, value),
                None => writeln!(text, "{key}").expect("text takes all"),
            }
        }
        let hash = seal_behind(seal, &text);
        writeln!(text, "{SEAL}{hash}").expect("text takes all");
        format!("{MORE}{0} {0}\n{text}", text.len())
    }

    /// Takes up an addition, without its first line, that stands behind `seal`. Returns the clock when it was written, and its
    /// seal.
    fn take_up<'a>(&mut self, addition: &'a str, seal: &str) -> Result<(Clock, &'a str), BadState> {
        let (body, own) = sealed(addition)?;
        let hash = seal_behind(seal, body);
        if own.strip_prefix(SEAL) != Some(hash.as_str()) {
            return Err(damaged(&format!("an addition ends with {own:?}, and not \"{SEAL}{hash}\"")));
        }
        let mut lines = body.lines();
        let clock = read_clock(&mut lines)?;
        let header = lines.next().and_then(|line| line.split_once('\t'));
        let (_, header) =
            header.filter(|(key, _)| *key == self.keys.epoch).ok_or_else(|| damaged("it has no record"))?;
        self.take_header(header)?;
        for line in lines {
            match line.split_once('\t') {
                Some((key, value)) => _ = self.marks.insert(key.to_owned(), value.to_owned()),
                None => _ = self.marks.remove(line),
            }
        }
        Ok((clock, own))
    }
}

/// Returns the state in a file of `node` that grows, and the clock when it was written last.
pub(super) fn decode(text: &str, node: &str) -> Result<(State, Clock), BadState> {
    let seal = text.find(&format!("\n{SEAL}")).ok_or_else(|| damaged("it is cut off"))? + 1;
    let (line, mut rest) = text[seal..].split_once('\n').ok_or_else(|| damaged("it is cut off"))?;
    let hash = blake3::hash(&text.as_bytes()[..seal]).to_hex();
    if line.strip_prefix(SEAL) != Some(hash.as_str()) {
        return Err(damaged(&format!("its first part ends with {line:?}, and not \"{SEAL}{hash}\"")));
    }
    let (mut state, mut clock) = State::decode_body(&text[..seal], GROWING, node)?;
    let mut seal = line;
    while let Some((first, behind)) = rest.split_once('\n') {
        let Some(addition) = whole_addition(first, behind)? else { break };
        (clock, seal) = state.take_up(addition, seal)?;
        rest = &behind[addition.len()..];
    }
    state.read()?;
    Ok((state, clock))
}

/// The addition that begins with that line, of what stands behind it; nothing if not all of it was written.
fn whole_addition<'a>(first: &str, behind: &'a str) -> Result<Option<&'a str>, BadState> {
    let bad = || damaged(&format!("an addition begins with {first:?}"));
    let lengths = first.strip_prefix(MORE).and_then(|lengths| lengths.split_once(' ')).ok_or_else(bad)?;
    let length: usize = lengths.0.parse().map_err(|_| bad())?;
    if lengths.0 != lengths.1 {
        return Err(bad());
    }
    if behind.len() < length {
        return Ok(None);
    }
    behind.get(..length).map(Some).ok_or_else(bad)
}

/// The seal of an addition behind another seal.
fn seal_behind(seal: &str, addition: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(seal.as_bytes()).update(b"\n").update(addition.as_bytes());
    hasher.finalize().to_hex().to_string()
}

fn last_line(text: &str) -> String {
    text.lines().next_back().unwrap_or_default().to_owned()
}

/// Whether something may be added to that file.
fn is_growing(text: &str) -> bool {
    let form = text.lines().next().and_then(|title| title.strip_prefix(super::TITLE));
    form.map(WrittenForm::of) == Some(WrittenForm::Growing)
}

// === impl WrittenForm ===

impl WrittenForm {
    /// The form of that number.
    pub(super) fn of(word: &str) -> WrittenForm {
        match later(word) {
            None => WrittenForm::Whole,
            Some(GROWING) => WrittenForm::Growing,
            Some(form) => WrittenForm::Later(form),
        }
    }
}

#[cfg(test)]
mod tests;
