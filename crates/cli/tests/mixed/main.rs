//! This version beside another one: one above the other, as tasks of one node, and each as a client of the other.
//!
//! `LESSOR_OTHER` names the binary of the other version; without it all of this is skipped, and says so. `tools/test-mixed
//! COMMIT` builds one and runs it. Both are used as anybody would: `lessor serve`, and `lessor get --hold` for clients.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../house/mod.rs"]
mod house;

mod clients;
mod servers;

use std::io::Write as _;
use std::path::PathBuf;

use crate::clients::Clients;
use crate::house::etcd::Etcd;
use crate::servers::{Version, Versions, serve};

/// All that there is of the resource.
const CAPACITY: f64 = 100.0;

/// The other version, where there is one.
fn versions() -> Option<Versions> {
    let other = std::env::var_os("LESSOR_OTHER").map(PathBuf::from);
    if other.is_none() {
        // Past the harness, which would show it only if the test failed.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: LESSOR_OTHER names no binary of another version (tools/test-mixed COMMIT builds one)"
        );
    }
    other.map(Versions::new)
}

#[tokio::test]
async fn either_version_works_above_the_other() {
    let Some(versions) = versions() else { return };
    for above in Version::BOTH {
        let root = serve(&versions, above, "root", &[]).await;
        let parent = root.address().to_string();
        let leaf = serve(&versions, above.other(), "leaf", &["--parent", &parent]).await;
        let mut clients = Clients::default();
        for version in Version::BOTH {
            clients.hold(&versions, version, &parent, 2).await;
            clients.hold(&versions, version, &leaf.address().to_string(), 2).await;
        }
        // Long enough for every lease to have been renewed several times.
        clients.watch_for_leases(3).await;
        clients.check(CAPACITY, &format!("{above:?} above"));
        assert!(leaf.metric("lessor_parent_up").await > 0.0, "{above:?} above");
        assert!(leaf.metric("lessor_parent_failures_total").await <= 0.0, "{above:?} above");
        for server in [&root, &leaf] {
            server.is_in_order(&format!("{above:?} above")).await;
        }
        drop(clients);
        leaf.stop().await;
        root.stop().await;
    }
}

#[tokio::test]
async fn tasks_of_either_version_take_over_from_each_other() {
    let Some(versions) = versions() else { return };
    let Some(etcd) = Etcd::started().await else { return };
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "7a".repeat(32)).unwrap();
    let url = etcd.url();
    let mut flags = vec!["--etcd", &url, "--token-key", key.path().to_str().unwrap()];
    flags.extend(["--ttl", "3s", "--authority", "1s", "--keep-alive", "300ms"]);
    let mut leader = serve(&versions, Version::Other, "root", &flags).await;
    leader.leads().await;
    let mut next = serve(&versions, Version::This, "root", &flags).await;
    let addresses = format!("{},{}", leader.address(), next.address());
    let mut clients = Clients::default();
    for version in Version::BOTH {
        clients.hold(&versions, version, &addresses, 4).await;
    }
    // Other to this and back, in order; and then by a crash each way.
    for is_crash in [false, false, true, true] {
        let when = format!("{:?} to {:?}, crash: {is_crash}", leader.version(), next.version());
        leader.end(is_crash).await;
        next.leads().await;
        clients.watch_for_leases(2).await;
        clients.check(CAPACITY, &when);
        next.is_in_order(&when).await;
        let back = leader.start_again(&versions).await;
        (leader, next) = (next, back);
    }
    drop(clients);
    next.stop().await;
    leader.stop().await;
}
