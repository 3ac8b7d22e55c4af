//! Peers: the commands of this program, a node below, `openssl s_client`, and grpcio of Python.

use std::sync::Arc;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use lessor_client::Tls;
use lessor_client::internals::clock;
use lessor_client::internals::tls::{ClientTls, Connector, Protocol};
use lessor_proto::wire::capacity_client::CapacityClient;
use serde_json::Value;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};

use crate::house::certificates::Certificates;
use crate::house::etcd::Etcd;
use crate::house::holder::{Holder, Nature};
use crate::house::{AGES, House, eventually, everything, page, run};
use crate::localhost;

/// Runs a command of this program as a client that shows `name`.
async fn lessor(certificates: &Certificates, name: &str, arguments: &[&str]) -> crate::house::Outcome {
    let flags = certificates.client(name);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    run(&[arguments, &flags].concat()).await
}

#[tokio::test]
async fn what_the_page_sets_up_works() {
    let certificates = Certificates::made().await;
    let root = certificates.serve("root", &["--listen-plain", "127.0.0.1:0"]).await;
    let (server, http) = (localhost(&root), format!("localhost:{}", root.http().port()));

    let get = ["get", "db", "--wants", "10", "--server", &server];
    let got = lessor(&certificates, "web", &get).await;
    assert!(got.out.contains("db: 10/s of 10/s wanted"), "{got:?}");
    let expected = [&get[..], &["--server-identity", "spiffe://acme/ns/lessor/sa/*"]].concat();
    assert_eq!(lessor(&certificates, "web", &expected).await.code, Some(0));
    let strange = [&get[..], &["--server-identity", "spiffe://acme/ns/shop/*"]].concat();
    let refused = lessor(&certificates, "web", &strange).await;
    let told = "is that of spiffe://acme/ns/lessor/sa/root, wanted spiffe://acme/ns/shop/*";
    assert!(refused.code == Some(1) && refused.err.contains(told), "{refused:?}");

    // Pages are for those who show a certificate, and probes have none.
    let status = lessor(&certificates, "web", &["status", "--server", &http]).await;
    assert!(status.code == Some(0) && status.out.contains("node root"), "{status:?}");
    let ca = certificates.path("ca.pem");
    let stranger = run(&["status", "--server", &http, "--ca", &ca]).await;
    assert!(stranger.err.contains("no certificate was shown"), "{stranger:?}");

    // Whoever speaks no TLS has a port of its own.
    let plain = run(&["get", "db", "--wants", "5", "--server", &root.plain().to_string()]).await;
    assert!(plain.out.contains("db: 5/s of 5/s wanted"), "{plain:?}");
    assert_eq!(page::get(root.plain(), "/healthz").await.code, 200);
    root.stop().await;
}

#[tokio::test]
async fn a_node_below_comes_over_tls() {
    let certificates = Certificates::made().await;
    let root = certificates.serve("root", &[]).await;
    let parent = localhost(&root);
    let [ca, certificate, key] = ["ca.pem", "paris.pem", "paris.key"].map(|name| certificates.path(name));
    let flags = ["--node", "paris", "--parent", &parent, "--parent-ca", &ca];
    let own = ["--parent-cert", &certificate, "--parent-key", &key];
    let identity = ["--parent-identity", "spiffe://acme/ns/lessor/sa/root"];
    let leaf = House::open_with(&everything(1e6, 60), &[&flags[..], &own, &identity].concat()).await;
    eventually("it is ready", async || leaf.page("/readyz").await.code == 200).await;
    let got = run(&["get", "db", "--wants", "10", "--server", &leaf.address().to_string()]).await;
    assert!(got.out.contains("db: 10/s of 10/s wanted"), "{got:?}");

    let identity = ["--parent-identity", "spiffe://acme/ns/lessor/sa/rome"];
    let lost = House::open_with(&everything(1e6, 60), &[&flags[..], &own, &identity].concat()).await;
    let told = "is that of spiffe://acme/ns/lessor/sa/root, wanted spiffe://acme/ns/lessor/sa/rome";
    eventually("its log says why", async || lost.has_logged_part(told)).await;
    for house in [lost, leaf, root] {
        house.stop().await;
    }
}

#[tokio::test]
async fn openssl_agrees_on_versions_and_protocols() {
    let certificates = Certificates::made().await;
    let root = certificates.serve("root", &["--tls-clients", "ask"]).await;
    let look = async |address: std::net::SocketAddr, more: &[&str]| {
        let address = address.to_string();
        let usual = ["s_client", "-connect", &address, "-CAfile", "ca.pem", "-brief"];
        certificates.try_to_run("openssl", &[&usual, more].concat()).await
    };
    for (version, name) in [("-tls1_3", "TLSv1.3"), ("-tls1_2", "TLSv1.2")] {
        let (_, said) = look(root.address(), &[version]).await;
        assert!(
            said.contains(&format!("Protocol version: {name}")) && said.contains("Verification: OK"),
            "{said}"
        );
    }
    let (ended, said) = look(root.address(), &["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]).await;
    assert!(!ended, "{said}");
    let alpn = async |address: std::net::SocketAddr, protocols: &str| {
        let address = address.to_string();
        let arguments = ["s_client", "-connect", &address, "-alpn", protocols];
        certificates.try_to_run("openssl", &arguments).await.1
    };
    for (protocols, chosen) in [("h2,http/1.1", "h2"), ("http/1.1", "http/1.1")] {
        let said = alpn(root.address(), protocols).await;
        assert!(said.contains(&format!("ALPN protocol: {chosen}\n")), "{said}");
    }
    let said = alpn(root.http(), "h2,http/1.1").await;
    assert!(said.contains("ALPN protocol: http/1.1\n"), "{said}");
    root.stop().await;
}

/// Asks who leads with a certificate, and without one.
const PYTHON: &str = r#"
import sys, grpc
read = lambda name: open(name, "rb").read()
def ask(*own):
    with grpc.secure_channel(sys.argv[1], grpc.ssl_channel_credentials(read("ca.pem"), *own)) as channel:
        return channel.unary_unary("/doorman.Capacity/Discovery")(b"", timeout=20)
assert len(ask(read("web.key"), read("web.pem"))) > 0
try:
    ask()
    raise SystemExit("it is let in without a certificate")
except grpc.RpcError as fault:
    assert fault.code() == grpc.StatusCode.UNAVAILABLE, fault
print("asked")
"#;

#[tokio::test]
async fn grpcio_is_served_with_a_certificate_only() {
    let certificates = Certificates::made().await;
    let (there, _) = certificates.try_to_run("/usr/bin/python3", &["-c", "import grpc"]).await;
    if !there {
        eprintln!("SKIPPED: no /usr/bin/python3 with grpcio");
        return;
    }
    let root = certificates.serve("root", &[]).await;
    let said = certificates.run("/usr/bin/python3", &["-c", PYTHON, &localhost(&root)]).await;
    assert!(said.contains("asked"), "{said}");
    root.stop().await;
}

#[tokio::test]
async fn operators_come_over_tls_and_are_known_by_their_certificates() {
    let certificates = Certificates::made().await;
    let rules = "default: deny\noperators:\n  - {identity: \"spiffe://acme/ns/shop/sa/web\", may: [see]}\n";
    let access = certificates.put("access.yaml", rules);
    let house = certificates.serve("root", &["--admin", "127.0.0.1:0", "--access", &access]).await;
    let at = house.admin().unwrap().replace("127.0.0.1", "localhost");
    let me = lessor(&certificates, "web", &["admin", "whoami", "--admin", &at]).await;
    assert_eq!(me.code, Some(0), "{me:?}");
    assert!(me.out.starts_with("spiffe://acme/ns/shop/sa/web, from 127.0.0.1:"), "{me:?}");
    assert!(me.out.ends_with("\nmay: see\n"), "{me:?}");
    let refused = lessor(&certificates, "web", &["admin", "reload", "--admin", &at]).await;
    assert!(refused.code == Some(1) && refused.err.contains("403: "), "{refused:?}");
    // Without a certificate there is no connection, and in plain none either.
    let ca = certificates.path("ca.pem");
    for flags in [&["--ca", ca.as_str()][..], &[]] {
        let stranger = run(&[&["admin", "whoami", "--admin", &at], flags].concat()).await;
        assert_eq!(stranger.code, Some(1), "{stranger:?}");
        assert!(stranger.err.contains("no answer from "), "{stranger:?}");
    }
    assert_eq!(
        house.logged_with("lessor::audit").iter().filter(|line| line.contains("\\\"call\\\"")).count(),
        2
    );
    house.stop().await;
}

/// Two tasks of one node, which show `root` and have these flags besides: the one that leads, and the other.
async fn two_tasks(certificates: &Certificates, etcd: &Etcd, more: &[&str]) -> (House, House) {
    let url = etcd.url();
    let elected = ["--etcd", &url, "--ttl", "10s", "--authority", "4s", "--keep-alive", "200ms"];
    let flags = [&elected[..], &["--tls-clients", "ask"], more].concat();
    let tasks = [certificates.serve("root", &flags).await, certificates.serve("root", &flags).await];
    let mut leader = None;
    eventually("one leads, and the other knows", async || {
        let mut told = Vec::new();
        for task in &tasks {
            told.push(pages(certificates, task, "/v1/here").await.2);
        }
        leader = told.iter().position(|here| here["leads"] == true);
        leader.is_some() && told.iter().all(|here| here["leader"].is_string())
    })
    .await;
    let [one, other] = tasks;
    if leader == Some(0) { (one, other) } else { (other, one) }
}

/// The code, the task that has made it, and the content of a page, as somebody sees it who shows `web`.
async fn pages(certificates: &Certificates, task: &House, path: &str) -> (u16, Option<String>, Value) {
    let [ca, certificate, key] = ["ca.pem", "web.pem", "web.key"].map(|name| certificates.path(name));
    let tls = ClientTls::load(&Tls::ca_file(ca).identity_files(certificate, key)).unwrap();
    let connector = Connector::new(Some(Arc::new(tls)), Protocol::Http1);
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let asked = async {
        let response =
            client.get(format!("https://{}{path}", localhost(task)).parse().unwrap()).await.unwrap();
        let from = response.headers().get("lessor-from").map(|from| from.to_str().unwrap().to_owned());
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, from, serde_json::from_slice(&body).unwrap())
    };
    timeout(AGES, asked).await.expect("a page in time")
}

#[tokio::test]
async fn pages_of_the_leader_come_over_tls_or_not_at_all() {
    let certificates = Certificates::made().await;
    let Some(etcd) = Etcd::started().await else { return };
    let ca = certificates.path("ca.pem");
    let identity = ["--peer-ca", &ca, "--peer-identity", "spiffe://acme/ns/lessor/sa/root"];
    let (leader, follower) = two_tasks(&certificates, &etcd, &identity).await;
    let (code, from, node) = pages(&certificates, &follower, "/v1/node").await;
    assert_eq!((code, &node["leads"]), (200, &true.into()), "{node}");
    assert_eq!(from, Some(leader.address().to_string()));
    for task in [follower, leader] {
        task.stop().await;
    }
    // A leader that shows something else is not believed.
    let strange = ["--peer-ca", &ca, "--peer-identity", "spiffe://acme/ns/lessor/sa/rome"];
    for (flags, told) in
        [(&strange[..], "wanted spiffe://acme/ns/lessor/sa/rome"), (&[], "nobody is believed")]
    {
        let (leader, follower) = two_tasks(&certificates, &etcd, flags).await;
        let (code, _, problem) = pages(&certificates, &follower, "/v1/node").await;
        assert_eq!(code, 502, "{problem}");
        let error = problem["error"].as_str().unwrap();
        let address = leader.address().to_string();
        assert!(error.contains(told) && error.starts_with(&address), "{error}");
        assert_eq!(problem["leader"], address.as_str(), "{problem}");
        eventually("its clock is not known either", async || {
            follower.has_logged_of(
                "the leader does not say what its clock shows: clients without incarnation would be newcomers after it",
                &address,
            )
        })
        .await;
        for task in [follower, leader] {
            task.stop().await;
        }
    }
}

/// Doorman's service at the plain port of a task.
async fn plainly(task: &House) -> CapacityClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", task.plain())).unwrap();
    CapacityClient::new(timeout(AGES, endpoint.connect()).await.expect("it answers in time").unwrap())
}

#[tokio::test]
async fn a_client_of_doormans_wire_keeps_its_lease_when_a_leader_dies_that_speaks_tls() {
    let certificates = Certificates::made().await;
    let Some(etcd) = Etcd::started().await else { return };
    let ca = certificates.path("ca.pem");
    let plain = ["--peer-ca", &ca, "--peer-identity", "spiffe://acme/ns/lessor/sa/root"];
    let flags = [&plain[..], &["--listen-plain", "127.0.0.1:0"]].concat();
    let (mut leader, follower) = two_tasks(&certificates, &etcd, &flags).await;
    let mut poller = Holder::new("poller", Nature::Echoes, "db", 100.0);
    let mut server = plainly(&leader).await;
    eventually("it has everything", async || poller.report(&mut server).await.unwrap() >= 100.0).await;
    let known = "the clock of the leader is known: clients without incarnation would keep their leases";
    eventually("the clock of the leader is known", async || follower.has_logged(known)).await;
    leader.crash().await;
    let mut server = plainly(&follower).await;
    // The first answer says that it may keep what it has, and the next report is the claim.
    eventually("its claim is honoured", async || {
        let (sent, request) = (clock::now(), poller.request());
        let answer = server.get_capacity(request).await.unwrap().into_inner();
        // Until the other task leads it says who did.
        let [response] = &answer.response[..] else { return false };
        poller.adopt(sent, response.gets.clone());
        assert!(poller.capacity() >= 100.0, "it keeps everything");
        let figures = page::get(follower.plain(), "/metrics").await.body;
        figures.lines().any(|line| line == "lessor_claims_honoured_total 1")
    })
    .await;
    follower.stop().await;
}
