//! The clients: streams over some connections, which adopt what they are granted and acknowledge what is recalled.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire;
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::wire::session_down::Message as Down;
use lessor_proto::wire::session_up_request::Message as Up;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};

/// Streams that are being opened at one moment where they do not all come at once.
const OPENING: usize = 64;
/// The interval at which idle clients send heartbeats, as servers ask for.
const IDLE: Duration = Duration::from_secs(5);
/// The longest wait for anything.
const AGES: Duration = Duration::from_secs(60);
/// Tries to open a stream, and the pause between two.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);
/// The longest wait for the answer to a heartbeat: what two of them take at the interval that servers ask for.
const SILENCE: Duration = Duration::from_secs(10);

/// The clients that there are, and their connections.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) streams: usize,
    pub(crate) connections: usize,
}

/// All streams.
pub(crate) struct Fleet {
    /// The orders to all of them.
    orders: watch::Sender<Orders>,
    tally: Arc<Tally>,
    /// The last grant to the first of them, in units.
    first: watch::Receiver<f64>,
    /// Wants of the first, told to it.
    wants: mpsc::UnboundedSender<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orders {
    /// Listens, and acknowledges.
    Listen,
    /// Sends the next heartbeat when one is answered.
    Beat,
    /// The same, with a report of other wants in each.
    Report,
    /// Sends a heartbeat now and then.
    Idle,
}

#[derive(Default)]
struct Tally {
    answers: AtomicU64,
    /// Clients that have had nearly what they want or their share.
    fed: AtomicU64,
    grants: AtomicU64,
    /// Heartbeats that were sent, and that were answered.
    beats: AtomicU64,
    replies: AtomicU64,
    /// Streams that have ended.
    ended: AtomicU64,
    /// Tries to open a stream that failed.
    tries: AtomicU64,
}

/// The time until one had its share, and its cost.
pub(crate) struct Fed {
    /// In seconds.
    pub(crate) took: f64,
    /// Grants to all of them meanwhile, and in a second after that.
    pub(crate) grants: u64,
}

/// The place of one client in the fleet.
struct Membership {
    orders: watch::Receiver<Orders>,
    tally: Arc<Tally>,
    wants: f64,
    /// Of the first of them.
    shows: Option<(watch::Sender<f64>, mpsc::UnboundedReceiver<f64>)>,
}

type Ups = mpsc::Sender<wire::SessionUpRequest>;
type Downs = Streaming<wire::SessionDown>;

/// One client.
struct Client {
    ups: Ups,
    downs: Downs,
    membership: Membership,
    lease: Option<wire::Lease>,
    number: usize,
    reports: u64,
    /// It has had nearly what it wants or its share.
    is_fed: bool,
}

fn endpoint(server: SocketAddr) -> Endpoint {
    Channel::from_shared(format!("http://{server}")).expect("an address").tcp_nodelay(true)
}

// === impl Fleet ===

impl Fleet {
    /// Opens the streams, some at a time over connections that stand.
    pub(crate) async fn open(server: SocketAddr, size: Size) -> Fleet {
        let endpoint = endpoint(server);
        let mut channels = Vec::new();
        for _ in 0..size.connections {
            channels.push(endpoint.connect().await.expect("it listens"));
        }
        Fleet::over(&channels, size.streams, OPENING).await
    }

    /// Opens the streams all at one moment, and their connections with them.
    pub(crate) async fn rush(server: SocketAddr, size: Size) -> Fleet {
        let endpoint = endpoint(server);
        let channels: Vec<Channel> = (0..size.connections).map(|_| endpoint.connect_lazy()).collect();
        Fleet::over(&channels, size.streams, size.streams).await
    }

    /// Opens so many streams, `at_once` of them at one moment.
    async fn over(channels: &[Channel], streams: usize, at_once: usize) -> Fleet {
        let (orders, told) = watch::channel(Orders::Listen);
        let (shows, first) = watch::channel(0.0);
        let (wants, wanted) = mpsc::unbounded_channel();
        let mut shows = Some((shows, wanted));
        let tally = Arc::new(Tally::default());
        let (opening, mut tasks) = (Arc::new(Semaphore::new(at_once)), tokio::task::JoinSet::new());
        for number in 0..streams {
            let (channel, opening) = (channels[number % channels.len()].clone(), Arc::clone(&opening));
            let (orders, tally, shows) = (told.clone(), Arc::clone(&tally), shows.take());
            tasks.spawn(async move {
                let permit = opening.acquire_owned().await.expect("it is never closed");
                // The first one has two fifths of its share.
                let wants = if number == 0 { 0.2 * crate::WANTS } else { crate::WANTS };
                let mut client =
                    Client::open(channel, number, Membership { orders, tally, wants, shows }).await;
                client.report(true).await;
                client.hear().await;
                drop(permit);
                tokio::spawn(client.run());
            });
        }
        while let Some(opened) = tokio::time::timeout(AGES, tasks.join_next()).await.expect("in time") {
            opened.expect("no task panics");
        }
        Fleet { orders, tally, first, wants }
    }

    /// Until everybody has had what it wants or its share, nearly.
    pub(crate) async fn fed(&self, streams: usize) {
        let end = clock::now() + AGES;
        while self.tally.fed.load(Ordering::Relaxed) < streams as u64 {
            assert!(
                clock::now() < end,
                "{} of {streams} have their share",
                self.tally.fed.load(Ordering::Relaxed)
            );
            clock::sleep_until(clock::now() + Duration::from_millis(10)).await;
        }
    }

    /// Everybody does as ordered for one turn. Returns how many answers there were.
    pub(crate) async fn run(&mut self, orders: Orders, turn: Duration) -> u64 {
        let before = self.tally.answers.load(Ordering::Relaxed);
        self.orders.send_replace(orders);
        clock::sleep_until(clock::now() + turn).await;
        self.orders.send_replace(Orders::Listen);
        let answers = self.tally.answers.load(Ordering::Relaxed) - before;
        let end = clock::now() + SILENCE;
        while clock::now() < end && self.faults().1 > 0 {
            clock::sleep_until(clock::now() + Duration::from_millis(50)).await;
        }
        clock::sleep_until(clock::now() + Duration::from_millis(200)).await;
        answers
    }

    /// The grants that came to all of them so far.
    pub(crate) fn grants(&self) -> u64 {
        self.tally.grants.load(Ordering::Relaxed)
    }

    /// The tries to open a stream that failed.
    pub(crate) fn failed_tries(&self) -> u64 {
        self.tally.tries.load(Ordering::Relaxed)
    }

    /// The streams that have ended, and the heartbeats that were not answered.
    pub(crate) fn faults(&self) -> (u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.tally.ended), of(&self.tally.beats).saturating_sub(of(&self.tally.replies)))
    }

    /// The first one wants three times as much, until it has its share of that.
    pub(crate) async fn starve(&mut self, streams: usize) -> Fed {
        // Whoever came early has given back by then what later ones are due.
        self.run(Orders::Beat, Duration::from_secs(2)).await;
        clock::sleep_until(clock::now() + Duration::from_secs(2)).await;
        let (grants, start) = (self.tally.grants.load(Ordering::Relaxed), clock::now());
        let share = crate::WANTS / 2.0;
        self.wants.send(1.2 * share).expect("the first one listens");
        let fed = self.first.wait_for(|has| *has >= 0.98 * share);
        tokio::time::timeout(AGES, fed)
            .await
            .unwrap_or_else(|_| panic!("not fed, of {streams}"))
            .expect("it lives");
        let took = clock::now().since(start).as_secs_f64();
        clock::sleep_until(clock::now() + Duration::from_secs(1)).await;
        Fed { took, grants: self.tally.grants.load(Ordering::Relaxed) - grants }
    }
}

// === impl Client ===

impl Client {
    /// Tries again, as every client does, when the system has no room for one more connection at this moment.
    async fn open(channel: Channel, number: usize, membership: Membership) -> Client {
        for _ in 0..TRIES {
            if let Ok((ups, downs)) = Client::try_open(channel.clone(), number).await {
                let mut client =
                    Client { ups, downs, membership, lease: None, number, reports: 0, is_fed: false };
                client.hear().await;
                return client;
            }
            membership.tally.tries.fetch_add(1, Ordering::Relaxed);
            clock::sleep_until(clock::now() + PAUSE).await;
        }
        panic!("client {number} is not welcome, {TRIES} times")
    }

    async fn try_open(channel: Channel, number: usize) -> Result<(Ups, Downs), Status> {
        let (ups, said) = mpsc::channel(8);
        let hello = wire::HelloRequest {
            id: Some(format!("client-{number}")),
            incarnation: Some(number as u64 + 1),
            ..wire::HelloRequest::default()
        };
        ups.send(wire::SessionUpRequest { message: Some(Up::Hello(hello)) }).await.expect("it has room");
        let mut server = CapacityClient::new(channel);
        let opened = server.session(ReceiverStream::new(said));
        let downs = tokio::time::timeout(AGES, opened).await.expect("in time")?.into_inner();
        Ok((ups, downs))
    }

    async fn run(mut self) {
        let mut orders = Orders::Listen;
        // They do not all send their heartbeats at one moment.
        let mut next = clock::now() + IDLE.mul_f64(self.number as f64 * 0.618 % 1.0);
        loop {
            let wants = async {
                match &mut self.membership.shows {
                    Some((_, wanted)) => wanted.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = self.membership.orders.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    orders = *self.membership.orders.borrow_and_update();
                    match orders {
                        Orders::Beat | Orders::Report => self.go_round(orders).await,
                        Orders::Idle => next = next.max(clock::now()),
                        Orders::Listen => {}
                    }
                }
                () = clock::sleep_until(next), if orders == Orders::Idle => {
                    next += IDLE;
                    self.beat().await;
                }
                Some(wants) = wants => {
                    self.membership.wants = wants;
                    self.report(false).await;
                }
                down = self.downs.message() => {
                    let Ok(Some(down)) = down else {
                        self.membership.tally.ended.fetch_add(1, Ordering::Relaxed);
                        return;
                    };
                    if self.take(down).await {
                        self.membership.tally.replies.fetch_add(1, Ordering::Relaxed);
                        if matches!(orders, Orders::Beat | Orders::Report) {
                            self.membership.tally.answers.fetch_add(1, Ordering::Relaxed);
                            self.go_round(orders).await;
                        }
                    }
                }
            }
        }
    }

    /// Sends the next one of a closed loop.
    async fn go_round(&mut self, orders: Orders) {
        if orders == Orders::Beat {
            return self.beat().await;
        }
        // A little more and a little less in turn: more than its share each time, but for the first.
        let by = if self.reports.is_multiple_of(2) { 1.01 } else { 1.0 / 1.01 };
        self.membership.wants *= by;
        self.membership.tally.beats.fetch_add(1, Ordering::Relaxed);
        self.report(true).await;
    }

    async fn hear(&mut self) {
        let down = tokio::time::timeout(AGES, self.downs.message()).await.expect("in time");
        let down = down.expect("the stream goes on").expect("a message");
        self.take(down).await;
    }

    /// Takes what came. Returns whether it answers a heartbeat.
    async fn take(&mut self, down: wire::SessionDown) -> bool {
        match down.message.expect("something") {
            Down::Renewed(_) => true,
            Down::Grants(grants) => {
                let is_last = grants.grant.is_empty();
                for grant in grants.grant {
                    self.membership.tally.grants.fetch_add(1, Ordering::Relaxed);
                    let wanted = grant.gets.ack_wanted == Some(true);
                    if let Some((shows, _)) = &self.membership.shows {
                        shows.send_replace(grant.gets.capacity());
                    }
                    if !self.is_fed
                        && grant.gets.capacity() >= 0.95 * self.membership.wants.min(crate::WANTS / 2.0)
                    {
                        self.is_fed = true;
                        self.membership.tally.fed.fetch_add(1, Ordering::Relaxed);
                    }
                    self.lease = Some(grant.gets);
                    if wanted {
                        self.report(false).await;
                    }
                }
                is_last
            }
            _ => false,
        }
    }

    async fn report(&mut self, beat: bool) {
        let resource = wire::ResourceRequest {
            resource_id: Some("db".to_owned()),
            priority: Some(0),
            wants: Some(self.membership.wants),
            has: self.lease.clone(),
            held: self.lease.as_ref().map(wire::Lease::capacity),
            ..wire::ResourceRequest::default()
        };
        self.say(vec![resource], beat).await;
    }

    async fn beat(&mut self) {
        self.membership.tally.beats.fetch_add(1, Ordering::Relaxed);
        self.say(Vec::new(), true).await;
    }

    async fn say(&mut self, resource: Vec<wire::ResourceRequest>, beat: bool) {
        self.reports += 1;
        let report = wire::ReportRequest {
            report_id: Some(self.reports),
            resource,
            renew_all: beat.then_some(true),
            ..wire::ReportRequest::default()
        };
        // A stream that has ended says so when it is heard.
        let _ = self.ups.send(wire::SessionUpRequest { message: Some(Up::Report(report)) }).await;
    }
}
