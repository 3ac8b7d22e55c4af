//! Gates: conditions under which a pipeline does not go on.

use std::str::FromStr;
use std::time::Duration;

use lessor_server::plan::Plan;
use lessor_server::repository::Glob;

/// A gate, as it was written: it closes where a figure is above a bound.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Gate {
    text: String,
    figure: Figure,
    bound: Bound,
}

/// The figure of a plan that is looked at.
#[derive(Clone, PartialEq, Debug)]
enum Figure {
    /// The sum of what is lost.
    Loss,
    /// Clients that lose something.
    Losers,
    /// Holders that would be refused.
    Refused,
    /// Hot domains that would be refused, and are not.
    Domains,
    /// The time until it is in force at the latest.
    Latest,
    /// The sum of what these clients lose.
    LossOf(String),
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Bound {
    Number(f64),
    /// As a part of all shares before, in hundredths.
    Percent(f64),
    Seconds(f64),
}

const WANTED: &str =
    "wanted loss>N, loss>N%, losers>N, refused>N, domains>N, latest>DURATION or client:GLOB.loss>N";

// === impl Gate ===

impl Gate {
    /// A gate, as it is written.
    pub(crate) fn parse(text: &str) -> Result<Gate, String> {
        let (figure, bound) = text.split_once('>').ok_or(WANTED)?;
        let figure = match figure.trim() {
            "loss" => Figure::Loss,
            "losers" => Figure::Losers,
            "refused" => Figure::Refused,
            "domains" => Figure::Domains,
            "latest" => Figure::Latest,
            other => {
                let glob = other.strip_prefix("client:").and_then(|rest| rest.strip_suffix(".loss"));
                let glob = glob.ok_or(WANTED)?;
                Glob::new(glob).map_err(|fault| format!("client:{glob}: {fault}"))?;
                Figure::LossOf(glob.to_owned())
            }
        };
        let bound = Bound::parse(bound.trim()).ok_or(WANTED)?;
        let fits = match (&figure, bound) {
            (Figure::Latest, Bound::Seconds(_)) => true,
            (Figure::Latest, _) | (_, Bound::Seconds(_)) => false,
            (Figure::Losers | Figure::Refused | Figure::Domains, Bound::Percent(_)) => false,
            _ => true,
        };
        if !fits {
            return Err(WANTED.to_owned());
        }
        Ok(Gate { text: text.to_owned(), figure, bound })
    }

    /// The pattern of clients that it is about, if it is about some.
    pub(crate) fn watched(&self) -> Option<&str> {
        match &self.figure {
            Figure::LossOf(glob) => Some(glob),
            _ => None,
        }
    }

    /// Why it closes, if it does.
    pub(crate) fn closes(&self, plan: &Plan) -> Option<String> {
        let watched = |glob: &str| plan.watched.iter().find(|watched| watched.glob == glob);
        let (found, whole) = match &self.figure {
            Figure::Loss => (plan.moved[0], plan.moved[1]),
            Figure::Losers => (plan.losers() as f64, 0.0),
            Figure::Refused => (plan.refusals() as f64, 0.0),
            Figure::Domains => (plan.refused_domains() as f64, 0.0),
            Figure::Latest => (plan.latest_s(), 0.0),
            Figure::LossOf(glob) => {
                watched(glob).map_or((0.0, 0.0), |watched| (watched.loss, watched.shares[0]))
            }
        };
        let (found, bound, unit) = match self.bound {
            Bound::Number(bound) => (found, bound, ""),
            Bound::Percent(bound) => (if whole > 0.0 { found / whole * 100.0 } else { 0.0 }, bound, "%"),
            Bound::Seconds(bound) => (found, bound, " s"),
        };
        (found > bound).then(|| format!("{}: it is {found:.3}{unit}", self.text))
    }
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Gate, String> {
        Gate::parse(text)
    }
}

// === impl Bound ===

impl Bound {
    fn parse(text: &str) -> Option<Bound> {
        let number =
            |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        if let Some(percent) = text.strip_suffix('%') {
            return number(percent).map(Bound::Percent);
        }
        let seconds = || humantime::parse_duration(text).ok().as_ref().map(Duration::as_secs_f64);
        number(text).map(Bound::Number).or_else(|| seconds().map(Bound::Seconds))
    }
}

#[cfg(test)]
mod tests {
    use lessor_server::plan::{Movers, RefusedHolders, ResourceForecast, UntilForecast, WatchedClients};

    use super::*;

    fn plan() -> Plan {
        let losers = Movers { count: 3, sum: 10.0, worst: Vec::new() };
        let until = UntilForecast { latest_s: 61.0, ..UntilForecast::default() };
        Plan {
            resources: vec![ResourceForecast { losers, until, ..ResourceForecast::default() }],
            refused: vec![RefusedHolders { count: 2, ..RefusedHolders::default() }],
            watched: vec![WatchedClients {
                glob: "billing-*".to_owned(),
                count: 2,
                loss: 4.0,
                shares: [16.0, 12.0],
            }],
            moved: [10.0, 200.0],
            ..Plan::default()
        }
    }

    fn closes(gate: &str) -> bool {
        Gate::parse(gate).unwrap().closes(&plan()).is_some()
    }

    #[test]
    fn a_gate_closes_above_its_bound_and_not_at_it() {
        for (gate, is_closed) in [
            ("loss>9.9", true),
            ("loss>10", false),
            ("loss>4.9%", true),
            ("loss>5%", false),
            ("losers>2", true),
            ("losers>3", false),
            ("refused>1", true),
            ("refused > 2", false),
            ("latest>60s", true),
            ("latest>2m", false),
            ("client:billing-*.loss>3", true),
            ("client:billing-*.loss>25%", false),
            ("client:web-*.loss>0", false),
        ] {
            assert_eq!(closes(gate), is_closed, "{gate}");
        }
        let told = Gate::parse("loss>1%").unwrap().closes(&plan()).unwrap();
        assert_eq!(told, "loss>1%: it is 5.000%");
    }

    #[test]
    fn what_is_no_gate_is_refused_with_what_is_one() {
        for text in
            ["", "loss", "loss>", "loss>-1", "loss>1s", "latest>60", "losers>5%", "gain>1", "client:.loss"]
        {
            assert_eq!(Gate::parse(text).unwrap_err(), WANTED, "{text}");
        }
        assert!(Gate::parse("client:[.loss>0").unwrap_err().starts_with("client:[: "));
    }
}
