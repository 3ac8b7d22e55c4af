//! The acts about the templates at etcd: a push through this task, which knows who makes it; and who keeps everybody from one.

use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::http::request::Parts;
use serde::Deserialize;
use serde_json::{Value, json};

use super::acts::Acts;
use super::call::{bad, duration_from, said_within};
use super::operator::Operator;
use super::override_acts::no_store;
use super::problem::ActProblem;
use crate::revision::{FORM, MOST_BYTES, MOST_MESSAGE, PushFreeze, Revision, RevisionDocument};
use crate::shell::driver::{NotPlanned, PlanRequest, Unanswered};
use crate::shell::etcd::{PushFault, PushOrder, RevisionStore, StoreFault};
use crate::shell::http::PlanBodyDocument;
use crate::shell::planned::{PlannedPush, StalePlan};
use crate::shell::source::{self, DocumentText};
use crate::shell::wall_date::wall_date;

/// A push that is wanted, as it is said.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PushBody {
    #[serde(default)]
    documents: Vec<PlanBodyDocument>,
    message: String,
    ticket: Option<String>,
    /// The revision whose content is wanted, in the place of documents.
    rollback_of: Option<u64>,
    first_number: Option<u64>,
    base: Option<u64>,
    plan: Option<PlannedPush>,
    #[serde(default)]
    despite: Vec<String>,
    #[serde(default)]
    draft: bool,
    tool: Option<String>,
}

/// An order that nobody push, as it is said.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PushFreezeBody {
    message: String,
    #[serde(rename = "for")]
    time: String,
}

/// The bytes of a body beside those of its documents, which JSON may have written at twice their length.
const MOST_BODY: usize = 2 * MOST_BYTES as usize + (64 << 10);
/// The shortest and the longest time for which nobody may push.
const FREEZES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(7 * 86_400)];
/// Bytes in a ticket, or in the name of a program.
const LONGEST: usize = 256;
/// Tasks that a push may be made in spite of.
const MOST_DESPITE: usize = 64;

// === impl PushBody ===

impl PushBody {
    /// Reads a push, and how it is written down.
    pub(super) async fn read(head: &Parts, body: Body) -> Result<(PushBody, Value), ActProblem> {
        let push: PushBody = said_within(head, body, MOST_BODY).await?;
        let is_of_page = head.headers.contains_key(header::ORIGIN);
        message(&push.message)?;
        for (field, text) in [("ticket", &push.ticket), ("tool", &push.tool)] {
            if let Some(bytes) = text.as_ref().map(String::len).filter(|&bytes| bytes > LONGEST) {
                return Err(bad(field, &format!("has {bytes} bytes; wanted {LONGEST} at the most")));
            }
        }
        if push.despite.len() > MOST_DESPITE {
            let found = push.despite.len();
            return Err(bad("despite", &format!("has {found} tasks; wanted {MOST_DESPITE} at the most")));
        }
        if push.documents.is_empty() != push.rollback_of.is_some() {
            return Err(bad(
                "documents",
                "wanted documents, or rollback_of: a revision with its own, and not both",
            ));
        }
        if is_of_page && push.plan.is_none() && !push.draft {
            return Err(bad(
                "plan",
                "is missing; wanted the plan that was shown, as a page in a browser calls",
            ));
        }
        if let (Some(plan), Some(base)) = (&push.plan, push.base)
            && plan.base != base
        {
            return Err(bad("base", &format!("is {base}; wanted {}, as that of the plan", plan.base)));
        }
        let documents = push.texts();
        check(&documents)?;
        let written = json!({
            "documents": documents.iter().map(|(document, _)| document).collect::<Vec<_>>(),
            "message": push.message, "ticket": push.ticket, "rollback_of": push.rollback_of,
            "base": push.base(), "plan": push.plan, "despite": push.despite, "draft": push.draft,
        });
        Ok((push, written))
    }

    fn texts(&self) -> Vec<DocumentText> {
        let text =
            |it: &PlanBodyDocument| (RevisionDocument::new(&it.nodes, &it.name, &it.text), it.text.clone());
        self.documents.iter().map(text).collect()
    }

    fn base(&self) -> Option<u64> {
        self.base.or_else(|| self.plan.as_ref().map(|plan| plan.base))
    }
}

/// Reads for how long nobody may push, and why.
pub(super) async fn read_freeze(head: &Parts, body: Body) -> Result<(String, Duration), ActProblem> {
    let PushFreezeBody { message: why, time } = said_within(head, body, MOST_MESSAGE + LONGEST).await?;
    message(&why)?;
    let time = duration_from(&time, FREEZES)?;
    Ok((why, time))
}

fn message(text: &str) -> Result<(), ActProblem> {
    match text.trim().len() {
        0 => Err(bad("message", "is missing; wanted one that says why")),
        1..=MOST_MESSAGE => Ok(()),
        bytes => Err(bad("message", &format!("has {bytes} bytes; wanted {MOST_MESSAGE} at the most"))),
    }
}

/// Whether documents can be a revision, and be read.
fn check(texts: &[DocumentText]) -> Result<(), ActProblem> {
    if texts.is_empty() {
        return Ok(());
    }
    let documents = texts.iter().map(|(document, _)| document.clone()).collect();
    let revision = Revision { number: 1, documents, message: "checked".to_owned(), ..Revision::default() };
    revision.encode("the push").map_err(|fault| bad("documents", &fault.to_string()))?;
    let mut faults = Vec::new();
    for (document, text) in texts {
        match source::parse(&document.name, text) {
            Ok(repository) if repository.version() > 0 => faults.push(format!(
                "{}: version: {}; wanted none: revisions at etcd are numbered",
                document.name,
                repository.version()
            )),
            Ok(_) => {}
            Err(found) => faults.push(found.to_string()),
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(bad("documents", &faults.join("\n"))),
    }
}

// === impl Acts ===

impl Acts {
    /// The head, and whether anybody may push.
    pub(super) async fn pushes(&self) -> Result<Value, ActProblem> {
        let store = self.store()?;
        let head = store.head().await.map_err(|fault| no_store(&fault))?.head;
        let freeze = store.freeze().await.map_err(|fault| no_store(&fault))?;
        Ok(
            json!({"prefix": store.keys().prefix(), "head": head.map_or(0, |head| head.number), "freeze": freeze}),
        )
    }

    pub(super) async fn push(&self, push: &PushBody, operator: &Operator) -> Result<Value, ActProblem> {
        let store = self.store()?;
        let texts = match push.rollback_of {
            None => push.texts(),
            Some(number) => content_of(store, number).await?,
        };
        let mut notes = Vec::new();
        if let Some(plan) = &push.plan {
            // What was pushed since shows when it is judged, with what both have changed.
            plan.check(plan.base, texts.iter().map(|(document, _)| document))
                .map_err(|fault| stale(&fault))?;
            notes.extend(self.plan_again(plan, &texts).await?);
        }
        let order = PushOrder {
            texts,
            by: self.author(operator),
            message: push.message.trim().to_owned(),
            ticket: push.ticket.clone().filter(|ticket| !ticket.is_empty()),
            rollback_of: push.rollback_of,
            first_number: push.first_number,
            despite: push.despite.clone(),
            base: push.base(),
            is_draft: push.draft,
            tool: push.tool.clone().unwrap_or_else(|| "lessor console".to_owned()),
        };
        let judged = match store.judge(order).await {
            Ok(judged) => judged,
            Err(PushFault::Same(number)) => return Ok(json!({"outcome": "same", "number": number})),
            Err(fault) => return Err(unpushed(&fault)),
        };
        notes.extend(judged.notes.iter().cloned());
        let mut outcome = "draft";
        if !push.draft {
            store.push(&judged).await.map_err(|fault| unpushed(&fault))?;
            outcome = "in_force";
        }
        let (number, base) = (judged.revision.number, judged.revision.parent);
        Ok(json!({
            "outcome": outcome, "number": number, "base": base, "by": judged.revision.by, "changes": judged.delta,
            "same": judged.is_same(), "text": judged.delta.to_string(), "notes": notes,
        }))
    }

    /// Plans once more, as demand may have moved since. Returns a note where that cannot be.
    async fn plan_again(
        &self,
        plan: &PlannedPush,
        texts: &[DocumentText],
    ) -> Result<Option<String>, ActProblem> {
        let request = PlanRequest { documents: texts.to_vec(), ..PlanRequest::default() };
        match self.rooms.driver.plan(&request).await {
            Ok(again) => plan.compare(&again).map(|()| None).map_err(|fault| stale(&fault)),
            Err(NotPlanned::Unanswered(Unanswered::NotLeading(_))) => {
                Ok(Some("it was not planned once more, as this task does not lead".to_owned()))
            }
            Err(fault) => Err(ActProblem::new(503, format!("it cannot be planned once more: {fault}"))),
        }
    }

    pub(super) async fn freeze_pushes(
        &self,
        (message, time): (&str, Duration),
        operator: &Operator,
    ) -> Result<Value, ActProblem> {
        let until = wall_date() + time;
        let until = humantime::format_rfc3339_seconds(until).to_string();
        let by = self.author(operator).name;
        let freeze = PushFreeze { form: FORM, by, message: message.trim().to_owned(), until };
        self.store()?.set_freeze(&freeze, time).await.map_err(|fault| no_store(&fault))?;
        Ok(json!({"freeze": freeze}))
    }

    pub(super) async fn let_push(&self) -> Result<Value, ActProblem> {
        let was_frozen = self.store()?.lift_freeze().await.map_err(|fault| no_store(&fault))?;
        Ok(json!({"was_frozen": was_frozen}))
    }

    fn store(&self) -> Result<&RevisionStore, ActProblem> {
        self.rooms.store.as_deref().ok_or_else(|| {
            ActProblem::new(
                404,
                "the templates come from a file, and nothing can be pushed; wanted a task with --config etcd:PREFIX",
            )
        })
    }
}

/// The content of an earlier revision.
async fn content_of(store: &RevisionStore, number: u64) -> Result<Vec<DocumentText>, ActProblem> {
    let read = async {
        match store.revision(number).await? {
            Some((revision, _)) => store.texts_of(&revision).await.map(Some),
            None => Ok(None),
        }
    };
    let texts = read.await.map_err(|fault: StoreFault| no_store(&fault))?;
    texts.ok_or_else(|| {
        let what = format!("there is no revision {number}: it may have been pruned");
        ActProblem::new(404, what).with("field", "rollback_of")
    })
}

fn stale(fault: &StalePlan) -> ActProblem {
    ActProblem::new(412, fault.to_string()).with("outcome", "stale_plan")
}

/// The problem of a push that came to nothing.
fn unpushed(fault: &PushFault) -> ActProblem {
    let problem =
        |status: u16, outcome: &str| ActProblem::new(status, fault.to_string()).with("outcome", outcome);
    match fault {
        PushFault::Lost(lost) => {
            let mut problem = problem(409, "faster");
            if let Ok(Value::Object(sides)) = serde_json::to_value(lost) {
                problem.more.extend(sides);
            }
            problem
        }
        PushFault::Headless => problem(409, "faster"),
        PushFault::Frozen(_) => problem(423, "frozen"),
        PushFault::Refused(tasks) => problem(422, "refused").with("tasks", tasks.clone()),
        PushFault::FirstNumber(_) => problem(400, "bad").with("field", "first_number"),
        PushFault::Unknown(_) => problem(503, "unknown"),
        PushFault::Store(fault) => no_store(fault),
        PushFault::Same(_) => problem(409, "same"),
    }
}
