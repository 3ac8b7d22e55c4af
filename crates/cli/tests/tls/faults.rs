//! Faults that a person makes, and files that are replaced while the server runs.

use std::net::SocketAddr;

use rustix::process::Signal;

use crate::house::certificates::Certificates;
use crate::house::{eventually, everything, page, run};

/// Starts a server that cannot start, and gives back what it says.
async fn serve(certificates: &Certificates, flags: &[(&str, &str)]) -> String {
    let config = certificates.put("lessor.yaml", &everything(100.0, 60));
    let flags = flags.iter().flat_map(|(flag, value)| [*flag, *value]);
    let arguments = ["serve", "--config", &config, "--listen", "127.0.0.1:0"].into_iter().chain(flags);
    let outcome = run(&arguments.collect::<Vec<_>>()).await;
    assert_ne!(outcome.code, Some(0), "{outcome:?}");
    outcome.err
}

#[tokio::test]
async fn a_server_that_cannot_start_names_flag_and_file() {
    let certificates = Certificates::made().await;
    let at = |name: &str| certificates.path(name);
    let (pem, key, ca) = (at("root.pem"), at("root.key"), at("ca.pem"));
    let (other_key, csr, none) = (at("web.key"), at("root.csr"), at("none.pem"));
    let empty = certificates.put("empty.pem", "\n");
    let locked = certificates.put(
        "locked.key",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    let tls = |certificate: &str, key: &str| {
        [("--tls-cert", certificate.to_owned()), ("--tls-key", key.to_owned())]
    };
    let with = |flag: &'static str, value: &str| [&tls(&pem, &key)[..], &[(flag, value.to_owned())]].concat();
    let cases = [
        (tls(&none, &key).to_vec(), format!("--tls-cert {none}: cannot be read: No such file")),
        (
            tls(&pem, &other_key).to_vec(),
            format!("--tls-key {other_key}: is not the key of the certificate in --tls-cert {pem}"),
        ),
        (
            tls(&key, &key).to_vec(),
            format!("--tls-cert {key}: found a private key; wanted PEM with BEGIN CERTIFICATE"),
        ),
        (tls(&csr, &key).to_vec(), format!("--tls-cert {csr}: found a request for a certificate; wanted")),
        (
            tls(&pem, &pem).to_vec(),
            format!("--tls-key {pem}: found a certificate; wanted PEM with BEGIN PRIVATE KEY"),
        ),
        (
            tls(&pem, &locked).to_vec(),
            "found BEGIN ENCRYPTED PRIVATE KEY; wanted PEM with BEGIN PRIVATE KEY, without a password"
                .to_owned(),
        ),
        (
            with("--tls-client-ca", &empty),
            format!("--tls-client-ca {empty}: found nothing; wanted PEM with BEGIN CERTIFICATE"),
        ),
        (with("--tls-max-age", "10ms"), "wanted at least 1s".to_owned()),
        (
            with("--listen-plain", "0.0.0.0:0"),
            "--listen-plain 0.0.0.0:0: other machines reach it; wanted".to_owned(),
        ),
        (vec![("--tls-crl", ca.clone())], "--tls-client-ca".to_owned()),
        (vec![("--tls-cert", pem.clone())], "--tls-key".to_owned()),
    ];
    for (flags, told) in cases {
        let flags: Vec<(&str, &str)> = flags.iter().map(|(flag, value)| (*flag, value.as_str())).collect();
        let said = serve(&certificates, &flags).await;
        assert!(said.contains(&told), "wanted {told:?} in {said}");
    }
}

#[tokio::test]
async fn a_plain_port_that_others_reach_is_warned_of() {
    let certificates = Certificates::made().await;
    let config = certificates.put("lessor.yaml", &everything(100.0, 60));
    let serve = async |more: &[&str]| {
        let usual = [
            "serve",
            "--config",
            &config,
            "--listen",
            "0.0.0.0:0",
            "--http",
            "127.0.0.1:0",
            "--log-format",
            "json",
        ];
        crate::house::House::run(crate::house::lessor(&[&usual, more].concat())).await
    };
    let told = "plain, and other machines reach it";
    for (flags, warned) in [(&[][..], true), (&["--insecure"][..], false)] {
        let house = serve(flags).await;
        assert_eq!(house.has_logged_part(told), warned, "{flags:?}");
        house.stop().await;
    }
}

/// The value of a figure, which is read where it is plain.
async fn figure(plain: SocketAddr, name: &str) -> f64 {
    let text = page::get(plain, "/metrics").await.body;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
}

#[tokio::test]
async fn what_cannot_be_used_leaves_the_earlier_ones_in_force() {
    let certificates = Certificates::made().await;
    let house = certificates.serve("root", &["--listen-plain", "127.0.0.1:0"]).await;
    let plain = house.plain();
    let end = "lessor_certificate_expiry_timestamp_seconds{use=\"server\"}";
    let (reloads, failures) = ("lessor_certificate_reloads_total", "lessor_certificate_reloads_failed_total");
    let before = figure(plain, end).await;

    std::fs::copy(certificates.path("web.key"), certificates.path("root.key")).unwrap();
    eventually("it is refused", async || figure(plain, failures).await >= 1.0).await;
    assert!(house.has_logged_part("is not the key of the certificate in --tls-cert"));
    assert!((figure(plain, end).await - before).abs() < 1e-3 && figure(plain, reloads).await < 0.5);

    // A certificate for longer, with its key.
    let renew = "openssl x509 -req -in paris.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 200 \
                 -extfile paris.ext -out root.pem && cp paris.key root.key";
    certificates.run("sh", &["-ec", renew]).await;
    house.signal(Signal::HUP);
    eventually("it is in force", async || figure(plain, end).await > before + 86_400.0).await;
    assert!(figure(plain, reloads).await >= 1.0);
    house.stop().await;
}
