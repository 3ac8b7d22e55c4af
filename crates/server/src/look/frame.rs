//! Views as bytes: made of what a node says for itself and of the views of those below it, within bounds; and read again.
//!
//! A node passes on the bytes of those below as they came. It reads no more of them than how many nodes there are and how deep
//! they stand, so that what later versions add gets to whoever has asked.

use lessor_proto::message::ViewBounds;
use lessor_proto::wire;
use lessor_proto::wire::view_below::Seen;
use prost::Message;

/// The views of a node and of those below it, read.
#[derive(Clone, PartialEq, Debug)]
pub struct ViewTree {
    /// The bytes that the node says for itself; absent: it does not know the kind, or has nothing to say.
    pub content: Option<Vec<u8>>,
    /// The nodes below, in the order of their names.
    pub below: Vec<ViewBranch>,
    /// The number of nodes below that are not named, as there are too many.
    pub unnamed: usize,
}

/// A node below another, as that one saw it.
#[derive(Clone, PartialEq, Debug)]
pub struct ViewBranch {
    /// Its name.
    pub node: String,
    /// Whether it has answered, and why not.
    pub seen: Seen,
    /// The answer, if there is one.
    pub view: Option<ViewTree>,
}

/// A view as bytes, with its measures.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct PackedView {
    pub(super) bytes: Vec<u8>,
    /// The nodes in it.
    pub(super) nodes: usize,
    /// The levels below the first.
    pub(super) levels: u32,
}

/// A node below another, with its view if it has answered.
#[derive(Debug)]
pub(super) struct PackedBranch {
    pub(super) node: String,
    pub(super) seen: Seen,
    pub(super) view: Option<PackedView>,
}

/// Bytes that the frame of a branch takes beside its name and view, at the most.
const FRAME: usize = 32;

// === impl ViewTree ===

impl ViewTree {
    /// Reads a view of at most so many levels below the first node.
    #[must_use]
    pub fn read(bytes: &[u8], levels: u32) -> Option<ViewTree> {
        let wire::View { content, below, unnamed } = wire::View::decode(bytes).ok()?;
        let branch = |below: wire::ViewBelow| {
            let seen = below.seen();
            let view = below.view.as_ref().map(|view| ViewTree::read(view, levels.checked_sub(1)?));
            let (seen, view) = match view {
                Some(Some(view)) => (seen, Some(view)),
                Some(None) => (Seen::Malformed, None),
                None => (seen, None),
            };
            ViewBranch { node: plain(&below.node), seen, view }
        };
        let below = below.into_iter().map(branch).collect();
        Some(ViewTree { content, below, unnamed: unnamed.unwrap_or(0) as usize })
    }
}

// === impl PackedView ===

impl PackedView {
    /// The view that came from a node below.
    pub(super) fn of(bytes: Vec<u8>) -> Option<PackedView> {
        let (nodes, levels) = measure(&bytes, MOST_LEVELS)?;
        Some(PackedView { bytes, nodes, levels })
    }

    /// The content of its first node.
    pub(super) fn content(&self) -> Option<Vec<u8>> {
        wire::View::decode(self.bytes.as_slice()).ok()?.content
    }

    /// The same without that.
    pub(super) fn without_content(self) -> PackedView {
        let Ok(view) = wire::View::decode(self.bytes.as_slice()) else { return self };
        PackedView { bytes: wire::View { content: None, ..view }.encode_to_vec(), ..self }
    }

    /// A view within bounds: whatever of those below would go beyond them is left out.
    pub(super) fn pack(
        content: Option<Vec<u8>>,
        branches: Vec<PackedBranch>,
        bounds: ViewBounds,
    ) -> PackedView {
        let content = content.filter(|content| content.len() + FRAME <= bounds.bytes);
        let mut left = bounds.bytes.saturating_sub(content.as_ref().map_or(0, Vec::len) + FRAME);
        let (mut nodes, mut levels, mut unnamed) = (1, 0, 0);
        let mut below = Vec::with_capacity(branches.len());
        for mut branch in branches {
            let frame = branch.node.len() + FRAME;
            if frame > left || nodes >= bounds.nodes {
                unnamed += 1 + branch.view.map_or(0, |view| view.nodes - 1);
                continue;
            }
            left -= frame;
            let fits = |view: &PackedView| {
                view.bytes.len() <= left && nodes + view.nodes <= bounds.nodes && view.levels < bounds.levels
            };
            if branch.view.as_ref().is_some_and(|view| !fits(view)) {
                (branch.seen, branch.view) = (Seen::LeftOut, None);
            }
            let view = branch.view.map(|view| {
                left -= view.bytes.len();
                (nodes, levels) = (nodes + view.nodes, levels.max(view.levels + 1));
                view.bytes
            });
            nodes += usize::from(view.is_none());
            levels = levels.max(1);
            below.push(wire::ViewBelow { node: branch.node, seen: branch.seen.into(), view });
        }
        let unnamed = u32::try_from(unnamed).ok().filter(|&unnamed| unnamed > 0);
        let bytes = wire::View { content, below, unnamed }.encode_to_vec();
        PackedView { bytes, nodes, levels }
    }
}

/// A text that another node has said, without what would steer a terminal, and no longer than a name.
pub(super) fn plain(text: &str) -> String {
    let readable = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    text.chars().take(LONGEST_TEXT).map(readable).collect()
}

/// Letters in a text that another node has said.
const LONGEST_TEXT: usize = 4_096;
/// Levels of a tree that is looked at.
pub(super) const MOST_LEVELS: u32 = 16;

/// The nodes in a view, and the levels below the first, of which there may be so many; nothing where it cannot be read.
fn measure(bytes: &[u8], most: u32) -> Option<(usize, u32)> {
    let view = wire::View::decode(bytes).ok()?;
    let (mut nodes, mut levels) = (1_usize, 0);
    for below in &view.below {
        let of_branch = match &below.view {
            Some(view) => measure(view, most.checked_sub(1)?)?,
            None => (1, 0),
        };
        (nodes, levels) = (nodes + of_branch.0, levels.max(of_branch.1 + 1));
    }
    Some((nodes, levels))
}
