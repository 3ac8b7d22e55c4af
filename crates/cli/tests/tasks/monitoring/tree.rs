//! A tree that has all figures there are: a root with a state directory, a leaf elected by etcd, whose clients tell each
//! other of domains, and beside them a server with TLS, which follows templates at etcd.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;

use lessor_client::{Client, Rate};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::figures::until;
use crate::house::etcd::Etcd;
use crate::house::{AGES, House, eventually, everything, lessor, page, run};

/// The tree, and a client of it.
pub(super) struct Tree {
    pub(super) root: House,
    pub(super) leaf: House,
    pub(super) sealed: House,
    client: Client,
    queries: Rate,
    _etcd: Etcd,
    _directory: TempDir,
}

/// The values of each label of a series.
pub(super) type Labels = BTreeMap<String, BTreeSet<String>>;

const CAPACITY: f64 = 100.0;

// === impl Tree ===

impl Tree {
    /// One in which a client has what it wants; nothing if there is no etcd.
    pub(super) async fn open() -> Option<Tree> {
        let etcd = Etcd::started().await?;
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        std::fs::create_dir(&state).unwrap();
        let flags = ["--state-dir", state.to_str().unwrap()];
        let root = House::open_with(&everything(CAPACITY, 300), &flags).await;
        let (url, parent) = (etcd.url(), root.address().to_string());
        let flags =
            ["--node", "leaf", "--parent", &parent, "--etcd", &url, "--ttl", "2s", "--authority", "500ms"];
        let flags = [&flags[..], &["--keep-alive", "100ms"]].concat();
        let shared = "  domains: {scope: shared, default: {tiers: [{limit: 5, window: 1s, active: 1s}]}}\n";
        let leaf = House::open_with(&(everything(CAPACITY, 60) + shared), &flags).await;
        let client = Client::builder(leaf.address().to_string()).build().unwrap();
        let mut queries = client.rate("db").wants(30.0).open().unwrap();
        until(&mut queries, 30).await;
        let tells = async || leaf.page("/metrics").await.body.contains("lessor_domain_clients{");
        eventually("it tells of domains", tells).await;
        let sealed = sealed(directory.path(), &url).await;
        Some(Tree { root, leaf, sealed, client, queries, _etcd: etcd, _directory: directory })
    }

    /// The leaf's limit is tried from here on, and the client says what it lets pass.
    pub(super) async fn let_pass(&self) {
        let text = std::fs::read_to_string(self.leaf.config()).unwrap();
        self.leaf.configure(&(text + "  enforce: false\n"));
        eventually("the client is told", async || self.queries.lease().unenforced).await;
        self.queries.try_acquire(1).unwrap();
        let is_said =
            async || self.leaf.page("/metrics").await.body.contains("lessor_unenforced_asked_total{");
        eventually("it says what it was asked for", is_said).await;
    }

    /// Where each of the servers has its figures.
    pub(super) fn targets(&self) -> [SocketAddr; 3] {
        [self.root.address(), self.leaf.address(), self.sealed.plain()]
    }

    /// The series of all servers by name, with their labels.
    pub(super) async fn series(&self) -> BTreeMap<String, Labels> {
        let mut text = String::new();
        for target in self.targets() {
            text.push_str(&page::get(target, "/metrics").await.body);
        }
        let mut all = BTreeMap::<String, Labels>::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (series, _) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let of_name = all.entry(name.to_owned()).or_default();
            // No value here has a quotation mark in it.
            for label in labels.trim_end_matches('}').split_terminator("\",") {
                let (label, value) = label.split_once("=\"").unwrap();
                let value = value.trim_end_matches('"').to_owned();
                of_name.entry(label.to_owned()).or_default().insert(value);
            }
        }
        all
    }

    /// The root crashes, and starts again at the same address.
    pub(super) async fn crash_root(mut self) -> Tree {
        self.root.crash().await;
        let root = self.root.start_again().await;
        Tree { root, ..self }
    }

    /// Ends all of it, in order.
    pub(super) async fn close(self) {
        drop(self.queries);
        timeout(AGES, self.client.close()).await.unwrap();
        for house in [self.leaf, self.root, self.sealed] {
            house.stop().await;
        }
    }
}

/// A server with TLS, and a plain port besides, which follows the templates that are pushed into etcd.
async fn sealed(directory: &Path, etcd: &str) -> House {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| directory.join(name));
    std::fs::write(&certificate, own.cert.pem()).unwrap();
    std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let flags = ["--tls-cert", certificate, "--tls-key", key, "--listen-plain", "127.0.0.1:0"];
    let file = directory.join("templates.yaml");
    std::fs::write(&file, everything(CAPACITY, 300)).unwrap();
    let config = ["--config", "etcd:templates"];
    let push = ["push", file.to_str().unwrap(), "-m", "the first", "--yes", "--etcd", etcd];
    let pushed = run(&[&push[..], &config].concat()).await;
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    let own =
        ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-format", "json", "--node", "sealed"];
    House::run(lessor(&[&["serve", "--config-etcd", etcd], &config[..], &own, &flags].concat())).await
}
