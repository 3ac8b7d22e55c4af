//! Instructions of the server for one `GetCapacity` call, beside those of a bare tonic echo, counted by callgrind.
//!
//! `cargo bench -p lessor-server --features rustix/use-libc --bench calls`, with `valgrind` installed; times say little where
//! other work goes on, and instructions are nearly the same from run to run. Without that feature clocks are read where
//! valgrind has taken the memory away. Under it each read is a call of the kernel, which counts for next to nothing here.
//!
//! The server has a thread of its own, and nothing but that thread is counted: sockets, HTTP/2, tonic, and what is behind it,
//! without the kernel and without the client. Two runs of unlike length tell what one call takes.
//! `calls FOLDER` keeps what callgrind has written there, for `callgrind_annotate`.

mod echo;
#[allow(dead_code, reason = "other benches use the rest")]
mod population;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, thread};

use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::{Amount, Epoch};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Glob, Repository, Template};
use lessor_server::shell::{Server, ServerOptions};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Channel;
use tonic::transport::server::TcpIncoming;

const CLIENTS: usize = 1_000;
/// Calls of the shorter run and of the longer one, after every client has called once.
const RUNS: [usize; 2] = [1_000, 5_000];
const SERVERS: [&str; 2] = ["echo", "lessor"];

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match &arguments[..] {
        [run, server, calls] if run == "run" => call(server, calls.parse().expect("a number of calls")),
        [] => {
            let folder = tempfile::tempdir().expect("a folder");
            count(folder.path());
        }
        [folder] => count(Path::new(folder)),
        _ => panic!("{arguments:?}: wanted nothing, or a folder"),
    }
}

/// Counts both, and says what comes of it.
fn count(folder: &Path) {
    let [echo, lessor] = SERVERS.map(|server| {
        let [short, long] = RUNS.map(|calls| instructions(folder, server, calls));
        (long - short) as f64 / (RUNS[1] - RUNS[0]) as f64
    });
    println!("{:>12} {:>12} {:>12}", "echo", "Lessor", "more");
    println!("{echo:>12.0} {lessor:>12.0} {:>12.0}", lessor - echo);
}

/// The instructions of the thread of a server to which so many calls come.
fn instructions(folder: &Path, server: &str, calls: usize) -> u64 {
    let out = folder.join(format!("{server}-{calls}"));
    let status = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", "--separate-threads=yes"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env::current_exe().expect("this program"))
        .args(["run", server, &calls.to_string()])
        .status()
        .expect("valgrind is installed");
    assert!(status.success(), "{server} under valgrind: {status}");
    // The first thread is the client.
    let text = fs::read_to_string(format!("{}-02", out.display())).expect("what callgrind has written");
    let totals = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("totals");
    totals.trim().parse().expect("a number of instructions")
}

/// Calls a server on another thread from all clients once, and then so many times.
fn call(server: &str, calls: usize) {
    let (tell, told) = mpsc::channel();
    let serves: fn(&mpsc::Sender<SocketAddr>) = match server {
        "echo" => echo,
        "lessor" => lessor,
        other => panic!("{other:?}: wanted one of {SERVERS:?}"),
    };
    thread::spawn(move || serves(&tell));
    let address = told.recv().expect("the server begins");
    runtime().block_on(async {
        let channel = Channel::from_shared(format!("http://{address}")).expect("an address");
        let mut client = CapacityClient::new(channel.tcp_nodelay(true).connect().await.expect("it listens"));
        for number in 0..CLIENTS + calls {
            let number = number * 389 % CLIENTS;
            let request = population::ask(number, 10.0 + (number % 17) as f64).to_wire();
            let response = client.get_capacity(request).await.expect("it answers");
            assert_eq!(response.into_inner().response.len(), 1);
        }
    });
}

fn echo(tell: &mpsc::Sender<SocketAddr>) {
    runtime().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        tell.send(listener.local_addr().expect("an address")).expect("the client waits");
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        echo::service().serve_with_incoming(incoming).await.expect("it serves");
    });
}

fn lessor(tell: &mpsc::Sender<SocketAddr>) {
    runtime().block_on(async {
        let options = ServerOptions::new(([127, 0, 0, 1], 0).into());
        // Under valgrind and a load a run takes minutes, in which no lease is to end.
        let lease_length = Duration::from_secs(24 * 3_600);
        let capacity = Amount::from_units(1_000_000);
        let template = Template { lease_length, ..Template::new(Glob::new("*").expect("a glob"), capacity) };
        let repository = Repository::new(vec![template]).expect("one template that holds together");
        let server = Server::start(options, NodeConfig::new("root", Epoch(1)), repository).await;
        let server = server.expect("a port");
        tell.send(server.address()).expect("the client waits");
        server.broken().await;
    });
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}
