//! Rules of access as tasks go by them: operators change them, each task reads them a little later, and holds against them who opens
//! a stream, asks and reports, with the code of a server.

use std::sync::Arc;

use lessor_proto::message::{Ask, Band, CheckedAsk, Down, Hello, HolderKind, Refusal, Up};
use lessor_proto::{ClientId, ResourceId};
use lessor_server::access::{Admitted, Denial, Review, StreamRights};
use lessor_server::node::Peer;

use super::Simulation;
use crate::actor::Actor;
use crate::rule_book::{PeerRights, RulesEdition, Whose};
use crate::stream::StreamRef;
use crate::trace::Happening;

// === impl Simulation: what tasks do ===

impl Simulation {
    /// A task reads the rules in force.
    pub(super) fn read_rules(&mut self, task: u32) {
        if let Some(book) = &self.configurations.rule_book {
            self.tree.tasks[task as usize].editions.rules = book.newest();
        }
    }

    fn edition_of(&self, task: u32) -> Option<&Arc<RulesEdition>> {
        let book = self.configurations.rule_book.as_ref()?;
        Some(book.edition(self.tree.tasks[task as usize].editions.rules))
    }

    /// The rights of whoever says `hello` to a task; nothing where there are no rules.
    pub(super) fn let_in(&self, task: u32, hello: &Hello) -> Option<Result<PeerRights, Denial>> {
        let (book, edition) = (self.configurations.rule_book.as_ref()?, self.edition_of(task)?);
        let (kind, holder) = (hello.kind, hello.holder.clone());
        let whose = book.whose(kind, holder.as_str())?;
        let admitted = match edition.admit(kind, &holder) {
            Err(denial) if !self.holds_rights() => Admitted::Audited(denial),
            Ok(Admitted::With(_)) if !self.holds_rights() => {
                Admitted::Audited(Denial::token("not looked at"))
            }
            Ok(admitted) => admitted,
            Err(denial) => return Some(Err(denial)),
        };
        let rights = StreamRights::new(admitted, edition.access.stance);
        Some(Ok(PeerRights {
            whose,
            kind,
            holder,
            edition: self.tree.tasks[task as usize].editions.rules,
            rights,
        }))
    }

    /// Holds what came up a stream against the rules; nothing if it goes no further.
    pub(super) fn let_through(&mut self, task: u32, stream: StreamRef, peer: Peer, mut up: Up) -> Option<Up> {
        let Some(found) = self.leadership(task).rights.get_mut(&peer) else { return Some(up) };
        let ruling = found.rights.check(&mut up, None);
        let (whose, edition) = (found.whose, found.edition);
        match (ruling.refusal, &up) {
            (Some(why), Up::Report(report)) => {
                let (id, why) = (report.id, why.to_string());
                self.note(Actor::Task(task).who(), Happening::Refuses, [peer.number(), id.0, 1]);
                self.send_down(stream, super::ToHolder::Down { stream, down: Down::Refused { id, why } });
                return None;
            }
            (Some(why), _) => unreachable!("only reports are refused: {why}"),
            (None, Up::Report(report)) if self.holds_rights() => {
                report.reports.iter().for_each(|report| self.check_said(whose, edition, &report.bands));
            }
            (None, _) => {}
        }
        (!ruling.is_passed_over).then_some(up)
    }

    /// Holds a request that came without a stream against the rules; nothing where there are none.
    pub(super) fn rule_ask(&self, task: u32, ask: &Ask) -> Option<Result<CheckedAsk, Refusal>> {
        let edition = self.edition_of(task)?;
        let admitted = match edition.admit(ask.kind, &ask.holder) {
            Ok(admitted) => admitted,
            Err(denial) => return Some(Err(denial.refusal())),
        };
        let stance = edition.access.stance;
        Some(CheckedAsk::from(ask.clone()).check(|report| {
            let ruling = admitted.check(stance, report);
            ruling.refusal.map_or(Ok(()), Err)
        }))
    }

    /// Whether a holder may give something back without a stream.
    pub(super) fn let_release(&self, task: u32, holder: &ClientId) -> Result<(), Denial> {
        let Some(edition) = self.edition_of(task) else { return Ok(()) };
        let as_client = edition.admit(HolderKind::Client, holder);
        as_client.or_else(|denial| edition.admit(HolderKind::Node, holder).map_err(|_| denial)).map(|_| ())
    }

    /// A leader looks at the rules again for each of its streams, once a second, whether it may act or not.
    pub(super) fn review_rights(&mut self, task: u32) {
        let Some(edition) = self.edition_of(task).cloned() else { return };
        let newest = self.tree.tasks[task as usize].editions.rules;
        let leadership = self.leadership(task);
        let mut streams: Vec<_> = leadership.peers.iter().map(|(peer, &stream)| (peer, stream)).collect();
        streams.sort_unstable_by_key(|&(peer, _)| peer);
        leadership.rights.retain(|&peer, _| streams.binary_search_by_key(&peer, |&(peer, _)| peer).is_ok());
        for (peer, stream) in streams {
            let Some(found) = self.leadership(task).rights.get_mut(&peer) else { continue };
            if found.edition == newest {
                continue;
            }
            found.edition = newest;
            let review = found.rights.review(edition.admit(found.kind, &found.holder), edition.access.stance);
            let number = match review {
                Review::Same => 0,
                Review::Lost(_) => 1,
                Review::Anew => 2,
                Review::Over => 3,
            };
            self.note(Actor::Task(task).who(), Happening::Reviews, [newest as u64, peer.number(), number]);
            match review {
                Review::Same => {}
                Review::Lost(resources) => self.recall_all(task, (peer, stream), &resources),
                Review::Anew | Review::Over => self.break_off(task, stream),
            }
        }
    }

    /// The holder at the other end may hold these no more. Where the node cannot recall them at this moment the stream ends.
    fn recall_all(&mut self, task: u32, (peer, stream): (Peer, StreamRef), resources: &[ResourceId]) {
        if self.tree.tasks[task as usize].acts(self.now) {
            let now = self.local(Actor::Task(task));
            self.node(task).revoke(now, peer, resources);
        } else if self.ends_for_rights() {
            self.break_off(task, stream);
        }
    }

    fn break_off(&mut self, task: u32, stream: StreamRef) {
        self.let_go(task, stream);
        self.close_down(stream, "the rules of access have changed");
    }
}

impl Simulation {
    /// Checks that what has passed the rules says no more than may be said.
    fn check_said(&mut self, whose: Whose, edition: usize, bands: &[Band]) {
        let Some(book) = &self.configurations.rule_book else { return };
        let rights = &book.edition(edition).rights;
        let all: u64 = bands.iter().map(|band| u64::from(band.subclients)).sum();
        let priority = bands.iter().map(|band| band.priority).max().unwrap_or_default();
        let is_within = match whose {
            Whose::Client(client) => {
                let allowance = rights.allowance(client);
                bands.iter().all(|band| allowance.most_wants.is_none_or(|most| band.wants <= most))
            }
            Whose::Site(site) => {
                let (clients, most) = rights.caps(site);
                clients.is_none_or(|most| all <= most.max(bands.len() as u64))
                    && most.is_none_or(|most| priority <= most)
            }
        };
        if !is_within {
            self.oracle.fail(34, || format!("{whose:?} says {bands:?}, and may not by edition {edition}"));
        }
    }
}
