//! The tree of `deploy/docker-compose.yml`, as it is started there, with ports of this machine for its hosts.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;

use lessor_client::{Builder, Client, Rate};
use lessor_proto::Amount;
use serde::Deserialize;
use tokio::time::timeout;

use crate::figures::until_it_has;
use crate::house::etcd::Etcd;
use crate::house::{AGES, House, eventually, lessor, repository_file};

#[derive(Debug, Deserialize)]
struct Compose {
    services: BTreeMap<String, Service>,
    secrets: BTreeMap<String, Secret>,
}

#[derive(Debug, Deserialize)]
struct Service {
    command: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Secret {}

/// The texts that stand in the file, and those that stand for them here.
struct Here(Vec<(String, String)>);

// === impl Here ===

impl Here {
    fn new(compose: &Compose, etcd: &Etcd, directory: &Path) -> Here {
        let mut here = vec![("http://etcd:2379".to_owned(), etcd.url())];
        here.push(("/etc/lessor".to_owned(), directory.to_str().unwrap().to_owned()));
        for (name, learns) in [("root.yaml", true), ("leaf.yaml", false)] {
            let text = std::fs::read_to_string(repository_file("configs").join(name)).unwrap();
            // At the first start nothing is out, and the test need not wait for a minute to know that.
            let brief = text.replace("learning_mode_duration: 60", "learning_mode_duration: 0");
            assert_eq!(brief != text, learns, "{name}");
            std::fs::write(directory.join(name), brief).unwrap();
        }
        for (number, name) in compose.secrets.keys().enumerate() {
            let path = directory.join(name);
            std::fs::write(&path, format!("{number:064x}\n")).unwrap();
            here.push((format!("/run/secrets/{name}"), path.to_str().unwrap().to_owned()));
        }
        // All are taken before one is given back.
        let tasks = compose.services.keys().filter(|name| *name != "etcd");
        let taken = tasks.map(|name| (name, listener())).collect::<Vec<_>>();
        let addresses =
            taken.iter().map(|(name, port)| (format!("{name}:15000"), port.local_addr().unwrap()));
        here.extend(addresses.map(|(name, address)| (name, address.to_string())));
        Here(here)
    }

    /// A word of the command of a service.
    fn word(&self, service: &str, word: &str) -> String {
        let word = word.replace("0.0.0.0:15000", &format!("{service}:15000"));
        self.0.iter().fold(word, |word, (there, here)| word.replace(there, here))
    }
}

/// A listener at a port that the kernel gives to nobody by itself: another test that asks for any port at the moment when
/// this one is given back does not get it.
fn listener() -> TcpListener {
    let ports = std::iter::repeat_with(|| rand::random_range(16_000..32_000));
    let mut free = ports.take(1_000).filter_map(|port: u16| TcpListener::bind(("127.0.0.1", port)).ok());
    free.next().expect("a free port")
}

async fn client(here: &Here, leaf: &str) -> (Client, Rate) {
    let [one, two] = [1, 2].map(|task| here.word("", &format!("{leaf}-{task}:15000")));
    let client = Builder::server(Client::builder(one), two).id(format!("of-{leaf}")).build().unwrap();
    let queries = client.rate("db/orders").wants(900.0).open().unwrap();
    (client, queries)
}

async fn leader_of<'a>(tasks: &'a BTreeMap<String, House>, node: &str) -> Option<&'a String> {
    for (name, task) in tasks.iter().filter(|(name, _)| name.starts_with(node)) {
        if task.metric("lessor_leads").await > 0.0 {
            return Some(name);
        }
    }
    None
}

#[tokio::test]
async fn the_tree_of_the_compose_file_serves_and_goes_on_when_its_roots_leader_is_stopped() {
    let Some(etcd) = Etcd::started().await else { return };
    let text = std::fs::read_to_string(repository_file("deploy/docker-compose.yml")).unwrap();
    let compose: Compose = serde_saphyr::from_str(&text).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let here = Here::new(&compose, &etcd, directory.path());
    let mut tasks = BTreeMap::new();
    for (name, service) in compose.services.iter().filter(|(name, _)| *name != "etcd") {
        let words: Vec<String> = service.command.iter().map(|word| here.word(name, word)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = lessor(&words);
        command.args(["--http", "127.0.0.1:0", "--log-format", "json"]);
        tasks.insert(name.clone(), House::run(command).await);
    }
    assert_eq!(tasks.len(), 7);
    for node in ["root", "paris", "tokyo"] {
        eventually("somebody leads", async || leader_of(&tasks, node).await.is_some()).await;
    }
    let root = &tasks[leader_of(&tasks, "root").await.unwrap()];
    // Of connections, as of all in earnest.
    eventually("it says that it learns", async || root.has_logged("learning what is out")).await;
    // There are 1200, a tenth of them reserved, and they want 900 each. Of what is reserved both have the same, cut to a power
    // of two of a millionth.
    let with_floor = |units| Amount::from_units(units).saturating_add(Amount::from_micros(1 << 25));
    let ((paris, mut first), (tokyo, mut second)) =
        (client(&here, "paris").await, client(&here, "tokyo").await);
    until_it_has(&mut first, with_floor(540)).await;
    until_it_has(&mut second, with_floor(540)).await;

    let leader = leader_of(&tasks, "root").await.unwrap().clone();
    tasks.remove(&leader).unwrap().stop().await;
    first.set_wants(100.0);
    until_it_has(&mut first, with_floor(100)).await;
    until_it_has(&mut second, with_floor(900)).await;
    for client in [paris, tokyo] {
        timeout(AGES, client.close()).await.unwrap();
    }
    // Leaves first: they give back what they have.
    let (roots, leaves): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|(name, _)| name.starts_with("root"));
    for (_, task) in leaves.into_iter().chain(roots) {
        task.stop().await;
    }
}
