//! An etcd that asks for certificates, and one that asks for a password.

use etcd_client::{Certificate, Client, ConnectOptions, Permission, TlsOptions};

use crate::house::etcd::Etcd;
use crate::house::{House, eventually, everything, run};
use crate::papers::Papers;

/// A task that stands for election with these flags.
async fn task(etcd: &Etcd, flags: &[&str]) -> House {
    let url = etcd.url();
    let mut all = vec!["--etcd", &url, "--ttl", "2s", "--authority", "1s", "--keep-alive", "300ms"];
    all.extend(flags);
    House::open_with(&everything(100.0, 30), &all).await
}

async fn leads(house: &House) {
    eventually("it leads", async || house.metric("lessor_leads").await > 0.0).await;
    eventually("etcd serves it", async || house.metric("lessor_etcd_healthy").await > 0.0).await;
}

/// It never gets to lead, and says why.
async fn is_refused(house: &House, why: &str) {
    eventually("etcd does not serve it", async || house.metric("lessor_etcd_healthy").await == 0.0).await;
    eventually(why, async || house.has_logged_of("etcd fails", why)).await;
    assert_eq!(house.page("/status").await.json()["leads"], false);
}

#[tokio::test]
async fn a_task_leads_with_the_certificates_that_etcd_wants_and_not_without() {
    let (Some(papers), Some(others)) = (Papers::new(), Papers::new()) else { return };
    for name in ["etcd", "task"] {
        papers.certify(name);
    }
    others.certify("task");
    let flags = [
        ("--cert-file", papers.path("etcd.pem")),
        ("--key-file", papers.path("etcd.key")),
        ("--trusted-ca-file", papers.path("ca.pem")),
    ];
    let mut flags: Vec<String> = flags.into_iter().map(|(flag, path)| format!("{flag}={path}")).collect();
    flags.push("--client-cert-auth".to_owned());
    let Some(etcd) = Etcd::started_with("https", flags).await else { return };
    let path = |file: &str| papers.path(file);
    let (ca, pem, key) = (path("ca.pem"), path("task.pem"), path("task.key"));
    let house = task(&etcd, &["--etcd-ca", &ca, "--etcd-cert", &pem, "--etcd-key", &key]).await;
    leads(&house).await;

    let nobody = task(&etcd, &["--etcd-ca", &ca]).await;
    is_refused(&nobody, "https://127.0.0.1:").await;
    let (pem, key) = (others.path("task.pem"), others.path("task.key"));
    let stranger = task(&etcd, &["--etcd-ca", &ca, "--etcd-cert", &pem, "--etcd-key", &key]).await;
    is_refused(&stranger, "https://127.0.0.1:").await;
    let gullible = others.path("ca.pem");
    let careful = task(&etcd, &["--etcd-ca", &gullible]).await;
    is_refused(&careful, "invalid peer certificate").await;
    for house in [nobody, stranger, careful, house] {
        house.stop().await;
    }
}

/// A task that shows etcd what was believed `before`, and is refused for that.
async fn come_late(etcd: &Etcd, before: &Papers, after: &Papers) -> House {
    let (ca, pem, key) = (after.path("ca.pem"), before.path("task.pem"), before.path("task.key"));
    let late = task(etcd, &["--etcd-ca", &ca, "--etcd-cert", &pem, "--etcd-key", &key]).await;
    is_refused(&late, "https://127.0.0.1:").await;
    late
}

/// Every certificate is replaced by one of another authority, and the first is taken away, while a task leads.
#[tokio::test]
async fn a_leader_stays_the_leader_while_its_certificates_and_those_of_etcd_are_replaced() {
    let (Some(before), Some(after)) = (Papers::new(), Papers::new()) else { return };
    for name in ["etcd", "task"] {
        before.certify(name);
        after.certify(name);
    }
    let text = |papers: &Papers, file: &str| std::fs::read_to_string(papers.path(file)).unwrap();
    // In the place of these everything is put.
    let used = Papers::new().unwrap();
    let put = |file: &str, text: &str| used.write(file, text);
    let both = text(&before, "ca.pem") + &text(&after, "ca.pem");
    let (ca, pem, key) = (
        put("task-ca.pem", &text(&before, "ca.pem")),
        put("task.pem", &text(&before, "task.pem")),
        put("task.key", &text(&before, "task.key")),
    );
    let flags = vec![
        format!("--cert-file={}", put("etcd.pem", &text(&before, "etcd.pem"))),
        format!("--key-file={}", put("etcd.key", &text(&before, "etcd.key"))),
        format!("--trusted-ca-file={}", put("trusted.pem", &both)),
        "--client-cert-auth".to_owned(),
    ];
    let Some(mut etcd) = Etcd::started_with("https", flags).await else { return };
    let url = etcd.url();
    // A restart of etcd is to be shorter than the time after which another would lead.
    let times = ["--ttl", "20s", "--authority", "10s", "--keep-alive", "300ms"];
    let secrets = ["--etcd", &url, "--etcd-ca", &ca, "--etcd-cert", &pem, "--etcd-key", &key];
    let house = House::open_with(&everything(100.0, 30), &[&secrets[..], &times].concat()).await;
    leads(&house).await;
    let epoch = house.metric("lessor_epoch").await;

    // What does not belong together changes nothing, and is said.
    put("task.key", &text(&after, "task.key"));
    let changed = "the secrets for etcd have changed, and those before stay in force";
    eventually("the key is another's", async || house.has_logged_of(changed, "cannot be used together"))
        .await;
    put("task.pem", &text(&after, "task.pem"));
    // Etcd shows the one of before, which is believed as long as it has to be.
    put("task-ca.pem", &both);
    let replaced = "etcd is called with the secrets that have changed";
    eventually("they are in force", async || house.has_logged(replaced)).await;

    // Those of before are worth nothing any more.
    put("etcd.pem", &text(&after, "etcd.pem"));
    put("etcd.key", &text(&after, "etcd.key"));
    put("trusted.pem", &text(&after, "ca.pem"));
    put("task-ca.pem", &text(&after, "ca.pem"));
    etcd.kill();
    assert!(etcd.start().await, "etcd starts again");
    let late = come_late(&etcd, &before, &after).await;
    leads(&house).await;
    // More than is left of before etcd was killed.
    eventually("etcd has heard of it since", async || house.metric("lessor_authority_seconds").await > 9.0)
        .await;
    assert!((house.metric("lessor_epoch").await - epoch).abs() < 0.5, "it is the same leadership");
    assert!(!house.has_logged("deposed"));
    for house in [late, house] {
        house.stop().await;
    }
}

/// Lets nobody in without a password from here on; `task` may read and write below its prefix.
async fn ask_for_passwords(url: &str, options: Option<ConnectOptions>) {
    let mut etcd = Client::connect([url], options).await.unwrap();
    etcd.user_add("root", "of all evil", None).await.unwrap();
    etcd.role_add("root").await.unwrap();
    etcd.user_grant_role("root", "root").await.unwrap();
    etcd.user_add("task", "open sesame", None).await.unwrap();
    etcd.role_add("task").await.unwrap();
    let below = Permission::read_write("tree/").with_prefix();
    etcd.role_grant_permission("task", below).await.unwrap();
    etcd.user_grant_role("task", "task").await.unwrap();
    etcd.auth_enable().await.unwrap();
}

#[tokio::test]
async fn the_doctor_says_where_etcd_keeps_leases_for_longer_than_tasks_ask() {
    let slow = ["--election-timeout=3000", "--heartbeat-interval=300"].map(str::to_owned);
    let Some(etcd) = Etcd::started_with("http", slow.to_vec()).await else { return };
    let url = etcd.url();
    let doctor = ["doctor", "--server", "127.0.0.1:9", "--etcd", &url, "--ttl"];
    let told = run(&[&doctor[..], &["3s"]].concat()).await;
    let line = format!(
        "warning  leases of etcd: {url}: it keeps the key of a leader for 5 s at the least, and tasks ask for 3s"
    );
    assert!(told.out.contains(&line), "{}{}", told.out, told.err);
    let told = run(&[&doctor[..], &["5s"]].concat()).await;
    assert!(told.out.contains("ok       leases of etcd\n"), "{}{}", told.out, told.err);
}

#[tokio::test]
async fn the_doctor_says_what_is_wrong_with_etcd_and_with_rights_there() {
    let Some(mut etcd) = Etcd::started().await else { return };
    let house = task(&etcd, &["--etcd-prefix", "tree"]).await;
    leads(&house).await;
    let (address, url) = (house.address().to_string(), etcd.url());
    let doctor = ["doctor", "--server", &address, "--etcd", &url, "--etcd-prefix"];
    let well = run(&[&doctor[..], &["tree/", "--drift", "1s"]].concat()).await;
    assert_eq!(well.code, Some(0), "{}{}", well.out, well.err);
    for check in
        ["etcd answers", "one etcd", "etcd in time", "leases of etcd", "rights at etcd", "clocks go alike"]
    {
        assert!(well.out.contains(&format!("ok       {check}\n")), "{check} in {}", well.out);
    }
    // Nothing was written there.
    let keys = etcd.backup().await;
    assert!(keys.iter().all(|(key, _)| key.starts_with(b"tree/")), "{keys:?}");
    assert!(!keys.iter().any(|(key, _)| key.ends_with(b"examination")), "{keys:?}");
    house.stop().await;

    ask_for_passwords(&url, None).await;
    let secrets = tempfile::tempdir().unwrap();
    let password = |name: &str, text: &str| {
        let path = secrets.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (task, root, wrong) =
        (password("task", "open sesame"), password("root", "of all evil"), password("x", "x"));
    for (prefix, user, file, code, line) in [
        ("tree", "task", &task, 1, "ok       rights at etcd"),
        ("elsewhere", "task", &task, 1, "fault    rights at etcd: "),
        ("tree", "root", &root, 1, "warning  rights at etcd: "),
        ("tree", "task", &wrong, 1, "fault    etcd answers: "),
    ] {
        let flags = [prefix, "--etcd-user", user, "--etcd-password-file", file];
        let told = run(&[&doctor[..], &flags].concat()).await;
        // The task has stopped, which is a fault by itself.
        assert_eq!(told.code, Some(code), "{}{}", told.out, told.err);
        assert!(told.out.contains(line), "{line} in {}", told.out);
    }
    etcd.kill();
    let away = run(&[&doctor[..], &["tree"]].concat()).await;
    assert!(away.out.contains(&format!("fault    etcd answers: {url}: ")), "{}", away.out);
}

#[tokio::test]
async fn a_task_leads_with_the_password_that_etcd_wants_and_not_without() {
    let Some(papers) = Papers::new() else { return };
    papers.certify("etcd");
    let flags = [
        format!("--cert-file={}", papers.path("etcd.pem")),
        format!("--key-file={}", papers.path("etcd.key")),
    ];
    let Some(etcd) = Etcd::started_with("https", flags.into()).await else { return };
    let ca = papers.path("ca.pem");
    let authority = Certificate::from_pem(std::fs::read(&ca).unwrap());
    let tls = TlsOptions::new().ca_certificate(authority);
    ask_for_passwords(&etcd.url(), Some(ConnectOptions::new().with_tls(tls.clone()))).await;

    let (right, wrong) = (papers.write("right", "open sesame\n"), papers.write("wrong", "close sesame\n"));
    let of = |prefix: &'static str, password: &str| {
        ["--etcd-ca", &ca, "--etcd-prefix", prefix, "--etcd-user", "task", "--etcd-password-file", password]
            .map(str::to_owned)
    };
    let start = async |flags: [String; 8]| {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        task(&etcd, &flags).await
    };
    let house = start(of("tree", &right)).await;
    leads(&house).await;
    let forgetful = start(of("tree", &wrong)).await;
    is_refused(&forgetful, "invalid user ID or password").await;
    // The password is changed, first there and then here.
    let mut root = Client::connect(
        [etcd.url()],
        Some(ConnectOptions::new().with_tls(tls).with_user("root", "of all evil")),
    )
    .await
    .unwrap();
    root.user_change_password("task", "open barley").await.unwrap();
    papers.write("right", "open barley\n");
    let replaced = "etcd is called with the secrets that have changed";
    eventually("the other password is used", async || house.has_logged(replaced)).await;
    leads(&house).await;
    let astray = start(of("elsewhere", &right)).await;
    is_refused(&astray, "permission denied").await;
    let nobody = task(&etcd, &["--etcd-ca", &ca, "--etcd-prefix", "tree"]).await;
    is_refused(&nobody, "user name is empty").await;
    for house in [forgetful, astray, nobody, house] {
        house.stop().await;
    }
}

/// A server that does not start, and what it says.
async fn faulty(flags: &[&str], code: i32) -> String {
    let config = crate::house::repository_file("configs/root.yaml");
    let mut all = vec!["serve", "--config", config.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    all.extend(flags);
    let outcome = run(&all).await;
    assert_eq!(outcome.code, Some(code), "{flags:?}: {}", outcome.err);
    outcome.err
}

#[tokio::test]
async fn what_cannot_be_meant_is_told_before_anything_is_served() {
    let Some(papers) = Papers::new() else { return };
    papers.certify("task");
    papers.certify("other");
    let empty = papers.write("empty", "");
    let long = papers.write("long", "one\ntwo\n");
    let (ca, pem, key, other) =
        (papers.path("ca.pem"), papers.path("task.pem"), papers.path("task.key"), papers.path("other.key"));
    let (http, https) = ("http://127.0.0.1:1", "https://127.0.0.1:1");
    let is_told = async |flags: &[&str], told: &str| {
        let err = faulty(flags, 1).await;
        let error = err.lines().find(|line| line.starts_with("error: "));
        assert!(error.is_some_and(|error| error.contains(told)), "{flags:?}: {err}");
    };
    is_told(&["--etcd", https], "there is no certificate of an authority to know it by").await;
    is_told(&["--etcd", http, "--etcd-ca", &ca], "is http, and there are certificates: wanted https").await;
    is_told(&["--etcd", https, "--etcd-ca", "no/such.pem"], "cannot read no/such.pem").await;
    is_told(&["--etcd", https, "--etcd-ca", &key], "no certificate in it, wanted PEM").await;
    let with = |pem: &str, key: &str| {
        ["--etcd", https, "--etcd-ca", &ca, "--etcd-cert", pem, "--etcd-key", key].map(str::to_owned)
    };
    for (flags, told) in [
        (with(&key, &key), "no certificate in it, wanted PEM"),
        (with(&pem, &pem), "no private key in it, wanted PEM"),
        (with(&pem, &other), "certificate and key cannot be used together"),
    ] {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        is_told(&flags, told).await;
    }
    let password = ["--etcd", http, "--etcd-user", "task", "--etcd-password-file"];
    is_told(&[&password[..], &[&empty]].concat(), "no password in it").await;
    is_told(&[&password[..], &[&long]].concat(), "2 lines, wanted a password and nothing else").await;

    for (flags, wanted) in [
        (&["--etcd-ca", "x"][..], "--etcd <URL,...>"),
        (&["--etcd", http, "--etcd-cert", "x"], "--etcd-key <FILE>"),
        (&["--etcd", http, "--etcd-key", "x"], "--etcd-cert <FILE>"),
        (&["--etcd", http, "--etcd-user", "x"], "--etcd-password-file <FILE>"),
        (&["--etcd", http, "--etcd-password-file", "x"], "--etcd-user <NAME>"),
        (&["--claims", "deferred"], "<--etcd <URL,...>|--state-dir <DIR>>"),
        (&["--token-key", "x"], "<--etcd <URL,...>|--state-dir <DIR>>"),
        (&["--etcd", http, "--state-dir", "x"], "cannot be used with '--state-dir <DIR>'"),
        (&["--etcd", http, "--claims", "never"], "at-once, deferred"),
    ] {
        let err = faulty(flags, 2).await;
        assert!(err.contains(wanted), "{flags:?}: {err}");
    }
}
