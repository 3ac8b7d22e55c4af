//! Handshakes: each in a task of its own, within some time, so many at once.
//!
//! A connection that says nothing costs nothing but its place: only who has said hello counts among those that are at work.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::ready;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::internals::tls::identity;
use lessor_proto::{Identity, Time};
use rustls::server::Acceptor as Hello;
use rustls::{AlertDescription, Error, InvalidMessage};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

use super::ServerTls;
use crate::shell::address_budget::AddressBudget;
use crate::shell::measure::{Counts, Label};
use crate::shell::port_name::Port;

/// Handshakes at work at once, of one port: those of a few addresses do not fill it.
const MOST: usize = 1_024;
/// The time for the hello, and then the one for the rest. The wait for others that are at work is not counted.
const HALF: Duration = Duration::from_secs(5);
/// The longest wait for others from the same address that are at work, after which nobody is there any more.
const TURN: Duration = Duration::from_secs(10);
/// The interval at which the log says that handshakes fail.
const TOLD: Duration = Duration::from_secs(10);

/// The outcomes of handshakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shell) enum Ended {
    /// The connection is there.
    Done,
    /// The client's certificate was refused, or none was shown.
    Refused,
    /// Something was said that is no TLS.
    Plain,
    /// It took too long.
    Slow,
    /// Too many of its address came before it.
    Limited,
    /// Anything else: the client has left, or refuses the server.
    Failed,
}

/// The number of handshakes since the start, by their outcome.
#[derive(Debug, Default)]
pub(in crate::shell) struct Handshakes {
    counts: Counts<Ended>,
    /// The time at which the log said last that one has failed.
    told: Mutex<Option<Time>>,
}

/// The handshakes of a port.
#[derive(Clone, Debug)]
pub(in crate::shell) struct HandshakeGuard {
    tls: Arc<ServerTls>,
    port: Port,
    at_work: Arc<Semaphore>,
    /// The turns of those that compute: a signature is long, and others are to be served meanwhile.
    computing: Arc<Semaphore>,
    /// The time for each half of a handshake.
    half: Duration,
}

// === impl Ended ===

impl Ended {
    fn of(fault: &io::Error) -> Ended {
        if fault.kind() == io::ErrorKind::TimedOut {
            return Ended::Slow;
        }
        if fault.kind() == io::ErrorKind::ResourceBusy {
            return Ended::Limited;
        }
        match fault.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) {
            Some(Error::InvalidCertificate(_) | Error::NoCertificatesPresented) => Ended::Refused,
            Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => Ended::Plain,
            _ => Ended::Failed,
        }
    }
}

impl Label for Ended {
    const NAME: &'static str = "result";
    const VALUES: &'static [&'static str] = &["done", "refused", "plain", "slow", "limited", "failed"];

    fn place(self) -> usize {
        self as usize
    }
}

// === impl Handshakes ===

impl Handshakes {
    /// The counts by outcome.
    pub(in crate::shell) fn counts(&self) -> &Counts<Ended> {
        &self.counts
    }

    fn note(&self, ended: Ended) {
        self.counts.add(ended);
    }

    /// Counts a failure, and says it: seldom aloud, as anybody may cause them.
    fn failed(&self, address: SocketAddr, fault: &io::Error) {
        self.note(Ended::of(fault));
        let cause = explain(fault);
        let (now, mut told) = (clock::now(), self.told.lock().unwrap_or_else(PoisonError::into_inner));
        if told.is_some_and(|at| now.since(at) < TOLD) {
            debug!(%address, %cause, "handshake failed");
        } else {
            *told = Some(now);
            warn!(%address, %cause, "handshake failed; more of them are said at debug for a while, and counted");
        }
    }
}

// === impl HandshakeGuard ===

impl HandshakeGuard {
    pub(in crate::shell) fn new(tls: Arc<ServerTls>, port: Port) -> HandshakeGuard {
        // Half of the processors are for everybody else.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let [at_work, computing] =
            [MOST, (processors / 2).max(1)].map(|count| Arc::new(Semaphore::new(count)));
        HandshakeGuard { tls, port, at_work, computing, half: HALF }
    }

    /// Shakes hands, and says with whom; nothing if that fails.
    pub(in crate::shell) async fn shake(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        budget: &AddressBudget,
        handshakes: &Handshakes,
    ) -> Option<(TlsStream<TcpStream>, Identity)> {
        match self.try_to_shake(stream, budget).await {
            Ok(shaken) => {
                handshakes.note(Ended::Done);
                Some(shaken)
            }
            Err(fault) => {
                handshakes.failed(address, &fault);
                None
            }
        }
    }

    async fn try_to_shake(
        &self,
        stream: TcpStream,
        budget: &AddressBudget,
    ) -> io::Result<(TlsStream<TcpStream>, Identity)> {
        let slow = |_| io::Error::from(io::ErrorKind::TimedOut);
        let hello = timeout(self.half, LazyConfigAcceptor::new(Hello::default(), stream));
        let hello = hello.await.map_err(slow)??;
        let turn = timeout(TURN, budget.handshake()).await;
        let _turn = turn.map_err(|_| io::Error::from(io::ErrorKind::ResourceBusy))?;
        let _at_work = self.at_work.acquire().await.expect("nobody closes the semaphore");
        let rest = in_turns(&self.computing, hello.into_stream(self.tls.config(self.port)));
        let rest = timeout(self.half, rest);
        let stream = rest.await.map_err(slow)??;
        let first = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let identity = match first {
            None => Identity::anonymous(),
            // The verifier has refused what proves none.
            Some(certificate) => identity(certificate).map_err(io::Error::other)?,
        };
        Ok((stream, identity))
    }
}

/// Does `work` step by step, each of them when it has its turn.
async fn in_turns<F: Future>(turns: &Semaphore, work: F) -> F::Output {
    let (mut work, mut turn) = (pin!(work), None);
    poll_fn(|cx| {
        let acquired = turn.get_or_insert_with(|| Box::pin(turns.acquire()));
        let taken = ready!(acquired.as_mut().poll(cx));
        turn = None;
        let step = work.as_mut().poll(cx);
        drop(taken);
        step
    })
    .await
}

/// The cause of a failed handshake, for those who look for it in the log.
fn explain(fault: &io::Error) -> String {
    if fault.kind() == io::ErrorKind::TimedOut {
        return format!("it was not done in twice {HALF:?}");
    }
    if fault.kind() == io::ErrorKind::ResourceBusy {
        return format!("its turn did not come in {TURN:?}: there are too many from its address");
    }
    match fault.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "the client does not speak TLS; wanted https://".to_owned()
        }
        Some(Error::NoCertificatesPresented) => {
            "the client shows no certificate; wanted one of --tls-client-ca".to_owned()
        }
        Some(Error::InvalidCertificate(fault)) => format!("the client's certificate: {fault}"),
        Some(Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired),
        )) => format!("the client does not believe this server (alert {alert:?})"),
        _ => fault.to_string(),
    }
}
