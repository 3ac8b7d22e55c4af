//! A look that is under way: who waits for it, and what has come of whom.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lessor_proto::message::{Look, ViewBounds};
use lessor_proto::wire::view_below::Seen;
use lessor_proto::{ClientId, Incarnation, Time};

use super::child::ChildLine;
use super::event::{LookPassing, LookQuestion, NodeContent};
use super::frame::{PackedBranch, PackedView};
use crate::streams::Peer;

/// A look that is under way.
#[derive(Clone, Debug)]
pub(super) struct RunningLook {
    pub(super) question: LookQuestion,
    pub(super) bounds: ViewBounds,
    /// When it is given up.
    pub(super) until: Time,
    pub(super) askers: Vec<LookAsker>,
    /// The children that are looked at.
    pub(super) children: BTreeMap<Peer, LookedAt>,
    /// The content of this node; absent while it has not been handed in.
    content: Option<NodeContent>,
    /// Bytes that have come.
    bytes: usize,
    /// The state of what is put together of all that has come.
    folding: Folding,
}

/// The state of what is put together of all that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Folding {
    /// It is not: each node says its own.
    None,
    /// It will be when all has come, or then at the latest.
    Due(Time),
    /// It is being made.
    Begun,
    Done,
}

/// Somebody who waits for a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LookAsker {
    /// Somebody at this node.
    Here { ticket: u64 },
    /// The node above, by the number that it gave on its stream.
    Above { stream: u64, id: u64 },
}

/// A child that is looked at.
#[derive(Clone, Debug)]
pub(super) struct LookedAt {
    name: ClientId,
    pub(super) view: ChildView,
}

/// The state of one child in a look.
#[derive(Clone, Debug)]
pub(super) enum ChildView {
    /// It has not been asked yet: this.
    Waits(Vec<u8>),
    Asked,
    Seen(Seen, Option<PackedView>),
}

/// The part of its own patience that a node keeps for the way and for its work, and the least.
const KEPT_PART: u32 = 8;
const KEPT_LEAST: Duration = Duration::from_millis(10);
/// The part of its patience that a node keeps to put together what has come.
const FOLDING_PART: u32 = 16;

// === impl RunningLook ===

impl RunningLook {
    pub(super) fn new(
        question: LookQuestion,
        bounds: ViewBounds,
        [now, until]: [Time; 2],
        asker: LookAsker,
        children: &BTreeMap<Peer, ChildLine>,
    ) -> RunningLook {
        let folding = match question.is_folded() {
            true => Folding::Due(until.earlier(until.since(now) / FOLDING_PART)),
            false => Folding::None,
        };
        let mut look = RunningLook {
            bounds,
            until,
            askers: vec![asker],
            children: BTreeMap::new(),
            content: None,
            bytes: 0,
            folding,
            question,
        };
        if look.question.is_for_all() {
            let body = look.question.body.clone();
            look.ask_children(children, |_| Some(body.clone()));
        }
        look
    }

    /// This node says this for itself, and perhaps what those below are to be asked.
    pub(super) fn take_content(&mut self, content: NodeContent, children: &BTreeMap<Peer, ChildLine>) {
        match &content.passing {
            _ if self.question.is_for_all() => {}
            LookPassing::Nobody => {}
            LookPassing::All(body) => self.ask_children(children, |_| Some(body.clone())),
            LookPassing::Each(bodies) => self.ask_children(children, |name| bodies.get(name).cloned()),
        }
        self.content = Some(content);
    }

    fn ask_children(&mut self, children: &BTreeMap<Peer, ChildLine>, body: impl Fn(&str) -> Option<Vec<u8>>) {
        for (&peer, child) in without_replaced(children) {
            let Some(body) = body(child.name.as_str()) else { continue };
            let view = match (child.can_be_asked, child.is_silent()) {
                (false, _) => ChildView::Seen(Seen::CannotBeAsked, None),
                (true, true) => ChildView::Seen(Seen::Silent, None),
                (true, false) if self.bounds.levels == 0 => ChildView::Seen(Seen::LeftOut, None),
                (true, false) => ChildView::Waits(body),
            };
            self.children.insert(peer, LookedAt { name: child.name.clone(), view });
        }
    }

    /// The look that a child is asked at `now`.
    pub(super) fn question_below(&self, now: Time, id: u64, body: Vec<u8>) -> Look {
        let left = self.until.since(now);
        let patience = left.saturating_sub((left / KEPT_PART).max(KEPT_LEAST));
        let bounds = ViewBounds { levels: self.bounds.levels.saturating_sub(1), ..self.bounds };
        Look { id, kind: self.question.kind, patience, bounds, body }
    }

    /// Bytes more that have come. Returns whether that is more than there may be.
    pub(super) fn is_too_much(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.bytes > self.bounds.bytes
    }

    /// The stream of a child has ended.
    pub(super) fn lose(&mut self, peer: Peer) {
        if let Some(child) = self.children.get_mut(&peer)
            && !child.is_seen()
        {
            child.view = ChildView::Seen(Seen::Silent, None);
        }
    }

    pub(super) fn see(&mut self, peer: Peer, seen: Seen, view: Option<PackedView>) {
        if let Some(child) = self.children.get_mut(&peer) {
            child.view = ChildView::Seen(seen, view);
        }
    }

    /// Whether there is nothing to wait for any more.
    pub(super) fn is_complete(&self) -> bool {
        self.has_all() && matches!(self.folding, Folding::None | Folding::Done)
    }

    fn has_all(&self) -> bool {
        self.content.is_some() && self.children.values().all(LookedAt::is_seen)
    }

    /// When something is to be done about it, if nothing comes.
    pub(super) fn next_deadline(&self) -> Time {
        if let Folding::Due(at) = self.folding { at.min(self.until) } else { self.until }
    }

    /// Begins to put together what has come, if it is time. Returns what each node below has said; those that have said nothing are
    /// silent.
    pub(super) fn begin_folding(&mut self, now: Time) -> Option<Vec<(String, Vec<u8>)>> {
        let Folding::Due(at) = self.folding else { return None };
        if !self.has_all() && (now < at || self.content.is_none()) {
            return None;
        }
        self.folding = Folding::Begun;
        let mut contents = Vec::new();
        for child in self.children.values_mut() {
            match &mut child.view {
                ChildView::Seen(_, view) => {
                    let content = view.as_ref().and_then(PackedView::content);
                    contents.extend(content.map(|content| (child.name.to_string(), content)));
                    *view = view.take().map(PackedView::without_content);
                }
                unseen => *unseen = ChildView::Seen(Seen::Silent, None),
            }
        }
        Some(contents)
    }

    /// All is put together; absent: the node has nothing to say beside its own content.
    pub(super) fn fold(&mut self, bytes: Option<Vec<u8>>) {
        self.folding = Folding::Done;
        if bytes.is_some() {
            self.content.get_or_insert_default().bytes = bytes;
        }
    }

    /// The view, of what has come so far.
    pub(super) fn pack(self) -> PackedView {
        let content = self.content.unwrap_or_default();
        let named: BTreeSet<&str> = self.children.values().map(|child| child.name.as_str()).collect();
        let unseen = |node| PackedBranch { node, seen: Seen::CannotBeAsked, view: None };
        let others = content.known.into_iter().filter(|name| !named.contains(name.as_str())).map(unseen);
        let mut branches: Vec<PackedBranch> =
            if self.question.is_for_all() { others.collect() } else { Vec::new() };
        branches.extend(self.children.into_values().map(|LookedAt { name, view }| {
            let (seen, view) = match view {
                ChildView::Seen(seen, view) => (seen, view),
                ChildView::Waits(_) | ChildView::Asked => (Seen::Silent, None),
            };
            PackedBranch { node: name.to_string(), seen, view }
        }));
        branches.sort_by(|one, other| one.node.cmp(&other.node));
        PackedView::pack(content.bytes, branches, self.bounds)
    }
}

// === impl LookedAt ===

impl LookedAt {
    fn is_seen(&self) -> bool {
        matches!(self.view, ChildView::Seen(..))
    }
}

/// The streams of children but those in whose place that of a later leader of the same line stands, or a later one of the same
/// leader. The stream of a former leader may be the last that was opened: what it sent before it fell came late.
fn without_replaced(children: &BTreeMap<Peer, ChildLine>) -> impl Iterator<Item = (&Peer, &ChildLine)> {
    let mut latest: BTreeMap<(&ClientId, u64), (Incarnation, &Peer)> = BTreeMap::new();
    for (peer, child) in children {
        if let Some((line, epoch)) = child.line {
            let last = latest.entry((&child.name, line)).or_insert((epoch, peer));
            *last = (*last).max((epoch, peer));
        }
    }
    children.iter().filter(move |(peer, child)| {
        let is_last = |(line, _)| latest.get(&(&child.name, line)).is_none_or(|(_, last)| last == peer);
        child.line.is_none_or(is_last)
    })
}
