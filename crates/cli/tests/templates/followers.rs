//! The console of a task that does not lead: it shows what the leader says, and names it; one hop, and no further.

use lessor_client::{Client, Rate};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::desk::Desk;
use crate::gate::KEY;
use crate::house::{AGES, House, eventually, everything, run};
use crate::site::{Site, has};

/// Three tasks of one node, the one that leads first, and somebody who holds `db` there.
struct Three {
    tasks: Vec<House>,
    held: (Client, Rate),
}

async fn leads(house: &House) -> bool {
    house.page("/readyz?leads").await.code == 200
}

/// The place of the task that leads, once one does and the others know it.
async fn leader_of(tasks: &[House]) -> usize {
    let mut found = None;
    eventually("one leads", async || {
        let mut leading = Vec::new();
        for (place, task) in tasks.iter().enumerate() {
            if leads(task).await {
                leading.push(place);
            }
        }
        let [leader] = leading[..] else { return false };
        found = Some(leader);
        let address = tasks[leader].address().to_string();
        for task in tasks {
            if task.page("/status").await.json()["leader"] != address.as_str() {
                return false;
            }
        }
        true
    })
    .await;
    found.expect("one leads")
}

async fn three(site: &Site) -> Three {
    site.push(&site.file("all.yaml", &everything(100.0, 20))).await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(site.task("root", &[]).await);
    }
    let leader = leader_of(&tasks).await;
    tasks.swap(0, leader);
    let client = Client::builder(tasks[0].address().to_string()).id("web-1").connect().await.unwrap();
    let rate = client.rate("db").wants(30.0).open().unwrap();
    eventually("it is leased", async || {
        tasks[0].resource("db").await.is_some_and(|resource| resource["leased"] == 30.0)
    })
    .await;
    Three { tasks, held: (client, rate) }
}

fn at(task: &House) -> Desk {
    Desk::new(&task.address().to_string())
}

#[tokio::test]
async fn whichever_task_is_opened_shows_what_the_leader_says_and_names_it() {
    let Some(site) = Site::started().await else { return };
    let Three { tasks, held } = three(&site).await;
    let leader = tasks[0].address().to_string();
    let from = format!("lessor-from: {leader}");
    for path in
        ["/v1/node", "/v1/resources", "/v1/holders?resource=db", "/v1/overrides", "/v1/findings", "/v1/tree"]
    {
        let own = at(&tasks[0]).get(path).await;
        assert!(!own.head.contains("lessor-from"), "{path}: {own:?}");
        for task in &tasks[1..] {
            let shown = at(task).get(path).await;
            let of_leader = shown.done();
            assert!(shown.head.contains(&from), "{path}: {shown:?}");
            assert!(shown.head.contains("nosniff"), "{path}: {shown:?}");
            if path == "/v1/node" {
                assert_eq!(
                    (&of_leader["leads"], &of_leader["leader"]),
                    (&true.into(), &leader.as_str().into())
                );
            }
            if path == "/v1/holders?resource=db" {
                assert_eq!(
                    (&of_leader["rows"][0]["client"], &of_leader["rows"][0]["has"]),
                    (&"web-1".into(), &30.0.into())
                );
            }
        }
    }
    let asked =
        json!({"documents": [{"for": "*", "name": "cut.yaml", "text": everything(10.0, 20)}]}).to_string();
    for task in &tasks[1..] {
        let plan = at(task).call("POST", "/v1/plan", Some(&asked)).await;
        assert_eq!(plan.done()["resources"][0]["resource"], "db", "{plan:?}");
        assert!(plan.head.contains(&from), "{plan:?}");
        let explained = at(task).get("/v1/explain?resource=db&client=web-1").await.done();
        assert_eq!(explained["lives"][0]["client"], "web-1", "{explained}");
        // What is wrong with a question is said by the leader.
        let wrong = at(task).get("/v1/resources?colour=red").await;
        assert!(wrong.code == 400 && wrong.body.contains("colour"), "{wrong:?}");
        // The task itself can be asked as well.
        let here = at(task).with_header("Lessor-Here: yes").get("/v1/node").await;
        assert!(here.done()["leads"] == false && !here.head.contains("lessor-from"), "{here:?}");
        // A task that asks for another is told who leads, and nobody else is asked.
        let looped = at(task).with_header("Lessor-Via: 127.0.0.1:1").get("/v1/node").await;
        assert_eq!(looped.code, 421, "{looped:?}");
        let told: Value = serde_json::from_str(&looped.body).unwrap();
        assert_eq!((&told["leads"], &told["leader"]), (&false.into(), &leader.as_str().into()));
        let server = task.address().to_string();
        let status = run(&["explain", "db", "web-1", "--server", &server]).await;
        assert!(status.code == Some(0) && status.out.contains("web-1"), "{status:?}");
    }
    drop(held);
    for task in tasks {
        task.stop().await;
    }
}

/// The messages of a stream of changes, and what came before them.
struct Changes(BufReader<TcpStream>);

impl Changes {
    async fn open(task: &House) -> Changes {
        let mut stream = TcpStream::connect(task.address()).await.unwrap();
        stream.write_all(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        Changes(BufReader::new(stream))
    }

    /// The next line that begins so; none at the end.
    async fn next(&mut self, start: &str) -> Option<String> {
        let reading = async {
            let mut line = String::new();
            while self.0.read_line(&mut line).await.unwrap_or_default() > 0 {
                if let Some(rest) = line.to_ascii_lowercase().strip_prefix(start) {
                    return Some(rest.trim().to_owned());
                }
                line.clear();
            }
            None
        };
        timeout(AGES, reading).await.expect("a message in time")
    }
}

#[tokio::test]
async fn changes_are_those_of_the_leader_and_end_when_another_leads() {
    let Some(site) = Site::started().await else { return };
    let Three { mut tasks, held } = three(&site).await;
    let leader = tasks[0].address().to_string();
    let mut changes = Changes::open(&tasks[1]).await;
    assert_eq!(changes.next("lessor-from: ").await.as_deref(), Some(leader.as_str()));
    let first: Value = serde_json::from_str(&changes.next("data: ").await.unwrap()).unwrap();
    assert_eq!((&first["all"], &first["node"]["leads"]), (&true.into(), &true.into()), "{first}");
    assert_eq!(first["resources"][0]["resource"], "db", "{first}");
    assert!(changes.next("data: ").await.is_some());
    drop(held);
    tasks[0].crash().await;
    while changes.next("data: ").await.is_some() {}
    let rest = tasks.split_off(1);
    let next = leader_of(&rest).await;
    let other = &rest[1 - next];
    let shown = at(other).get("/v1/node").await;
    assert_eq!(shown.done()["leads"], true, "{shown:?}");
    assert!(shown.head.contains(&format!("lessor-from: {}", rest[next].address())), "{shown:?}");
    for task in rest {
        task.stop().await;
    }
}

#[tokio::test]
async fn a_leader_that_does_not_answer_is_named() {
    let Some(site) = Site::started().await else { return };
    // Nobody else comes to lead meanwhile.
    site.push(&site.templates(100.0)).await;
    let slow = ["--ttl", "60s", "--authority", "30s", "--keep-alive", "1s"];
    let url = site.etcd.url();
    let flags = [&["--etcd", url.as_str()][..], &slow].concat();
    let (one, other) = (site.serve("root", &flags).await, site.serve("root", &flags).await);
    let tasks = [one, other];
    let leader = leader_of(&tasks).await;
    let (leader, follower) = (&tasks[leader], &tasks[1 - leader]);
    leader.signal(Signal::STOP);
    let late = at(follower).get("/v1/resources").await;
    leader.signal(Signal::CONT);
    assert_eq!(late.code, 504, "{late:?}");
    let told: Value = serde_json::from_str(&late.body).unwrap();
    let address = leader.address().to_string();
    let words = format!("{address} leads this node, and does not answer this task: no answer in 5s");
    assert_eq!((&told["error"], &told["leader"]), (&words.as_str().into(), &address.as_str().into()));
    has(follower, 1.0).await;
    for task in tasks {
        task.stop().await;
    }
}

#[tokio::test]
async fn who_asks_is_let_in_by_both_tasks_or_by_none() {
    let Some(site) = Site::started().await else { return };
    site.push(&site.templates(100.0)).await;
    let rules = "default: deny\noperators:\n  - {identity: ann, may: [see]}\n";
    let (access, key) = (site.file("access.yaml", rules), site.file("auth.key", KEY));
    let flags = ["--access", &access, "--auth-key", &key];
    let tasks = [site.task("root", &flags).await, site.task("root", &flags).await];
    let token =
        crate::gate::token(&key, &["--identity", "ann", "--client-id", "*", "--role", "see", "--ttl", "1h"])
            .await;
    let shown = |task: &House| Desk::with_token(&task.address().to_string(), &token);
    let mut follower = None;
    eventually("one shows the other's", async || {
        for (place, task) in tasks.iter().enumerate() {
            let page = shown(task).get("/v1/node").await;
            if page.code == 200 && page.head.contains("lessor-from") {
                follower = Some(place);
            }
        }
        follower.is_some()
    })
    .await;
    let follower = &tasks[follower.unwrap()];
    assert_eq!(shown(follower).get("/v1/node").await.done()["leads"], true);
    // Without a token nobody is asked.
    let refused = at(follower).get("/v1/node").await;
    assert!(refused.code == 403 && !refused.head.contains("lessor-from"), "{refused:?}");
    // She may see, and not have plans made.
    let refused = shown(follower).call("POST", "/v1/plan", Some("{\"documents\":[]}")).await;
    assert!(
        refused.code == 403 && refused.body.contains("may not plan") || refused.body.contains("does not let"),
        "{refused:?}"
    );
    for task in tasks {
        task.stop().await;
    }
}
