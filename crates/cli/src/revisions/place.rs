//! The place where revisions stand, as pushes need it: at etcd, or behind the admin port of a task that follows them.

use anyhow::Context;
use hyper::Method;
use lessor_server::revision::{RefusedRevision, RevisionDocument};
use lessor_server::shell::source::DocumentText;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::revision;
use crate::office::Office;

/// A task, and what it has in force.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TaskInForce {
    node: String,
    address: String,
    pub(super) in_force: u64,
    refused: Option<RefusedRevision>,
}

/// A revision with its documents, as a page says it.
#[derive(Deserialize)]
struct RevisionPage {
    documents: Vec<RevisionDocument>,
    texts: Vec<String>,
}

#[derive(Deserialize)]
struct TasksPage {
    rows: Vec<TaskInForce>,
}

// === impl Office ===

impl Office {
    /// The number of the newest revision; 0: there is none.
    pub(super) async fn newest(&self) -> anyhow::Result<u64> {
        match self {
            Office::Etcd(store) => Ok(store.head().await?.head.map_or(0, |head| head.number)),
            Office::Admin(port) => {
                let answer = port.call(Method::GET, "push", None).await?;
                answer["head"].as_u64().context("the server says it in a form of another version")
            }
        }
    }

    /// The documents of a revision.
    pub(super) async fn texts_of(&self, number: u64) -> anyhow::Result<Vec<DocumentText>> {
        match self {
            Office::Etcd(store) => Ok(store.texts_of(&revision(store, number).await?).await?),
            Office::Admin(port) => {
                let page: RevisionPage = read(port.page(&format!("/v1/revision?number={number}")).await?)?;
                Ok(page.documents.into_iter().zip(page.texts).collect())
            }
        }
    }

    /// The tasks that live.
    pub(super) async fn tasks(&self) -> anyhow::Result<Vec<TaskInForce>> {
        match self {
            Office::Etcd(store) => Ok(store.tasks().await?.0.into_iter().map(TaskInForce::from).collect()),
            Office::Admin(port) => Ok(read::<TasksPage>(port.page("/v1/tasks").await?)?.rows),
        }
    }
}

fn read<T: DeserializeOwned>(answer: Value) -> anyhow::Result<T> {
    serde_json::from_value(answer).context("the server says it in a form of another version")
}

// === impl TaskInForce ===

impl From<lessor_server::revision::TaskReport> for TaskInForce {
    fn from(report: lessor_server::revision::TaskReport) -> TaskInForce {
        let lessor_server::revision::TaskReport { node, address, in_force, refused, .. } = report;
        TaskInForce { node, address, in_force, refused }
    }
}

impl TaskInForce {
    /// The revision that it has, in words.
    pub(super) fn describe(&self) -> String {
        let refused =
            self.refused.as_ref().map(|refused| format!(", and refuses: {}", refused.why.join("; ")));
        let (address, node, number) = (&self.address, &self.node, self.in_force);
        format!("task {address} of node {node:?} has {number}{}", refused.unwrap_or_default())
    }
}
