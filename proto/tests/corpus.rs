//! The corpus: messages of every kind as each release has said them, in `proto/corpus/RELEASE/`, which are read for ever.
//!
//! `REWRITE=1 cargo test -p lessor-proto --test corpus` records those of this release anew; a file that changes by that is a
//! change of the language, and is reviewed as one. Those of earlier releases are never touched.

#[path = "corpus/samples.rs"]
mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lessor_proto::message::{
    Answer, Ask, Down, Hello, HolderKind, Limits, Release, Up, WallClock, Whereabouts,
};
use lessor_proto::wire;
use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};

const NOON: WallClock = WallClock { since_epoch: Duration::from_secs(1_790_000_000) };

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn bytes_in(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder).expect("a folder of the corpus");
    let named = files.map(|file| {
        let path = file.expect("a file of the corpus").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        (name, std::fs::read(&path).expect("its bytes"))
    });
    named.collect()
}

// === this release ===

#[test]
fn this_release_says_what_is_recorded_of_it() {
    let folder = corpus().join(env!("CARGO_PKG_VERSION"));
    if std::env::var_os("REWRITE").is_some() {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        for (name, bytes) in samples::all() {
            std::fs::write(folder.join(format!("{name}.bin")), bytes).expect("a file");
        }
    }
    let said: BTreeMap<_, _> =
        samples::all().into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    assert_eq!(said, bytes_in(&folder));
}

#[test]
fn no_kind_of_message_is_missing() {
    let set = FileDescriptorSet::decode(wire::DESCRIPTORS).expect("descriptors");
    let file = set.file.iter().find(|file| file.package() == "doorman").expect("our file");
    let kinds = |message: &str, way: &str| -> BTreeSet<String> {
        let fields = named(file, message).field.iter();
        fields.map(|field| format!("{way}.{}", field.name())).collect()
    };
    let methods =
        file.service.iter().flat_map(|service| &service.method).filter(|method| !method.client_streaming());
    let unary = methods.flat_map(|method| [method.input_type(), method.output_type()]);
    let unary = unary.map(|name| format!("unary.{}", name.trim_start_matches(".doorman.")));
    let wanted: BTreeSet<_> = kinds("SessionUpRequest", "up")
        .into_iter()
        .chain(kinds("SessionDown", "down"))
        .chain(unary)
        .collect();
    let said: BTreeSet<_> = samples::all().iter().map(|(name, _)| kind(name)).collect();
    assert_eq!(said, wanted);
}

fn named<'a>(file: &'a FileDescriptorProto, name: &str) -> &'a DescriptorProto {
    file.message_type.iter().find(|message| message.name() == name).expect("a message of that name")
}

/// `up.report` of `up.report.client`.
fn kind(name: &str) -> String {
    name.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
}

// === every release ===

#[test]
fn what_any_release_has_said_is_understood() {
    let mut count = 0;
    for release in std::fs::read_dir(corpus()).expect("a corpus") {
        let folder = release.expect("a release").path();
        for (name, bytes) in bytes_in(&folder) {
            let place = format!("{}/{name}.bin", folder.display());
            check_kept(&name, &bytes, &place);
            check_understood(&name, &bytes, &place);
            count += 1;
        }
    }
    assert!(count >= samples::all().len(), "{count} messages");
}

/// No field is lost on the way through this version: none was taken away, and none has another number or type.
fn check_kept(name: &str, bytes: &[u8], place: &str) {
    let again = match kind(name).as_str() {
        kind if kind.starts_with("up.") => again::<wire::SessionUpRequest>(bytes),
        kind if kind.starts_with("down.") => again::<wire::SessionDown>(bytes),
        "unary.DiscoveryRequest" => again::<wire::DiscoveryRequest>(bytes),
        "unary.DiscoveryResponse" => again::<wire::DiscoveryResponse>(bytes),
        "unary.GetCapacityRequest" => again::<wire::GetCapacityRequest>(bytes),
        "unary.GetCapacityResponse" => again::<wire::GetCapacityResponse>(bytes),
        "unary.GetServerCapacityRequest" => again::<wire::GetServerCapacityRequest>(bytes),
        "unary.GetServerCapacityResponse" => again::<wire::GetServerCapacityResponse>(bytes),
        "unary.ReleaseCapacityRequest" => again::<wire::ReleaseCapacityRequest>(bytes),
        "unary.ReleaseCapacityResponse" => again::<wire::ReleaseCapacityResponse>(bytes),
        other => panic!("{place}: {other} is no kind of message"),
    };
    assert_eq!(again, bytes, "{place}");
}

fn again<M: Message + Default>(bytes: &[u8]) -> Vec<u8> {
    M::decode(bytes).expect("a message of its kind").encode_to_vec()
}

/// It passes the checks; and what is said of it by this version says the same again.
fn check_understood(name: &str, bytes: &[u8], place: &str) {
    let limits = Limits::default();
    let holder = if name.ends_with(".node") { HolderKind::Node } else { HolderKind::Client };
    let fault = |fault: &dyn std::fmt::Display| -> ! { panic!("{place}: {fault}") };
    match kind(name).as_str() {
        "up.hello" => {
            let read = |bytes: &[u8]| Hello::first(decode(bytes), &limits).unwrap_or_else(|at| fault(&at));
            let hello = read(bytes);
            assert_eq!(read(&Up::Hello(hello.clone()).to_wire(holder).encode_to_vec()), hello, "{place}");
        }
        kind if kind.starts_with("up.") => {
            let read =
                |bytes: &[u8]| Up::from_wire(decode(bytes), &limits, holder).unwrap_or_else(|at| fault(&at));
            let up = read(bytes).expect("a kind that is known");
            assert_eq!(read(&up.to_wire(holder).encode_to_vec()), Some(up), "{place}");
        }
        kind if kind.starts_with("down.") => {
            let read = |bytes: &[u8]| Down::from_wire(decode(bytes), NOON).unwrap_or_else(|at| fault(&at));
            let down = read(bytes).expect("a kind that is known");
            assert_eq!(read(&down.to_wire(holder, NOON).encode_to_vec()), Some(down), "{place}");
        }
        "unary.GetCapacityRequest" => {
            let ask = Ask::from_client(decode(bytes), &limits).unwrap_or_else(|at| fault(&at));
            assert_eq!(Ask::from_client(ask.to_wire(), &limits), Ok(ask), "{place}");
        }
        "unary.GetServerCapacityRequest" => {
            let ask = Ask::from_node(decode(bytes), &limits).unwrap_or_else(|at| fault(&at));
            assert_eq!(Ask::from_node(ask.to_node_wire(), &limits), Ok(ask), "{place}");
        }
        "unary.ReleaseCapacityRequest" => {
            let release = Release::from_wire(decode(bytes), &limits).unwrap_or_else(|at| fault(&at));
            assert_eq!(Release::from_wire(release.to_wire(), &limits), Ok(release), "{place}");
        }
        "unary.GetCapacityResponse" => {
            let answer = Answer::from_wire(decode(bytes), NOON).unwrap_or_else(|at| fault(&at));
            assert_eq!(Answer::from_wire(answer.clone().into_client_wire(NOON), NOON), Ok(answer), "{place}");
        }
        "unary.GetServerCapacityResponse" => {
            let answer = Answer::from_node_wire(decode(bytes), NOON).unwrap_or_else(|at| fault(&at));
            assert_eq!(
                Answer::from_node_wire(answer.clone().into_node_wire(NOON), NOON),
                Ok(answer),
                "{place}"
            );
        }
        "unary.DiscoveryResponse" => {
            let found = Whereabouts::from_wire(decode(bytes));
            assert_eq!(Whereabouts::from_wire(found.to_wire()), found, "{place}");
        }
        // Nothing is read of them but who leads.
        _ => {}
    }
}

fn decode<M: Message + Default>(bytes: &[u8]) -> M {
    M::decode(bytes).expect("a message of its kind")
}
