//! Looks beside the leases: in the node, as long as nobody has taken them out, or elsewhere, where they are told what they have to
//! know.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::message::{Down, Hello, HolderKind, LookKind, ViewPart};
use lessor_proto::{ClientId, Features, ResourceId, Time, wire};
use prost::Message;

use super::parent::Above;
use super::{Node, Peer, StatusQuery};
use crate::look::tree::{NodeFacts, TreeQuery};
use crate::look::{LookEvent, LookOutput, LookPassing, LookQuestion, Looks, NodeContent, TooManyLooks};

/// The part of a node that has to do with looks.
#[derive(Clone, Debug)]
pub(crate) struct Lookers {
    place: LooksPlace,
    /// The views that were asked for here, with the numbers of them.
    views: VecDeque<(u64, Vec<u8>)>,
}

/// Where looks are driven.
#[derive(Clone, Debug)]
enum LooksPlace {
    /// In the node.
    Inside(Looks),
    /// Elsewhere; what has to be known there is fetched from here.
    Outside(VecDeque<LookEvent>),
}

// === impl Lookers ===

impl Default for Lookers {
    fn default() -> Lookers {
        Lookers { place: LooksPlace::Inside(Looks::default()), views: VecDeque::new() }
    }
}

impl Lookers {
    pub(super) fn note(&mut self, now: Time, event: LookEvent) {
        match &mut self.place {
            LooksPlace::Inside(looks) => looks.handle(now, event),
            LooksPlace::Outside(events) => events.push_back(event),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        match &self.place {
            LooksPlace::Inside(looks) => looks.next_deadline(),
            LooksPlace::Outside(_) => None,
        }
    }
}

// === impl Node ===

impl Node {
    /// Hands over the looks, which are driven beside this node from here on: they are to handle each of
    /// [`Node::next_look_event`], views that come up are for them, and what they say goes past this node.
    pub fn take_looks(&mut self) -> Looks {
        match std::mem::replace(&mut self.streams.lookers.place, LooksPlace::Outside(VecDeque::new())) {
            LooksPlace::Inside(looks) => looks,
            LooksPlace::Outside(events) => {
                self.streams.lookers.place = LooksPlace::Outside(events);
                Looks::default()
            }
        }
    }

    /// The next thing that looks have to know, where they were [taken out](Node::take_looks).
    pub fn next_look_event(&mut self) -> Option<LookEvent> {
        match &mut self.streams.lookers.place {
            LooksPlace::Inside(_) => None,
            LooksPlace::Outside(events) => events.pop_front(),
        }
    }

    /// Looks at this node and at all below it, where looks are in the node. Returns the number that [`Node::next_view`] repeats.
    ///
    /// # Errors
    /// When too many looks are under way, or they were [taken out](Node::take_looks).
    pub fn look(
        &mut self,
        now: Time,
        question: LookQuestion,
        patience: Duration,
    ) -> Result<u64, TooManyLooks> {
        match &mut self.streams.lookers.place {
            LooksPlace::Inside(looks) => looks.ask(now, question, patience),
            LooksPlace::Outside(_) => Err(TooManyLooks),
        }
    }

    /// The next view that was asked for by [`Node::look`], with its number.
    pub fn next_view(&mut self) -> Option<(u64, Vec<u8>)> {
        self.streams.lookers.views.pop_front()
    }

    /// Says a part of a view to the node above, behind all else.
    pub fn show_above(&mut self, stream: u64, part: ViewPart) {
        if let Some(above) = &mut self.parent {
            above.show(stream, part);
        }
    }

    /// The content of this node for a question; of the tree it is made [of a status](TreeQuery::content). Nothing is granted by it.
    pub fn look_content(&mut self, now: Time, question: &LookQuestion) -> NodeContent {
        match question.kind {
            LookKind::Client => NodeContent {
                bytes: self.find_client(&question.body),
                known: self.names.below(),
                ..NodeContent::default()
            },
            LookKind::Explain => self.explain_on_the_way(now, &question.body),
            LookKind::Tree | LookKind::PlanDemand | LookKind::PlanSupply | LookKind::Other(_) => {
                NodeContent::default()
            }
        }
    }

    /// Lets looks know of a stream that was opened, if it is that of a node.
    pub(super) fn note_opened(&mut self, now: Time, peer: Peer, hello: &Hello) {
        if hello.kind == HolderKind::Node {
            let can_be_asked = self.config.features.and(hello.features).covers(Features::LOOKS);
            self.streams.lookers.note(now, LookEvent::Opened { peer, hello: hello.clone(), can_be_asked });
        }
    }

    /// Lets looks know that such a stream has ended.
    pub(super) fn note_closed(&mut self, now: Time, peer: Peer, kind: HolderKind) {
        if kind == HolderKind::Node {
            self.streams.lookers.note(now, LookEvent::Closed { peer });
        }
    }

    /// A part of a view came up. Clients are not looked at.
    pub(super) fn on_view(&mut self, now: Time, peer: Peer, part: ViewPart) {
        if self.streams.peers.get(peer).is_some_and(|stream| stream.hello.kind == HolderKind::Node) {
            self.streams.lookers.note(now, LookEvent::Shown { peer, part });
        }
    }

    /// Does what looks want next, and returns whether there was anything.
    pub(super) fn say_looks(&mut self, now: Time) -> bool {
        let LooksPlace::Inside(looks) = &mut self.streams.lookers.place else { return false };
        let peers = &mut self.streams.peers;
        match looks.poll(now, |peer| !peers.is_busy(peer)) {
            Some(LookOutput::Look { peer, look }) => _ = peers.say(peer, Down::Look(look)),
            Some(LookOutput::Content { look, question, bytes }) => {
                let content = self.content_inside(now, &question, bytes);
                if let LooksPlace::Inside(looks) = &mut self.streams.lookers.place {
                    looks.content(now, look, content);
                }
            }
            // Documents are read where there are files.
            Some(LookOutput::Fold { look, .. }) => {
                if let LooksPlace::Inside(looks) = &mut self.streams.lookers.place {
                    looks.folded(now, look, None);
                }
            }
            Some(LookOutput::Show { stream, part }) => self.show_above(stream, part),
            Some(LookOutput::View { ticket, bytes }) => self.streams.lookers.views.push_back((ticket, bytes)),
            None => return false,
        }
        true
    }

    fn content_inside(&mut self, now: Time, question: &LookQuestion, bytes: usize) -> NodeContent {
        match (question.kind, TreeQuery::read(&question.body)) {
            (LookKind::Tree, Some(query)) => {
                let status = self.status(now, &StatusQuery::FIGURES);
                let (streams, older_streams) = (self.streams(), self.older_streams());
                let facts = NodeFacts { streams, older_streams, ..NodeFacts::default() };
                let bytes = Some(query.content(&status, &facts, bytes));
                NodeContent { bytes, known: status.names.below, ..NodeContent::default() }
            }
            _ => self.look_content(now, question),
        }
    }

    /// The lives of the client that is looked for, if it holds or wants the resource here.
    fn find_client(&self, body: &[u8]) -> Option<Vec<u8>> {
        let wire::ClientQuestion { resource_id, client_id } = wire::ClientQuestion::decode(body).ok()?;
        let (_, resource) = self.resources.find(&resource_id)?;
        let lives = resource.slots_of(&client_id).len();
        let found = wire::ClientFound { lives: Some(u32::try_from(lives).unwrap_or(u32::MAX)) };
        (lives > 0).then(|| found.encode_to_vec())
    }

    /// The explanation of what the client gets, or of what the next node on the way to it does, which is asked as well.
    fn explain_on_the_way(&mut self, now: Time, body: &[u8]) -> NodeContent {
        let Ok(wire::ExplainQuestion { resource_id, client_id, mut path }) =
            wire::ExplainQuestion::decode(body)
        else {
            return NodeContent::default();
        };
        let next = (!path.is_empty()).then(|| path.remove(0));
        let longest = |name: &str| name.len();
        let holder = next.as_deref().unwrap_or(&client_id);
        let resource = ResourceId::new(resource_id.as_str(), longest(&resource_id));
        let holder = ClientId::new(holder, longest(holder));
        let (Ok(resource), Ok(holder)) = (resource, holder) else { return NodeContent::default() };
        let explanation = self.explain(now, &resource, Some(&holder)).ok();
        #[cfg(feature = "shell")]
        let bytes = explanation.and_then(|explanation| serde_json::to_vec(&explanation).ok());
        #[cfg(not(feature = "shell"))]
        let bytes = explanation.map(|_| Vec::new());
        let body = wire::ExplainQuestion { resource_id, client_id, path }.encode_to_vec();
        let passing = next.map(|next| LookPassing::Each([(next, body)].into()));
        NodeContent { bytes, passing: passing.unwrap_or_default(), known: Vec::new() }
    }
}

// === impl Above ===

impl Above {
    fn show(&mut self, stream: u64, part: ViewPart) {
        self.session_mut().show(stream, part);
    }
}
