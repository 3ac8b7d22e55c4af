//! A proposal on its way: judged by every task, agreed to, put in force unless somebody was faster, and waited for.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use lessor_server::revision::{FEATURE_LEVEL, MOST_MESSAGE, Revision, RevisionAuthor, TaskReport};
use lessor_server::shell::etcd::{CommitOutcome, RevisionStore, StoredHead};
use lessor_server::shell::random;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::delta::{self, Delta};
use super::files::Text;
use super::{date, headline, newest};
use crate::exit::Exit;
use crate::plan::SavedPlan;
use crate::tls::ClientTlsFlags;

/// The flags of everything that makes a revision.
#[derive(Clone, Debug, Args)]
pub(super) struct ProposalFlags {
    /// Why: it stands in the history
    #[arg(short, long, value_name = "TEXT", value_parser = message)]
    pub(super) message: String,
    /// Where more stands about that
    #[arg(long, value_name = "ID")]
    ticket: Option<String>,
    /// Do not ask; needed where there is no terminal
    #[arg(long)]
    yes: bool,
    /// The time for which it is waited until every task has it in force; 0s: not at all
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = humantime::parse_duration)]
    wait: Duration,
    /// Push although this task refuses it, or is silent: its address, as the refusal says it
    #[arg(long, value_name = "HOST:PORT")]
    despite: Vec<String>,
}

/// A proposal.
pub(super) struct Proposal<'a> {
    pub(super) store: &'a RevisionStore,
    pub(super) flags: &'a ProposalFlags,
    pub(super) author: RevisionAuthor,
    pub(super) texts: Vec<Text>,
    pub(super) rollback_of: Option<u64>,
    /// The number of the first revision, if there is none yet.
    pub(super) first_number: Option<u64>,
    /// Whether it is judged and not put in force.
    pub(super) is_draft: bool,
    /// The plan that it is held against, and how its servers are spoken to.
    pub(super) plan: Option<(&'a SavedPlan, &'a ClientTlsFlags)>,
}

/// The time that tasks have to judge a draft.
const JUDGED_WITHIN: Duration = Duration::from_secs(5);
/// The time for which a draft is there at most.
const DRAFT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

// === impl Proposal ===

impl<'a> Proposal<'a> {
    /// A proposal of some texts, to be put in force.
    pub(super) fn new(
        store: &'a RevisionStore,
        flags: &'a ProposalFlags,
        author: RevisionAuthor,
        texts: Vec<Text>,
    ) -> Proposal<'a> {
        Proposal {
            store,
            flags,
            author,
            texts,
            rollback_of: None,
            first_number: None,
            is_draft: false,
            plan: None,
        }
    }

    /// From the head as it stands to the head as it is wanted.
    pub(super) async fn push(self) -> anyhow::Result<()> {
        let store = self.store;
        if let Some(freeze) = store.freeze().await? {
            return Err(frozen(&freeze));
        }
        let (base, before) = newest(store).await?;
        let documents: Vec<_> = self.texts.iter().map(|(document, _)| document.clone()).collect();
        if let Some(before) = before.as_ref().filter(|before| before.documents == documents && !self.is_draft)
        {
            println!("nothing to push: revision {} has that content", before.number);
            return Ok(());
        }
        if let Some((plan, tls)) = self.plan {
            plan.check(base.head.map_or(0, |head| head.number), &self.texts)?;
            plan.look_again(&self.texts, tls).await?;
        }
        let (tasks, unreadable) = store.tasks().await?;
        unreadable.iter().for_each(|fault| eprintln!("note: {fault}"));
        let revision = Revision {
            number: self.number(&base, &tasks)?,
            parent: base.head.map_or(0, |head| head.number),
            parent_digest: base.head.map(|head| head.digest),
            at: date(),
            documents,
            by: self.author.clone(),
            message: self.flags.message.clone(),
            ticket: self.flags.ticket.clone(),
            rollback_of: self.rollback_of,
            needs: FEATURE_LEVEL,
            tool: format!("lessor {}", env!("LESSOR_VERSION")),
            ..Revision::default()
        };
        store.put_documents(&self.texts).await?;
        self.judge(&revision, &tasks).await?;
        let delta = delta::between(store, before.as_ref(), &self.texts).await?;
        if self.is_draft {
            print!("{delta}");
            println!("every task would take it; nothing is in force");
            return Ok(());
        }
        self.agree(&revision, &delta)?;
        match store
            .commit(&revision, &base)
            .await
            .context("whether it is in force is not known: `lessor history` says so")?
        {
            CommitOutcome::Committed => println!("revision {} is in force", revision.number),
            CommitOutcome::Frozen(freeze) => return Err(frozen(&freeze)),
            CommitOutcome::Faster => return Err(self.overtaken(before.as_ref()).await?),
        }
        self.wait(revision.number).await
    }

    /// A number above every one that was ever in force, also where etcd has forgotten some.
    fn number(&self, base: &StoredHead, tasks: &[TaskReport]) -> anyhow::Result<u64> {
        let known = tasks.iter().map(|task| task.in_force.max(task.record)).max().unwrap_or_default();
        let head = base.head.map_or(0, |head| head.number);
        let next = head.max(known) + 1;
        match self.first_number {
            Some(_) if head > 0 => bail!("--first-number: revision {head} is there already; wanted none"),
            Some(first) if first < next => {
                bail!("--first-number {first}: a task has {known} in force; wanted {next} at least")
            }
            Some(first) => Ok(first),
            None => Ok(next),
        }
    }

    /// Has every task that lives judge it.
    async fn judge(&self, revision: &Revision, tasks: &[TaskReport]) -> anyhow::Result<()> {
        if tasks.is_empty() {
            eprintln!("note: no task follows these templates, so none has judged them");
            return Ok(());
        }
        for document in &revision.documents {
            let is_for = |task: &TaskReport| revision.document_for(&task.node) == Some(document);
            if !tasks.iter().any(is_for) {
                eprintln!(
                    "note: {} is for {:?}, and no task that lives follows it",
                    document.name, document.nodes
                );
            }
        }
        let id = format!("{:016x}", random::number());
        self.store.put_draft(&id, revision, DRAFT).await?;
        let judged = self.verdicts(&id, tasks).await;
        self.store.remove_draft(&id).await?;
        let judged = judged?;
        let mut faults = Vec::new();
        for task in &judged {
            let name = format!("task {} of node {:?}", task.address, task.node);
            match task.verdict(&id) {
                Some(verdict) if verdict.faults.is_empty() => {}
                _ if self.flags.despite.contains(&task.address) => {
                    eprintln!("note: {name} does not agree, and it is pushed in spite of that");
                }
                Some(verdict) => faults.push(format!("{name} refuses it: {}", verdict.faults.join("\n  "))),
                None => faults.push(format!(
                    "{name} has said nothing in {JUDGED_WITHIN:?}: if it has ended, so will its report within 30s"
                )),
            }
        }
        match faults.is_empty() {
            true => Ok(()),
            false => {
                let despite = "nothing was pushed; to push in spite of a task: --despite HOST:PORT";
                Err(Exit::not_everywhere(format!("{}\n{despite}", faults.join("\n"))))
            }
        }
    }

    /// The reports of those tasks that are still there, when all have judged, or time is up.
    async fn verdicts(&self, id: &str, tasks: &[TaskReport]) -> anyhow::Result<Vec<TaskReport>> {
        let mut last = tasks.to_vec();
        let waiting = async {
            let mut looks = looks();
            loop {
                looks.tick().await;
                last = self.store.tasks().await?.0;
                if last.iter().all(|task| task.verdict(id).is_some()) {
                    return anyhow::Ok(());
                }
            }
        };
        // Where time is up it is seen who has said nothing.
        timeout(JUDGED_WITHIN, waiting).await.unwrap_or(Ok(()))?;
        Ok(last)
    }

    /// Asks whoever is there.
    fn agree(&self, revision: &Revision, delta: &Delta) -> anyhow::Result<()> {
        print!("{delta}");
        if self.flags.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            bail!("nobody is there to ask; wanted --yes");
        }
        print!("push that as revision {}? [y/N] ", revision.number);
        std::io::stdout().flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Exit::forbidden("nothing was pushed".to_owned())),
        }
    }

    /// The end of one that came too late: who was faster, and what that has changed.
    async fn overtaken(&self, before: Option<&Revision>) -> anyhow::Result<anyhow::Error> {
        let (_, theirs) = newest(self.store).await?;
        let Some(theirs) = theirs else { return Ok(Exit::faster("the head has gone meanwhile".to_owned())) };
        let texts = delta::texts_of(self.store, &theirs).await?;
        let delta = delta::between(self.store, before, &texts).await?;
        let (number, by, at) = (theirs.number, &theirs.by.name, &theirs.at);
        let message = headline(&theirs.message);
        Ok(Exit::faster(format!(
            "somebody was faster: revision {number}, by {by} at {at}: {message}\nwhat that has changed:\n{delta}\
             nothing of yours was pushed: look whether both go together, and push again"
        )))
    }

    /// Waits until every task that lives says that it has it in force.
    async fn wait(&self, number: u64) -> anyhow::Result<()> {
        if self.flags.wait.is_zero() {
            return Ok(());
        }
        let mut last = Vec::new();
        let waiting = async {
            let mut looks = looks();
            loop {
                looks.tick().await;
                last = self.store.tasks().await?.0;
                if last.iter().all(|task| task.in_force >= number) {
                    return anyhow::Ok(());
                }
            }
        };
        let waited = timeout(self.flags.wait, waiting).await;
        let all = last.len();
        if let Ok(waited) = waited {
            waited?;
            println!("in force at {all} of {all} tasks");
            return Ok(());
        }
        let behind: Vec<String> = last.iter().filter(|task| task.in_force < number).map(describe).collect();
        let there = all - behind.len();
        Err(Exit::not_everywhere(format!(
            "revision {number} is in force at {there} of {all} tasks after {:?}:\n{}",
            self.flags.wait,
            behind.join("\n")
        )))
    }
}

fn describe(task: &TaskReport) -> String {
    let refused = task.refused.as_ref().map(|refused| format!(", and refuses: {}", refused.why.join("; ")));
    let (address, node, number) = (&task.address, &task.node, task.in_force);
    format!("task {address} of node {node:?} has {number}{}", refused.unwrap_or_default())
}

fn frozen(freeze: &lessor_server::revision::PushFreeze) -> anyhow::Error {
    let (by, until, message) = (&freeze.by, &freeze.until, &freeze.message);
    Exit::forbidden(format!(
        "nobody may push until {until}: {by} says: {message}\nto lift that: lessor push-freeze --lift"
    ))
}

fn looks() -> tokio::time::Interval {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

/// A message that can stand in the history.
pub(super) fn message(text: &str) -> Result<String, String> {
    match text.trim().len() {
        0 => Err("wanted a message that says why".to_owned()),
        1..=MOST_MESSAGE => Ok(text.trim().to_owned()),
        bytes => Err(format!("{bytes} bytes; wanted at most {MOST_MESSAGE}")),
    }
}
