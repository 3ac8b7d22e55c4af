//! The seeds of the fuzz targets: what is in the repository anyway, by target.

use std::collections::BTreeMap;
use std::path::Path;

use lessor_proto::Time;
use lessor_server::access::NamePattern;
use lessor_server::access::bearer::Passport;
use lessor_server::election::state::{Clock, State};
use lessor_server::revision::{Digest, pack};
use lessor_server::token::{Key, TokenKeys};

use super::bodies::{BLOB, KINDS, NODE, VALUES};

/// The seeds of each target, from the repository in that folder.
pub fn of_repository(root: &Path) -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let mut seeds: BTreeMap<&'static str, Vec<Vec<u8>>> = BTreeMap::new();
    seeds.insert("wire", of_wire(&root.join("proto/corpus")));
    seeds.insert("state", of_state());
    seeds.insert("token", of_tokens());
    let (mut templates, mut access) = (Vec::new(), Vec::new());
    for folder in ["configs", "crates/server/tests/configuration"] {
        for bytes in files(&root.join(folder)) {
            let is_access = String::from_utf8_lossy(&bytes).contains("default: ");
            if is_access { access.push(bytes) } else { templates.push(bytes) }
        }
    }
    access.push(b"default: deny\noperators:\n  - {identity: \"uid:0\", may: [all]}\n".to_vec());
    seeds.insert("templates", templates);
    seeds.insert("access", access);
    let key = "00112233445566778899aabbccddeeff".repeat(2);
    seeds.insert("keys", vec![format!("{key}\n").into_bytes(), format!("{key}\n{key}\n").into_bytes()]);
    let globs = ["*\ndb/orders", "db/*\ndb/orders", "a?[b-d]*\nabcd", "[!a]\nb", "\\*\n*", "web-*\nweb-1"];
    seeds.insert("glob", globs.map(|glob| glob.as_bytes().to_vec()).to_vec());
    let pages = [
        "",
        "healthz",
        "healthz?verbose",
        "readyz?leads&verbose",
        "metrics",
        "status",
        "status?resource=db%2Forders&holders=10",
        "status?resources=0\nAccept: text/plain",
        "metrics\nAccept: application/openmetrics-text; version=1.0.0\r\nAuthorization: Bearer lessor1.x",
        "doorman.Capacity/GetCapacity\nContent-Type: application/grpc",
        "admin/whoami",
        "status\nContent-Length: 5\r\n\r\nhello",
        "status\nTransfer-Encoding: chunked\r\n\r\n0",
    ];
    seeds.insert("path", pages.map(|page| page.as_bytes().to_vec()).to_vec());
    seeds.insert("value", of_values());
    seeds
}

/// The files in a folder and those below it, in order.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| match path.is_dir() {
        true => files(path),
        false => vec![std::fs::read(path).expect("a file")],
    };
    paths.iter().flat_map(read).collect()
}

/// The messages of all releases, each after the number of its kind.
fn of_wire(corpus: &Path) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for release in std::fs::read_dir(corpus).expect("a corpus") {
        for file in std::fs::read_dir(release.expect("a release").path()).expect("a folder") {
            let path = file.expect("a file").path();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            let bytes = std::fs::read(&path).expect("a file");
            for (number, kind) in (0..).zip(KINDS) {
                // Whatever goes up may come from a client or a node.
                let holder = matches!(kind, "up.client" | "up.node") && !name.starts_with("up.hello");
                let fits = if holder { name.starts_with("up.") } else { name.starts_with(kind) };
                if fits {
                    seeds.push([&[number][..], &bytes].concat());
                }
            }
        }
    }
    seeds.sort();
    seeds
}

/// A state that says little, one that says nearly everything, and one to which something was added. Their seals are made anew.
fn of_state() -> Vec<Vec<u8>> {
    let clock = Clock { boot: Some("b".to_owned()), at: Time::ZERO };
    let state = State::begin(NODE, 7, 1_790_000_000_000).encode(&clock);
    let (body, seal) = state.rsplit_once("blake3 ").expect("it is sealed");
    let header = body.lines().last().expect("it has a header");
    let prefix = header.split_once("reign").expect("the header is last").0;
    let marks = format!(
        "{prefix}mark/db\t1 millionths 100000000 kind rate rest 5 in_epoch 3 of_epoch 4 of_seq 5 token ab01\n\
         {prefix}mark/disk\t1 millionths 7 kind gauge\n{prefix}stop\t1 epoch 7 write 3 clock_ns 9\n\
         {prefix}earlier\t1 epoch 7 stopped 3 clock_ns 5 until_ns 9\n{prefix}cluster\t1 id 5 term 3\n"
    );
    let whole = format!("{body}{marks}blake3 {seal}");
    let added = format!("more 9 9\nboot b\nclock_ns 9\n{header}\n{prefix}mark/disk\nblake3 {seal}");
    let grown = whole.replacen("state 1", "state 2", 1) + &added;
    [state.clone(), whole, grown].map(String::into_bytes).into()
}

/// Values that stand at etcd, each after the number of its kind.
fn of_values() -> Vec<Vec<u8>> {
    let blob = Digest::of(BLOB);
    let by = r#"{"name":"ann","verified":true,"how":"admin"}"#;
    let at = "2026-11-27T10:00:00Z";
    let document = format!(r#"{{"for":"*","name":"x.yaml","blob":"{blob}","bytes":{}}}"#, BLOB.len());
    let head = format!(r#"{{"form":1,"number":7,"digest":"{blob}"}}"#);
    let text = BLOB.replace('\n', "\\n");
    let made = |act: &str| {
        format!(
            r#"{{"form":1,"id":"a1",{act},"reason":"the disk is full","by":{by},"at":"{at}","for_seconds":600}}"#
        )
    };
    let values = [
        (
            "revision",
            format!(
                r#"{{"form":1,"number":7,"parent":6,"parent_digest":"{blob}","at":"{at}","documents":[{document}],"by":{by},"message":"more","ticket":"OPS-1","rollback_of":3,"needs":1,"tool":"lessor 0.1.0"}}"#
            ),
        ),
        ("head", head.clone()),
        ("freeze", format!(r#"{{"form":1,"by":"ann","message":"a fair","until":"{at}"}}"#)),
        (
            "report",
            r#"{"form":1,"node":"root","address":"here:1","leads":true,"stands":true,"in_force":7,"record":7,"head_seen":8,"refused":{"number":8,"why":["capacity: -1"]},"drafts":[{"id":"d1","faults":[]}],"binary":"0.1.0","features":1}"#
                .to_owned(),
        ),
        ("override", made(r#""kind":"freeze","resource":"db/*""#)),
        ("override", made(r#""kind":"drain_client","client":"web-*","resource":"db","deny":true"#)),
        ("override", made(r#""kind":"cap","resource":"db","capacity":12.5"#)),
        ("override", made(r#""kind":"unenforce","resource":"db""#)),
        (
            "last",
            format!(
                r#"{{"form":1,"prefix":"/lessor","node":"{NODE}","head":{head},"document":{document},"text":"{text}"}}"#
            ),
        ),
    ];
    let number = |kind: &str| VALUES.iter().position(|known| *known == kind).expect("a kind") as u8;
    let numbered = |(kind, text): (&str, String)| [&[number(kind)], text.as_bytes()].concat();
    let mut seeds: Vec<Vec<u8>> = values.into_iter().map(numbered).collect();
    let packed = pack("k", BLOB).expect("it is short");
    seeds.push([&[number("blob")], &packed[..]].concat());
    seeds
}

/// Tokens that say much and little.
fn of_tokens() -> Vec<Vec<u8>> {
    let keys = TokenKeys::new(Key::new([9; 32]));
    let pattern = |text| NamePattern::new(text).ok();
    let passport = Passport {
        identity: "web".to_owned(),
        made: 1,
        ends: u64::MAX,
        client_id: pattern("web-*"),
        node: None,
        resources: None,
        roles: Vec::new(),
    };
    let node = Passport { node: pattern("paris"), client_id: None, ..passport.clone() };
    [passport, node].map(|passport| passport.seal(&keys).into_bytes()).to_vec()
}
