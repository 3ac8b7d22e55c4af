//! Tests of the audit log.

use std::time::Duration;

use super::*;

#[test]
fn nothing_in_a_line_steers_a_terminal_or_begins_another() {
    let name = "a\n{\"outcome\":\"done\"}\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\u{2028}";
    let line = safe(&serde_json::json!({ "holder": name }).to_string());
    assert!(!line.contains(|c: char| c.is_control()) && !line.contains(['\u{202e}', '\u{2028}']), "{line}");
    let read: Value = serde_json::from_str(&line).expect("still JSON");
    assert_eq!(read["holder"], name, "and nothing is lost");
}

#[test]
fn a_token_where_it_does_not_belong_is_cut_off() {
    let line = safe(r#"{"filter":"lessor1.AAAA-bbbb_cc=debug","holder":"lessor1."}"#);
    assert_eq!(line, r#"{"filter":"lessor1.…","holder":"lessor1."}"#);
}

#[test]
fn a_line_is_written_to_the_end_of_a_file_that_its_owner_alone_reads() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("audit");
    let log = AuditLog::open(Some(path.clone())).expect("it is made");
    let mode = std::fs::metadata(&path).expect("it is there").mode();
    assert_eq!(mode & 0o777, 0o600);
    let written = |path: &Path| std::fs::read_to_string(path).expect("it is there");
    log.record("one").expect("it is written");
    assert_eq!(written(&path), "one\n");
    // Moved away, and opened anew; and removed, which nobody has said.
    let moved = directory.path().join("audit.1");
    std::fs::rename(&path, &moved).expect("it is moved");
    log.record("two").expect("it is written");
    log.reopen();
    log.record("three").expect("it is written");
    assert_eq!((written(&moved), written(&path)), ("one\ntwo\n".into(), "three\n".into()));
    std::fs::remove_file(&path).expect("it is removed");
    log.record("four").expect("it is written");
    assert_eq!(written(&path), "four\n");
}

#[test]
fn a_line_that_another_process_has_not_ended_spoils_no_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("audit");
    let tear = || std::fs::write(&path, "whole\nhal").expect("it is written");
    let written = || std::fs::read_to_string(&path).expect("it is there");
    tear();
    let log = AuditLog::open(Some(path.clone())).expect("it is there");
    log.record("one").expect("it is written");
    assert_eq!(written(), "whole\nhal\none\n");
    tear();
    log.reopen();
    log.record("two").expect("it is written");
    log.record("three").expect("it is written");
    assert_eq!(written(), "whole\nhal\ntwo\nthree\n");
}

#[test]
fn a_disk_that_hangs_takes_one_thread_and_no_task() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().max_blocking_threads(2).build().expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    let log = AuditLog::open(Some(directory.path().join("audit"))).expect("it is made");
    let log = Arc::new(log);
    let hangs = log.file.lock().expect("nobody panics");
    let calls: Vec<_> = (0..8)
        .map(|call| {
            let log = Arc::clone(&log);
            runtime.spawn(async move { log.write(call.to_string()).await })
        })
        .collect();
    runtime.block_on(async {
        log.reopen_soon();
        // All of them have got as far as they get.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let other = tokio::task::spawn_blocking(|| 7);
        let other = tokio::time::timeout(Duration::from_secs(30), other).await;
        assert_eq!(other.expect("there is a thread for others").expect("it does not panic"), 7);
    });
    drop(hangs);
    runtime.block_on(async {
        for call in calls {
            call.await.expect("it does not panic").expect("it is written");
        }
    });
}

#[test]
fn what_is_no_regular_file_is_refused_and_tried_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let fault = AuditLog::open(Some(directory.path().to_owned())).expect_err("it is a directory");
    assert_eq!(fault.to_string(), "is a directory; wanted a regular file");
    let path = directory.path().join("audit");
    let log = AuditLog::open(Some(path.clone())).expect("it is made");
    std::fs::remove_file(&path).expect("it is removed");
    std::fs::create_dir(&path).expect("something else takes its place");
    log.reopen();
    let fault = log.record("lost").expect_err("there is no file").to_string();
    assert!(fault.ends_with("is a directory; wanted a regular file"), "{fault}");
    std::fs::remove_dir(&path).expect("it is removed");
    log.record("kept").expect("it is opened again");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "kept\n");
}
