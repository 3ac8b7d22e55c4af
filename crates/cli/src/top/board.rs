//! The board: all that is known of the server, and the way to look at it. Keys and pages change it, and pictures are made of it.

mod keys;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::order::{HolderOrder, Listing, ResourceOrder};
use super::sheet::{Sheet, SheetKind, TopView};
use crate::pages::percent_encode;
use crate::status::lines::fullness;
use crate::status::node::{Holder, NodePage, Resource};
use lessor_proto::Time;

/// A moment: by the clock that leases go by, and its date since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: Time,
    pub(super) date: Duration,
}

/// A page that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TopQuery {
    /// The node with its resources.
    Node {
        path: String,
    },
    /// The same with one resource, which may be gone.
    One {
        path: String,
    },
    Sheet(SheetKind),
}

/// The answer to that.
#[derive(Debug)]
pub(super) enum TopNews {
    /// None where nobody holds or wants the one resource.
    Node(Option<NodePage>),
    Sheet(String),
}

/// All of it.
pub(super) struct Board {
    /// The pattern of the resources that are asked for.
    pattern: Option<String>,
    pub(super) resources: Listing<ResourceOrder>,
    /// The node as it was heard last, with its resources.
    pub(super) node: Option<NodePage>,
    /// The part of each resource that was out, in the last looks.
    trends: BTreeMap<String, VecDeque<f64>>,
    /// One resource, looked at from near.
    pub(super) close: Option<CloseLook>,
    /// The sheet that is in sight, above all that.
    pub(super) sheet: Option<Sheet>,
    /// The last answer.
    pub(super) heard: Option<Moment>,
    pub(super) outage: Option<Outage>,
    /// Whether a filter is being typed.
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    pub(super) shows_keys: bool,
}

/// A resource with its holders.
pub(super) struct CloseLook {
    pub(super) resource: String,
    pub(super) holders: Listing<HolderOrder>,
    /// Whether it was heard of.
    pub(super) is_known: bool,
    /// The node with the resource alone; absent where nobody holds or wants that.
    pub(super) node: Option<NodePage>,
}

/// The time since which nobody has answered, and why.
pub(super) struct Outage {
    pub(super) since: Moment,
    pub(super) why: String,
}

/// The consequence of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reaction {
    Stay,
    /// Something else is to be asked for, at once.
    Ask,
    Leave,
}

/// Resources that a server is asked for, and holders of one.
const MOST: usize = 1_000;
const MOST_HOLDERS: usize = 500;
/// Looks of which the figures are kept.
const TREND: usize = 32;

// === impl Moment ===

impl Moment {
    /// The beginning of all clocks.
    pub(super) const ZERO: Moment = Moment { at: Time::ZERO, date: Duration::ZERO };
}

// === impl Board ===

impl Board {
    pub(super) fn new(pattern: Option<String>) -> Board {
        Board {
            pattern,
            resources: Listing::new(),
            node: None,
            trends: BTreeMap::new(),
            close: None,
            sheet: None,
            heard: None,
            outage: None,
            is_typing: false,
            is_paused: false,
            shows_keys: false,
        }
    }

    /// The same with a view in sight.
    pub(super) fn with_view(mut self, view: TopView) -> Board {
        self.sheet = view.sheet(self.pattern()).map(Sheet::new);
        self
    }

    /// The page that is to be asked for.
    pub(super) fn query(&self) -> TopQuery {
        if let Some(sheet) = &self.sheet {
            return TopQuery::Sheet(sheet.kind.clone());
        }
        if let Some(close) = &self.close {
            let resource = percent_encode(&close.resource);
            let path = format!("/status?holders={MOST_HOLDERS}&resources=1&resource={resource}");
            return TopQuery::One { path };
        }
        let matching = self.pattern().map(|glob| format!("&matching={}", percent_encode(glob)));
        let matching = matching.unwrap_or_default();
        TopQuery::Node { path: format!("/status?holders=0&resources={MOST}&order=busiest{matching}") }
    }

    /// Hears the page that was asked for.
    pub(super) fn on_news(&mut self, news: TopNews, now: Moment) {
        (self.heard, self.outage) = (Some(now), None);
        match (news, &mut self.sheet) {
            (TopNews::Sheet(text), Some(sheet)) => sheet.hear(text),
            (TopNews::Sheet(_), None) => {}
            (TopNews::Node(page), _) => self.on_page(page),
        }
    }

    fn on_page(&mut self, page: Option<NodePage>) {
        match (&mut self.close, page) {
            (Some(close), page) => (close.is_known, close.node) = (true, page),
            (None, Some(page)) => {
                self.note(&page.status.resources);
                self.node = Some(page);
            }
            (None, None) => {}
        }
    }

    /// Hears that nobody answers, or that nothing is said: what was heard last stays.
    pub(super) fn on_fault(&mut self, why: String, now: Moment) {
        let since = self.outage.as_ref().map_or(now, |outage| outage.since);
        self.outage = Some(Outage { since, why });
    }

    fn note(&mut self, resources: &[Resource]) {
        let mut before = std::mem::take(&mut self.trends);
        for row in resources {
            let mut trend = before.remove(&row.resource).unwrap_or_default();
            trend.push_back(fullness(row));
            if trend.len() > TREND {
                trend.pop_front();
            }
            self.trends.insert(row.resource.clone(), trend);
        }
    }

    /// The part of a resource that was out, in the last looks.
    pub(super) fn trend(&self, resource: &str) -> impl ExactSizeIterator<Item = f64> {
        const NONE: &VecDeque<f64> = &VecDeque::new();
        self.trends.get(resource).unwrap_or(NONE).iter().copied()
    }

    /// The pattern of the resources that are asked for.
    pub(super) fn pattern(&self) -> Option<&str> {
        self.pattern.as_deref()
    }

    /// The resources that were heard of.
    pub(super) fn all_resources(&self) -> &[Resource] {
        self.node.as_ref().map_or(&[], NodePage::resources)
    }

    /// The filter of the list that is in sight.
    pub(super) fn filter(&self) -> &str {
        if let Some(sheet) = &self.sheet {
            return &sheet.filter;
        }
        self.close.as_ref().map_or(&self.resources.filter, |close| &close.holders.filter)
    }
}

// === impl CloseLook ===

impl CloseLook {
    /// The resource as it was heard last, if anybody holds or wants it.
    pub(super) fn row(&self) -> Option<&Resource> {
        self.node.as_ref().and_then(|page| page.status.resources.first())
    }

    /// The holder that is chosen.
    fn chosen(&self) -> Option<&Holder> {
        let rows = self.holders.rows(self.row().map_or(&[][..], |row| &row.holders));
        self.holders.chosen(&rows).map(|at| rows[at])
    }
}

#[cfg(test)]
mod tests;
