//! Rules of access: operators change them, each task reads them a little later, and holds against them who opens a stream, asks and
//! reports, with the code of a server.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::{Ask, Band, CheckedAsk, Down, Hello, HolderKind, Refusal, Up};
use lessor_proto::{ClientId, ResourceId};
use lessor_server::access::{
    Access, Admitted, Allowance, ClientRule, Credential, Denial, NamePattern, NodeRule, Review, StreamRights,
};
use lessor_server::node::Peer;
use lessor_server::repository::Glob;

use super::{Event, Simulation};
use crate::holding::Holding;
use crate::plan::SimulationPlan;
use crate::process::Actor;
use crate::stream::StreamRef;
use crate::trace::{Happening, Speaker};

/// All editions of the rules of access.
#[derive(Debug)]
pub(crate) struct RuleBook {
    names: Names,
    editions: Vec<Arc<RulesEdition>>,
}

/// One edition: what operators meant, and the rules that say so.
#[derive(Clone, Debug)]
pub(crate) struct RulesEdition {
    pub(crate) rights: GrantedRights,
    access: Access,
}

/// The rights that operators give: of each client, and of each site as a node.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct GrantedRights {
    clients: Vec<ClientRight>,
    nodes: Vec<NodeRight>,
}

/// The rights of a client.
#[derive(Clone, PartialEq, Debug)]
struct ClientRight {
    /// Whether a rule speaks of it.
    is_known: bool,
    /// Of each resource, whether it may hold it.
    resources: Vec<bool>,
    allowance: Allowance,
}

/// The rights of a site as a node.
#[derive(Clone, Copy, PartialEq, Debug)]
struct NodeRight {
    is_known: bool,
    most_clients: Option<u64>,
    most_priority: Option<i64>,
}

/// The names of all that rules speak of.
#[derive(Clone, Debug)]
struct Names {
    clients: Vec<String>,
    sites: Vec<String>,
    resources: Vec<String>,
}

/// Somebody of whom rules speak.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Whose {
    /// A client, and all processes of its name.
    Client(u32),
    /// A site.
    Site(u32),
}

/// The rights of the holder at the other end of a stream.
#[derive(Clone, Debug)]
pub(crate) struct PeerRights {
    pub(crate) whose: Whose,
    kind: HolderKind,
    holder: ClientId,
    /// The edition that was looked at last.
    pub(crate) edition: usize,
    rights: StreamRights,
}

// === impl RuleBook ===

impl RuleBook {
    /// Everybody may hold everything.
    pub(crate) fn new(plan: &SimulationPlan) -> RuleBook {
        let names = Names {
            clients: plan.clients.iter().map(|client| client.name.clone()).collect(),
            sites: plan.sites.iter().map(|site| site.name.clone()).collect(),
            resources: plan.resources.iter().map(|resource| resource.name.clone()).collect(),
        };
        let client = ClientRight {
            is_known: true,
            resources: vec![true; names.resources.len()],
            allowance: Allowance::default(),
        };
        let node = NodeRight { is_known: true, most_clients: None, most_priority: None };
        let rights = GrantedRights {
            clients: vec![client; names.clients.len()],
            nodes: vec![node; names.sites.len()],
        };
        let mut book = RuleBook { names, editions: Vec::new() };
        book.publish(rights);
        book
    }

    fn publish(&mut self, rights: GrantedRights) {
        let access = rights.access(&self.names);
        self.editions.push(Arc::new(RulesEdition { rights, access }));
    }

    /// The rights in force.
    pub(crate) fn rights(&self) -> &GrantedRights {
        &self.edition(self.newest()).rights
    }

    pub(crate) fn edition(&self, number: usize) -> &Arc<RulesEdition> {
        &self.editions[number]
    }

    fn newest(&self) -> usize {
        self.editions.len() - 1
    }

    /// Of whom rules speak by that name.
    pub(crate) fn whose(&self, kind: HolderKind, name: &str) -> Option<Whose> {
        let find = |names: &[String]| names.iter().position(|found| found == name).map(|found| found as u32);
        match kind {
            HolderKind::Client => find(&self.names.clients).map(Whose::Client),
            HolderKind::Node => find(&self.names.sites).map(Whose::Site),
        }
    }
}

// === impl GrantedRights ===

impl GrantedRights {
    /// Whether somebody may hold a resource, with that priority if it is a client.
    pub(crate) fn may_hold(&self, whose: Whose, resource: u16, priority: i64) -> bool {
        match whose {
            Whose::Client(client) => {
                let found = &self.clients[client as usize];
                found.is_known
                    && found.resources[usize::from(resource)]
                    && found.allowance.most_priority.is_none_or(|most| priority <= most)
            }
            Whose::Site(site) => self.nodes[site as usize].is_known,
        }
    }

    /// The limits on what a client says.
    pub(crate) fn allowance(&self, client: u32) -> Allowance {
        self.clients[client as usize].allowance
    }

    /// The most clients that a site stands for, and the greatest priority below it.
    pub(crate) fn caps(&self, site: u32) -> (Option<u64>, Option<i64>) {
        let found = &self.nodes[site as usize];
        (found.most_clients, found.most_priority)
    }

    fn access(&self, names: &Names) -> Access {
        let glob = |name: &String| Glob::new(name.as_str()).expect("a name without signs");
        let client = |(right, name): (&ClientRight, &String)| {
            let held = right.resources.iter().zip(&names.resources).filter(|(may, _)| **may);
            right.is_known.then(|| ClientRule {
                resources: Some(held.map(|(_, name)| glob(name)).collect()),
                allowance: right.allowance,
                ..ClientRule::new(glob(name))
            })
        };
        let node = |(right, name): (&NodeRight, &String)| {
            let pattern = NamePattern::new(name).expect("a name without signs");
            right.is_known.then(|| NodeRule {
                most_clients: right.most_clients,
                most_priority: right.most_priority,
                ..NodeRule::new(glob(name), pattern)
            })
        };
        Access {
            clients: self.clients.iter().zip(&names.clients).filter_map(client).collect(),
            nodes: self.nodes.iter().zip(&names.sites).filter_map(node).collect(),
            ..Access::default()
        }
    }
}

// === impl RulesEdition ===

impl RulesEdition {
    fn admit(&self, kind: HolderKind, holder: &ClientId) -> Result<Admitted, Denial> {
        self.access.admit(&Credential::of(holder.as_str()), kind, holder)
    }
}

// === impl Simulation: what operators do ===

impl Simulation {
    /// Operators take a right away for a while or for good, or change a limit; in a quarter of the cases as a leader dies.
    pub(super) fn change_rights(&mut self) -> bool {
        let Some(book) = &self.rule_book else { return false };
        let mut rights = book.rights().clone();
        let (whose, what) = match self.rng.below(10) {
            0..=5 => self.take_away(&mut rights),
            6..=7 => self.limit_client(&mut rights),
            _ => self.limit_node(&mut rights),
        };
        if rights == *book_of(&self.rule_book).rights() {
            return false;
        }
        self.put_rights_in_force(whose, what, rights);
        let site = match whose {
            Whose::Client(client) => self.clients[client as usize].site,
            Whose::Site(site) => self.sites[site as usize].parent.unwrap_or(site),
        };
        if self.rng.chance(250)
            && let Some(head) = self.sites[site as usize].head
        {
            self.overthrow(head);
        }
        // A client may be left without; a node with all below it is not.
        if matches!(whose, Whose::Site(_)) || self.rng.chance(800) {
            let back = self.spell();
            self.queue.put(back, Event::Regain(whose));
        }
        true
    }

    fn take_away(&mut self, rights: &mut GrantedRights) -> (Whose, u64) {
        if self.sites.len() > 1 && self.rng.chance(150) {
            let site = 1 + self.rng.index(self.sites.len() - 1) as u32;
            rights.nodes[site as usize].is_known = false;
            return (Whose::Site(site), 1);
        }
        let client = self.rng.index(rights.clients.len());
        let found = &mut rights.clients[client];
        let resource = self.rng.index(found.resources.len());
        if self.rng.chance(200) {
            found.is_known = false;
            return (Whose::Client(client as u32), 1);
        }
        found.resources[resource] = false;
        (Whose::Client(client as u32), 0)
    }

    fn limit_client(&mut self, rights: &mut GrantedRights) -> (Whose, u64) {
        let client = self.rng.index(rights.clients.len());
        let allowance = &mut rights.clients[client].allowance;
        match self.rng.below(4) {
            0 => allowance.weight = self.rng.between(1, 4) as u32,
            1 => allowance.most_priority = self.rng.chance(500).then_some(0),
            _ => allowance.most_wants = self.rng.chance(700).then(|| self.rng.between(1, 60) as f64),
        }
        (Whose::Client(client as u32), 3)
    }

    fn limit_node(&mut self, rights: &mut GrantedRights) -> (Whose, u64) {
        let site = self.rng.index(rights.nodes.len());
        let found = &mut rights.nodes[site];
        match self.rng.chance(700) {
            true => found.most_clients = self.rng.chance(700).then(|| self.rng.between(1, 8)),
            false => found.most_priority = self.rng.chance(600).then_some(0),
        }
        (Whose::Site(site as u32), 3)
    }

    /// Somebody gets back what was taken away; limits stay as they are.
    pub(super) fn give_back_rights(&mut self, whose: Whose) {
        let Some(book) = &self.rule_book else { return };
        let mut rights = book.rights().clone();
        match whose {
            Whose::Client(client) => {
                let found = &mut rights.clients[client as usize];
                found.is_known = true;
                found.resources.iter_mut().for_each(|may| *may = true);
                found.allowance.most_priority = None;
            }
            Whose::Site(site) => rights.nodes[site as usize].is_known = true,
        }
        if rights != *book.rights() {
            self.put_rights_in_force(whose, 2, rights);
        }
    }

    fn put_rights_in_force(&mut self, whose: Whose, what: u64, rights: GrantedRights) {
        let (kind, number) = match whose {
            Whose::Client(client) => (0, client),
            Whose::Site(site) => (1, site),
        };
        self.note(Speaker::Simulation, Happening::Right, [kind, number.into(), what]);
        if let Some(book) = &mut self.rule_book {
            book.publish(rights);
        }
        for task in 0..self.tasks.len() as u32 {
            let at = self.rng.time(Duration::ZERO, Duration::from_secs(1));
            self.later(at, Event::Access(task));
        }
    }
}

fn book_of(book: &Option<Box<RuleBook>>) -> &RuleBook {
    book.as_deref().expect("rules of access")
}

// === impl Simulation: what tasks do ===

impl Simulation {
    /// A task reads the rules in force.
    pub(super) fn read_rules(&mut self, task: u32) {
        self.find_rules(task);
    }

    /// The same of one whose process begins.
    pub(super) fn find_rules(&mut self, task: u32) {
        if let Some(book) = &self.rule_book {
            self.tasks[task as usize].rules = book.newest();
        }
    }

    fn edition_of(&self, task: u32) -> Option<&Arc<RulesEdition>> {
        let book = self.rule_book.as_ref()?;
        Some(book.edition(self.tasks[task as usize].rules))
    }

    /// The rights of whoever says `hello` to a task; nothing where there are no rules.
    pub(super) fn let_in(&self, task: u32, hello: &Hello) -> Option<Result<PeerRights, Denial>> {
        let (book, edition) = (self.rule_book.as_ref()?, self.edition_of(task)?);
        let (kind, holder) = (hello.kind, hello.holder.clone());
        let whose = book.whose(kind, holder.as_str())?;
        let admitted = match edition.admit(kind, &holder) {
            Err(denial) if !self.holds_rights() => Admitted::Audited(denial),
            Ok(Admitted::With(_)) if !self.holds_rights() => {
                Admitted::Audited(Denial::token("not looked at"))
            }
            admitted => match admitted {
                Ok(admitted) => admitted,
                Err(denial) => return Some(Err(denial)),
            },
        };
        let rights = StreamRights::new(admitted, edition.access.stance);
        Some(Ok(PeerRights { whose, kind, holder, edition: self.tasks[task as usize].rules, rights }))
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
        let newest = self.tasks[task as usize].rules;
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
        if self.tasks[task as usize].acts(self.now) {
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

// === impl Simulation: who may ===

impl Simulation {
    /// Of whom rules speak that a holding is of.
    pub(crate) fn whose(&self, client: u32) -> Whose {
        Whose::Client(self.clients[client as usize].twin_of.unwrap_or(client))
    }

    /// Whether a client, and each node above it, may hold what it does, by the rules in force.
    pub(crate) fn may_hold(&self, holding: &Holding) -> bool {
        let Some(book) = &self.rule_book else { return true };
        let site = self.clients[holding.client as usize].site;
        let above = std::iter::successors(Some(site), |&site| self.sites[site as usize].parent);
        let nodes = above.filter(|&site| self.sites[site as usize].parent.is_some()).map(Whose::Site);
        nodes
            .chain([self.whose(holding.client)])
            .all(|whose| book.rights().may_hold(whose, holding.resource, holding.priority))
    }

    /// Checks that what has passed the rules says no more than may be said.
    fn check_said(&mut self, whose: Whose, edition: usize, bands: &[Band]) {
        let Some(book) = &self.rule_book else { return };
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
