//! The recipe for nginx, run by the real one where it is installed.

use std::net::TcpListener;
use std::process::Stdio;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tempfile::TempDir;
use tokio::process::Child;

use crate::front::{Answer, Door, Front, http};
use crate::house::etcd::is_there;
use crate::house::{binary, eventually, repository_file};

const PROGRAM: &str = "/usr/sbin/nginx";

/// A running nginx, ended when dropped.
struct Nginx {
    address: String,
    _child: Child,
    _directory: TempDir,
}

// === impl Nginx ===

impl Nginx {
    /// The recipe, in front of a service, at a port that is free.
    async fn open(door: &Door, service: &str) -> Nginx {
        let recipe = std::fs::read_to_string(repository_file("configs/doors/nginx.conf")).unwrap();
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..5 {
            // Another process may have it by then, and another one is tried.
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
            let mut text = recipe.clone();
            for (own, here) in
                [("127.0.0.1:8888", &*address), ("127.0.0.1:8080", &*door.http), ("127.0.0.1:8000", service)]
            {
                assert!(text.contains(&format!(" {own};")), "the recipe has no {own}");
                text = text.replace(&format!(" {own};"), &format!(" {here};"));
            }
            // Nor does the test depend on how long an answer takes.
            assert!(text.contains("proxy_read_timeout 1s;"));
            text = text.replace("proxy_read_timeout 1s;", "proxy_read_timeout 60s;");
            let path = directory.path().join("nginx.conf");
            std::fs::write(&path, text).unwrap();
            // One process, which ends with the test.
            let mut command =
                binary(PROGRAM.as_ref(), &["-g", "daemon off; master_process off;", "-e", "stderr"]);
            command.arg("-p").arg(directory.path()).arg("-c").arg(&path).stderr(Stdio::inherit());
            let mut child = command.spawn().unwrap();
            let mut has_ended = false;
            eventually("nginx serves, or has ended", async || {
                has_ended = child.try_wait().unwrap().is_some();
                has_ended || tokio::net::TcpStream::connect(&address).await.is_ok()
            })
            .await;
            if !has_ended {
                return Nginx { address, _child: child, _directory: directory };
            }
        }
        panic!("nginx does not start");
    }

    async fn get(&self, path: &str, fields: &str) -> Answer {
        http(&self.address, &format!("GET {path}"), fields, "").await
    }
}

#[tokio::test]
async fn nginx_lets_pass_what_the_doors_let_pass() {
    if !is_there(PROGRAM, "-v", "nginx-light") {
        return;
    }
    let service =
        Router::new().route("/api/own", get(async || StatusCode::FORBIDDEN)).fallback(async || "served");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async { axum::serve(listener, service).await });

    let front = Front::of_the_repository().await;
    let door = front.door(&[]).await;
    let nginx = Nginx::open(&door, &address).await;
    // A client that writes the fields of the recipe itself, or a way round in its path, is not believed.
    let forged = "x-original-uri: /free\r\nx-real-ip: 192.0.2.7\r\nx-forwarded-for: 192.0.2.8\r\nx-lessor-timeout: 0\r\n";
    let mut passed = 0;
    eventually("a request is refused", async || {
        let answer = nginx.get("/free/../api/x?cost=0", forged).await;
        match answer.status {
            200 => {
                passed += 1;
                assert_eq!(answer.body, "served");
                let left = format!("ratelimit: \"per-address\";r={};t=", 5 - passed);
                assert!(answer.head.contains(&left), "{answer:?}");
                assert!(
                    answer.head.contains("ratelimit-policy: \"per-address\";q=5;w=3600\r\n"),
                    "{answer:?}"
                );
                false
            }
            429 => {
                assert!(
                    answer.head.contains("retry-after: ") && answer.body.contains("#quota-exceeded"),
                    "{answer:?}"
                );
                assert!(answer.head.contains("content-type: application/problem+json"), "{answer:?}");
                true
            }
            _ => panic!("{answer:?}"),
        }
    })
    .await;
    assert_eq!(passed, 5);
    assert_eq!(nginx.get("/free", "").await.status, 200, "no rule is for it");
    assert_eq!(nginx.get("/api/own", "").await.status, 429);
    // The service's own no stays what it is, where the doors let pass.
    front.replace("sets: {edge: {forwarded: x-original, deny_status: 403, rules: [{match: {path: /none}, limit: 1/1m}]}}");
    eventually("the new rules are in force", async || nginx.get("/api/own", "").await.status == 403).await;
    door.stop().await;
    // Without doors nginx does what the recipe says: nothing passes.
    assert_eq!(nginx.get("/api/own", "").await.status, 500);
    drop(nginx);
    front.server.stop().await;
}
