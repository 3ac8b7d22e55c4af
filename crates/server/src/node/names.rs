//! Names of nodes: where this one stands in the tree, and which processes below it go by one name.
//!
//! The path from the root travels down: each node is told that of the node above, adds its own name, and tells the nodes
//! below. A node that finds its own name above itself is part of a loop, and takes no part in it: it gives the session up
//! as if nobody served there. Nor does it serve a node that stands above itself. So one link of every loop is missing,
//! whichever of its nodes was told first.
//!
//! Nodes of one name are one holder where each succeeds the other, which they say by the *line* that they stand in. All
//! others are processes of their own, and are charged by themselves. Two of them that go on reporting side by side are a
//! mistake of whoever named them, which both of them and this node are to say.

mod lives;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lessor_proto::message::{Down, HolderKind, NodeNotice, Refusal};
use lessor_proto::{ClientId, Incarnation, Time};

use self::lives::Lives;
pub(crate) use self::lives::NodeLife;
use super::{Node, Peer};

/// The names that a node has to do with.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    own: String,
    /// The names above, from the root down, as the node above has said last.
    above: Vec<String>,
    /// The loop that keeps this node from the one above.
    circle: Option<String>,
    /// Another process has the name of this one, says the node above.
    taken: bool,
    /// The lives that report under each name of a node below.
    below: BTreeMap<ClientId, Lives>,
    /// Requests of nodes that stand above this one, and why the last of them was refused.
    refused: u64,
    last_refused: String,
    warnings: BTreeSet<NameWarning>,
}

/// Something about names that somebody should see to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NameWarning {
    /// This node stands above itself, and is served as without a parent.
    Loop {
        /// Why, with the loop spelled out.
        why: String,
    },
    /// A node that asks this one stands above it.
    Refused {
        /// Why, with the loop spelled out.
        why: String,
    },
    /// Another process holds the name of this node.
    Taken,
    /// Two processes claim the name of one node below.
    Duplicate {
        /// The name.
        node: String,
    },
}

/// The names of a node as they stand.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct NamesStatus {
    /// The names from the root down to this node, as far as it knows.
    pub path: Vec<String>,
    /// Why this node is served as without a parent, if it stands above itself.
    #[cfg_attr(feature = "shell", serde(rename = "loop"))]
    pub circle: Option<String>,
    /// Whether another process holds the name of this node.
    pub name_taken: bool,
    /// Names of nodes below that two processes claim.
    pub duplicates: Vec<String>,
    /// Requests of nodes above this one, which were refused.
    pub loops_refused: u64,
    /// The names of nodes below that were heard of lately.
    #[cfg_attr(feature = "shell", serde(skip))]
    pub below: Vec<String>,
}

/// Names that are watched for two processes under them.
const MOST_NAMES: usize = 10_000;
/// For how long a life that is silent may still be one, at the least.
const LEAST_PATIENCE: Duration = Duration::from_secs(30);
/// Names of nodes below that are listed.
const MOST_LISTED: usize = 1_000;
/// Warnings that wait to be said.
const MOST_WARNINGS: usize = 64;

// === impl Names ===

impl Names {
    pub(crate) fn new(own: String) -> Names {
        Names {
            own,
            above: Vec::new(),
            circle: None,
            taken: false,
            below: BTreeMap::new(),
            refused: 0,
            last_refused: String::new(),
            warnings: BTreeSet::new(),
        }
    }

    /// The next warning, if there is one.
    pub(crate) fn next_warning(&mut self) -> Option<NameWarning> {
        self.warnings.pop_first()
    }

    /// Refuses a node that stands above this one.
    pub(crate) fn check(&mut self, kind: HolderKind, holder: &ClientId) -> Result<(), Refusal> {
        let is_above =
            || *self.own == *holder.as_str() || self.above.iter().any(|name| name == holder.as_str());
        if kind == HolderKind::Client || !is_above() {
            return Ok(());
        }
        let path = circle(&self.path(), holder.as_str()).unwrap_or_default();
        let refusal = Refusal::Loop { path };
        self.refused += 1;
        let why = refusal.to_string();
        if self.last_refused != why {
            self.last_refused.clone_from(&why);
            self.warn(NameWarning::Refused { why });
        }
        Err(refusal)
    }

    /// Takes what the node above says. Fails if this node stands above itself.
    pub(crate) fn take(&mut self, notice: &NodeNotice) -> Result<(), String> {
        if notice.name_taken && !self.taken {
            self.warn(NameWarning::Taken);
        }
        self.taken = notice.name_taken;
        let Some(path) = circle(&notice.path, &self.own) else {
            self.above.clone_from(&notice.path);
            self.circle = None;
            return Ok(());
        };
        let why = Refusal::Loop { path }.to_string();
        self.above.clear();
        self.shut_out(why.clone());
        Err(why)
    }

    /// The node above does not serve this one, or this one does not let itself be served, because of a loop.
    pub(crate) fn shut_out(&mut self, why: String) {
        if self.circle.is_none() {
            self.warn(NameWarning::Loop { why: why.clone() });
        }
        self.circle = Some(why);
    }

    /// A node below has reported. Whether two go by its name may be news: then they are to be told.
    pub(crate) fn hear(&mut self, now: Time, name: &ClientId, life: NodeLife, patience: Duration) -> bool {
        if !self.below.contains_key(name) {
            if self.below.len() < MOST_NAMES {
                self.below.insert(name.clone(), Lives::of(now, life));
            }
            return false;
        }
        let Some(lives) = self.below.get_mut(name) else { return false };
        let is_news = lives.hear(now, life, patience);
        if is_news && lives.are_two() {
            self.warn(NameWarning::Duplicate { node: name.to_string() });
        }
        is_news
    }

    /// Forgets lives that were not heard of for so long. Gives back the names that only one goes by from here on.
    pub(crate) fn forget(&mut self, now: Time, patience: Duration) -> Vec<ClientId> {
        let mut single = Vec::new();
        self.below.retain(|name, lives| {
            let were_two = lives.are_two();
            lives.forget(now, patience);
            if were_two && !lives.are_two() {
                single.push(name.clone());
            }
            !lives.is_empty()
        });
        single
    }

    /// The notice for the node below of that name.
    pub(crate) fn notice(&self, name: &ClientId) -> NodeNotice {
        let name_taken = self.below.get(name).is_some_and(Lives::are_two);
        NodeNotice { path: self.path(), name_taken }
    }

    /// The names from the root down to this node.
    pub(crate) fn path(&self) -> Vec<String> {
        self.above.iter().chain([&self.own]).cloned().collect()
    }

    /// The loop that keeps this node from the one above.
    pub(crate) fn name_loop(&self) -> Option<&str> {
        self.circle.as_deref()
    }

    pub(crate) fn status(&self) -> NamesStatus {
        let two = self.below.iter().filter(|(_, lives)| lives.are_two());
        NamesStatus {
            path: self.path(),
            circle: self.circle.clone(),
            name_taken: self.taken,
            duplicates: two.map(|(name, _)| name.to_string()).collect(),
            loops_refused: self.refused,
            below: self.below(),
        }
    }

    /// The names of nodes below that were heard of lately.
    pub(crate) fn below(&self) -> Vec<String> {
        self.below.keys().take(MOST_LISTED).map(ToString::to_string).collect()
    }

    fn warn(&mut self, warning: NameWarning) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.insert(warning);
        }
    }
}

/// The loop that a path from the root closes at a node of that name, if it does: `root -> paris -> root`.
fn circle(path: &[String], name: &str) -> Option<String> {
    let from = path.iter().position(|above| above == name)?;
    let names: Vec<&str> = path[from..].iter().map(String::as_str).chain([name]).collect();
    Some(names.join(" -> "))
}

// === impl Node ===

impl Node {
    /// The next thing about names that somebody should see to.
    pub fn next_name_warning(&mut self) -> Option<NameWarning> {
        self.names.next_warning()
    }

    /// A node below has reported.
    pub(super) fn hear_of_node(
        &mut self,
        now: Time,
        name: &ClientId,
        line: Option<u64>,
        incarnation: Incarnation,
    ) {
        let life = line.map_or(NodeLife::Alone(incarnation), NodeLife::Line);
        let patience = self.patience();
        if self.names.hear(now, name, life, patience) {
            self.tell_name(name);
        }
    }

    /// Forgets who has not been heard of for long.
    pub(super) fn forget_names(&mut self, now: Time) {
        let patience = self.patience();
        for name in self.names.forget(now, patience) {
            self.tell_name(&name);
        }
    }

    /// Takes what the node above says of names. Fails with the loop if there is one; those below are told what has changed
    /// for them.
    pub(super) fn take_notice(&mut self, notice: &NodeNotice) -> Result<(), String> {
        let before = self.names.path();
        let taken = self.names.take(notice);
        if self.names.path() != before {
            self.tell_names(|_| true);
        }
        taken
    }

    /// Tells the nodes at the other ends of those streams where they stand.
    pub(super) fn tell_names(&mut self, which: impl Fn(Peer) -> bool) {
        for (peer, name) in self.streams.peers.nodes() {
            if which(peer) {
                // A stream that takes nothing is dropped at its next report.
                self.streams.peers.say(peer, Down::Notice(self.names.notice(&name)));
            }
        }
    }

    fn tell_name(&mut self, name: &ClientId) {
        for (peer, of) in self.streams.peers.nodes() {
            if of == *name {
                self.streams.peers.say(peer, Down::Notice(self.names.notice(name)));
            }
        }
    }

    /// For how long a life that is silent may still be one: three reports, however it asks.
    fn patience(&self) -> Duration {
        let refresh = self.repository.templates().iter().map(|template| template.refresh_interval).max();
        LEAST_PATIENCE.max(refresh.unwrap_or_default() * 3)
    }
}

#[cfg(test)]
mod tests;
