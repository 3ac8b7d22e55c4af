//! Ten processes with doors that keep one limit together, counted at the target behind them: bursts at all of them at once, one
//! that is stopped for a while, and one that is killed.
//!
//! A window of seconds stands for the minute, so that it is over soon; with `LESSOR_TEN_DOORS_WINDOW=60` it is a minute.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::any;
use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use lessor_client::internals::clock;
use lessor_proto::Time;
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::front::{Door, Front};

const DOORS: usize = 10;
const LIMIT: usize = 100;
/// The callers at each door, who come together: more at all doors than the limit.
const CALLERS: usize = 12;
/// The interval of their bursts.
const BURSTS: Duration = Duration::from_millis(250);
/// Units are kept for so much of a window longer, as clocks may run fast: a hit that is that late is counted in its own window.
const KEPT_LONGER: u32 = 100;
const RESOURCE: &str = "ten/0|0:";

type HttpClient = Client<HttpConnector, Empty<Bytes>>;

/// A hit at the target.
#[derive(Clone, Copy, Debug)]
struct Hit {
    at: Time,
    /// When it was asked for: a door has granted it no earlier.
    asked: Time,
    door: usize,
}

/// The target that is limited, which counts by its own clock.
#[derive(Clone, Default)]
struct Target(Arc<Mutex<Vec<Hit>>>);

/// A caller, whose requests a door lets through to the target.
#[derive(Clone)]
struct Caller {
    http: HttpClient,
    door: usize,
    check: String,
    target: String,
    /// When the door went on after it was stopped: what it has granted since then was on its way from then on.
    resumed: Arc<Mutex<Time>>,
}

/// The hits of a run.
#[derive(Clone)]
struct Tally {
    hits: Vec<Hit>,
    window: Duration,
}

// === impl Target ===

impl Target {
    /// Serves on loopback. Returns the address.
    async fn serve(&self) -> String {
        let count = async |State(target): State<Target>, Path((door, asked)): Path<(usize, u64)>| {
            let (at, asked) = (clock::now(), Time::from_nanos(asked));
            target.0.lock().unwrap().push(Hit { at, asked, door });
        };
        let router = Router::new().route("/{door}/{asked}", any(count)).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async { axum::serve(listener, router).await });
        address
    }
}

// === impl Caller ===

impl Caller {
    /// Calls with each burst, until the door is not there any more.
    async fn call(self, began: Time) {
        loop {
            let bursts = clock::now().since(began).as_nanos() / BURSTS.as_nanos() + 1;
            clock::sleep_until(began + BURSTS * u32::try_from(bursts).unwrap()).await;
            let asked = clock::now();
            let Some(status) = self.get(&self.check).await else { return };
            match status {
                200 => {
                    let asked = asked.max(*self.resumed.lock().unwrap()).as_nanos();
                    let hit = format!("http://{}/{}/{asked}", self.target, self.door);
                    assert_eq!(self.get(&hit).await, Some(200));
                }
                // The limit is reached, or nothing is leased yet.
                429 | 503 => {}
                _ => panic!("{status} of {}", self.check),
            }
        }
    }

    /// The status of the answer, if anybody answers.
    async fn get(&self, address: &str) -> Option<u16> {
        let request =
            Request::get(address).header("x-forwarded-uri", "/").header("x-forwarded-method", "GET");
        let request = request.header("x-forwarded-host", "ten").body(Empty::new()).unwrap();
        self.http.request(request).await.ok().map(|answer| answer.status().as_u16())
    }
}

// === impl Tally ===

impl Tally {
    fn new(mut hits: Vec<Hit>, window: Duration) -> Tally {
        hits.sort_by_key(|hit| hit.at);
        Tally { hits, window }
    }

    /// The most hits in any window of that length.
    fn most(&self, length: Duration) -> usize {
        let mut first = 0;
        let within = self.hits.iter().enumerate().map(|(last, hit)| {
            while hit.at.since(self.hits[first].at) >= length {
                first += 1;
            }
            last + 1 - first
        });
        within.max().unwrap_or(0)
    }

    /// The hits in the windows that follow upon each other from that moment on.
    fn by_window(&self, began: Time, windows: usize) -> Vec<usize> {
        let mut counts = vec![0; windows];
        for hit in &self.hits {
            let place = hit.at.since(began).as_nanos() / self.window.as_nanos();
            if let Some(count) = usize::try_from(place).ok().and_then(|place| counts.get_mut(place)) {
                *count += 1;
            }
        }
        counts
    }

    /// A window less the time by which the slowest hit was later than a unit is kept for.
    fn certain(&self) -> Duration {
        let slowest = self.hits.iter().map(|hit| hit.at.since(hit.asked)).max().unwrap_or_default();
        self.window - slowest.saturating_sub(self.window / KEPT_LONGER)
    }
}

/// The units that the server charges a process with doors for.
async fn charged(front: &Front, client: &str) -> usize {
    let status = front.server.resource(RESOURCE).await.expect("the resource is leased");
    let holders = status["holders"].as_array().expect("holders");
    let holder = holders.iter().find(|holder| holder["client"] == client);
    holder.map_or(0, |holder| holder["has"].as_f64().unwrap() as usize)
}

/// The number of seconds in a window, and the number of windows to go on for.
fn lengths() -> (u32, u32) {
    match std::env::var("LESSOR_TEN_DOORS_WINDOW") {
        // Until what the dead one has had is back.
        Ok(text) => (text.parse().expect("LESSOR_TEN_DOORS_WINDOW is a number of seconds"), 7),
        Err(_) => (12, 4),
    }
}

#[tokio::test]
async fn ten_doors_keep_one_limit_also_when_one_is_stopped_and_one_is_killed() {
    let (seconds, windows) = lengths();
    let window = Duration::from_secs(seconds.into());
    let rules = format!(
        "sets: {{ten: {{headers: [], rules: [{{match: {{path: '*'}}, limit: {LIMIT}/{seconds}s, kind: exact}}]}}}}"
    );
    let front = Front::open(&rules, "").await;
    let mut doors: Vec<Door> = Vec::new();
    for number in 0..DOORS {
        doors.push(front.door(&["--id", &format!("door-{number}")]).await);
    }
    let target = Target::default();
    let address = target.serve().await;
    let began = clock::now();
    let resumed: Vec<_> = (0..DOORS).map(|_| Arc::new(Mutex::new(began))).collect();
    let mut callers = JoinSet::new();
    for (door, opened) in doors.iter().enumerate() {
        let caller = Caller {
            http: Client::builder(TokioExecutor::new()).build_http(),
            door,
            check: format!("http://{}/check/ten", opened.http),
            target: address.clone(),
            resumed: Arc::clone(&resumed[door]),
        };
        (0..CALLERS).for_each(|_| drop(callers.spawn(caller.clone().call(began))));
    }
    let until = async |thirds: u32| clock::sleep_until(began + window * thirds / 3).await;

    // It is stopped when nothing is left in the window, and goes on in the middle of the next one.
    until(2).await;
    doors[3].signal(Signal::STOP);
    until(5).await;
    *resumed[3].lock().unwrap() = clock::now();
    doors[3].signal(Signal::CONT);

    until(8).await;
    doors[7].signal(Signal::KILL);
    let dead = charged(&front, "door-7").await;

    until(3 * windows + 1).await;
    callers.abort_all();
    let tally = Tally::new(target.0.lock().unwrap().clone(), window);
    let mut story = format!("a window of {seconds} s, ten doors, the dead one had {dead}\n");
    // By when they were asked for: a hit that is late at the target does not make the first window shorter.
    let first = tally.hits.iter().map(|hit| hit.asked).min().expect("something passes");
    let counts = tally.by_window(first, windows as usize);
    let _ =
        writeln!(story, "by window {counts:?}, most in any {} of {}", tally.most(window), tally.hits.len());
    let _ =
        writeln!(story, "most in what is certain ({:?}): {}", tally.certain(), tally.most(tally.certain()));
    let by_door: Vec<_> =
        (0..DOORS).map(|door| tally.hits.iter().filter(|hit| hit.door == door).count()).collect();
    let _ = writeln!(story, "by door {by_door:?}");
    for door in 0..DOORS {
        let hits = tally.hits.iter().filter(|hit| hit.door == door);
        let seconds: Vec<_> = hits.map(|hit| format!("{:.2}", hit.at.since(first).as_secs_f64())).collect();
        let _ = writeln!(story, "at door {door}, seconds after the first: {}", seconds.join(" "));
    }
    println!("{story}");

    assert!(tally.most(tally.certain()) <= LIMIT, "{story}");
    // What a dead door had along is nobody's until its lease ends, so that what it had not yet used in its last window is missing there.
    let mut of_dead = tally.clone();
    of_dead.hits.retain(|hit| hit.door == 7);
    let its_last = of_dead.by_window(first, 3)[2];
    for (place, count) in counts.into_iter().enumerate() {
        let there = match place {
            2 => LIMIT - dead.saturating_sub(its_last),
            3 => LIMIT - dead,
            _ => LIMIT,
        };
        assert!(place > 3 && seconds < 60 || 100 * count >= 99 * there, "window {place}: {story}");
    }
    let is_there = |hit: &&Hit| hit.door == 3 && hit.at > *resumed[3].lock().unwrap();
    assert!(tally.hits.iter().any(|hit| is_there(&hit)), "the stopped one goes on: {story}");
}
