//! The recipes for proxies that ask over HTTP, each run by the real one where it is installed, and all of them held to one script.

pub(crate) mod double;
pub(crate) mod envoy;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::get;

use crate::front::{Answer, Front, http};
use crate::house::{binary, eventually};
use double::{Double, Place, Running, debian, fetched};

/// The differences from proxy to proxy.
struct Ways {
    double: Double,
    /// The set that the recipe asks for, and what stands in it besides the rules.
    set: (&'static str, &'static str),
    /// Whether what the doors say of a limit goes to the client of a request that passes.
    says_standing: bool,
    /// The status of a request while no doors answer.
    unanswered: u16,
}

/// The service behind the proxies, which counts, and says what it has heard of a limit.
#[derive(Clone, Default)]
pub(crate) struct Service(Arc<AtomicU64>);

// === impl Service ===

impl Service {
    /// Serves on loopback. Returns the address.
    pub(crate) async fn serve(&self) -> String {
        let (own, all) = (self.clone(), self.clone());
        let service = Router::new()
            .route(
                "/api/own",
                get(async move || (own.0.fetch_add(1, Ordering::Relaxed), StatusCode::FORBIDDEN).1),
            )
            .fallback(async move |heard: HeaderMap, body: String| {
                all.0.fetch_add(1, Ordering::Relaxed);
                let left: Vec<_> =
                    heard.get_all("x-ratelimit-remaining").iter().map(HeaderValue::as_bytes).collect();
                ([("x-heard", left.join(&b", "[..]))], format!("served {body}"))
            });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async { axum::serve(listener, service).await });
        address
    }

    pub(crate) fn calls(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl Ways ===

impl Ways {
    async fn get(proxy: &Running, path: &str, fields: &str) -> Answer {
        http(&proxy.address, &format!("GET {path}"), fields, "").await
    }

    /// The script: what passes, what is refused and how, what a client can forge, and what happens without doors.
    async fn run(self) {
        if !self.double.is_there() {
            return;
        }
        let service = Service::default();
        let address = service.serve().await;
        let front = Front::of_the_repository().await;
        let door = front.door(&[]).await;
        let proxy = self.double.run(&[("127.0.0.1:8080", &door.http), ("127.0.0.1:8000", &address)]).await;
        // Traefik listens before it has read where to go. No rule is for this path.
        eventually("it knows the service", async || Self::get(&proxy, "/free", "").await.status == 200).await;
        let free = Self::get(&proxy, "/free", "").await;
        assert!(!free.head.contains("ratelimit"), "{free:?}");
        let calls = service.calls();
        self.passes_five(&proxy).await;
        assert_eq!(Self::get(&proxy, "/api/own", "").await.status, 429);
        assert_eq!(service.calls(), calls + 5, "what is refused does not get to the service");

        // The service's own no stays what it is, where the doors let pass, and a body is the service's.
        let (set, more) = self.set;
        front.replace(&format!(
            "sets: {{{set}: {{{more} rules: [{{match: {{path: /none}}, limit: 1/1m}}]}}}}"
        ));
        eventually("the new rules are in force", async || {
            Self::get(&proxy, "/api/own", "").await.status == 403
        })
        .await;
        let answer = http(&proxy.address, "POST /api/x", "", "a body").await;
        assert_eq!((answer.status, &*answer.body), (200, "served a body"));
        door.stop().await;
        // Without doors each does what its recipe says: nothing passes.
        let calls = service.calls();
        assert_eq!(Self::get(&proxy, "/api/own", "").await.status, self.unanswered);
        assert_eq!(service.calls(), calls);
        proxy.stop().await;
        front.server.stop().await;
    }

    /// Asks until a request is refused, each time with other fields that a client may forge: five pass.
    async fn passes_five(&self, proxy: &Running) {
        let mut passed = 0;
        let mut turns = 0;
        eventually("a request is refused", async || {
            turns += 1;
            // A client that writes the fields of the recipe itself, or a way round in its path, is not believed.
            let forged = format!(
                "x-original-uri: /free\r\nx-forwarded-uri: /free\r\nx-forwarded-method: PUT\r\nx-lessor-timeout: 0\r\n\
                 x-real-ip: 192.0.2.{turns}\r\nx-forwarded-for: 192.0.2.{turns}\r\n"
            );
            let answer = Self::get(proxy, "/free/../api/x?cost=0", &forged).await;
            match answer.status {
                200 => {
                    passed += 1;
                    assert_eq!(answer.body, "served ", "{answer:?}");
                    let left = format!("ratelimit: \"per-address\";r={};t=", 5 - passed);
                    let policy = "ratelimit-policy: \"per-address\";q=5;w=3600\r\n";
                    let said = [&*left, policy].map(|field| answer.head.contains(field));
                    assert_eq!(said, [self.says_standing; 2], "{answer:?}");
                    false
                }
                429 => {
                    let said = ["retry-after: ", "content-type: application/problem+json", "ratelimit: \"per-address\";r=0;"];
                    assert!(said.iter().all(|field| answer.head.contains(field)), "{answer:?}");
                    assert!(answer.body.contains("#quota-exceeded"), "{answer:?}");
                    true
                }
                _ => panic!("{answer:?}"),
            }
        })
        .await;
        assert_eq!(passed, 5);
    }
}

#[tokio::test]
async fn nginx_lets_pass_what_the_doors_let_pass() {
    let command = |place: &Place| {
        // One process, which ends with the test.
        let mut command = binary(&place.program, &["-g", "daemon off; master_process off;", "-e", "stderr"]);
        command.arg("-p").arg(place.directory).arg("-c").arg(place.directory.join("nginx.conf"));
        command
    };
    let program = debian("/usr/sbin/nginx", "-v", "nginx-light");
    // Nor does the test depend on how long an answer takes.
    let double = Double::new(program, "127.0.0.1:8888", &["configs/doors/nginx.conf"], command)
        .replacing(&[("proxy_read_timeout 1s;", "proxy_read_timeout 60s;")]);
    let set = ("edge", "forwarded: x-original, deny_status: 403,");
    Ways { double, set, says_standing: true, unanswered: 500 }.run().await;
}

#[tokio::test]
async fn traefik_lets_pass_what_the_doors_let_pass() {
    let command = |place: &Place| {
        let mut command = binary(&place.program, &["--log.level=INFO", "--global.checkNewVersion=false"]);
        command.arg(format!("--entryPoints.front.address={}", place.address));
        command.arg(format!(
            "--providers.file.filename={}",
            place.directory.join("traefik-dynamic.yaml").display()
        ));
        command.current_dir(place.directory);
        command
    };
    let double =
        Double::new(fetched("traefik"), "127.0.0.1:8889", &["configs/doors/traefik-dynamic.yaml"], command);
    Ways { double, set: ("front", ""), says_standing: false, unanswered: 500 }.run().await;
}

#[tokio::test]
async fn caddy_lets_pass_what_the_doors_let_pass() {
    let command = |place: &Place| {
        let mut command = binary(&place.program, &["run", "--adapter", "caddyfile", "--config"]);
        command.arg(place.directory.join("Caddyfile"));
        command
            .env("HOME", place.directory)
            .env("XDG_DATA_HOME", place.directory)
            .env("XDG_CONFIG_HOME", place.directory);
        command
    };
    let double = Double::new(fetched("caddy"), ":8890", &["configs/doors/Caddyfile"], command);
    Ways { double, set: ("front", ""), says_standing: true, unanswered: 502 }.run().await;
}

#[tokio::test]
async fn haproxy_lets_pass_what_the_doors_let_pass() {
    let command = |place: &Place| {
        let mut command = binary(&place.program, &["-db", "-f", "haproxy.cfg", "-C"]);
        command.arg(place.directory);
        command
    };
    let program = debian("/usr/sbin/haproxy", "-v", "haproxy");
    let double = Double::new(
        program,
        "127.0.0.1:8891",
        &["configs/doors/haproxy.cfg", "configs/doors/haproxy.lua"],
        command,
    )
    .replacing(&[("timeout = 1000", "timeout = 60000")]);
    Ways { double, set: ("front", ""), says_standing: true, unanswered: 503 }.run().await;
}
