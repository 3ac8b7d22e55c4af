//! A configuration that changes while it is in force.
#![cfg(all(feature = "shell", unix))]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use lessor_server::repository::Repository;
use lessor_server::shell::source::Source;
use tempfile::TempDir;
use tokio::time::timeout;

/// Longer than the poll, and than any machine should take.
const AGES: Duration = Duration::from_secs(30);

fn text(capacity: &str) -> String {
    format!(
        "resources:\n- identifier_glob: \"*\"\n  capacity: {capacity}\n  \
         algorithm: {{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}}\n"
    )
}

/// A server, as far as it deals with its configuration.
struct Server {
    source: Source,
    in_force: Repository,
}

impl Server {
    fn start(path: &Path) -> Server {
        let mut source: Source = Source::new(path);
        let in_force = source.load().expect("a good configuration at the start");
        Server { source, in_force }
    }

    /// Waits for a change, which is taken or leads to this error.
    async fn follow(&mut self) -> Result<(), String> {
        timeout(AGES, self.source.changed()).await.expect("the change is not seen");
        self.in_force = self.source.load().map_err(|error| error.to_string())?;
        Ok(())
    }

    fn capacity(&self) -> u64 {
        self.in_force.templates()[0].capacity.floor_units()
    }
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory for a while")
}

#[tokio::test]
async fn changed_file_is_seen() {
    let directory = directory();
    let path = directory.path().join("lessor.yaml");
    fs::write(&path, text("1")).unwrap();
    let mut server = Server::start(&path);
    fs::write(&path, text("2")).unwrap();
    server.follow().await.unwrap();
    assert_eq!(server.capacity(), 2);
    // Another file in its place, as editors do.
    fs::write(directory.path().join("lessor.yaml~"), text("3")).unwrap();
    fs::rename(directory.path().join("lessor.yaml~"), &path).unwrap();
    server.follow().await.unwrap();
    assert_eq!(server.capacity(), 3);
}

#[tokio::test]
async fn faulty_change_leaves_the_old_in_force_and_is_told_once() {
    let directory = directory();
    let path = directory.path().join("lessor.yaml");
    fs::write(&path, text("1")).unwrap();
    let mut server = Server::start(&path);
    fs::write(&path, text("-1")).unwrap();
    let error = server.follow().await.unwrap_err();
    assert!(error.contains("lessor.yaml:3:13: template \"*\": capacity -1 is negative"), "{error}");
    assert_eq!(server.capacity(), 1);
    // The same faulty content is no change.
    fs::write(&path, text("-1")).unwrap();
    let again = timeout(Duration::from_millis(300), server.source.changed()).await;
    assert!(again.is_err(), "told twice");
    fs::write(&path, text("2")).unwrap();
    server.follow().await.unwrap();
    assert_eq!(server.capacity(), 2);
}

#[tokio::test]
async fn removed_file_leaves_the_old_in_force() {
    let directory = directory();
    let path = directory.path().join("lessor.yaml");
    fs::write(&path, text("1")).unwrap();
    let mut server = Server::start(&path);
    fs::remove_file(&path).unwrap();
    assert!(server.follow().await.unwrap_err().contains("No such file"));
    assert_eq!(server.capacity(), 1);
    fs::write(&path, text("2")).unwrap();
    server.follow().await.unwrap();
    assert_eq!(server.capacity(), 2);
}

/// A mounted ConfigMap: the file is a link through `..data`, and `..data` is swapped as a whole, more than once.
#[tokio::test]
async fn swapped_link_is_seen_each_time() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    let publish = |version: &str| {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("lessor.yaml"), text(version.trim_start_matches('v'))).unwrap();
        symlink(version, at("..data_tmp")).unwrap();
        fs::rename(at("..data_tmp"), at("..data")).unwrap();
    };
    publish("v1");
    symlink("..data/lessor.yaml", at("lessor.yaml")).unwrap();
    let mut server = Server::start(&at("lessor.yaml"));
    for (old, version, capacity) in [("v1", "v2", 2), ("v2", "v3", 3), ("v3", "v4", 4)] {
        publish(version);
        fs::remove_dir_all(at(old)).unwrap();
        server.follow().await.unwrap();
        assert_eq!(server.capacity(), capacity);
    }
}

/// A link to a file in a directory that nobody watches: the poll finds it.
#[tokio::test]
async fn change_behind_a_link_is_seen() {
    let (directory, elsewhere) = (directory(), directory());
    let (link, path) = (directory.path().join("lessor.yaml"), elsewhere.path().join("lessor.yaml"));
    fs::write(&path, text("1")).unwrap();
    symlink(&path, &link).unwrap();
    let mut server = Server::start(&link);
    {
        let mut changed = pin!(server.source.changed());
        assert!(timeout(Duration::from_millis(300), &mut changed).await.is_err(), "nothing has changed");
        fs::write(&path, text("2")).unwrap();
        timeout(AGES, changed).await.expect("the change is not seen");
    }
    server.follow().await.unwrap();
    assert_eq!(server.capacity(), 2);
}

#[tokio::test]
async fn change_before_the_wait_is_seen() {
    let directory = directory();
    let path = directory.path().join("lessor.yaml");
    let mut source: Source = Source::new(&path);
    source.load().unwrap_err();
    fs::write(&path, text("1")).unwrap();
    // A wait that is dropped forgets nothing.
    drop(source.changed());
    timeout(Duration::ZERO, source.changed()).await.ok();
    timeout(AGES, source.changed()).await.expect("the change is not seen");
    assert_eq!(source.load().unwrap().templates().len(), 1);
}

#[tokio::test]
async fn missing_directory_is_no_panic() {
    let directory = directory();
    let mut source: Source = Source::new(directory.path().join("absent/lessor.yaml"));
    source.load().unwrap_err();
}
