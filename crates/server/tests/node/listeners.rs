//! Holders that listen on streams: they adopt what comes down, remember the last grant, and show it with every report.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_client::internals::session::Action;
use lessor_proto::message::{Bands, Down, Grant, Has, Hello, HolderKind, Lasts, Report, StreamReport, Up};
use lessor_proto::{Amount, Features, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{MarkWrite, Node, NodeConfig, Output, Peer};
use lessor_server::record::Terms;
use lessor_server::repository::{Repository, Template};

use super::holders::{client, repository, resource};

/// A holder with a stream.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    peer: Peer,
    kind: HolderKind,
    pub(crate) incarnation: Incarnation,
    pub(crate) reports: ReportId,
    pub(crate) lease: Option<(Grant, Time)>,
    /// The time for which it says that its lease counts, if it says that.
    pub(crate) counts: Option<Duration>,
    sent: BTreeMap<ReportId, Time>,
    /// The wants that it stated last.
    wants: Bands,
    /// It reads nothing.
    pub(crate) stuck: bool,
    /// It reports at once when that is wanted.
    pub(crate) prompt: bool,
}

/// A node, and its listeners by name.
pub(crate) struct Hall {
    pub(crate) now: Time,
    pub(crate) node: Node,
    pub(crate) listeners: BTreeMap<String, Listener>,
    names: BTreeMap<Peer, String>,
    lives: u64,
    pub(crate) record: Written,
    /// The kinds of message that whoever says hello next knows.
    pub(crate) features: Features,
}

/// The record of the node: what is written, and what is on its way there.
#[derive(Clone, Default, Debug)]
pub(crate) struct Written {
    /// Every write is there at once.
    pub(crate) prompt: bool,
    pub(crate) on_its_way: Option<MarkWrite>,
    pub(crate) marks: BTreeMap<ResourceId, Amount>,
    /// The header beside the marks; absent before it has been written.
    pub(crate) header: Option<Terms>,
    pub(crate) writes: usize,
}

/// An output of the node.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Heard {
    Down(String, Down),
    Closed(String),
    Parent(Action),
    Record(MarkWrite),
}

// === impl Hall ===

impl Hall {
    pub(crate) fn new(template: Template, config: NodeConfig) -> Hall {
        Hall::of(repository(template), config)
    }

    pub(crate) fn of(repository: Repository, config: NodeConfig) -> Hall {
        Hall {
            now: Time::ZERO,
            node: Node::new(Time::ZERO, config, repository),
            listeners: BTreeMap::new(),
            names: BTreeMap::new(),
            lives: 0,
            record: Written::default(),
            features: Features::CURRENT,
        }
    }

    /// Lets the write on its way reach the record, and the node hear of it; or it gets there and nobody knows.
    pub(crate) fn commit(&mut self, known: bool) {
        let Some(write) = self.record.on_its_way.take() else { return };
        self.record.marks.extend(write.change.marks);
        self.record.marks.retain(|id, _| !write.change.deletes.contains(id));
        self.record.header = write.change.terms.or(self.record.header);
        self.node.on_marks(self.now, write.ticket, known);
    }

    pub(crate) fn hello(&mut self, name: &str, kind: HolderKind, incarnation: Option<u64>) {
        self.lives += 1;
        let incarnation = Incarnation(incarnation.unwrap_or(self.lives));
        // All leaders of a node stand in one line here.
        let line = (kind == HolderKind::Node).then_some(1);
        let holder = client(name.split('/').next().unwrap_or(name));
        let hello = Hello { line, features: self.features, ..Hello::new(kind, holder, incarnation) };
        let peer = self.node.connect(self.now, hello);
        self.names.insert(peer, name.to_owned());
        let before = self.listeners.remove(name).filter(|before| before.incarnation == incarnation);
        let (reports, lease, sent) = before.map_or((ReportId(0), None, BTreeMap::new()), |before| {
            (before.reports, before.lease, before.sent)
        });
        let listener = Listener {
            peer,
            kind,
            incarnation,
            reports,
            lease,
            counts: None,
            sent,
            wants: Bands::new(),
            stuck: false,
            prompt: false,
        };
        self.listeners.insert(name.to_owned(), listener);
    }

    /// Reports what is wanted; nothing: the lease only.
    pub(crate) fn report(&mut self, name: &str, bands: Option<Bands>, held: Option<Amount>, beat: bool) {
        let now = self.now;
        let Some(listener) = self.listeners.get_mut(name) else { panic!("{name} has not said hello") };
        listener.reports = listener.reports.next();
        listener.sent.insert(listener.reports, now);
        if let Some(bands) = &bands {
            listener.wants.clone_from(bands);
        }
        if let Some(((grant, _), held)) = listener.lease.as_mut().zip(held) {
            grant.capacity = grant.capacity.min(held);
        }
        let counts = listener.counts;
        let has = listener.lease.as_ref().map(|(grant, _)| Has {
            capacity: grant.capacity,
            order: grant.order,
            token: grant.token.clone(),
            lasts: counts.map(|counts| Lasts { length: grant.length, remaining: counts, counts }),
            expiry: 0,
        });
        let reports = bands.map(|bands| Report {
            resource: resource(),
            bands,
            has,
            held,
            domains: None,
            integer: None,
            peak: None,
            unenforced: None,
        });
        let report = StreamReport {
            id: listener.reports,
            target_epoch: None,
            renew_all: beat,
            reports: reports.into_iter().collect(),
        };
        self.node.receive(now, listener.peer, Up::Report(report));
    }

    /// Reports what is said, whatever it was granted here.
    pub(crate) fn show(&mut self, name: &str, report: Report) {
        let listener = self.listeners.get_mut(name).expect("it has said hello");
        listener.reports = listener.reports.next();
        listener.sent.insert(listener.reports, self.now);
        let (id, reports) = (listener.reports, vec![report]);
        let report = StreamReport { id, target_epoch: None, renew_all: false, reports };
        self.say(name, Up::Report(report));
    }

    pub(crate) fn say(&mut self, name: &str, up: Up) {
        self.node.receive(self.now, self.listeners[name].peer, up);
    }

    pub(crate) fn unstick(&mut self, name: &str) {
        let listener = self.listeners.get_mut(name).expect("a listener");
        listener.stuck = false;
        self.node.ready(self.now, listener.peer);
    }

    pub(crate) fn break_off(&mut self, name: &str) {
        self.node.disconnect(self.now, self.listeners[name].peer);
    }

    /// Lets time pass until `at`, and collects what comes out.
    pub(crate) fn until(&mut self, at: Time) -> Vec<(Time, Heard)> {
        let mut heard = self.hear();
        while let Some(due) = self.node.next_deadline().filter(|&due| due <= at) {
            self.now = self.now.max(due);
            heard.extend(self.hear());
        }
        self.now = at;
        heard.extend(self.hear());
        heard
    }

    /// Returns the outputs of this moment.
    pub(crate) fn hear(&mut self) -> Vec<(Time, Heard)> {
        let mut heard = Vec::new();
        loop {
            if let Some(output) = self.node.poll(self.now) {
                heard.push((self.now, self.take(output)));
            } else if let Some(write) = self.node.next_marks(self.now) {
                self.record.writes += 1;
                self.record.on_its_way = Some(write.clone());
                heard.push((self.now, Heard::Record(write)));
                if self.record.prompt {
                    self.commit(true);
                }
            } else {
                return heard;
            }
        }
    }

    pub(crate) fn believed(&self) -> u128 {
        let leases = self.listeners.values().filter_map(|listener| listener.lease.as_ref());
        leases
            .filter(|(_, end)| *end > self.now)
            .map(|(grant, _)| u128::from(grant.capacity.as_micros()))
            .sum()
    }

    fn take(&mut self, output: Output) -> Heard {
        let (peer, down) = match output {
            Output::Parent(action) => return Heard::Parent(action),
            Output::Close { peer } => return Heard::Closed(self.name(peer)),
            Output::Send { peer, down } => (peer, down),
        };
        let name = self.name(peer);
        let Some(listener) = self.listeners.get_mut(&name).filter(|listener| listener.peer == peer) else {
            return Heard::Down(name, down);
        };
        if listener.stuck {
            return Heard::Down(name, down);
        }
        self.node.ready(self.now, peer);
        match &down {
            Down::Grants(grants) => {
                let mut wanted = false;
                for grant in grants {
                    let sent = listener.sent[&grant.basis.expect("streams name the basis")];
                    listener.lease = Some((grant.clone(), sent + grant.length));
                    wanted |= grant.ack_wanted;
                }
                if wanted && listener.prompt {
                    let bands = Some(listener.wants.clone());
                    self.report(&name, bands, None, false);
                }
            }
            Down::Renewed { basis, .. } => {
                let sent = listener.sent[basis];
                if let Some((grant, end)) = &mut listener.lease {
                    *end = sent + grant.length;
                }
            }
            _ => {}
        }
        Heard::Down(name, down)
    }

    fn name(&self, peer: Peer) -> String {
        self.names[&peer].clone()
    }
}

// === impl Listener ===

impl Listener {
    pub(crate) fn is_node(&self) -> bool {
        self.kind == HolderKind::Node
    }
}

pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}
