//! Answers in HTTP: the fields that say what is left of limits, and the body of a denial.
//!
//! | kind | fields |
//! | --- | --- |
//! | `ietf` | `RateLimit-Policy` and `RateLimit` of the IETF's draft, edition 11: structured fields |
//! | `ietf03` | `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` of its third edition |
//! | `x-ratelimit` | the same with `X-` before them |
//! | `kong` | `X-RateLimit-Limit-Minute`, `X-RateLimit-Remaining-Minute` and the like, and those of `ietf03` |
//! | `retry-after` | `Retry-After` with a denial |
//!
//! All figures are hints and no promises: what is left is rounded down, times are rounded up and at least a second.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::time::Duration;

use smallvec::SmallVec;

use crate::claim::{Answered, Call, CallAnswer, Claim, Mode, Overall, Verdict};
use crate::rules::{FieldKind, LimitKind, TimeUnit};

/// The type of the body of a denial.
pub const PROBLEM_JSON: &str = "application/problem+json";

const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const REDUCED_CAPACITY: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

/// The fields of an answer.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    /// The figures of limits, the nearest to its limit first.
    figures: SmallVec<[Figure<'a>; 4]>,
    overall: Overall,
    retry_after: Option<u64>,
    violated: Vec<String>,
}

/// The figures of one limit.
#[derive(Clone, Debug)]
pub(crate) struct Figure<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) claim: &'a Claim<'a>,
    pub(crate) answered: Answered,
}

// === impl Fields ===

impl<'a> Fields<'a> {
    /// The fields of the answer to `call`.
    #[must_use]
    pub fn of(call: &'a Call<'a>, answer: &CallAnswer) -> Fields<'a> {
        let mut figures: SmallVec<[Figure<'a>; 4]> = SmallVec::new();
        let seen = |claim: &Claim<'_>| !matches!(claim.mode, Mode::Shadow | Mode::GiveBack | Mode::After);
        for (claim, answered) in call.claims.iter().zip(&answer.claims).filter(|(claim, _)| seen(claim)) {
            let same = |figure: &&Figure<'_>| figure.claim.limit.name == claim.limit.name;
            let name = match figures.iter().filter(same).count() {
                0 => Cow::Borrowed(&*claim.limit.name),
                count => Cow::Owned(format!("{}-{}", claim.limit.name, count + 1)),
            };
            figures.push(Figure { name, claim, answered: *answered });
        }
        figures.sort_by(|one, other| other.nearness().total_cmp(&one.nearness()));
        let refuses = |figure: &&Figure<'_>| call.refuses(figure.claim, &figure.answered);
        let violated = figures.iter().filter(refuses).map(|figure| figure.name.to_string()).collect();
        let retry_after = match answer.overall {
            Overall::Granted => None,
            Overall::NoLease => Some(1),
            Overall::Refused => figures.iter().filter(refuses).map(Figure::retry_after).max(),
        };
        Fields { figures, overall: answer.overall, retry_after, violated }
    }

    /// The fields of these kinds.
    #[must_use]
    pub fn list(&self, kinds: &[FieldKind]) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
        for kind in kinds {
            match kind {
                FieldKind::Ietf => self.ietf(&mut fields),
                FieldKind::Ietf03 => {
                    self.plain(&mut fields, ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]);
                }
                FieldKind::XRateLimit => {
                    self.plain(
                        &mut fields,
                        ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"],
                    );
                }
                FieldKind::Named(names) => self.plain(&mut fields, *names),
                FieldKind::Kong => self.kong(&mut fields),
                FieldKind::RetryAfter => {
                    fields.extend(self.retry_after.map(|after| ("retry-after", after.to_string())));
                }
            }
        }
        fields
    }

    /// The body of a denial with `status`, as a problem of RFC 9457.
    #[must_use]
    pub fn problem(&self, status: u16) -> String {
        let (kind, title) = match self.overall {
            Overall::NoLease => (REDUCED_CAPACITY, "Nothing is leased"),
            Overall::Refused | Overall::Granted => (QUOTA_EXCEEDED, "Too many requests"),
        };
        let violated: Vec<String> = self.violated.iter().map(|name| quoted(name)).collect();
        let violated = match violated.is_empty() {
            true => String::new(),
            false => format!(",\"violated-policies\":[{}]", violated.join(",")),
        };
        format!("{{\"type\":\"{kind}\",\"title\":\"{title}\",\"status\":{status}{violated}}}")
    }

    /// The figures of the limit that is nearest to being reached, if any is met.
    pub(crate) fn nearest(&self) -> Option<&Figure<'a>> {
        self.figures.first()
    }

    /// The seconds after which a refused call may pass.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.retry_after
    }

    /// The names of the policies that refuse.
    #[must_use]
    pub fn violated(&self) -> &[String] {
        &self.violated
    }

    fn ietf(&self, fields: &mut Vec<(&'static str, String)>) {
        let Some(nearest) = self.figures.first() else { return };
        let mut policy = String::new();
        for figure in &self.figures {
            let separator = if policy.is_empty() { "" } else { ", " };
            let (limit, window) = (figure.claim.limit.units, figure.claim.limit.window.length().as_secs());
            let name = quoted(&figure.name);
            // Writing to a string does not fail.
            let _ = match figure.is_concurrency() {
                true => write!(policy, "{separator}{name};q={limit};qu=\"concurrent-requests\""),
                false => write!(policy, "{separator}{name};q={limit};w={window}"),
            };
        }
        fields.push(("ratelimit-policy", policy));
        if nearest.is_concurrency() {
            let remaining = nearest.answered.standing.remaining;
            return fields.push(("ratelimit", format!("{};r={remaining}", quoted(&nearest.name))));
        }
        let (remaining, reset) =
            (nearest.answered.standing.remaining, seconds(nearest.answered.standing.reset));
        // Within t no more than twice the rate of the policy should be promised.
        let window = nearest.claim.limit.window.length().as_secs().max(1);
        let fair = u64::from(nearest.claim.limit.units).saturating_mul(reset).saturating_mul(2) / window;
        let remaining = u64::from(remaining).min(fair.max(1));
        fields.push(("ratelimit", format!("{};r={remaining};t={reset}", quoted(&nearest.name))));
    }

    fn plain(&self, fields: &mut Vec<(&'static str, String)>, [limit, remaining, reset]: [&'static str; 3]) {
        let Some(nearest) = self.figures.first() else { return };
        let mut policies = nearest.claim.limit.units.to_string();
        for figure in &self.figures {
            if figure.is_concurrency() {
                continue;
            }
            let window = figure.claim.limit.window.length().as_secs();
            let _ = write!(policies, ", {};w={window}", figure.claim.limit.units);
        }
        fields.push((limit, policies));
        fields.push((remaining, nearest.answered.standing.remaining.to_string()));
        fields.push((reset, seconds(nearest.answered.standing.reset).to_string()));
    }

    /// Kong has names for windows of one unit, and leaves others out.
    fn kong(&self, fields: &mut Vec<(&'static str, String)>) {
        for figure in self.figures.iter().filter(|figure| !figure.is_concurrency()) {
            let window = figure.claim.limit.window;
            let names = match (window.unit, window.multiplier) {
                (TimeUnit::Second, 1) => ["x-ratelimit-limit-second", "x-ratelimit-remaining-second"],
                (TimeUnit::Minute, 1) => ["x-ratelimit-limit-minute", "x-ratelimit-remaining-minute"],
                (TimeUnit::Hour, 1) => ["x-ratelimit-limit-hour", "x-ratelimit-remaining-hour"],
                (TimeUnit::Day, 1) => ["x-ratelimit-limit-day", "x-ratelimit-remaining-day"],
                (TimeUnit::Month, 1) => ["x-ratelimit-limit-month", "x-ratelimit-remaining-month"],
                (TimeUnit::Year, 1) => ["x-ratelimit-limit-year", "x-ratelimit-remaining-year"],
                _ => continue,
            };
            if fields.iter().any(|(known, _)| *known == names[0]) {
                continue;
            }
            fields.push((names[0], figure.claim.limit.units.to_string()));
            fields.push((names[1], figure.answered.standing.remaining.to_string()));
        }
        let Some(nearest) = self.figures.first() else { return };
        fields.push(("ratelimit-limit", nearest.claim.limit.units.to_string()));
        fields.push(("ratelimit-remaining", nearest.answered.standing.remaining.to_string()));
        fields.push(("ratelimit-reset", seconds(nearest.answered.standing.reset).to_string()));
    }
}

// === impl Figure ===

impl Figure<'_> {
    fn is_concurrency(&self) -> bool {
        self.claim.limit.kind == LimitKind::Concurrency
    }

    /// The seconds after which it makes sense to come again. Nobody knows when something ends that is under way.
    fn retry_after(&self) -> u64 {
        if self.is_concurrency() { 1 } else { seconds(self.answered.standing.reset) }
    }

    fn nearness(&self) -> f64 {
        nearness(&(self.claim, &self.answered))
    }
}

/// A number that is the greater the nearer a claim is to its limit: 1 where nothing is left, and more where it is over.
#[must_use]
pub fn nearness((claim, answered): &(&Claim<'_>, &Answered)) -> f64 {
    let units = f64::from(claim.limit.units.max(1));
    let left = f64::from(answered.standing.remaining) / units;
    match answered.verdict {
        Verdict::Over { retry_after } => {
            // Of several that are over the one that lasts longest counts; for ever is longest.
            2.0 + retry_after.map_or(f64::MAX / 4.0, |after| after.as_secs_f64())
        }
        Verdict::Within | Verdict::NoLease { .. } => 1.0 - left,
    }
}

/// Whole seconds, rounded up and at least one.
#[must_use]
pub fn seconds(time: Duration) -> u64 {
    match time.subsec_nanos().cmp(&0) {
        Ordering::Greater => time.as_secs().saturating_add(1),
        _ => time.as_secs().max(1),
    }
}

/// A string of JSON and of structured fields, of printable ASCII.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
