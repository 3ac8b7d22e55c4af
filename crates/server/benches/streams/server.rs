//! The servers, each in a process of its own: this program again, told by the environment which one to be.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::Stdio;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use lessor_proto::codec::SizedCodec;
use lessor_proto::wire::session_down::Message as Down;
use lessor_proto::wire::session_up_request::Message as Up;
use lessor_proto::{Amount, Epoch, wire};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Glob, Repository, Template};
use lessor_server::shell::{Server, ServerOptions};
use rustix::time::{ClockId, clock_gettime};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Context, Poll, Service, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

const WHICH: &str = "LESSOR_BENCH_SERVER";
const STREAMS: &str = "LESSOR_BENCH_STREAMS";
/// The ticks of processor time in a second, and the bytes of a page of memory, as the kernel counts both.
const TICKS: f64 = 100.0;
const PAGE: f64 = 4096.0;

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Echo,
    Lessor,
    /// The same, which tells how long its turns are in processor time: that is two system calls for each.
    Metered,
}

/// A server in a process of its own, which ends when this is dropped.
pub(crate) struct Child {
    process: std::process::Child,
    address: SocketAddr,
    kind: Kind,
}

// === impl Kind ===

impl Kind {
    /// The server that this process was told to be; absent: it is the load generator.
    pub(crate) fn of_this_process() -> Option<Kind> {
        match std::env::var(WHICH).ok()?.as_str() {
            "echo" => Some(Kind::Echo),
            "lessor" => Some(Kind::Lessor),
            "metered" => Some(Kind::Metered),
            other => panic!("{WHICH} is {other:?}; wanted echo, lessor or metered"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Echo => "echo",
            Kind::Lessor => "lessor",
            Kind::Metered => "metered",
        }
    }
}

// === impl Child ===

impl Child {
    pub(crate) fn start(kind: Kind, streams: usize) -> Child {
        let mut process = std::process::Command::new(std::env::current_exe().expect("this program"))
            .env(WHICH, kind.name())
            .env(STREAMS, streams.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let said = process.stdout.take().expect("it was piped");
        let line = BufReader::new(said).lines().next().expect("it says something");
        let address = line.expect("it says its address").parse().expect("an address");
        Child { process, address, kind }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it grants anything.
    pub(crate) fn grants(&self) -> bool {
        self.kind != Kind::Echo
    }

    /// The processor time that it has used, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        let stat = self.proc("stat");
        let (_, rest) = stat.rsplit_once(')').expect("a name in parentheses");
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |index: usize| fields[index].parse::<f64>().expect("ticks");
        (ticks(11) + ticks(12)) / TICKS
    }

    /// The memory that it has in use, in bytes.
    pub(crate) fn memory(&self) -> f64 {
        let pages = self.proc("statm");
        pages.split_whitespace().nth(1).expect("resident pages").parse::<f64>().expect("a number") * PAGE
    }

    fn proc(&self, file: &str) -> String {
        let process = self.process.id();
        std::fs::read_to_string(format!("/proc/{process}/{file}")).expect("a process of ours")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Serves until nobody holds the other end of the standard input.
pub(crate) async fn run(kind: Kind) {
    let streams: usize = std::env::var(STREAMS).expect("how many").parse().expect("a number");
    match kind {
        Kind::Echo => {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            println!("{}", listener.local_addr().expect("an address"));
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            let server = tonic::transport::Server::builder().add_service(Echo);
            tokio::spawn(server.serve_with_incoming(incoming));
            end_of_input().await;
        }
        Kind::Lessor | Kind::Metered => {
            let mut options = ServerOptions::new(([127, 0, 0, 1], 0).into());
            options.streams = streams + 10;
            // All of them come from one address.
            options.connections = 2 * (streams + 1_000);
            options.meter = (kind == Kind::Metered).then_some(processor_time);
            let capacity = Amount::from_f64(streams as f64 * crate::WANTS / 2.0);
            let template = Template::new(Glob::new("*").expect("a glob"), capacity);
            let repository = Repository::new(vec![template]).expect("one template");
            let mut config = NodeConfig::new("root", Epoch(1));
            config.clients_per_resource = streams + 10;
            let server = Server::start(options, config, repository).await.expect("a port");
            println!("{}", server.address());
            end_of_input().await;
        }
    }
}

/// The processor time that this thread has had.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

async fn end_of_input() {
    // It ends either way.
    let read = || std::io::stdin().read_to_end(&mut Vec::new());
    let _ = tokio::task::spawn_blocking(read).await;
}

/// Answers each message with the one that a server would send, without looking further. Its buffers are those that tonic sets
/// aside for a call if nothing else is said.
#[derive(Clone)]
struct Echo;

type Answers = Pin<Box<dyn Stream<Item = Result<wire::SessionDown, Status>> + Send>>;
type Codec = SizedCodec<wire::SessionDown, wire::SessionUpRequest, { 8 << 10 }>;

impl NamedService for Echo {
    const NAME: &'static str = "doorman.Capacity";
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async { Ok(Grpc::new(Codec::default()).streaming(Echo, request).await) })
    }
}

impl StreamingService<wire::SessionUpRequest> for Echo {
    type Response = wire::SessionDown;
    type ResponseStream = Answers;
    type Future = BoxFuture<Response<Answers>, Status>;

    fn call(&mut self, request: Request<Streaming<wire::SessionUpRequest>>) -> Self::Future {
        let answer = |up: Result<wire::SessionUpRequest, Status>| {
            let down = match up?.message {
                Some(Up::Hello(_)) => Down::Welcome(wire::Welcome { epoch: 1, ..wire::Welcome::default() }),
                Some(Up::Report(report)) => {
                    Down::Renewed(wire::Renewed { basis: report.report_id(), grants_sent: 1 })
                }
                other => return Err(Status::invalid_argument(format!("{other:?}"))),
            };
            Ok(wire::SessionDown { message: Some(down) })
        };
        let answers: Answers = Box::pin(request.into_inner().map(answer));
        Box::pin(async { Ok(Response::new(answers)) })
    }
}
