//! The admin port apart from the others: what they do not serve, and that it answers when they cannot.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::timeout;

use crate::desk::Desk;
use crate::house::{AGES, House, eventually, everything, run};

#[tokio::test]
async fn no_other_port_serves_any_of_it() {
    let house = House::open_with(&everything(100.0, 60), &["--admin", "127.0.0.1:0"]).await;
    for port in [house.address(), house.http()] {
        for act in ["whoami", "connections", "access", "log", "reload", "resign", "recall"] {
            for method in ["GET", "POST", "PUT", "DELETE"] {
                let answer =
                    Desk::new(&port.to_string()).call(method, &format!("/admin/{act}"), Some("{}")).await;
                assert_eq!((answer.code, answer.body.as_str()), (404, ""), "{method} {act} at {port}");
            }
        }
    }
    assert!(house.logged_with("lessor::audit").is_empty());
    // Nor does it serve what they do, but for the console.
    let desk = Desk::new(house.admin().unwrap());
    for path in ["/status", "/metrics", "/healthz", "/readyz", "/doorman.Capacity/Discovery"] {
        desk.get(path).await.problem(404);
    }
    for path in ["/", "/console.js", "/v1/node", "/v1/tree"] {
        assert_eq!(desk.get(path).await.code, 200, "{path}");
    }
    house.stop().await;
}

#[tokio::test]
async fn a_page_that_was_led_here_by_a_name_of_its_own_reads_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", directory.path().join("a.sock").display());
    for (admin, code) in [("127.0.0.1:0", 403), (socket.as_str(), 200)] {
        let house = House::open_with(&everything(100.0, 60), &["--admin", admin]).await;
        let at = house.admin().unwrap();
        let stranger = || Desk::new(at).with_host("evil.example:8080");
        for path in ["/", "/v1/node", "/v1/tree"] {
            assert_eq!(stranger().get(path).await.code, code, "{path}");
        }
        let page = stranger().get("/admin/connections").await;
        assert_eq!(page.code, code, "{page:?}");
        if code == 403 {
            let told = page.detail(403);
            assert!(
                told.starts_with("Host: found \"evil.example:8080\"; wanted an IP address or localhost"),
                "{told}"
            );
        }
        Desk::new(at).get("/admin/connections").await.done();
        house.stop().await;
    }
}

#[tokio::test]
async fn operators_and_probes_are_answered_when_clients_have_all_places() {
    let directory = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", directory.path().join("a.sock").display());
    let limits = ["--max-connections", "8", "--max-connections-per-address", "8"];
    for admin in ["127.0.0.1:0", socket.as_str()] {
        let house =
            House::open_with(&everything(100.0, 60), &[&limits[..], &["--admin", admin]].concat()).await;
        let mut crowd = Vec::new();
        for _ in 0..32 {
            crowd.push(TcpStream::connect(house.address()).await.unwrap());
        }
        let turned_away = Desk::new(&house.address().to_string());
        let waits = timeout(Duration::from_millis(300), turned_away.get("/healthz")).await;
        assert!(waits.is_err(), "there is a place: {waits:?}");
        for _ in 0..40 {
            Desk::new(house.admin().unwrap()).get("/admin/connections").await.done();
        }
        assert_eq!(Desk::new(&house.http().to_string()).get("/healthz").await.code, 200);
        drop(crowd);
        house.stop().await;
    }
}

#[tokio::test]
async fn a_plain_admin_port_that_others_reach_is_told_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("lessor.yaml");
    std::fs::write(&config, everything(100.0, 60)).unwrap();
    let start = ["serve", "--listen", "127.0.0.1:0", "--config", config.to_str().unwrap(), "--admin"];
    for (admin, code, told) in [
        (
            "0.0.0.0:0",
            1,
            "--admin 0.0.0.0:0: other machines reach it in plain; wanted an address of this machine, --tls-cert and --tls-key, or --insecure",
        ),
        ("unix:", 2, "wanted a path behind unix:"),
        ("here", 2, "wanted HOST:PORT, or unix:PATH"),
    ] {
        let outcome = run(&[&start[..], &[admin]].concat()).await;
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        let said = outcome.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(told), "{outcome:?}");
    }
    let house = House::open_with(&everything(100.0, 60), &["--admin", "127.0.0.1:0"]).await;
    assert!(house.has_logged_part("whoever reaches the admin port may do everything there"));
    house.stop().await;
}

#[tokio::test]
async fn nobody_takes_all_places_of_the_admin_port() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.sock");
    let socket = format!("unix:{}", path.display());
    for admin in ["127.0.0.1:0", socket.as_str()] {
        let house = House::open_with(&everything(100.0, 60), &["--admin", admin]).await;
        let at = house.admin().unwrap().to_owned();
        // All that one address, or one user, can take; the next one is turned away at once, and not when it has said something.
        let mut crowd: Vec<Box<dyn AsyncReadWrite>> = Vec::new();
        for _ in 0..PLACES / 2 {
            crowd.push(dial(&at).await);
        }
        let mut next = dial(&at).await;
        let ended = timeout(AGES, next.read_to_end(&mut Vec::new())).await.expect("it is turned away");
        assert!(ended.is_ok_and(|count| count == 0), "{admin}");
        assert_eq!(house.metric("lessor_connections{port=\"admin\"}").await, PLACES as f64 / 2.0, "{admin}");
        if let Ok(to) = at.parse::<std::net::SocketAddr>() {
            let other = TcpSocket::new_v4().unwrap();
            other.bind("127.0.0.9:0".parse().unwrap()).unwrap();
            let mut other = other.connect(to).await.unwrap();
            other
                .write_all(b"GET /admin/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                .await
                .unwrap();
            let mut said = String::new();
            timeout(AGES, other.read_to_string(&mut said)).await.expect("it is answered").unwrap();
            assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
        }
        // Who says nothing goes, and the operator comes.
        eventually("there is a place", async || {
            house.metric("lessor_connections{port=\"admin\"}").await == 0.0
        })
        .await;
        Desk::new(&at).get("/admin/whoami").await.done();
        drop(crowd);
        house.stop().await;
    }
}

/// Places of the admin port.
const PLACES: usize = 32;

trait AsyncReadWrite: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncReadWrite for T {}

async fn dial(at: &str) -> Box<dyn AsyncReadWrite> {
    match at.strip_prefix("unix:") {
        Some(path) => Box::new(UnixStream::connect(path).await.unwrap()),
        None => Box::new(TcpStream::connect(at).await.unwrap()),
    }
}
