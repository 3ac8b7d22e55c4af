//! The socket of an admin port: whose it is, and what becomes of those that are left behind.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::PathBuf;

use rustix::process::getuid;
use tempfile::TempDir;

use crate::desk::Desk;
use crate::house::{House, eventually, everything, run};

/// A directory for the state of a server, and the socket there.
fn state() -> (TempDir, String, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let (text, socket) = (state.to_str().unwrap().to_owned(), state.join("admin.sock"));
    (directory, text, socket)
}

#[tokio::test]
async fn a_server_with_a_state_directory_has_a_socket_there_and_no_other_has_one() {
    let (_directory, state, socket) = state();
    let house = House::open_with(&everything(100.0, 60), &["--state-dir", &state]).await;
    assert_eq!(house.admin(), Some(format!("unix:{}", socket.display()).as_str()));
    let found = std::fs::metadata(&socket).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let me = Desk::new(house.admin().unwrap()).get("/admin/whoami").await.done();
    let uid = getuid().as_raw();
    assert_eq!((&me["identity"], &me["uid"]), (&format!("uid:{uid}").into(), &uid.into()));
    assert_eq!((&me["pid"], &me["roles"]), (&std::process::id().into(), &serde_json::json!(["all"])), "{me}");
    // Also of who writes it down.
    eventually("it is in the log", async || !house.logged_with("lessor::audit").is_empty()).await;
    let line = &house.logged_with("lessor::audit")[0];
    assert!(
        line.contains(&format!("\\\"uid\\\":{uid}"))
            && line.contains(&format!("\\\"pid\\\":{}", std::process::id())),
        "{line}"
    );
    house.stop().await;
    assert!(!socket.exists(), "it goes with its server");
    let house = House::open(&everything(100.0, 60)).await;
    assert_eq!(house.admin(), None);
    house.stop().await;
}

#[tokio::test]
async fn who_calls_at_a_socket_is_known_by_its_user() {
    let directory = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", directory.path().join("a.sock").display());
    let access = directory.path().join("access.yaml");
    let uid = getuid().as_raw();
    std::fs::write(
        &access,
        format!("default: deny\noperators:\n  - {{identity: \"uid:{uid}\", may: [see]}}\n"),
    )
    .unwrap();
    let flags = ["--admin", &socket, "--access", access.to_str().unwrap()];
    let house = House::open_with(&everything(100.0, 60), &flags).await;
    let desk = Desk::new(&socket);
    assert_eq!(desk.get("/admin/whoami").await.done()["roles"], serde_json::json!(["see"]));
    desk.get("/admin/connections").await.done();
    let refused = desk.call("POST", "/admin/reload", Some("{}")).await.detail(403);
    assert_eq!(refused, format!("operators[0] on line 3 does not let \"uid:{uid}\" push; it may [see]"));
    // Nobody else is that user.
    std::fs::write(&access, "default: deny\noperators:\n  - {identity: \"uid:4294967294\", may: [all]}\n")
        .unwrap();
    eventually("the rule is in force", async || desk.get("/admin/connections").await.code == 403).await;
    house.stop().await;
}

#[tokio::test]
async fn a_socket_of_a_dead_process_is_replaced_and_one_of_a_live_one_is_told() {
    let (directory, state, socket) = state();
    let mut house = House::open_with(&everything(100.0, 60), &["--state-dir", &state]).await;
    house.crash().await;
    assert!(socket.exists(), "nobody has removed it");
    let gone = run(&["admin", "whoami", "--admin", &format!("unix:{}", socket.display())]).await;
    assert!(gone.code == Some(1) && gone.err.contains("nobody listens there"), "{gone:?}");
    let house = house.start_again().await;
    assert!(house.has_logged_part("an old socket is replaced: its process has ended"));
    let at = house.admin().unwrap().to_owned();
    Desk::new(&at).get("/admin/whoami").await.done();

    let config = directory.path().join("lessor.yaml");
    std::fs::write(&config, everything(100.0, 60)).unwrap();
    let start = ["serve", "--listen", "127.0.0.1:0", "--config", config.to_str().unwrap(), "--admin"];
    let second = run(&[&start[..], &[at.as_str()]].concat()).await;
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(
        second.err.contains(&format!("--admin {at}: another process serves there, and lives")),
        "{second:?}"
    );
    let file = format!("unix:{}", config.display());
    let third = run(&[&start[..], &[file.as_str()]].concat()).await;
    assert!(third.code == Some(1) && third.err.contains("there is a file that is no socket"), "{third:?}");
    Desk::new(&at).get("/admin/whoami").await.done();
    house.stop().await;
}
