//! A site: an etcd, tasks that follow the templates in it, and the operator who pushes them.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::house::etcd::Etcd;
use crate::house::{House, Outcome, eventually, everything, lessor, run};

pub(crate) struct Site {
    pub(crate) etcd: Etcd,
    pub(crate) directory: TempDir,
}

/// Where the templates stand.
pub(crate) const CONFIG: &str = "etcd:templates/prod";

// === impl Site ===

impl Site {
    pub(crate) async fn started() -> Option<Site> {
        let etcd = Etcd::started().await?;
        Some(Site { etcd, directory: tempfile::tempdir().unwrap() })
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// A file with one template for everything.
    pub(crate) fn templates(&self, capacity: f64) -> String {
        self.file(&format!("{capacity}.yaml"), &everything(capacity, 60))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn line<'a>(&'a self, url: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
        [arguments, &["--config", CONFIG, "--etcd", url]].concat()
    }

    /// A command of the operator.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Outcome {
        let url = self.etcd.url();
        run(&self.line(&url, arguments)).await
    }

    /// One that has to go well.
    pub(crate) async fn done(&self, arguments: &[&str]) -> String {
        let outcome = self.run(arguments).await;
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        outcome.out
    }

    /// One that has to end with that code; what it says.
    pub(crate) async fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let outcome = self.run(arguments).await;
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {outcome:?}");
        outcome.err
    }

    pub(crate) async fn push(&self, file: &str) -> String {
        self.done(&["push", file, "-m", "why", "--yes"]).await
    }

    /// A task of a node, which is elected where `flags` do not say another etcd.
    pub(crate) async fn task(&self, node: &str, flags: &[&str]) -> House {
        let url = self.etcd.url();
        let elected = ["--etcd", &url, "--ttl", "2s", "--authority", "500ms", "--keep-alive", "100ms"];
        self.serve(node, &[&elected[..], flags].concat()).await
    }

    /// A server that is the only one of its node.
    pub(crate) async fn alone(&self, node: &str, flags: &[&str]) -> House {
        let url = self.etcd.url();
        self.serve(node, &[&["--config-etcd", &url], flags].concat()).await
    }

    pub(crate) async fn serve(&self, node: &str, flags: &[&str]) -> House {
        let own =
            ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-format", "json", "--node", node];
        // Reports name tasks by the address that clients are told.
        let mut command = lessor(&[&["serve", "--config", CONFIG], &own[..], flags].concat());
        command.kill_on_drop(true);
        House::run(command).await
    }
}

/// Waits until a task has that revision in force.
pub(crate) async fn has(house: &House, number: f64) {
    let what = format!("revision {number} is in force");
    eventually(&what, async || (house.metric("lessor_config_in_force").await - number).abs() < 0.5).await;
}
