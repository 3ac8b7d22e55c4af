//! Looks: what operators ask of a whole tree, passed from node to node down the streams that children hold open to their parent.
//!
//! A look goes wherever leases do: it needs no address, no port and no identity of its own. Each node says what it knows of
//! itself, asks those below in the same way, and passes all of it up as one view, behind everything that leases have to say. Of
//! several who ask the same at the same time one is answered for all, and what came is kept for a second. A child is asked one
//! thing at a time. One that does not answer in time is said to be silent, and the rest is shown.
//!
//! This room decides what is asked of whom, what is made of what came, and when it is given up. The content of a view is made by
//! whoever drives it: see [`LookOutput::Content`].

mod child;
mod event;
mod frame;
mod running;
#[cfg(test)]
mod tests;
pub mod tree;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::message::{Look, ViewBounds, ViewPart};
use lessor_proto::wire::view_below::Seen;
use serde_json::Value;

use self::child::{ChildLine, Progress};
pub use self::event::{LookEvent, LookOutput, LookPassing, LookQuestion, NodeContent};
use self::frame::{MOST_LEVELS, PackedView, plain};
pub use self::frame::{ViewBranch, ViewTree};
use self::running::{ChildView, LookAsker, RunningLook};
use crate::streams::Peer;

/// The looks of a node: at those below it, and of the one above at all of them.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    children: BTreeMap<Peer, ChildLine>,
    running: BTreeMap<u64, RunningLook>,
    kept: Vec<KeptView>,
    outputs: VecDeque<LookOutput>,
    /// The number that was given out last.
    last: u64,
}

/// A view that answers whoever asks the same within a second.
#[derive(Clone, Debug)]
struct KeptView {
    question: LookQuestion,
    view: Arc<PackedView>,
    until: Time,
}

/// The JSON that another node has said, without what would steer a terminal.
#[must_use]
pub fn readable(said: Value) -> Value {
    match said {
        Value::String(text) => Value::String(plain(&text)),
        Value::Array(all) => all.into_iter().map(readable).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (plain(&name), readable(value))).collect()
        }
        other => other,
    }
}

/// Why nobody is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{MOST_RUNNING} other looks are under way; wanted fewer")]
pub struct TooManyLooks;

/// The time for which a view is waited for, where nobody says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// The bounds of a view that nobody has limited further.
pub const BOUNDS: ViewBounds = ViewBounds { bytes: 8 << 20, nodes: 1_000, levels: MOST_LEVELS };
/// The time for which a view answers others as well.
const KEPT: Duration = Duration::from_secs(1);
/// Views that are kept, and their bytes.
const MOST_KEPT: usize = 8;
const MOST_KEPT_BYTES: usize = 16 << 20;
/// Looks that are under way.
const MOST_RUNNING: usize = 16;

// === impl Looks ===

impl Looks {
    /// Something has happened.
    pub fn handle(&mut self, now: Time, event: LookEvent) {
        match event {
            LookEvent::Opened { peer, hello, can_be_asked } => {
                self.children.insert(peer, ChildLine::new(hello, can_be_asked));
            }
            LookEvent::Closed { peer } => {
                self.children.remove(&peer);
                self.running.values_mut().for_each(|look| look.lose(peer));
            }
            LookEvent::Shown { peer, part } => self.hear(peer, part),
            LookEvent::Asked { stream, look } => self.be_asked(now, stream, *look),
        }
        self.finish(now);
    }

    /// Looks at this node and all below, for whoever asks here. Returns the number that [`LookOutput::View`] repeats.
    ///
    /// # Errors
    /// When too many looks are under way.
    pub fn ask(
        &mut self,
        now: Time,
        question: LookQuestion,
        patience: Duration,
    ) -> Result<u64, TooManyLooks> {
        let ticket = self.next_number();
        self.begin(now, question, BOUNDS, patience, LookAsker::Here { ticket })?;
        self.finish(now);
        Ok(ticket)
    }

    /// The content of this node for look `number`, as it was asked for.
    pub fn content(&mut self, now: Time, number: u64, content: NodeContent) {
        if let Some(look) = self.running.get_mut(&number) {
            look.take_content(content, &self.children);
            self.finish(now);
        }
    }

    /// All that look `number` has brought, put together as it was asked for.
    pub fn folded(&mut self, now: Time, number: u64, bytes: Option<Vec<u8>>) {
        if let Some(look) = self.running.get_mut(&number) {
            look.fold(bytes);
            self.finish(now);
        }
    }

    /// The next thing to do at `now`; nothing if all is done until [`Looks::next_deadline`]. `takes` says whether a stream takes
    /// a message.
    pub fn poll(&mut self, now: Time, takes: impl FnMut(Peer) -> bool) -> Option<LookOutput> {
        self.finish(now);
        self.outputs.pop_front().or_else(|| self.next_look(now, takes))
    }

    /// When to poll again, if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        if !self.outputs.is_empty() {
            return Some(Time::ZERO);
        }
        let kept = self.kept.iter().map(|kept| kept.until);
        self.running.values().map(RunningLook::next_deadline).chain(kept).min()
    }

    /// The looks that are under way.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The node above looks at this one.
    fn be_asked(&mut self, now: Time, stream: u64, look: Look) {
        let Look { id, kind, patience, bounds, body } = look;
        let asker = LookAsker::Above { stream, id };
        let bounds = ViewBounds {
            bytes: bounds.bytes.min(BOUNDS.bytes),
            nodes: bounds.nodes.min(BOUNDS.nodes),
            levels: bounds.levels.min(BOUNDS.levels),
        };
        let patience = patience.min(PATIENCE * 4);
        if self.begin(now, LookQuestion { kind, body }, bounds, patience, asker).is_err() {
            self.answer(&asker, &Arc::new(PackedView::pack(None, Vec::new(), bounds)));
        }
    }

    /// Answers by what is known, joins a look that asks the same, or begins one.
    fn begin(
        &mut self,
        now: Time,
        question: LookQuestion,
        bounds: ViewBounds,
        patience: Duration,
        asker: LookAsker,
    ) -> Result<(), TooManyLooks> {
        let fits = |view: &PackedView| {
            view.bytes.len() <= bounds.bytes && view.nodes <= bounds.nodes && view.levels <= bounds.levels
        };
        let kept = self.kept.iter().find(|kept| kept.question == question && fits(&kept.view));
        if let Some(view) = kept.filter(|kept| now < kept.until).map(|kept| Arc::clone(&kept.view)) {
            self.answer(&asker, &view);
            return Ok(());
        }
        let until = now + patience;
        let same = self.running.values_mut().find(|look| look.question == question && look.bounds == bounds);
        if let Some(look) = same {
            look.until = look.until.min(until);
            look.askers.push(asker);
            return Ok(());
        }
        if self.running.len() >= MOST_RUNNING {
            return Err(TooManyLooks);
        }
        self.children.values_mut().for_each(|child| child.free(now));
        let number = self.next_number();
        self.outputs.push_back(LookOutput::Content {
            look: number,
            question: question.clone(),
            bytes: bounds.bytes,
        });
        let look = RunningLook::new(question, bounds, [now, until], asker, &self.children);
        self.running.insert(number, look);
        Ok(())
    }

    /// A part of a view has come up. One that nobody waits for is passed over.
    fn hear(&mut self, peer: Peer, part: ViewPart) {
        let Some(child) = self.children.get_mut(&peer) else { return };
        let bytes = part.body.len();
        let Some((number, progress)) = child.hear(part) else { return };
        let Some(look) = self.running.get_mut(&number) else { return };
        if look.is_too_much(bytes) {
            child.pass_over();
            return look.see(peer, Seen::LeftOut, None);
        }
        match progress {
            Progress::More => {}
            Progress::Whole(bytes) => match PackedView::of(bytes) {
                Some(view) => look.see(peer, Seen::Shown, Some(view)),
                None => look.see(peer, Seen::Malformed, None),
            },
            Progress::Broken => look.see(peer, Seen::Malformed, None),
        }
    }

    /// The next child that is to be asked something and is not at another thing, and what.
    fn next_look(&mut self, now: Time, mut takes: impl FnMut(Peer) -> bool) -> Option<LookOutput> {
        for (&number, look) in &mut self.running {
            for (&peer, looked_at) in &mut look.children {
                let ChildView::Waits(body) = &mut looked_at.view else { continue };
                let Some(child) = self.children.get_mut(&peer) else { continue };
                if child.is_at_something() || !takes(peer) {
                    continue;
                }
                let body = std::mem::take(body);
                looked_at.view = ChildView::Asked;
                self.last += 1;
                let id = self.last;
                child.ask(now, id, number);
                let look = Box::new(look.question_below(now, id, body));
                return Some(LookOutput::Look { peer, look });
            }
        }
        None
    }

    /// Ends looks of which all has come, or that are given up, and forgets views that are old.
    fn finish(&mut self, now: Time) {
        self.kept.retain(|kept| now < kept.until);
        for (&number, look) in &mut self.running {
            if let Some(contents) = look.begin_folding(now) {
                let question = look.question.clone();
                self.outputs.push_back(LookOutput::Fold { look: number, question, contents });
            }
        }
        let is_over = |look: &RunningLook| look.until <= now || look.is_complete();
        while let Some(number) =
            self.running.iter().find(|(_, look)| is_over(look)).map(|(&number, _)| number)
        {
            let Some(mut look) = self.running.remove(&number) else { return };
            self.children.values_mut().for_each(|child| child.give_up(number));
            // What did not answer last time keeps nobody waiting now.
            let (askers, question) = (std::mem::take(&mut look.askers), look.question.clone());
            let is_complete = look.is_complete();
            let view = Arc::new(look.pack());
            askers.iter().for_each(|asker| self.answer(asker, &view));
            // What was given up for want of patience is no answer for those who have more.
            if is_complete {
                self.keep(now, question, view);
            }
        }
    }

    fn keep(&mut self, now: Time, question: LookQuestion, view: Arc<PackedView>) {
        self.kept.retain(|kept| kept.question != question);
        self.kept.push(KeptView { question, view, until: now + KEPT });
        let bytes = |kept: &[KeptView]| kept.iter().map(|kept| kept.view.bytes.len()).sum::<usize>();
        while self.kept.len() > MOST_KEPT || self.kept.len() > 1 && bytes(&self.kept) > MOST_KEPT_BYTES {
            self.kept.remove(0);
        }
    }

    fn answer(&mut self, asker: &LookAsker, view: &Arc<PackedView>) {
        match *asker {
            LookAsker::Here { ticket } => {
                let bytes = view.bytes.clone();
                self.outputs.push_back(LookOutput::View { ticket, bytes });
            }
            LookAsker::Above { stream, id } => {
                let chunks: Vec<&[u8]> = match view.bytes.is_empty() {
                    true => vec![&[]],
                    false => view.bytes.chunks(ViewPart::LONGEST).collect(),
                };
                let last = chunks.len() - 1;
                for (number, chunk) in chunks.into_iter().enumerate() {
                    let part = u32::try_from(number).unwrap_or(u32::MAX);
                    let part = ViewPart { id, part, is_last: number == last, body: chunk.to_vec() };
                    self.outputs.push_back(LookOutput::Show { stream, part });
                }
            }
        }
    }
}
