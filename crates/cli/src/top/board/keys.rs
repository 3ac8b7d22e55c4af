//! Keys, and what they change.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::order::{Listing, RowOrder};
use super::super::sheet::{Sheet, SheetKind, TopView};
use super::{Board, CloseLook, Reaction};
use crate::status::node::NodePage;

/// Rows that a page goes on.
const A_PAGE: isize = 10;

// === impl Board ===

impl Board {
    pub(in super::super) fn on_key(&mut self, key: KeyEvent) -> Reaction {
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
            KeyCode::Enter | KeyCode::Right => return self.look_closer(),
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => return self.go_back(),
            KeyCode::Char('r') => return self.turn_to(TopView::Resources),
            KeyCode::Char('t') => return self.turn_to(TopView::Tree),
            KeyCode::Char('d') => return self.turn_to(TopView::Domains),
            KeyCode::Char('f') => return self.turn_to(TopView::Findings),
            KeyCode::Char('h') => return self.turn_to(TopView::History),
            KeyCode::Char('e') => return self.explain(),
            code => match (&mut self.sheet, &mut self.close) {
                (Some(sheet), _) => sheet.step(steps(code).unwrap_or_default()),
                (None, Some(close)) => close.on_key(code),
                (None, None) => {
                    let all = self.node.as_ref().map_or(&[][..], NodePage::resources);
                    arrange(&mut self.resources, all, code);
                }
            },
        }
        Reaction::Stay
    }

    /// Turns to another view; `r` leaves the holders of a resource as well.
    fn turn_to(&mut self, view: TopView) -> Reaction {
        let kind = view.sheet(self.pattern());
        if kind.is_none() {
            self.close = None;
        }
        self.sheet = kind.map(Sheet::new);
        Reaction::Ask
    }

    /// Asks why the chosen client gets what it gets, or how the chosen resource is divided.
    fn explain(&mut self) -> Reaction {
        if self.sheet.is_some() {
            return Reaction::Stay;
        }
        let kind = match &self.close {
            Some(close) => {
                let client = close.chosen().map(|holder| holder.client.clone());
                Some(SheetKind::Explain { resource: close.resource.clone(), client })
            }
            None => {
                let rows = self.resources.rows(self.all_resources());
                let chosen = self.resources.chosen(&rows).map(|at| rows[at].resource.clone());
                chosen.map(|resource| SheetKind::Explain { resource, client: None })
            }
        };
        let Some(kind) = kind else { return Reaction::Stay };
        self.sheet = Some(Sheet::new(kind));
        Reaction::Ask
    }

    fn type_filter(&mut self, code: KeyCode) {
        let filter = match (&mut self.sheet, &mut self.close) {
            (Some(sheet), _) => {
                sheet.offset = 0;
                &mut sheet.filter
            }
            (None, Some(close)) => close.holders.new_filter(),
            (None, None) => self.resources.new_filter(),
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
        let is_list = self.close.is_none() && self.sheet.is_none();
        let Some(at) = self.resources.chosen(&rows).filter(|_| is_list) else {
            return Reaction::Stay;
        };
        let resource = rows[at].resource.clone();
        // It stays chosen until one comes back, whatever its place is then.
        self.resources.step(&rows, 0);
        self.close = Some(CloseLook { resource, holders: Listing::new(), is_known: false, node: None });
        Reaction::Ask
    }

    /// Goes back to what was in sight before: without the filter, without the sheet, or without the holders.
    fn go_back(&mut self) -> Reaction {
        if self.sheet.take_if(|sheet| sheet.filter.is_empty()).is_some() {
            return Reaction::Ask;
        }
        if let Some(sheet) = &mut self.sheet {
            sheet.filter.clear();
            return Reaction::Stay;
        }
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
    fn on_key(&mut self, code: KeyCode) {
        let all = self.node.as_ref().and_then(|page| page.status.resources.first());
        arrange(&mut self.holders, all.map_or(&[][..], |row| &row.holders), code);
    }
}

/// Chooses another row, or sorts the rows in another way.
fn arrange<O: RowOrder>(listing: &mut Listing<O>, all: &[O::Row], code: KeyCode) {
    match code {
        KeyCode::Char('s') => return listing.sort_on(),
        KeyCode::Char('S') => return listing.turn_round(),
        _ => {}
    }
    if let Some(by) = steps(code) {
        let rows = listing.rows(all);
        listing.step(&rows, by);
    }
}

/// The rows by which a key goes on; back if that is negative.
fn steps(code: KeyCode) -> Option<isize> {
    Some(match code {
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::PageDown => A_PAGE,
        KeyCode::PageUp => -A_PAGE,
        KeyCode::End | KeyCode::Char('G') => isize::MAX,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN,
        _ => return None,
    })
}
