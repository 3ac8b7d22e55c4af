//! `/v1/tiers`: a domain under policies of burst tiers, with hits at times that whoever asks has made up.
//!
//! Nothing is kept: all hits are posted, and all is computed again, by the code that clients run.

mod drawn;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lessor_algorithms::tiers::{Contract, MOST_TIERS, TierPolicy, Windows, normalise};
use lessor_client::internals::clock;
use lessor_server::access::Role;
use lessor_server::shell::Caller;
use lessor_sim::tiers::{Arrival, Tiers, run};
use serde::Deserialize;

use self::drawn::Drawn;
use crate::desk::Desk;
use crate::parameters::Parameters;
use crate::problem::{Answer, ApiProblem};

/// The domain, and what it does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    policies: Vec<WrittenPolicy>,
    /// The times of hits, in seconds from the beginning.
    hits: Vec<f64>,
    /// Now, and the time to look ahead.
    now_seconds: f64,
    #[serde(default)]
    ahead_seconds: f64,
}

/// A policy as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPolicy {
    /// `5/1s, 50/5s:5s:15s`.
    tiers: String,
    hard_limit: Option<u32>,
    global_limit: Option<u32>,
    #[serde(default)]
    windows: WindowsWay,
}

/// The way in which hits of an earlier active time count.
#[derive(Clone, Copy, Default, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WindowsWay {
    #[default]
    Keep,
    Reset,
}

const MOST_HITS: usize = 5_000;
const MOST_POLICIES: usize = 5;
const MOST_TIERS_IN_ALL: usize = 10;
/// A hundred years, in seconds.
const LONGEST: f64 = 3_155_760_000.0;
const NANOS: f64 = 1e9;

/// Answers `/v1/tiers`, to which a question is posted.
pub(crate) async fn tiers(State(desk): State<Desk>, request: Request) -> Result<Response, ApiProblem> {
    Parameters::read(request.uri(), &[])?;
    desk.may(&request, Role::See, None)?;
    let body = body_of(&desk, request).await?;
    let question: Question = serde_json::from_slice(&body)
        .map_err(|fault| ApiProblem::new(StatusCode::BAD_REQUEST, format!("body: {fault}")))?;
    let contract = question.contract()?;
    let hits = question.arrivals()?;
    let drawn = compute(&desk, move || question.draw(&contract, &hits)).await?;
    Ok(Answer::new(drawn).into_response())
}

/// The body of a request for a computation, as far as its connection may ask for one now.
pub(crate) async fn body_of(desk: &Desk, request: Request) -> Result<Vec<u8>, ApiProblem> {
    const MOST: usize = 1 << 20;
    let caller = request.extensions().get::<Caller>().map(|caller| caller.address);
    if let Some(caller) = caller.filter(|caller| !desk.tempo.take(*caller, clock::now())) {
        let error = format!("{caller} asks for more than 10 computations in a second; wanted fewer");
        return Err(ApiProblem::too_often(&error));
    }
    let body = to_bytes(request.into_body(), MOST).await;
    let body =
        body.map_err(|fault| ApiProblem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("body: {fault}")))?;
    Ok(body.to_vec())
}

/// Computes beside what answers others.
pub(crate) async fn compute<T: Send + 'static>(
    desk: &Desk,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiProblem> {
    let ending = || ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is ending");
    let place = desk.computations.clone().acquire_owned().await.map_err(|_| ending())?;
    let computed = tokio::task::spawn_blocking(move || {
        let _place = place;
        work()
    });
    computed.await.map_err(|_| ending())
}

// === impl Question ===

impl Question {
    fn contract(&self) -> Result<Contract, ApiProblem> {
        if self.policies.len() > MOST_POLICIES {
            let found = self.policies.len().to_string();
            return Err(ApiProblem::invalid("policies", &found, &format!("at most {MOST_POLICIES} of them")));
        }
        let mut policies = Vec::new();
        for (policy, number) in self.policies.iter().zip(0..) {
            policies.push(normalise(&policy.read(number)?).0);
        }
        let tiers: usize = policies.iter().map(|policy| policy.tiers().len()).sum();
        if tiers > MOST_TIERS_IN_ALL {
            let wanted = format!("at most {MOST_TIERS_IN_ALL} in all, and {MOST_TIERS} in a policy");
            return Err(ApiProblem::invalid("tiers", &tiers.to_string(), &wanted));
        }
        let bad = |fault: lessor_algorithms::tiers::Invalid| {
            ApiProblem::new(StatusCode::BAD_REQUEST, format!("policies: {fault}"))
        };
        Contract::new(policies).map_err(bad)
    }

    /// The notes on what is applied instead of what is written.
    fn notes(&self) -> Vec<String> {
        let policies = self.policies.iter().zip(0..).filter_map(|(policy, number)| policy.read(number).ok());
        let changes = policies.zip(1..).flat_map(|(policy, number)| {
            normalise(&policy).1.into_iter().map(move |change| format!("policy {number}: {change}"))
        });
        changes.collect()
    }

    fn arrivals(&self) -> Result<Vec<Arrival>, ApiProblem> {
        let wanted = format!("a number of seconds from 0 to {LONGEST}");
        let time = |field: &str, seconds: f64| match (0.0..=LONGEST).contains(&seconds) {
            true => Ok(nanos(seconds)),
            false => Err(ApiProblem::invalid(field, &seconds.to_string(), &wanted)),
        };
        let now = time("now_seconds", self.now_seconds)?;
        time("ahead_seconds", self.ahead_seconds)?;
        if self.hits.len() > MOST_HITS {
            let found = self.hits.len().to_string();
            return Err(ApiProblem::invalid("hits", &found, &format!("at most {MOST_HITS} of them")));
        }
        let mut arrivals = Vec::with_capacity(self.hits.len());
        for (seconds, index) in self.hits.iter().zip(0..) {
            let at = time(&format!("hits[{index}]"), *seconds)?;
            if at > now {
                let wanted = "a time that is not after now_seconds";
                return Err(ApiProblem::invalid(&format!("hits[{index}]"), &seconds.to_string(), wanted));
            }
            arrivals.push(Arrival { at, copies: 1, min: 1 });
        }
        arrivals.sort_by_key(|arrival| arrival.at);
        Ok(arrivals)
    }

    fn draw(&self, contract: &Contract, hits: &[Arrival]) -> Drawn {
        let end = nanos(self.now_seconds + self.ahead_seconds);
        // One at the very end happens as well.
        let history = run(contract, hits, &[], end.max(nanos(self.now_seconds) + 1));
        Drawn::new(&history, self.now_seconds, self.notes())
    }
}

// === impl WrittenPolicy ===

impl WrittenPolicy {
    fn read(&self, number: usize) -> Result<TierPolicy, ApiProblem> {
        let field = format!("policies[{number}].tiers");
        let bad = |fault: &dyn std::fmt::Display| {
            ApiProblem::new(StatusCode::BAD_REQUEST, format!("{field}: {fault}"))
        };
        let tiers = match self.tiers.trim() {
            // Closed.
            "" => Tiers(Vec::new()),
            text => text.parse().map_err(|fault| bad(&fault))?,
        };
        let policy = tiers.policy(self.hard_limit, self.global_limit).map_err(|fault| bad(&fault))?;
        Ok(policy.with_windows(match self.windows {
            WindowsWay::Keep => Windows::Keep,
            WindowsWay::Reset => Windows::Reset,
        }))
    }
}

fn nanos(seconds: f64) -> u64 {
    (seconds * NANOS).round() as u64
}

#[cfg(test)]
mod tests;
