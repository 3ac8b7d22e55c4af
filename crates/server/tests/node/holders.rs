//! Holders that poll a node as Doorman's clients and ours do, and believe what they are told until it ends.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use lessor_proto::message::{Answer, Ask, Band, Bands, Grant, Has, HolderKind, Refusal, Release, Report};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{ConnectionMark, Node, NodeConfig, StatusQuery};
use lessor_server::repository::{Glob, Repository, Template};
use lessor_server::resource::ResourceStatus;

/// The part of its answers that a client keeps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Memory {
    /// All of the lease, as Doorman's client does without knowing.
    #[default]
    Echoes,
    /// The fields that Doorman knows.
    Forgets,
    /// All of it, and it draws an incarnation.
    Incarnated,
}

/// A process that holds a lease of the one resource.
#[derive(Clone, Default, Debug)]
pub(crate) struct Holder {
    pub(crate) memory: Memory,
    pub(crate) lease: Option<(Grant, Time)>,
    /// Drawn when the process starts.
    pub(crate) incarnation: u64,
    reports: u64,
    /// The epoch it last heard of.
    epoch: Option<u64>,
}

/// One report as it is written in a story.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    pub(crate) bands: Bands,
    pub(crate) node: bool,
    /// As a process that has just begun.
    pub(crate) fresh: bool,
    /// The answer never arrives.
    pub(crate) lost: bool,
    /// The amount that it claims to have from an earlier epoch.
    pub(crate) claims: Option<f64>,
    /// The amount that it promises to keep to.
    pub(crate) held: Option<f64>,
    /// The version of the policies of domains that it shows.
    pub(crate) domains: Option<u32>,
}

/// A node with one template for every name, and its holders.
pub(crate) struct Town {
    pub(crate) now: Time,
    pub(crate) node: Node,
    pub(crate) holders: BTreeMap<String, Holder>,
    /// The number of processes so far.
    lives: u64,
}

pub(crate) fn template(capacity: f64) -> Template {
    Template::new(Glob::new("*").expect("a glob"), Amount::from_f64(capacity))
}

pub(crate) fn repository(template: Template) -> Repository {
    Repository::new(vec![template]).expect("one template that holds together")
}

pub(crate) fn resource() -> ResourceId {
    ResourceId::new("db", 256).expect("a name")
}

// === impl Town ===

impl Town {
    pub(crate) fn new(template: Template, epoch: u64) -> Town {
        let node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(epoch)), repository(template));
        Town { now: Time::ZERO, node, holders: BTreeMap::new(), lives: 0 }
    }

    /// One request and, unless it is lost, its answer.
    pub(crate) fn ask(&mut self, name: &str, words: &Words) -> Result<Answer, Refusal> {
        let now = self.now;
        if words.fresh {
            self.restart(name);
        }
        let holder = self.holder(name);
        holder.reports += 1;
        let (holder, caller) = (holder.clone(), holder.caller());
        let ask = holder.ask(now, name, words);
        let answer = self.node.ask_on(now, Some(caller), &ask)?;
        let holder = self.holder(name);
        holder.epoch = answer.epoch.map(u64::from);
        if let Some(grant) = answer.grants.first().filter(|_| !words.lost) {
            holder.lease = Some((grant.clone(), now + grant.length));
        }
        Ok(answer)
    }

    /// The process of that name: `web/new` is the process `new` with the client id `web`.
    pub(crate) fn holder(&mut self, name: &str) -> &mut Holder {
        let process = name.split('/').next_back().unwrap_or(name).to_owned();
        self.holders.entry(process).or_insert_with(|| {
            self.lives += 1;
            Holder { incarnation: self.lives, ..Holder::default() }
        })
    }

    /// The process ends without a word, and another begins in its place.
    pub(crate) fn restart(&mut self, name: &str) {
        self.lives += 1;
        let incarnation = self.lives;
        let holder = self.holder(name);
        *holder = Holder { memory: holder.memory, incarnation, ..Holder::default() };
    }

    /// The server is gone and another one begins to lead.
    pub(crate) fn epoch(&mut self, template: Template, epoch: u64) {
        self.node = Node::new(self.now, NodeConfig::new("root", Epoch(epoch)), repository(template));
    }

    pub(crate) fn release(&mut self, name: &str) {
        let (id, process) =
            (name.split('/').next().unwrap_or(name), name.split('/').next_back().unwrap_or(name));
        let Some(holder) = self.holders.remove(process) else { return };
        let incarnation = (holder.memory == Memory::Incarnated).then_some(holder.incarnation);
        let release = Release {
            holder: client(id),
            incarnation: incarnation.map(Incarnation),
            report_id: None,
            resources: vec![resource()],
        };
        self.node.release_on(self.now, Some(holder.caller()), &release);
    }

    /// The amount that all holders believe they may use.
    pub(crate) fn believed(&self) -> u128 {
        self.holders.values().map(|holder| u128::from(holder.believes(self.now).as_micros())).sum()
    }

    pub(crate) fn status(&self) -> Option<ResourceStatus> {
        self.node.status(self.now, &StatusQuery::default()).resources.pop().map(|row| row.resource)
    }
}

// === impl Holder ===

impl Holder {
    pub(crate) fn believes(&self, now: Time) -> Amount {
        self.lease.as_ref().filter(|(_, end)| *end > now).map_or(Amount::ZERO, |(grant, _)| grant.capacity)
    }

    /// The connection of the process, which it opens when it starts.
    pub(crate) fn caller(&self) -> ConnectionMark {
        let number = u32::try_from(self.incarnation).ok().and_then(NonZeroU32::new);
        ConnectionMark::new(number.expect("lives are counted from one"))
    }

    fn ask(&self, now: Time, name: &str, words: &Words) -> Ask {
        let incarnated = self.memory == Memory::Incarnated;
        let claim = words.claims.map(|claims| Has {
            capacity: Amount::from_f64(claims),
            order: None,
            token: vec![],
            lasts: None,
            expiry: u64::MAX,
        });
        let has =
            claim.or_else(|| self.lease.as_ref().filter(|(_, end)| *end > now).map(|lease| self.has(lease)));
        Ask {
            kind: if words.node { HolderKind::Node } else { HolderKind::Client },
            holder: client(name.split('/').next().unwrap_or(name)),
            incarnation: incarnated.then_some(Incarnation(self.incarnation)),
            report_id: incarnated.then_some(ReportId(self.reports)),
            target_epoch: self.epoch.filter(|_| incarnated).map(Epoch),
            reports: vec![Report {
                resource: resource(),
                bands: words.bands.clone(),
                has,
                held: words.held.map(Amount::from_f64),
                domains: words.domains,
                integer: None,
                peak: None,
                unenforced: None,
            }],
            line: words.node.then_some(1),
        }
    }

    fn has(&self, (grant, end): &(Grant, Time)) -> Has {
        let (order, token) = match self.memory {
            Memory::Forgets => (None, Vec::new()),
            _ => (grant.order, grant.token.clone()),
        };
        let expiry = Duration::from_nanos(end.as_nanos()).as_secs();
        Has { capacity: grant.capacity, order, token, lasts: None, expiry }
    }
}

pub(crate) fn client(name: &str) -> ClientId {
    ClientId::new(name, 256).expect("a name")
}

pub(crate) fn wants(amount: f64) -> Words {
    Words {
        bands: Bands::from_elem(Band { priority: 0, subclients: 1, wants: amount }, 1),
        node: false,
        fresh: false,
        lost: false,
        claims: None,
        held: None,
        domains: None,
    }
}
