//! TLS at doors: who is let in, certificates that are replaced, and Envoy over it.

use std::fmt::Write as _;

use crate::front::{Door, Front};
use crate::house::certificates::Certificates;
use crate::house::{eventually, repository_file, run};
use crate::proxies::Service;
use crate::proxies::double::{Double, fetched};
use crate::proxies::envoy::{command, port};

const RULES: &str = "wait: 30s\nsets: {edge: {rules: [{match: {path: '/api/*'}, key: [remote_address], limit: 2/1h}]}, \
                     shop: {rules: [{match: {entry.path: /x}, limit: 2/1h}]}}";

/// A door that shows `root`, and believes proxies of the authority.
async fn door(front: &Front, certificates: &Certificates) -> Door {
    let [certificate, key, ca] = ["root.pem", "root.key", "ca.pem"].map(|name| certificates.path(name));
    let flags =
        ["--tls-cert", &certificate, "--tls-key", &key, "--tls-client-ca", &ca, "--tls-max-age", "1s"];
    front.door(&flags).await
}

/// All that `openssl s_client` shows of a connection on which this is asked, and which the door then ends, as it comes of age.
async fn asked(certificates: &Certificates, address: &str, path: &str, more: &str) -> String {
    let fields = "host: front\\r\\nx-forwarded-uri: /api/x\\r\\nx-forwarded-for: 192.0.2.7\\r\\n";
    let request = format!("GET {path} HTTP/1.1\\r\\n{fields}\\r\\n");
    let script = format!(
        "printf '{request}' | openssl s_client -connect {address} -servername localhost -CAfile ca.pem -ign_eof {more} 2>&1"
    );
    certificates.try_to_run("sh", &["-c", &script]).await.1
}

const SHOWN: &str = "-cert web.pem -key web.key";

#[tokio::test]
async fn a_proxy_shows_a_certificate_and_a_probe_need_not() {
    let certificates = Certificates::made().await;
    let front = Front::open(RULES, "").await;
    let door = door(&front, &certificates).await;
    let check = async |more: &str| asked(&certificates, &door.http, "/check/edge", more).await;
    for left in [1, 0] {
        let said = check(SHOWN).await;
        assert!(said.contains("HTTP/1.1 200 OK") && said.contains(&format!(";r={left};")), "{said}");
        assert!(said.contains("Verification: OK") || said.contains("Verify return code: 0"), "{said}");
    }
    assert!(check(SHOWN).await.contains("HTTP/1.1 429"));
    let said = check("").await;
    assert!(
        said.contains("HTTP/1.1 403")
            && said.contains("no certificate was shown; wanted one of --tls-client-ca"),
        "{said}"
    );
    for page in ["/healthz", "/readyz", "/healthcheck"] {
        let said = asked(&certificates, &door.http, page, "").await;
        assert!(said.contains("HTTP/1.1 200 OK"), "{page}: {said}");
    }
    let said = asked(&certificates, &door.http, "/metrics", "").await;
    assert!(said.contains("HTTP/1.1 403"), "{said}");

    // A certificate of nobody known ends the handshake, as does none at the door for gRPC, and a peer that speaks plain.
    let made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=own -addext \
                subjectAltName=DNS:own -keyout own.key -out own.pem";
    certificates.run("sh", &["-ec", made]).await;
    let said = check("-cert own.pem -key own.key").await;
    assert!(!said.contains("HTTP/1.1"), "{said}");
    let said = asked(&certificates, &door.rls, "/", "-alpn h2").await;
    assert!(said.contains("certificate required"), "{said}");
    let mut plain = tokio::net::TcpStream::connect(&door.http).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut plain, b"GET /healthz HTTP/1.1\r\nhost: front\r\n\r\n")
        .await
        .unwrap();
    let mut bytes = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut plain, &mut bytes).await;
    assert!(!bytes.starts_with(b"HTTP"), "{bytes:?}");
    let figures = asked(&certificates, &door.http, "/metrics", SHOWN).await;
    assert!(figures.contains("lessor_door_handshakes_failed_total 3"), "{figures}");
    door.stop().await;
    front.server.stop().await;
}

#[tokio::test]
async fn certificates_are_replaced_and_connections_come_of_age() {
    let certificates = Certificates::made().await;
    let front = Front::open(RULES, "").await;
    let door = door(&front, &certificates).await;
    let shown = async || asked(&certificates, &door.http, "/healthz", "").await;
    assert!(shown().await.contains("CN = root"));

    // What cannot be used changes nothing, and is said.
    let text = |name: &str| std::fs::read_to_string(certificates.path(name)).unwrap();
    let loads = async |outcome: &str| {
        let page = asked(&certificates, &door.http, "/metrics", SHOWN).await;
        page.contains(&format!("lessor_door_certificate_loads_total{{outcome=\"{outcome}\"}}"))
    };
    certificates.put("root.key", &text("paris.key"));
    eventually("the fault is counted", async || loads("Faulty").await).await;
    assert!(shown().await.contains("CN = root"));
    certificates.put("root.pem", &text("paris.pem"));
    eventually("the new one is shown", async || shown().await.contains("CN = paris")).await;
    assert!(loads("InForce").await);

    let log = door.stop().await;
    let said = ["certificates cannot be used: the earlier ones stay in force", "certificates in force"];
    assert!(said.iter().all(|said| log.contains(said)), "{log}");
    front.server.stop().await;
}

#[tokio::test]
async fn envoy_asks_over_tls_as_the_page_says() {
    const FILES: &[&str] = &["configs/doors/envoy.yaml"];
    let certificates = Certificates::made().await;
    let page = std::fs::read_to_string(repository_file("docs/doors.md")).unwrap();
    let (_, after) = page.split_once("\n### TLS\n").unwrap();
    let block = after.split("```").nth(1).unwrap().strip_prefix("yaml\n").unwrap();
    let mut socket = String::new();
    for line in block.lines() {
        let _ = writeln!(socket, "      {line}");
    }
    for name in ["ca.pem", "web.pem", "web.key"] {
        assert!(socket.contains(name), "{socket}");
        socket = socket.replace(name, &certificates.path(name));
    }
    let double = Double::new(fetched("envoy"), "port_value: 10000", FILES, command);
    if !double.is_there() {
        return;
    }
    let service = Service::default();
    let address = service.serve().await;
    let front = Front::open(RULES, "").await;
    let door = door(&front, &certificates).await;
    let cluster = "    - name: doors\n      type: STATIC\n";
    let proxy = double
        .run(&[
            ("port_value: 8081", &port(&door.rls)),
            ("port_value: 8000", &port(&address)),
            ("timeout: 0.25s", "timeout: 60s"),
            (cluster, &format!("{cluster}{socket}")),
        ])
        .await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(crate::front::http(&proxy.address, "GET /x", "", "").await.status);
    }
    assert_eq!((statuses, service.calls()), (vec![200, 200, 429], 2));
    proxy.stop().await;
    door.stop().await;
    front.server.stop().await;
}

#[tokio::test]
async fn in_the_place_of_ratelimit_only_grpc_speaks_tls() {
    let certificates = Certificates::made().await;
    let front = Front::open(
        "ratelimit: [ratelimit.yaml]",
        "domain: shop\ndescriptors: [{key: a, rate_limit: {unit: hour, requests_per_unit: 2}}]\n",
    )
    .await;
    let [certificate, key, ca] = ["root.pem", "root.key", "ca.pem"].map(|name| certificates.path(name));
    let variables = [
        ("GRPC_SERVER_USE_TLS", "true"),
        ("GRPC_SERVER_TLS_CERT", &*certificate),
        ("GRPC_SERVER_TLS_KEY", &key),
        ("GRPC_CLIENT_TLS_CACERT", &ca),
    ];
    let door = front.ratelimit(&variables).await;
    assert_eq!(door.http("GET /healthcheck", "", "").await.status, 200);
    let said = asked(&certificates, &door.rls, "/", &format!("-alpn h2 {SHOWN}")).await;
    assert!(said.contains("ALPN protocol: h2"), "{said}");
    door.stop().await;
    front.server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_used_is_named() {
    let certificates = Certificates::made().await;
    let front = Front::open(RULES, "").await;
    let rules = front.rules().to_str().unwrap();
    let [certificate, key] = ["root.pem", "web.key"].map(|name| certificates.path(name));
    let usual = ["doors", "--rules", rules, "--http", "127.0.0.1:0", "--tls-cert", &certificate];
    let outcome = run(&[&usual[..], &["--tls-key", &key]].concat()).await;
    let told = format!("--tls-key {key}: is not the key of the certificate in --tls-cert {certificate}");
    assert!(outcome.code == Some(1) && outcome.err.contains(&told), "{outcome:?}");
    let outcome = run(&usual).await;
    assert!(outcome.code == Some(2) && outcome.err.contains("--tls-key <FILE>"), "{outcome:?}");
    front.server.stop().await;
}
