//! The board: all that is known of the server, and the way to look at it. Keys and pages change it, and pictures are made of it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lessor_proto::Time;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::order::{HolderOrder, Listing, ResourceOrder, RowOrder};
use crate::pages::percent_encode;
use crate::status::lines::fullness;
use crate::status::node::{NodePage, Resource};

/// A moment: by the clock that leases go by, and its date since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: Time,
    pub(super) date: Duration,
}

/// A page that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TopQuery {
    pub(super) path: String,
    /// Whether it is of one resource, which may be gone.
    pub(super) is_of_one: bool,
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
/// Rows that a page goes on.
const A_PAGE: isize = 10;

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
            heard: None,
            outage: None,
            is_typing: false,
            is_paused: false,
            shows_keys: false,
        }
    }

    /// The page that is to be asked for.
    pub(super) fn query(&self) -> TopQuery {
        let path = match (&self.close, &self.pattern) {
            (Some(close), _) => {
                let resource = percent_encode(&close.resource);
                format!("/status?holders={MOST_HOLDERS}&resources=1&resource={resource}")
            }
            (None, pattern) => {
                let matching = pattern.as_ref().map(|glob| format!("&matching={}", percent_encode(glob)));
                format!("/status?holders=0&resources={MOST}&order=busiest{}", matching.unwrap_or_default())
            }
        };
        TopQuery { path, is_of_one: self.close.is_some() }
    }

    /// Hears the page that was asked for; none where nobody holds or wants the one resource.
    pub(super) fn on_page(&mut self, page: Option<NodePage>, now: Moment) {
        (self.heard, self.outage) = (Some(now), None);
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
        self.close.as_ref().map_or(&self.resources.filter, |close| &close.holders.filter)
    }

    pub(super) fn on_key(&mut self, key: KeyEvent) -> Reaction {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Reaction::Leave;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Reaction::Stay;
        }
        if std::mem::take(&mut self.shows_keys) {
            return if key.code == KeyCode::Char('q') { Reaction::Leave } else { Reaction::Stay };
        }
        match key.code {
            KeyCode::Char('q') => return Reaction::Leave,
            KeyCode::Char('?') => self.shows_keys = true,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('p' | ' ') => {
                self.is_paused = !self.is_paused;
                return if self.is_paused { Reaction::Stay } else { Reaction::Ask };
            }
            KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => return self.look_closer(),
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace | KeyCode::Char('h') => return self.go_back(),
            code => match &mut self.close {
                Some(close) => close.on_key(code),
                None => {
                    let all = self.node.as_ref().map_or(&[][..], NodePage::resources);
                    arrange(&mut self.resources, all, code);
                }
            },
        }
        Reaction::Stay
    }

    fn type_filter(&mut self, code: KeyCode) {
        let filter = match &mut self.close {
            Some(close) => close.holders.new_filter(),
            None => self.resources.new_filter(),
        };
        match code {
            KeyCode::Char(letter) => filter.push(letter),
            KeyCode::Backspace => _ = filter.pop(),
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                filter.clear();
                self.is_typing = false;
            }
            _ => {}
        }
    }

    fn look_closer(&mut self) -> Reaction {
        let rows = self.resources.rows(self.node.as_ref().map_or(&[], NodePage::resources));
        let Some(at) = self.resources.chosen(&rows).filter(|_| self.close.is_none()) else {
            return Reaction::Stay;
        };
        let resource = rows[at].resource.clone();
        // It stays chosen until one comes back, whatever its place is then.
        self.resources.step(&rows, 0);
        self.close = Some(CloseLook { resource, holders: Listing::new(), is_known: false, node: None });
        Reaction::Ask
    }

    /// Goes back to what was in sight before: without the filter, or without the holders.
    fn go_back(&mut self) -> Reaction {
        match &mut self.close {
            Some(close) if !close.holders.filter.is_empty() => close.holders.filter.clear(),
            Some(_) => {
                self.close = None;
                return Reaction::Ask;
            }
            None => self.resources.filter.clear(),
        }
        Reaction::Stay
    }
}

// === impl CloseLook ===

impl CloseLook {
    /// The resource as it was heard last, if anybody holds or wants it.
    pub(super) fn row(&self) -> Option<&Resource> {
        self.node.as_ref().and_then(|page| page.status.resources.first())
    }

    fn on_key(&mut self, code: KeyCode) {
        let all = self.node.as_ref().and_then(|page| page.status.resources.first());
        arrange(&mut self.holders, all.map_or(&[][..], |row| &row.holders), code);
    }
}

/// Chooses another row, or sorts the rows in another way.
fn arrange<O: RowOrder>(listing: &mut Listing<O>, all: &[O::Row], code: KeyCode) {
    let by = match code {
        KeyCode::Char('s') => return listing.sort_on(),
        KeyCode::Char('S') => return listing.turn_round(),
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::PageDown => A_PAGE,
        KeyCode::PageUp => -A_PAGE,
        KeyCode::End | KeyCode::Char('G') => isize::MAX,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN,
        _ => return,
    };
    let rows = listing.rows(all);
    listing.step(&rows, by);
}

#[cfg(test)]
mod tests;
