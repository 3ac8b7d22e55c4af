//! Authorities that have asked to be left alone for a while, and whoever waits for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use lessor_client::Time;
use lessor_client::internals::clock;
use tokio::sync::OwnedMutexGuard;

/// The longest time that an authority is held back for one answer.
const LONGEST: Duration = Duration::from_secs(60);

/// The authorities that are held back. Clones are the same.
#[derive(Clone, Default, Debug)]
pub(crate) struct HoldBack {
    held: Arc<Mutex<BTreeMap<String, Held>>>,
}

/// An authority that is held back.
#[derive(Clone, Debug)]
struct Held {
    until: Time,
    /// Those who wait: the one that has this is the next to be sent, alone.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The leave to send a request.
#[derive(Debug)]
pub(crate) struct Turn {
    authority: String,
    /// The turn of one who waited: the next one has it when this is dropped.
    turn: Option<OwnedMutexGuard<()>>,
}

// === impl HoldBack ===

impl HoldBack {
    /// Waits until a request may be sent: at once, unless the authority is held back; then until that is over, and one after
    /// the other, each until the one before has its answer.
    pub(crate) async fn turn(&self, authority: String) -> Turn {
        let Some(held) = self.find(&authority) else { return Turn { authority, turn: None } };
        let turn = held.turn.lock_owned().await;
        // The answer to the one before may have changed it, or ended it for all who wait.
        while let Some(Held { until, .. }) = self.find(&authority) {
            if until <= clock::now() {
                return Turn { authority, turn: Some(turn) };
            }
            clock::sleep_until(until).await;
        }
        Turn { authority, turn: None }
    }

    /// Takes up an answer: it holds the authority back, or lets all others go.
    pub(crate) fn answered(&self, turn: Turn, status: StatusCode, headers: &HeaderMap) {
        let now = clock::now();
        let mut held = self.lock();
        match retry_after(status, headers) {
            Some(after) => {
                let until = now + after.min(LONGEST);
                // Those that nobody asks any more are forgotten.
                held.retain(|_, held| held.until > now || Arc::strong_count(&held.turn) > 1);
                let fresh = || Held { until, turn: Arc::default() };
                let held = held.entry(turn.authority).or_insert_with(fresh);
                held.until = held.until.max(until);
            }
            // An answer to a request from before the hold says nothing about it.
            None if turn.turn.is_some() => drop(held.remove(&turn.authority)),
            None => {}
        }
    }

    fn find(&self, authority: &str) -> Option<Held> {
        self.lock().get(authority).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time for which an answer asks to be left alone: of 429 and 503, in seconds; or else until a `RateLimit` of which
/// nothing is left is over.
fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    if status != StatusCode::TOO_MANY_REQUESTS && status != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let seconds = |text: &str| text.trim().parse().ok().map(Duration::from_secs);
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    value(header::RETRY_AFTER.as_str()).and_then(seconds).or_else(|| {
        let parameters = || value("ratelimit").into_iter().flat_map(|text| text.split(';').skip(1));
        let is_empty = parameters().any(|parameter| parameter.trim() == "r=0");
        let window = parameters().find_map(|parameter| seconds(parameter.trim().strip_prefix("t=")?));
        window.filter(|_| is_empty)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(status: u16, fields: &[(&'static str, &str)]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.insert(*name, value.parse().unwrap());
        }
        retry_after(StatusCode::from_u16(status).unwrap(), &headers).map(|after| after.as_secs())
    }

    #[tokio::test]
    async fn an_answer_that_ends_it_lets_all_go_who_wait() {
        let held = HoldBack::default();
        let again: HeaderMap = [(header::RETRY_AFTER, "0".parse().unwrap())].into_iter().collect();
        held.answered(held.turn("busy".into()).await, StatusCode::TOO_MANY_REQUESTS, &again);
        let first = held.turn("busy".into()).await;
        assert!(first.turn.is_some(), "it goes alone");
        let others: tokio::task::JoinSet<Turn> = (0..3)
            .map(|_| {
                let held = held.clone();
                async move { held.turn("busy".into()).await }
            })
            .collect();
        // They wait behind the first by then.
        let all = async {
            while held.find("busy").is_some_and(|held| Arc::strong_count(&held.turn) < 6) {
                tokio::task::yield_now().await;
            }
            held.answered(first, StatusCode::OK, &HeaderMap::new());
            others.join_all().await
        };
        let turns = tokio::time::timeout(Duration::from_secs(20), all).await;
        assert_eq!(turns.expect("none waits for another").len(), 3);
    }

    #[test]
    fn an_answer_says_for_how_long_to_be_left_alone() {
        assert_eq!(after(429, &[("retry-after", "7")]), Some(7));
        assert_eq!(after(503, &[("retry-after", " 7 ")]), Some(7));
        assert_eq!(after(200, &[("retry-after", "7")]), None);
        assert_eq!(after(429, &[("ratelimit", "\"day\";r=0;t=9")]), Some(9));
        assert_eq!(after(429, &[("ratelimit", "\"day\";r=3;t=9")]), None);
        assert_eq!(after(429, &[("retry-after", "2"), ("ratelimit", "\"day\";r=0;t=9")]), Some(2));
        assert_eq!(after(429, &[("retry-after", "soon")]), None);
        assert_eq!(after(429, &[]), None);
    }
}
