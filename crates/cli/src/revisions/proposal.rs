//! A proposal on its way: judged by every task, agreed to, put in force unless somebody was faster, and waited for.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use hyper::Method;
use lessor_server::revision::{MOST_MESSAGE, RevisionAuthor};
use lessor_server::shell::StalePlan;
use lessor_server::shell::etcd::{PushFault, PushOrder, RevisionStore};
use lessor_server::shell::source::DocumentText;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::place::TaskInForce;
use crate::admin::AdminPort;
use crate::exit::Exit;
use crate::office::Office;
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
    /// The outcome in JSON, on one line: who was faster with all fields that they, you or both have changed, or the number that
    /// is in force
    #[arg(long)]
    json: bool,
}

/// A proposal.
pub(super) struct Proposal<'a> {
    pub(super) place: &'a Office,
    pub(super) flags: &'a ProposalFlags,
    pub(super) author: RevisionAuthor,
    pub(super) texts: Vec<DocumentText>,
    pub(super) rollback_of: Option<u64>,
    /// The number of the first revision, if there is none yet.
    pub(super) first_number: Option<u64>,
    /// The revision that it began with; absent: whichever is in force.
    pub(super) base: Option<u64>,
    /// Whether it is judged and not put in force.
    pub(super) is_draft: bool,
    /// The plan that it is held against, and how its servers are spoken to.
    pub(super) plan: Option<(&'a SavedPlan, &'a ClientTlsFlags)>,
}

const LOOK: Duration = Duration::from_millis(50);

// === impl Proposal ===

impl<'a> Proposal<'a> {
    /// A proposal of some texts, to be put in force.
    pub(super) fn new(
        place: &'a Office,
        flags: &'a ProposalFlags,
        author: RevisionAuthor,
        texts: Vec<DocumentText>,
    ) -> Proposal<'a> {
        Proposal {
            place,
            flags,
            author,
            texts,
            rollback_of: None,
            first_number: None,
            base: None,
            is_draft: false,
            plan: None,
        }
    }

    /// From the head as it stands to the head as it is wanted.
    pub(super) async fn push(self) -> anyhow::Result<()> {
        let pushed = match self.place {
            Office::Etcd(store) => self.push_straight(store).await?,
            Office::Admin(port) => self.push_through(port).await?,
        };
        match pushed {
            Some(number) => self.wait(number).await,
            None => Ok(()),
        }
    }

    /// Straight to etcd. Returns the number of the revision that is in force now, if it was made here.
    async fn push_straight(&self, store: &RevisionStore) -> anyhow::Result<Option<u64>> {
        let mut base = self.base;
        let mut stale = None;
        if let Some((plan, tls)) = self.plan {
            let head = store.head().await?.head.map_or(0, |head| head.number);
            match plan.planned().check(head, self.texts.iter().map(|(document, _)| document)) {
                Ok(()) => plan.look_again(&self.texts, tls).await?,
                // With what both have changed since.
                Err(StalePlan::Overtaken { .. }) => stale = Some(head),
                Err(fault) => return Err(Exit::forbidden(fault.to_string())),
            }
            base = Some(plan.planned().base);
        }
        let judged = match store.judge(self.order(base)).await {
            Ok(judged) => judged,
            Err(PushFault::Same(number)) => {
                self.say(&json!({"outcome": "same", "number": number}), || {
                    format!("nothing to push: revision {number} has that content\n")
                });
                return Ok(None);
            }
            Err(fault) => return Err(self.unpushed(&fault, stale)),
        };
        judged.notes.iter().for_each(|note| eprintln!("note: {note}"));
        if self.is_draft {
            self.say_draft(&json!({"outcome": "draft", "changes": judged.delta}), &judged.delta.to_string());
            return Ok(None);
        }
        self.agree(judged.revision.number, &judged.delta.to_string())?;
        store.push(&judged).await.map_err(|fault| self.unpushed(&fault, None))?;
        Ok(Some(judged.revision.number))
    }

    fn order(&self, base: Option<u64>) -> PushOrder {
        PushOrder {
            texts: self.texts.clone(),
            by: self.author.clone(),
            message: self.flags.message.clone(),
            ticket: self.flags.ticket.clone(),
            rollback_of: self.rollback_of,
            first_number: self.first_number,
            despite: self.flags.despite.clone(),
            base,
            is_draft: self.is_draft,
            tool: tool(),
        }
    }

    /// The error of a push that came to nothing; `stale` is the revision that is in force if a plan was made against another.
    fn unpushed(&self, fault: &PushFault, stale: Option<u64>) -> anyhow::Error {
        match fault {
            PushFault::Lost(lost) => {
                let mut outcome = serde_json::to_value(lost).unwrap_or_default();
                outcome["outcome"] = "faster".into();
                self.say(&outcome, String::new);
                let plan = stale.map(|head| StalePlan::Overtaken { base: lost.base, head });
                let plan = plan.map(|plan| format!("{plan}\n")).unwrap_or_default();
                Exit::faster(format!("{plan}{lost}"))
            }
            PushFault::Headless => Exit::faster(fault.to_string()),
            PushFault::Refused(_) => Exit::not_everywhere(fault.to_string()),
            PushFault::Frozen(_) => Exit::forbidden(fault.to_string()),
            _ => anyhow!("{fault}"),
        }
    }

    /// Through the admin port of a task, which looks who pushes. Returns the same.
    async fn push_through(&self, port: &AdminPort) -> anyhow::Result<Option<u64>> {
        if let Some((plan, tls)) = self.plan {
            plan.look_again(&self.texts, tls).await?;
        }
        let mut body = json!({
            "message": self.flags.message, "ticket": self.flags.ticket, "rollback_of": self.rollback_of,
            "first_number": self.first_number, "despite": self.flags.despite, "base": self.base,
            "plan": self.plan.map(|(plan, _)| plan.planned()), "tool": tool(), "draft": true,
        });
        if self.rollback_of.is_none() {
            let document = |(document, text): &DocumentText| json!({"for": document.nodes, "name": document.name, "text": text});
            body["documents"] = self.texts.iter().map(document).collect();
        }
        let draft = self.call(port, &body).await?;
        let (number, text) =
            (draft["number"].as_u64().unwrap_or_default(), draft["text"].as_str().unwrap_or_default());
        if self.is_draft {
            self.say_draft(&json!({"outcome": "draft", "changes": draft["changes"]}), text);
            return Ok(None);
        }
        if draft["same"] == true {
            let base = &draft["base"];
            self.say(&json!({"outcome": "same", "number": base}), || {
                format!("nothing to push: revision {base} has that content\n")
            });
            return Ok(None);
        }
        self.agree(number, text)?;
        body["draft"] = false.into();
        body["base"] = draft["base"].clone();
        let pushed = self.call(port, &body).await?;
        Ok(pushed["number"].as_u64())
    }

    /// Calls the act, and says what the task notes.
    async fn call(&self, port: &AdminPort, body: &Value) -> anyhow::Result<Value> {
        let answer = port.ask(Method::POST, "/admin/push", Some(body.clone())).await?;
        let said = answer.said.clone().unwrap_or_default();
        let detail = said["detail"].as_str().unwrap_or_default().to_owned();
        match said["outcome"].as_str() {
            Some("faster") => {
                self.say(&said, String::new);
                return Err(Exit::faster(detail));
            }
            Some("refused") => return Err(Exit::not_everywhere(detail)),
            Some("frozen" | "stale_plan") => return Err(Exit::forbidden(detail)),
            _ => {}
        }
        let done = answer.done()?;
        for note in done["notes"].as_array().map_or(&[][..], Vec::as_slice) {
            eprintln!("note: {}", note.as_str().unwrap_or_default());
        }
        Ok(done)
    }

    /// Says something in JSON, or else in words.
    fn say(&self, outcome: &Value, words: impl FnOnce() -> String) {
        if self.flags.json {
            let mut outcome = outcome.clone();
            outcome["schema"] = 1.into();
            println!("{outcome}");
        } else {
            print!("{}", words());
        }
    }

    fn say_draft(&self, outcome: &Value, delta: &str) {
        self.say(outcome, || format!("{delta}every task would take it; nothing is in force\n"));
    }

    /// Asks whoever is there.
    fn agree(&self, number: u64, delta: &str) -> anyhow::Result<()> {
        if !self.flags.json {
            print!("{delta}");
        }
        if self.flags.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            bail!("nobody is there to ask; wanted --yes");
        }
        eprint!("push that as revision {number}? [y/N] ");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Exit::forbidden("nothing was pushed".to_owned())),
        }
    }

    /// Waits until every task that lives says that it has it in force.
    async fn wait(&self, number: u64) -> anyhow::Result<()> {
        let wait = self.flags.wait;
        if !self.flags.json {
            println!("revision {number} is in force");
        }
        if wait.is_zero() {
            self.say(&json!({"outcome": "in_force", "number": number}), String::new);
            return Ok(());
        }
        let mut last = Vec::new();
        let waiting = async {
            let mut looks = interval(LOOK);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                looks.tick().await;
                last = self.place.tasks().await?;
                if last.iter().all(|task| task.in_force >= number) {
                    return anyhow::Ok(());
                }
            }
        };
        let waited = timeout(wait, waiting).await;
        let all = last.len();
        if let Ok(waited) = waited {
            waited?;
            self.say(&json!({"outcome": "in_force", "number": number, "tasks": all}), || {
                format!("in force at {all} of {all} tasks\n")
            });
            return Ok(());
        }
        let behind: Vec<String> =
            last.iter().filter(|task| task.in_force < number).map(TaskInForce::describe).collect();
        let there = all - behind.len();
        self.say(
            &json!({"outcome": "not_everywhere", "number": number, "tasks": all, "behind": behind}),
            String::new,
        );
        Err(Exit::not_everywhere(format!(
            "revision {number} is in force at {there} of {all} tasks after {wait:?}:\n{}",
            behind.join("\n")
        )))
    }
}

/// The program that makes it.
fn tool() -> String {
    format!("lessor {}", env!("LESSOR_VERSION"))
}

/// A message that can stand in the history.
pub(super) fn message(text: &str) -> Result<String, String> {
    match text.trim().len() {
        0 => Err("wanted a message that says why".to_owned()),
        1..=MOST_MESSAGE => Ok(text.trim().to_owned()),
        bytes => Err(format!("{bytes} bytes; wanted at most {MOST_MESSAGE}")),
    }
}
