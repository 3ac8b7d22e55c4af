//! Looks behind a lock of their own: what is said of the tree goes past the node, which is asked for no more than its own part.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::message::{LookKind, ViewPart};
use lessor_proto::{ClientId, ResourceId, Time, wire};
use prost::Message;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::hold_kind::HoldKind;
use super::mailbox::Mailbox;
use super::plans::PlanDesk;
use super::{Driver, StreamKey, Summary, TICK, Unanswered};
use crate::look::tree::{NodeBranch, NodeFacts, SeenNodes, TreeQuery};
use crate::look::{self, LookEvent, LookOutput, LookQuestion, Looks, NodeContent, ViewTree};
use crate::node::{Peer, StatusQuery};

/// A notice of streams and looks from above, as the leader state gives it.
#[derive(Debug)]
pub(super) enum LookNotice {
    /// The node was replaced, for the time of this term.
    Anew(u64, Box<Looks>),
    /// A node below has opened a stream, down which looks go by this.
    Connected(Peer, Arc<Mailbox>),
    /// Something that looks have to know.
    Event(LookEvent),
}

/// The looks and their lock.
#[derive(Debug)]
pub(super) struct LookRoom {
    desk: Mutex<LookDesk>,
    /// There is something to be looked at.
    notifier: Notify,
    /// The plan that this node is at.
    pub(super) plans: PlanDesk,
}

/// The state behind the lock.
#[derive(Debug)]
struct LookDesk {
    looks: Looks,
    term: u64,
    notices: mpsc::UnboundedReceiver<LookNotice>,
    mailboxes: BTreeMap<Peer, Arc<Mailbox>>,
    /// Those who wait for views, by the numbers of these.
    waiting: BTreeMap<u64, oneshot::Sender<Vec<u8>>>,
}

/// The tree as it was seen from its node.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct TreeView {
    /// The edition of this form.
    pub schema: u32,
    /// The time that it took, in seconds.
    pub took_seconds: f64,
    /// The nodes by how they were seen.
    pub nodes: SeenNodes,
    /// The node that was asked, and those below it.
    pub tree: NodeBranch,
}

/// The nodes at which a client was found.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct FoundClients {
    /// The edition of this form.
    pub schema: u32,
    /// The nodes that were asked, by how they were seen.
    pub nodes: SeenNodes,
    /// The places at which it was found.
    pub found: Vec<FoundClient>,
}

/// A node at which a client was found.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct FoundClient {
    /// The names of the nodes from the one that was asked down to that.
    pub path: Vec<String>,
    /// The explanations of its amount there, and of that of each node on the way up to the one that was asked.
    pub chain: Vec<Value>,
}

/// Places at which a client is shown.
const MOST_FOUND: usize = 8;
/// The age up to which published figures are shown, as they are of the second that a look is about.
const FRESH: Duration = Duration::from_secs(1);
/// The time beyond the patience of a look after which whoever drives it is not waited for.
const GRACE: Duration = Duration::from_secs(1);
/// The longest sleep of the task.
const LONGEST: Duration = Duration::from_secs(3_600);

// === impl LookRoom ===

impl LookRoom {
    pub(super) fn new(notices: mpsc::UnboundedReceiver<LookNotice>) -> LookRoom {
        let desk = LookDesk {
            looks: Looks::default(),
            term: 0,
            notices,
            mailboxes: BTreeMap::new(),
            waiting: BTreeMap::new(),
        };
        LookRoom { desk: Mutex::new(desk), notifier: Notify::new(), plans: PlanDesk::default() }
    }

    /// There is something to be looked at.
    pub(super) fn notify(&self) {
        self.notifier.notify_one();
    }

    /// Does something at the desk, after what it was told has been taken up, and lets the task look at what comes of it.
    fn with_desk<R>(&self, with_desk: impl FnOnce(&mut LookDesk, Time) -> R) -> R {
        let mut desk = self.desk();
        let now = clock::now();
        desk.hear(now);
        let result = with_desk(&mut desk, now);
        drop(desk);
        self.notify();
        result
    }

    /// The next output, with the term that it is of; or when to look again.
    fn next(&self) -> Result<(u64, LookOutput), Time> {
        let mut desk = self.desk();
        let now = clock::now();
        desk.hear(now);
        let LookDesk { looks, mailboxes, term, .. } = &mut *desk;
        match looks.poll(now, |peer| mailboxes.contains_key(&peer)) {
            Some(output) => Ok((*term, output)),
            None => Err(looks.next_deadline().unwrap_or(Time::MAX)),
        }
    }

    /// Locks the desk, also after a panic: nothing that matters to leases is known here.
    fn desk(&self) -> MutexGuard<'_, LookDesk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl LookDesk ===

impl LookDesk {
    /// Takes up what the leader state has told.
    fn hear(&mut self, now: Time) {
        while let Ok(notice) = self.notices.try_recv() {
            match notice {
                LookNotice::Anew(term, looks) => {
                    (self.looks, self.term) = (*looks, term);
                    self.mailboxes.clear();
                    // Those who wait hear that nobody looks any more.
                    self.waiting.clear();
                }
                LookNotice::Connected(peer, mailbox) => _ = self.mailboxes.insert(peer, mailbox),
                LookNotice::Event(event) => {
                    if let LookEvent::Closed { peer } = &event {
                        self.mailboxes.remove(peer);
                    }
                    self.looks.handle(now, event);
                }
            }
        }
    }
}

// === impl Driver: those who look ===

impl Driver {
    /// The tree below this node, which leads, as it is within two seconds. Nodes that do not answer in time are said to be silent.
    ///
    /// # Errors
    /// When this task does not lead, or too many look already.
    pub async fn tree(&self, query: &TreeQuery) -> Result<TreeView, Unanswered> {
        let began = clock::now();
        let view = self.look_down(LookKind::Tree, query.to_bytes()).await?;
        let tree = NodeBranch::of(self.identity.config.name.clone(), view);
        let took_seconds = clock::now().since(began).as_secs_f64();
        Ok(TreeView { schema: 1, took_seconds, nodes: tree.seen_nodes(), tree })
    }

    /// The places of the tree at which a client holds or wants a resource, and why it gets there what it gets.
    ///
    /// # Errors
    /// When this task does not lead, or too many look already.
    pub async fn find(&self, resource: &ResourceId, client: &ClientId) -> Result<FoundClients, Unanswered> {
        let (resource_id, client_id) = (resource.to_string(), client.to_string());
        let question =
            wire::ClientQuestion { resource_id: resource_id.clone(), client_id: client_id.clone() };
        let view = self.look_down(LookKind::Client, question.encode_to_vec()).await?;
        let mut paths = Vec::new();
        find_in(&view, &mut Vec::new(), &mut paths);
        let nodes = NodeBranch::of(self.identity.config.name.clone(), view).seen_nodes();
        let mut found = Vec::new();
        for path in paths.into_iter().take(MOST_FOUND) {
            let (resource_id, client_id) = (resource_id.clone(), client_id.clone());
            let question = wire::ExplainQuestion { resource_id, client_id, path: path.clone() };
            let view = self.look_down(LookKind::Explain, question.encode_to_vec()).await?;
            let mut chain = Vec::new();
            gather(view, &mut chain);
            chain.reverse();
            let path = [self.identity.config.name.clone()].into_iter().chain(path).collect();
            found.push(FoundClient { path, chain });
        }
        Ok(FoundClients { schema: 1, nodes, found })
    }

    /// Asks this node and all below it.
    async fn look_down(&self, kind: LookKind, body: Vec<u8>) -> Result<ViewTree, Unanswered> {
        self.look_down_for(kind, body, look::PATIENCE).await
    }

    /// The same with another patience.
    pub(super) async fn look_down_for(
        &self,
        kind: LookKind,
        body: Vec<u8>,
        patience: Duration,
    ) -> Result<ViewTree, Unanswered> {
        self.redirect()?;
        let (answer, answered) = oneshot::channel();
        let asked = self.looks.with_desk(|desk, now| {
            let ticket = desk.looks.ask(now, LookQuestion { kind, body }, patience)?;
            desk.waiting.insert(ticket, answer);
            Ok::<(), look::TooManyLooks>(())
        });
        asked.map_err(|_| Unanswered::Late)?;
        match tokio::time::timeout(patience + GRACE, answered).await {
            Ok(Ok(bytes)) => ViewTree::read(&bytes, look::BOUNDS.levels).ok_or(Unanswered::Late),
            // Another leader has begun.
            Ok(Err(_)) => {
                Err(Unanswered::NotLeading(self.identity.another(self.known.load().leader.clone())))
            }
            Err(_) => Err(Unanswered::Late),
        }
    }
}

/// The ways to the nodes of a view that have found what was looked for.
fn find_in(view: &ViewTree, way: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    if view.content.is_some() {
        found.push(way.clone());
    }
    for branch in &view.below {
        if let Some(below) = &branch.view {
            way.push(branch.node.clone());
            find_in(below, way, found);
            way.pop();
        }
    }
}

/// The explanations of a view, from the first node down.
fn gather(view: ViewTree, chain: &mut Vec<Value>) {
    let said = view.content.and_then(|content| serde_json::from_slice(&content).ok());
    chain.extend(said.map(look::readable));
    for branch in view.below {
        if let Some(below) = branch.view {
            gather(below, chain);
        }
    }
}

// === impl Driver: what carries them ===

impl Driver {
    /// A node below answers a look.
    pub(in crate::shell) fn receive_view(&self, key: StreamKey, part: ViewPart) {
        self.looks.with_desk(|desk, now| {
            if let Some(peer) = key.peer_in(desk.term) {
                desk.looks.handle(now, LookEvent::Shown { peer, part });
            }
        });
    }

    /// Carries looks, until stopped.
    pub(crate) async fn keep_looks(self: Arc<Driver>, mut stopped: watch::Receiver<bool>) {
        loop {
            if *stopped.borrow() {
                return;
            }
            match self.looks.next() {
                Ok((term, output)) => {
                    self.carry(term, output);
                    tokio::task::yield_now().await;
                }
                Err(at) => {
                    let now = clock::now();
                    tokio::select! {
                        _ = stopped.wait_for(|&stop| stop) => return,
                        () = self.looks.notifier.notified() => {}
                        () = clock::sleep_until(at.max(now + TICK).min(now + LONGEST)) => {}
                    }
                }
            }
        }
    }

    fn carry(self: &Arc<Driver>, term: u64, output: LookOutput) {
        match output {
            LookOutput::Look { peer, look } => {
                let mailbox = self.looks.desk().mailboxes.get(&peer).map(Arc::clone);
                if let Some(mailbox) = mailbox {
                    mailbox.put_look(look);
                }
            }
            LookOutput::Content { look, question, bytes } => {
                let driver = Arc::clone(self);
                tokio::spawn(async move {
                    let content = driver.look_content(question, bytes).await;
                    driver.looks.with_desk(|desk, now| {
                        if desk.term == term {
                            desk.looks.content(now, look, content);
                        }
                    });
                });
            }
            LookOutput::Fold { look, question, contents } => {
                let driver = Arc::clone(self);
                tokio::spawn(async move {
                    let folded = driver.fold_plan(&question.body, contents).await;
                    driver.looks.with_desk(|desk, now| {
                        if desk.term == term {
                            desk.looks.folded(now, look, folded);
                        }
                    });
                });
            }
            LookOutput::Show { stream, part } => {
                // Of a broken node, or one that leads no more, nothing is expected.
                let _ = self.call(HoldKind::Look, |node, _| node.show_above(stream, part));
            }
            LookOutput::View { ticket, bytes } => {
                if let Some(answer) = self.looks.desk().waiting.remove(&ticket) {
                    // Some have given up meanwhile.
                    let _ = answer.send(bytes);
                }
            }
        }
    }

    /// The content of this node for a question. Where it cannot be made there is none.
    async fn look_content(&self, question: LookQuestion, bytes: usize) -> NodeContent {
        match question.kind {
            LookKind::Tree => {}
            LookKind::PlanDemand => return self.begin_plan(&question.body).await,
            LookKind::PlanSupply => return self.end_plan(&question.body).await,
            LookKind::Client | LookKind::Explain | LookKind::Other(_) => {
                let content = self.call(HoldKind::Look, |node, now| node.look_content(now, &question));
                return content.unwrap_or_default();
            }
        }
        let Some(query) = TreeQuery::read(&question.body) else { return NodeContent::default() };
        let Some(summary) = self.fresh_summary().await else { return NodeContent::default() };
        let Summary { at, streams, older_streams, status } = &*summary;
        let facts = NodeFacts {
            version: &self.identity.build.version,
            address: self.identity.address(),
            streams: *streams,
            older_streams: *older_streams,
            age_ms: u64::try_from(clock::now().since(*at).as_millis()).unwrap_or(u64::MAX),
        };
        let bytes = Some(query.content(status, &facts, bytes));
        NodeContent { bytes, known: status.names.below.clone(), ..NodeContent::default() }
    }

    /// The figures that were published last, or new ones where they are too old.
    async fn fresh_summary(&self) -> Option<Arc<Summary>> {
        let published = self.summary().filter(|summary| clock::now().since(summary.at) < FRESH);
        match published {
            Some(summary) => Some(summary),
            None => self.look(&StatusQuery::FIGURES).await.ok(),
        }
    }
}
