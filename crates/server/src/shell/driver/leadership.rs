//! The taking over and the giving up of leadership by a task.

use lessor_proto::Epoch;

use lessor_proto::message::Leader;
use tokio::sync::{mpsc, watch};

use super::hold_kind::HoldKind;
use super::leader_state::instruct;
use super::{Driver, Unanswered, Upward};
use crate::config::NodeConfig;
use crate::marks::MarkWrite;
use crate::node::Node;
use crate::record::Record;
use crate::shell::etcd::EtcdTraffic;

/// The changes of the authority of a task, for those who wait for it to act again.
pub(in crate::shell) struct AuthorityChanges(Option<watch::Receiver<()>>);

// === impl AuthorityChanges ===

impl AuthorityChanges {
    /// Waits until this task may act again after its authority has lapsed, or leads no more: which, has to be looked at. It waits
    /// for ever where this task is the only one, which always acts.
    pub(in crate::shell) async fn next(&mut self) {
        let told = match &mut self.0 {
            Some(changes) => changes.changed().await.is_ok(),
            None => false,
        };
        if !told {
            std::future::pending::<()>().await;
        }
    }
}

// === impl Driver ===

impl Driver {
    /// The writes that the node wants for its successors, from here on, each with its epoch.
    pub(in crate::shell) fn record_writes(
        &self,
    ) -> Result<mpsc::UnboundedReceiver<(Epoch, MarkWrite)>, Unanswered> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.with_state(HoldKind::Election, |leader_state, _| leader_state.record = Some(sender))?;
        Ok(receiver)
    }

    /// This task has been elected, and those before it have left `record`.
    pub(in crate::shell) fn lead(&self, epoch: Epoch, record: Record) -> Result<(), Unanswered> {
        self.with_state(HoldKind::Election, |leader_state, now| {
            leader_state.follow(self.identity.as_leader(), Some(epoch));
            let config = NodeConfig {
                epoch,
                marks: true,
                line: self.authority.as_ref().and_then(|authority| authority.line_of(record.line)),
                record: Some(Record::left(record, self.identity.config.authority)),
                ..self.identity.config.clone()
            };
            instruct(&leader_state.upward, Upward::Begin(epoch));
            let mut node = Node::new(now, config, leader_state.begins_with.repository.clone());
            node.set_overrides(now, &leader_state.begins_with.overrides);
            leader_state.set_node(node);
            leader_state.warn_of_config();
            leader_state.warn_of_learning();
        })
    }

    /// The version of the configuration here, and the later one for want of which this task grants nothing, if it leads.
    pub(in crate::shell) fn editions(&self) -> Result<(u64, Option<u64>), Unanswered> {
        let leader_state = self.leader_state()?;
        Ok((
            leader_state.begins_with.repository.version(),
            leader_state.node.as_ref().and_then(Node::later_config),
        ))
    }

    /// Another task leads, or none that is known.
    pub(in crate::shell) fn follow(&self, leader: Leader, epoch: Option<Epoch>) -> Result<(), Unanswered> {
        self.with_state(HoldKind::Election, |leader_state, _| leader_state.follow(leader, epoch))?;
        self.tell_waiting();
        Ok(())
    }

    /// The task that leads says that this is its epoch.
    pub(in crate::shell) fn hear_of_epoch(&self, epoch: Epoch) -> Result<(), Unanswered> {
        self.with_state(HoldKind::Election, |leader_state, _| leader_state.hear_of_epoch(epoch))
    }

    /// Nothing is granted from here on: what is out, for successors, and in which epoch. Nothing if this task does not lead.
    pub(in crate::shell) fn resign(&self) -> Result<Option<(Epoch, MarkWrite)>, Unanswered> {
        self.with_state(HoldKind::Election, |leader_state, now| {
            let node = leader_state.node.as_mut().filter(|node| self.acts(node.epoch(), now))?;
            Some((node.epoch(), node.resign(now)?))
        })
    }

    /// This task may act again: what its node wanted to do meanwhile is done, and those are heard who have said something.
    pub(in crate::shell) fn resume(&self) -> Result<(), Unanswered> {
        self.with_state(HoldKind::Election, |_, _| ())?;
        self.tell_waiting();
        Ok(())
    }

    /// The changes of the authority of this task from here on.
    pub(in crate::shell) fn authority_changes(&self) -> AuthorityChanges {
        AuthorityChanges(self.authority.as_ref().map(|authority| authority.changes()))
    }

    fn tell_waiting(&self) {
        if let Some(authority) = &self.authority {
            authority.tell();
        }
    }

    /// The calls of etcd; absent: none is asked for anything.
    pub(in crate::shell) fn etcd_traffic(&self) -> Option<&EtcdTraffic> {
        self.authority.as_ref().map(|authority| &authority.traffic)
    }

    /// Whether etcd does what is asked of it.
    pub(in crate::shell) fn hear_of_etcd(&self, healthy: bool) {
        self.health.note_etcd(healthy);
    }

    /// The same for monitors; absent: no etcd is asked for anything.
    #[must_use]
    pub fn is_etcd_healthy(&self) -> Option<bool> {
        self.authority.as_ref().map(|_| self.health.is_etcd_healthy())
    }

    /// Notes the fault of the state directory, if it has one. Returns whether that is news.
    pub(in crate::shell) fn hear_of_state(&self, fault: Option<&str>) -> bool {
        self.health.note_state(fault)
    }

    /// The fault of the state directory, if it has one; absent: there is no directory.
    #[must_use]
    pub fn state_fault(&self) -> Option<Option<String>> {
        self.health.state_fault()
    }

    /// The leader of `epoch` asked for a write of the record, and it was made or was not.
    pub(in crate::shell) fn on_record(
        &self,
        epoch: Epoch,
        ticket: u64,
        done: bool,
    ) -> Result<(), Unanswered> {
        self.with_state(HoldKind::Election, |leader_state, now| {
            let published = leader_state.epoch();
            if let Some(node) = leader_state.node.as_mut().filter(|_| published == Some(epoch)) {
                node.on_marks(now, ticket, done);
            }
        })
    }

    /// Which epoch the node is in, if this task has been elected.
    pub(in crate::shell) fn epoch(&self) -> Option<Epoch> {
        let leader_state = self.leader_state().ok()?;
        leader_state.epoch().filter(|_| leader_state.node.is_some())
    }
}
