//! The tenants: what each of them does, and what became of its requests.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::widgets::{Block, Cell, Row, Table};

use crate::demo::view::{Tenant, View};

/// Columns that they take.
const WIDTH: u16 = 39;
/// And the least that has to be left for what stands beside them.
const BESIDE: u16 = 30;
/// The last two are what was granted and what was refused.
const HEADS: [&str; 5] = ["", "tier", "does", "yes", "no"];
const WIDTHS: [Constraint; 5] = [
    Constraint::Length(6),
    Constraint::Length(7),
    Constraint::Length(11),
    Constraint::Length(5),
    Constraint::Fill(1),
];

/// The area beside the tenants, and that of the tenants, which has no width if there is no room.
pub(super) fn beside(area: Rect) -> [Rect; 2] {
    let width = if area.width >= WIDTH + BESIDE { WIDTH } else { 0 };
    Layout::horizontal([Constraint::Fill(1), Constraint::Length(width)]).areas(area)
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let rows = view.tenants.iter().map(row);
    let clients = view.leaves.iter().flat_map(|leaf| &leaf.clients).take(view.fronts);
    let clients: Vec<&str> = clients.map(|client| client.name.as_str()).collect();
    let title = format!(" tenants of {} ", clients.join(" and "));
    let table = Table::new(rows, WIDTHS)
        .header(Row::new(HEADS).dim())
        .column_spacing(1)
        .block(Block::bordered().title(title.bold()));
    frame.render_widget(table, area);
}

fn row(tenant: &Tenant) -> Row<'static> {
    let tier = match tenant.tier {
        0 => String::new(),
        tier => format!("{tier} {}/{}", tenant.hits, tenant.limit),
    };
    let does = match (tenant.rests, tenant.tier) {
        (Some(_), _) => Color::Blue,
        (None, 2..) => Color::Yellow,
        _ => Color::Reset,
    };
    let refused = match tenant.refused {
        0 => Cell::new("0"),
        refused => Cell::new(refused.to_string()).fg(Color::Red),
    };
    Row::new([
        Cell::new(tenant.name).bold(),
        Cell::new(tier),
        Cell::new(tenant.does()).style(Style::new().fg(does)),
        Cell::new(tenant.granted.to_string()).fg(Color::Green),
        refused,
    ])
}
