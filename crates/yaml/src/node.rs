//! A YAML document as a tree in which every part knows its place.
//!
//! Built from the parser's events rather than by deserialising, for two reasons: a document with several faults of
//! shape is read to its end, and of a key that stands twice both are seen.
//! Aliases share what they stand for, and what they add up to is bounded.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, ScanError, Span, Tag};

/// Where something stands in the text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// In bytes, from 0.
    pub start: usize,
    /// In bytes, behind the last.
    pub end: usize,
}

/// A part of the document.
#[derive(Debug)]
pub struct YamlNode {
    /// Where it stands.
    pub place: Place,
    /// The content.
    pub value: YamlValue,
    /// The number of nodes that it is, itself and aliased ones included.
    weight: usize,
}

/// The content of a part.
#[derive(Debug)]
pub enum YamlValue {
    /// A single value.
    Scalar {
        /// The value, without quotes.
        text: String,
        /// Whether it stands without quotes, so that it may be a number or nothing at all.
        plain: bool,
    },
    /// A list.
    List(Vec<Rc<YamlNode>>),
    /// A mapping as written: keys in order, twice if they stand twice.
    Map(Vec<(Rc<YamlNode>, Rc<YamlNode>)>),
}

/// Why there is no tree.
#[derive(Debug)]
pub struct Unreadable {
    /// Where reading ended.
    pub place: Place,
    /// The fault that was found there.
    pub message: String,
}

/// The most nodes that a document may have, one for each alias included: enough for tens of thousands of
/// templates.
const MAX_NODES: usize = 1_000_000;
/// The most nodes that may be repeated by aliases.
const MAX_REPEATED: usize = 250_000;
/// The greatest depth to which lists and mappings may be nested; the files of Lessor need six.
const MAX_DEPTH: usize = 64;

/// The document in `text`, or `None` if there is nothing in it.
///
/// # Errors
/// When it is not YAML, or more of it than anybody writes.
pub fn read(text: &str) -> Result<Option<Rc<YamlNode>>, Unreadable> {
    let options = granit_parser::options! { emit_comments: false };
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| Unreadable::scan(&error))?;
        builder.take(event, Place::new(&span))?;
    }
    Ok(builder.root)
}

#[derive(Default)]
struct Builder {
    root: Option<Rc<YamlNode>>,
    /// Lists and mappings not closed yet, the innermost last.
    open: Vec<Open>,
    anchors: BTreeMap<usize, Rc<YamlNode>>,
    nodes: usize,
    repeated: usize,
}

struct Open {
    place: Place,
    anchor: usize,
    is_map: bool,
    /// Of a mapping keys and values in turn.
    children: Vec<Rc<YamlNode>>,
}

// === impl Builder ===

impl Builder {
    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), Unreadable> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let forced = known_tag(tag.as_deref(), place)? == Some("str");
                let plain = style == ScalarStyle::Plain && !forced;
                let value = YamlValue::Scalar { text: text.into_owned(), plain };
                self.add(Rc::new(YamlNode { place, value, weight: 1 }), anchor)
            }
            Event::SequenceStart(_, anchor, tag) => self.open(anchor, tag.as_deref(), place, false),
            Event::MappingStart(_, anchor, tag) => self.open(anchor, tag.as_deref(), place, true),
            Event::SequenceEnd | Event::MappingEnd => self.close(place),
            Event::Alias(anchor) => self.repeat(anchor, place),
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(place.unreadable("a second document; wanted one only"))
            }
            _ => Ok(()),
        }
    }

    fn open(
        &mut self,
        anchor: usize,
        tag: Option<&Tag>,
        place: Place,
        is_map: bool,
    ) -> Result<(), Unreadable> {
        known_tag(tag, place)?;
        if self.open.len() == MAX_DEPTH {
            return Err(place.unreadable(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.open.push(Open { place, anchor, is_map, children: Vec::new() });
        Ok(())
    }

    fn close(&mut self, end: Place) -> Result<(), Unreadable> {
        let Open { place, anchor, is_map, children } =
            self.open.pop().expect("the parser balances its events");
        let weight = children.iter().fold(1, |sum: usize, child| sum.saturating_add(child.weight));
        let value = if is_map { YamlValue::Map(pairs(children)) } else { YamlValue::List(children) };
        let place = Place { end: end.start.max(place.start), ..place };
        self.add(Rc::new(YamlNode { place, value, weight }), anchor)
    }

    /// Adds the node that the alias stands for; an anchor not closed yet would make the tree a circle.
    fn repeat(&mut self, anchor: usize, place: Place) -> Result<(), Unreadable> {
        let Some(node) = self.anchors.get(&anchor).map(Rc::clone) else {
            return Err(place.unreadable("an alias within what it stands for"));
        };
        self.repeated = self.repeated.saturating_add(node.weight);
        if self.repeated > MAX_REPEATED {
            return Err(place.unreadable(format!("aliases repeat more than {MAX_REPEATED} values")));
        }
        self.add(node, 0)
    }

    fn add(&mut self, node: Rc<YamlNode>, anchor: usize) -> Result<(), Unreadable> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(node.place.unreadable(format!("more than {MAX_NODES} values")));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        match self.open.last_mut() {
            Some(open) => open.children.push(node),
            None => self.root = Some(node),
        }
        Ok(())
    }
}

fn pairs(children: Vec<Rc<YamlNode>>) -> Vec<(Rc<YamlNode>, Rc<YamlNode>)> {
    let mut children = children.into_iter();
    let mut pairs = Vec::with_capacity(children.len() / 2);
    while let (Some(key), Some(value)) = (children.next(), children.next()) {
        pairs.push((key, value));
    }
    pairs
}

/// The name of a tag of YAML itself; there are no others here.
fn known_tag(tag: Option<&Tag>, place: Place) -> Result<Option<&str>, Unreadable> {
    match tag.map(|tag| (tag, tag.core_suffix())) {
        None => Ok(None),
        Some((_, Some(name))) => Ok(Some(name)),
        Some((tag, None)) => Err(place.unreadable(format!("the tag {} means nothing here", tag.original()))),
    }
}

// === impl YamlNode ===

impl YamlNode {
    /// Whether it says that there is nothing: `~`, `null`, or no text at all.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(&self.value, YamlValue::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }
}

// === impl Place ===

impl Place {
    /// The beginning of a text.
    pub const START: Place = Place { line: 1, column: 1, start: 0, end: 0 };

    fn new(span: &Span) -> Place {
        let bytes = span.byte_range().unwrap_or_default();
        Place { line: span.start.line(), column: span.start.col() + 1, start: bytes.start, end: bytes.end }
    }

    fn unreadable(self, message: impl Into<String>) -> Unreadable {
        Unreadable { place: self, message: message.into() }
    }
}

// === impl Unreadable ===

impl Unreadable {
    fn scan(error: &ScanError) -> Unreadable {
        let marker = error.marker();
        let start = marker.byte_offset().unwrap_or_default();
        Place { line: marker.line(), column: marker.col() + 1, start, end: start }
            .unreadable(format!("not YAML: {}", error.info()))
    }

    /// The message, and a hint where a star without quotes was taken for an alias, which happens to everyone once.
    #[must_use]
    pub fn explained(&self, text: &str) -> String {
        let (before, behind) = text.split_at(text.floor_char_boundary(self.place.start));
        let line =
            before.rsplit('\n').next().into_iter().chain(behind.split('\n').next()).collect::<String>();
        let value = line.split_once(':').map(|(_, value)| value.trim_start());
        let hint = if value.is_some_and(|value| value.starts_with('*')) {
            "; a value that begins with * has to stand in quotes"
        } else {
            ""
        };
        format!("{}{hint}", self.message)
    }
}
