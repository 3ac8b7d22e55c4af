//! A push on its way into the store: judged by every task that lives, and put in force unless somebody was faster.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::store::{CommitOutcome, RevisionStore, StoreFault, StoredHead};
use crate::revision::{
    BadRevision, FEATURE_LEVEL, PushFreeze, Revision, RevisionAuthor, RevisionDocument, TaskReport,
};
use crate::shell::random;
use crate::shell::source::{Delta, DocumentText, ThreeWay};
use crate::shell::wall_date::wall_date;

/// A push that is wanted.
#[derive(Clone, Debug)]
pub struct PushOrder {
    /// The documents of all nodes, with their texts.
    pub texts: Vec<DocumentText>,
    /// The author.
    pub by: RevisionAuthor,
    /// Why it is made.
    pub message: String,
    /// Where more stands about that.
    pub ticket: Option<String>,
    /// The revision whose content it has, if it takes back what came since.
    pub rollback_of: Option<u64>,
    /// The number of the first revision, if there is none yet.
    pub first_number: Option<u64>,
    /// The tasks whose refusal or silence does not count, by their addresses.
    pub despite: Vec<String>,
    /// The number of the revision that its author began with, 0 for none; absent: whichever is in force.
    pub base: Option<u64>,
    /// Whether it is judged only.
    pub is_draft: bool,
    /// The program that makes it.
    pub tool: String,
}

/// A push that no task refuses.
#[derive(Clone, Debug)]
pub struct JudgedPush {
    /// The revision that it makes.
    pub revision: Revision,
    /// The difference from what is in force.
    pub delta: Delta,
    /// Notes for whoever pushes.
    pub notes: Vec<String>,
    texts: Vec<DocumentText>,
    head: StoredHead,
    before: Vec<DocumentText>,
}

/// A push that came too late: who was faster, and how what both have changed goes together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LostPush {
    /// The number of the revision that it began with.
    pub base: u64,
    /// The revision that is in force.
    pub theirs: Revision,
    /// The seconds since that was made, by the clock of its author.
    pub age_seconds: u64,
    /// The fields that they or this push have changed.
    #[serde(flatten)]
    pub sides: ThreeWay,
}

/// Why nothing was pushed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PushFault {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// The store, when it was to be put in force.
    #[error("whether it is in force is not known: `lessor history` says so: {0}")]
    Unknown(StoreFault),
    /// Nobody may push.
    #[error(
        "nobody may push until {}: {} says: {}\nto lift that: lessor push-freeze --lift", .0.until, .0.by, .0.message
    )]
    Frozen(PushFreeze),
    /// It is what is in force.
    #[error("nothing to push: revision {0} has that content")]
    Same(u64),
    /// Somebody was faster.
    #[error("{0}")]
    Lost(Box<LostPush>),
    /// The head has gone, as after a restore of etcd.
    #[error("the head has gone meanwhile; nothing of yours was pushed")]
    Headless,
    /// Tasks refuse it, or say nothing.
    #[error("{}\nnothing was pushed; to push in spite of a task: --despite HOST:PORT", .0.join("\n"))]
    Refused(Vec<String>),
    /// The number cannot be that.
    #[error("--first-number {0}")]
    FirstNumber(String),
}

/// The time that tasks have to judge a draft.
const JUDGED_WITHIN: Duration = Duration::from_secs(5);
/// The time for which a draft is there at most.
const DRAFT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

impl fmt::Display for LostPush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Revision { number, at, message, by, .. } = &self.theirs;
        let message = message.lines().next().unwrap_or_default();
        let age = humantime::format_duration(Duration::from_secs(self.age_seconds));
        writeln!(f, "somebody was faster: revision {number}, by {} at {at}, {age} ago: {message}", by.name)?;
        match self.base {
            0 => writeln!(f, "what they have pushed and you would have, where there was nothing:")?,
            base => writeln!(f, "what they have changed since revision {base}, and what you would have:")?,
        }
        write!(f, "{}", self.sides)?;
        f.write_str("nothing of yours was pushed: look whether both go together, and push again")
    }
}

impl From<BadRevision> for PushFault {
    fn from(fault: BadRevision) -> PushFault {
        PushFault::Store(fault.into())
    }
}

// === impl JudgedPush ===

impl JudgedPush {
    /// Whether it is what is in force.
    #[must_use]
    pub fn is_same(&self) -> bool {
        let documents = |texts: &[DocumentText]| -> Vec<RevisionDocument> {
            texts.iter().map(|(document, _)| document.clone()).collect()
        };
        documents(&self.before) == documents(&self.texts)
    }
}

// === impl RevisionStore ===

impl RevisionStore {
    /// The head, and the revision that it names.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn newest(&self) -> Result<(StoredHead, Option<Revision>), StoreFault> {
        let stored = self.head().await?;
        let Some(head) = stored.head else { return Ok((stored, None)) };
        match self.revision(head.number).await? {
            Some((revision, _)) => Ok((stored, Some(revision))),
            None => Err(BadRevision::missing(
                &self.keys().revision(head.number),
                "the revision that the head names",
            )
            .into()),
        }
    }

    /// The documents of a revision.
    ///
    /// # Errors
    /// When one is not there, or cannot be read.
    pub async fn texts_of(&self, revision: &Revision) -> Result<Vec<DocumentText>, StoreFault> {
        let mut texts = Vec::with_capacity(revision.documents.len());
        for document in &revision.documents {
            texts.push((document.clone(), self.document(document).await?));
        }
        Ok(texts)
    }

    /// Has every task that lives judge a push.
    ///
    /// # Errors
    /// When one refuses it or says nothing, somebody else has pushed since its author looked, or nobody may.
    pub async fn judge(&self, order: PushOrder) -> Result<JudgedPush, PushFault> {
        if let Some(freeze) = self.freeze().await? {
            return Err(PushFault::Frozen(freeze));
        }
        let (head, before) = self.newest().await?;
        let number = head.head.map_or(0, |head| head.number);
        if let Some(base) = order.base.filter(|&base| base != number) {
            return Err(self.lost(base, &order.texts, None).await?);
        }
        let documents: Vec<_> = order.texts.iter().map(|(document, _)| document.clone()).collect();
        if let Some(before) =
            before.as_ref().filter(|before| before.documents == documents && !order.is_draft)
        {
            return Err(PushFault::Same(before.number));
        }
        let (tasks, unreadable) = self.tasks().await?;
        let mut notes: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
        let revision = Revision {
            number: next_number(&order, number, &tasks)?,
            parent: number,
            parent_digest: head.head.map(|head| head.digest),
            at: humantime::format_rfc3339_seconds(wall_date()).to_string(),
            documents,
            by: order.by,
            message: order.message,
            ticket: order.ticket,
            rollback_of: order.rollback_of,
            needs: FEATURE_LEVEL,
            tool: order.tool,
            ..Revision::default()
        };
        self.put_documents(&order.texts).await?;
        self.hear_tasks(&revision, (&tasks, &order.despite), &mut notes).await?;
        let before = match &before {
            Some(before) => self.texts_of(before).await?,
            None => Vec::new(),
        };
        let delta = Delta::of(&before, &order.texts);
        Ok(JudgedPush { revision, delta, notes, texts: order.texts, head, before })
    }

    /// Puts a judged push in force, if nothing has moved the head since.
    ///
    /// # Errors
    /// When somebody was faster, or nobody may push; or it is not known what came of it.
    pub async fn push(&self, judged: &JudgedPush) -> Result<(), PushFault> {
        match self.commit(&judged.revision, &judged.head).await.map_err(PushFault::Unknown)? {
            CommitOutcome::Committed => Ok(()),
            CommitOutcome::Frozen(freeze) => Err(PushFault::Frozen(freeze)),
            CommitOutcome::Faster => {
                Err(self.lost(judged.revision.parent, &judged.texts, Some(&judged.before)).await?)
            }
        }
    }

    /// The end of a push that came too late.
    async fn lost(
        &self,
        base: u64,
        mine: &[DocumentText],
        before: Option<&[DocumentText]>,
    ) -> Result<PushFault, StoreFault> {
        let (_, theirs) = self.newest().await?;
        let Some(theirs) = theirs else { return Ok(PushFault::Headless) };
        let read;
        let before = match before {
            Some(before) => before,
            None => {
                read = match self.revision(base).await? {
                    Some((revision, _)) => self.texts_of(&revision).await?,
                    // Nothing, or one that was pruned: then all there is was changed by both.
                    None => Vec::new(),
                };
                &read
            }
        };
        let sides = ThreeWay::of(before, &self.texts_of(&theirs).await?, mine);
        let at = humantime::parse_rfc3339(&theirs.at).ok();
        let age_seconds = at.and_then(|at| wall_date().duration_since(at).ok()).unwrap_or_default().as_secs();
        Ok(PushFault::Lost(Box::new(LostPush { base, theirs, age_seconds, sides })))
    }

    /// Has every task that lives say what it thinks of a revision.
    async fn hear_tasks(
        &self,
        revision: &Revision,
        (tasks, despite): (&[TaskReport], &[String]),
        notes: &mut Vec<String>,
    ) -> Result<(), PushFault> {
        if tasks.is_empty() {
            notes.push("no task follows these templates, so none has judged them".to_owned());
            return Ok(());
        }
        let followed = |document: &RevisionDocument| {
            tasks.iter().any(|task| revision.document_for(&task.node) == Some(document))
        };
        for document in revision.documents.iter().filter(|document| !followed(document)) {
            let RevisionDocument { name, nodes, .. } = document;
            notes.push(format!("{name} is for {nodes:?}, and no task that lives follows it"));
        }
        let id = format!("{:016x}", random::number());
        self.put_draft(&id, revision, DRAFT).await?;
        let judged = self.verdicts(&id, tasks).await;
        self.remove_draft(&id).await?;
        let mut faults = Vec::new();
        for task in &judged? {
            let name = format!("task {} of node {:?}", task.address, task.node);
            match task.verdict(&id) {
                Some(verdict) if verdict.faults.is_empty() => {}
                _ if despite.contains(&task.address) => {
                    notes.push(format!("{name} does not agree, and it is pushed in spite of that"));
                }
                Some(verdict) => faults.push(format!("{name} refuses it: {}", verdict.faults.join("\n  "))),
                None => faults.push(format!(
                    "{name} has said nothing in {JUDGED_WITHIN:?}: if it has ended, so will its report within 30s"
                )),
            }
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(PushFault::Refused(faults)),
        }
    }

    /// The reports of those tasks that are still there, when all have judged, or time is up.
    async fn verdicts(&self, id: &str, tasks: &[TaskReport]) -> Result<Vec<TaskReport>, StoreFault> {
        let mut last = tasks.to_vec();
        let waiting = async {
            let mut looks = interval(LOOK);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                looks.tick().await;
                last = self.tasks().await?.0;
                if last.iter().all(|task| task.verdict(id).is_some()) {
                    return Ok(());
                }
            }
        };
        // Where time is up it is seen who has said nothing.
        timeout(JUDGED_WITHIN, waiting).await.unwrap_or(Ok::<(), StoreFault>(()))?;
        Ok(last)
    }
}

/// A number above every one that was ever in force, also where etcd has forgotten some.
fn next_number(order: &PushOrder, head: u64, tasks: &[TaskReport]) -> Result<u64, PushFault> {
    let known = tasks.iter().map(|task| task.in_force.max(task.record)).max().unwrap_or_default();
    let next = head.max(known) + 1;
    match order.first_number {
        Some(first) if head > 0 => {
            Err(PushFault::FirstNumber(format!("{first}: revision {head} is there already; wanted none")))
        }
        Some(first) if first < next => Err(PushFault::FirstNumber(format!(
            "{first}: a task has {known} in force; wanted {next} at least"
        ))),
        Some(first) => Ok(first),
        None => Ok(next),
    }
}
