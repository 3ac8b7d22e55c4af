//! The bodies of the fuzz targets: each reads bytes as something that comes from others, and says what became of it.
//!
//! Nothing panics; what is understood is understood the same when it is said again, where it can be; and what is refused is told
//! with a reason.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use lessor_proto::message::{
    Answer, Ask, Down, Hello, HolderKind, Limits, Release, Up, WallClock, Whereabouts,
};
use lessor_proto::{Epoch, Time, wire};
use lessor_server::access::Access;
use lessor_server::access::NamePattern;
use lessor_server::access::bearer::Passport;
use lessor_server::election::state::{Clock, State};
use lessor_server::node::NodeConfig;
use lessor_server::overrides::Override;
use lessor_server::repository::{Glob, Repository};
use lessor_server::revision::{
    BadRevision, Digest, LastGood, PushFreeze, Revision, RevisionDocument, RevisionHead, TaskReport, unpack,
};
use lessor_server::shell::source::Document;
use lessor_server::shell::{Server, ServerOptions};
use lessor_server::token::{Key, PolledLease, TokenKeys};
use prost::Message;

/// The outcome of an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    Understood,
    Refused,
}

use Outcome::{Refused, Understood};

/// A target: its name, and its body.
pub type Target = (&'static str, fn(&[u8]) -> Outcome);

/// All targets.
pub const TARGETS: [Target; 9] = [
    ("wire", read_wire),
    ("state", read_state),
    ("token", read_token),
    ("templates", read_templates),
    ("access", read_access),
    ("keys", read_keys),
    ("glob", read_glob),
    ("path", read_path),
    ("value", read_value),
];

/// The kinds of message on the wire; the first byte of an input says which it is.
pub const KINDS: [&str; 10] = [
    "up.hello",
    "up.client",
    "up.node",
    "down",
    "unary.GetCapacityRequest",
    "unary.GetServerCapacityRequest",
    "unary.ReleaseCapacityRequest",
    "unary.GetCapacityResponse",
    "unary.GetServerCapacityResponse",
    "unary.DiscoveryResponse",
];

/// The kinds of value that stand at etcd beside the record, or in the file of the last good revision; the first byte of an input
/// says which it is.
pub const VALUES: [&str; 7] = ["revision", "head", "freeze", "report", "override", "last", "blob"];

/// The name of the node of which a state is.
pub const NODE: &str = "root";

/// The text that a packed document should have.
pub const BLOB: &str = "resources: [{identifier_glob: '*', capacity: 5}]\n";

const NOON: WallClock = WallClock { since_epoch: Duration::from_secs(1_790_000_000) };

/// Whether it was understood; what is refused has a reason.
fn told<T, E: std::fmt::Display>(read: &Result<T, E>) -> Outcome {
    match read {
        Ok(_) => Understood,
        Err(fault) => {
            assert!(!fault.to_string().is_empty(), "it is refused without a reason");
            Refused
        }
    }
}

/// A message as prost reads it, and then as the server or the client does.
pub fn read_wire(data: &[u8]) -> Outcome {
    let Some((&first, bytes)) = data.split_first() else { return Refused };
    read_message(KINDS[usize::from(first) % KINDS.len()], bytes).unwrap_or(Refused)
}

/// Absent: it is no message at all.
fn read_message(kind: &str, bytes: &[u8]) -> Option<Outcome> {
    let limits = Limits::default();
    let outcome = match kind {
        "up.hello" => {
            let hello = Hello::first(Message::decode(bytes).ok()?, &limits);
            if let Ok(hello) = &hello {
                let again = Hello::first(Up::Hello(hello.clone()).to_wire(hello.kind), &limits);
                assert_eq!(again.as_ref(), Ok(hello));
            }
            told(&hello)
        }
        "up.client" | "up.node" => {
            let holder = if kind == "up.node" { HolderKind::Node } else { HolderKind::Client };
            let up = Up::from_wire(Message::decode(bytes).ok()?, &limits, holder);
            if let Ok(Some(up)) = &up {
                let again = Up::from_wire(up.to_wire(holder), &limits, holder);
                assert_eq!(again.as_ref(), Ok(&Some(up.clone())));
            }
            told(&up)
        }
        "down" => {
            let down = Down::from_wire(Message::decode(bytes).ok()?, NOON);
            if let Ok(Some(down)) = &down {
                let again = Down::from_wire(down.to_wire(HolderKind::Node, NOON), NOON);
                assert!(matches!(again, Ok(Some(_))), "{down:?} {again:?}");
            }
            told(&down)
        }
        "unary.GetCapacityRequest" => {
            let ask = Ask::from_client(Message::decode(bytes).ok()?, &limits);
            if let Ok(ask) = &ask {
                assert_eq!(Ask::from_client(ask.to_wire(), &limits).as_ref(), Ok(ask));
            }
            told(&ask)
        }
        "unary.GetServerCapacityRequest" => {
            let ask = Ask::from_node(Message::decode(bytes).ok()?, &limits);
            if let Ok(ask) = &ask {
                assert_eq!(Ask::from_node(ask.to_node_wire(), &limits).as_ref(), Ok(ask));
            }
            told(&ask)
        }
        "unary.ReleaseCapacityRequest" => {
            let release = Release::from_wire(Message::decode(bytes).ok()?, &limits);
            if let Ok(release) = &release {
                assert_eq!(Release::from_wire(release.to_wire(), &limits).as_ref(), Ok(release));
            }
            told(&release)
        }
        "unary.GetCapacityResponse" => told(&Answer::from_wire(Message::decode(bytes).ok()?, NOON)),
        "unary.GetServerCapacityResponse" => {
            told(&Answer::from_node_wire(Message::decode(bytes).ok()?, NOON))
        }
        _ => {
            let found = Whereabouts::from_wire(wire::DiscoveryResponse::decode(bytes).ok()?);
            assert_eq!(Whereabouts::from_wire(found.to_wire()), found);
            Understood
        }
    };
    Some(outcome)
}

/// The file of a state directory, and with it the values of the record as they are at etcd. What its seal would keep out is read too.
pub fn read_state(data: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(data) else { return Refused };
    told(&State::decode(text, NODE));
    let body = text.rsplit_once("\nblake3 ").map_or(text, |(body, _)| body);
    let body = format!("{body}\n");
    let sealed = format!("{body}blake3 {}\n", blake3::hash(body.as_bytes()).to_hex());
    let decoded = State::decode(&sealed, NODE);
    if let Ok((state, clock)) = &decoded {
        // What it says is written again, and is the same.
        let again = State::decode(&state.encode(clock), NODE);
        let (again, _) = again.unwrap_or_else(|fault| panic!("{fault} of what was read: {sealed}"));
        assert_eq!(again.read().ok(), state.read().ok());
        let machine = Clock { boot: None, at: Time::ZERO };
        told(&State::left(sealed.as_bytes(), NODE, &machine));
    }
    match told(&State::decode(&sealed_again(text), NODE)) {
        Understood => Understood,
        _ => told(&decoded),
    }
}

/// A file that grows, each part of which is sealed again, with its length.
fn sealed_again(text: &str) -> String {
    let body = |part: &str| part.rsplit_once("\nblake3 ").map_or(part, |(body, _)| body).to_owned() + "\n";
    let mut parts = text.split("\nmore ");
    let mut sealed = body(parts.next().unwrap_or_default());
    let mut seal = format!("blake3 {}", blake3::hash(sealed.as_bytes()).to_hex());
    sealed += &format!("{seal}\n");
    for part in parts {
        let body = body(part.split_once('\n').map_or("", |(_, rest)| rest));
        seal = format!("blake3 {}", blake3::hash(format!("{seal}\n{body}").as_bytes()).to_hex());
        let length = body.len() + seal.len() + 1;
        sealed += &format!("more {length} {length}\n{body}{seal}\n");
    }
    sealed
}

/// Tokens of leases, and those that say who calls.
pub fn read_token(data: &[u8]) -> Outcome {
    let keys = TokenKeys::new(Key::new([7; 32]));
    let lease = PolledLease::read(data).is_ok();
    let Ok(text) = std::str::from_utf8(data) else { return if lease { Understood } else { Refused } };
    let passport = Passport::read(text);
    if let Ok(passport) = &passport {
        let again = Passport::read(&passport.seal(&keys)).expect("it has just been sealed");
        assert_eq!(&again, passport);
        // Nobody has the key.
        assert!(Passport::open(text, &keys, 0).is_err(), "{text}");
    }
    if lease { Understood } else { told(&passport) }
}

/// A configuration.
pub fn read_templates(data: &[u8]) -> Outcome {
    std::str::from_utf8(data).map_or(Refused, |text| told(&Repository::parse("x.yaml", text)))
}

/// Rules of access.
pub fn read_access(data: &[u8]) -> Outcome {
    std::str::from_utf8(data).map_or(Refused, |text| told(&Access::parse("x.yaml", text)))
}

/// A file of keys.
pub fn read_keys(data: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(data) else { return Refused };
    told(&<TokenKeys as Document>::parse("x.key", text))
}

/// A pattern, in the first line, and a name that it is held against in the second.
pub fn read_glob(data: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(data) else { return Refused };
    let (pattern, name) = text.split_once('\n').unwrap_or((text, ""));
    let glob = Glob::new(pattern);
    if let Ok(glob) = &glob {
        assert!(!glob.is_plain() || !glob.matches(name) || name == pattern, "{pattern:?} {name:?}");
        let _ = glob.matches(name);
    }
    if let Ok(pattern) = &NamePattern::new(pattern) {
        assert!(!pattern.to_string().is_empty() || text.starts_with('\n') || text.is_empty());
    }
    told(&glob)
}

/// A value that an operator or a task writes for others to read.
pub fn read_value(data: &[u8]) -> Outcome {
    let Some((&first, bytes)) = data.split_first() else { return Refused };
    match VALUES[usize::from(first) % VALUES.len()] {
        "revision" => same(bytes, |bytes| Ok(Revision::decode("k", bytes)?.0), |it| it.encode("k")),
        "head" => same(bytes, |bytes| RevisionHead::decode("k", bytes), |it| Ok(it.encode())),
        "freeze" => same(bytes, |bytes| PushFreeze::decode("k", bytes), |it| Ok(it.encode())),
        "report" => same(bytes, |bytes| TaskReport::decode("k", bytes), |it| Ok(it.encode())),
        "override" => same(bytes, |bytes| Override::decode("k/a1", bytes), |it| Ok(it.encode())),
        "last" => same(bytes, |bytes| LastGood::decode("k", "/lessor", NODE, bytes), |it| Ok(it.encode())),
        _ => {
            // What it unpacks to need not be the text that was wanted, and is no longer than that was to be.
            let (nodes, name) = ("*".to_owned(), "x.yaml".to_owned());
            let document = RevisionDocument { nodes, name, blob: Digest::of(BLOB), bytes: BLOB.len() as u64 };
            told(&unpack("k", &document, bytes))
        }
    }
}

/// A value that is read is the same when it is written and read again, unless it is one that nobody would write.
fn same<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, BadRevision>,
    encode: impl Fn(&T) -> Result<String, BadRevision>,
) -> Outcome {
    let read = decode(bytes);
    if let Ok(value) = &read
        && let Ok(text) = encode(value)
    {
        assert_eq!(decode(text.as_bytes()).as_ref(), Ok(value), "{text}");
    }
    told(&read)
}

/// The server that paths are asked of.
static SERVER: OnceLock<(SocketAddr, tokio::runtime::Runtime, Server)> = OnceLock::new();

fn server() -> SocketAddr {
    let (address, ..) = SERVER.get_or_init(|| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let options = ServerOptions::new(([127, 0, 0, 1], 0).into());
        let config = NodeConfig::new(NODE, Epoch(1));
        let server = runtime.block_on(Server::start(options, config, Repository::default()));
        let server = server.expect("it starts");
        (server.address(), runtime, server)
    });
    *address
}

/// The path of a page, with its query, and headers after it: whatever they are, they are answered, and the server goes on.
pub fn read_path(data: &[u8]) -> Outcome {
    let (path, headers) = match data.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &b""[..]),
    };
    let mut socket = TcpStream::connect(server()).expect("the server takes connections");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let request = [
        b"GET /",
        path,
        b" HTTP/1.1\r\nHost: here\r\nConnection: close\r\n",
        headers,
        // Whatever the headers have begun ends.
        b"\r\n\r\n",
    ];
    // It may have had enough before the end.
    let _ = socket.write_all(&request.concat()).and_then(|()| socket.shutdown(std::net::Shutdown::Write));
    let mut answer = Vec::new();
    let read = socket.read_to_end(&mut answer);
    assert!(!read.is_err_and(|fault| is_late(fault.kind())), "no answer in time");
    let code = answer.get(9..12).and_then(|code| std::str::from_utf8(code).ok()?.parse::<u16>().ok());
    assert!(code.is_none_or(|code| code < 500), "{}", String::from_utf8_lossy(&answer));
    if code == Some(200) { Understood } else { Refused }
}

fn is_late(kind: std::io::ErrorKind) -> bool {
    matches!(kind, std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
