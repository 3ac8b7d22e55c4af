//! The picture: the root above, the leaves with their clients below it, and the target at the bottom, with the tenants
//! beside it.

mod target;
mod tenants;

use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};
use ratatui::{Frame, Terminal};

use super::view::{Client, Leaf, Root, View};

/// The colours of the leaves and of all that belongs to each of them.
const COLOURS: [Color; 2] = [Color::Cyan, Color::Magenta];
/// The colour of capacity that nobody has.
const NOBODYS: Color = Color::DarkGray;
/// The greatest amount that is shown of what a client has or wants, in equal shares; one that wants everything
/// would press all others into the corner.
const WIDEST: f64 = 3.0;
/// Rows that are there in any case: headline, root, what joins it to the leaves, the least of the target, what is to be
/// seen, and the last line, which takes two where the terminal is narrow.
const OTHER_ROWS: u16 = 1 + 4 + 1 + 6 + 1 + 2;

pub(super) fn headline(view: &View) -> String {
    let (limit, capacity) = (view.limit, view.capacity);
    let clients: usize = view.leaves.iter().map(|leaf| leaf.clients.len()).sum();
    format!(
        "a target takes {limit}/s; a root leases {capacity}/s to {} leaves, and they to {clients} clients",
        view.leaves.len()
    )
}

/// All of it, in a terminal of such a size.
pub(super) fn frame(columns: u16, rows: u16, view: &View, history: &[(f64, f64)]) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap_or_else(|never| match never {});
    terminal.draw(|frame| draw(frame, view, history)).unwrap_or_else(|never| match never {});
    terminal.backend().buffer().clone()
}

/// All of it.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, history: &[(f64, f64)]) {
    let most = view.leaves.iter().map(|leaf| leaf.clients.len()).max().unwrap_or(0);
    let room = frame.area().height.saturating_sub(OTHER_ROWS).max(3);
    let leaf_rows = u16::try_from(most + 2).unwrap_or(u16::MAX).min(room);
    let last_rows = if usize::from(frame.area().width) < view.summary.len() { 2 } else { 1 };
    let [head, root, joints, leaves, seen, says, last] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Length(1),
        Constraint::Length(leaf_rows),
        Constraint::Min(3),
        Constraint::Length(1),
        Constraint::Length(last_rows),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(headline(view).bold()), head);
    draw_root(frame, root, view);
    let columns = Layout::horizontal(vec![Constraint::Fill(1); view.leaves.len()]).split(leaves);
    let widest = WIDEST * view.capacity / (most * view.leaves.len()).max(1) as f64;
    for ((leaf, &area), colour) in view.leaves.iter().zip(columns.iter()).zip(COLOURS) {
        draw_leaf(frame, area, leaf, widest, colour);
        draw_joint(frame, joints, area, view.root);
    }
    let [seen, tenants] = tenants::beside(seen);
    target::draw(frame, seen, view, history);
    tenants::draw(frame, tenants, view);
    let told = Line::from(vec![Span::raw("▶ ").fg(Color::Yellow), Span::raw(view.says).bold()]);
    frame.render_widget(Paragraph::new(told), says);
    frame.render_widget(Paragraph::new(view.summary.as_str()).dim().wrap(Wrap { trim: true }), last);
}

/// Draws the capacity of the root, and how much of it each leaf holds.
fn draw_root(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let (title, style) = match view.root {
        Root::Serves => (format!(" root: {}/s ", view.capacity), Style::new()),
        Root::Away => (" root: away ".to_owned(), Style::new().fg(Color::Red)),
        Root::Learns(seconds) => (
            format!(" root: {}/s, learns who has what of it for {seconds:.1} s more ", view.capacity),
            Style::new().fg(Color::Yellow),
        ),
    };
    let width = usize::from(area.width.saturating_sub(2));
    let (mut bar, mut legend, mut drawn) = (Vec::new(), Vec::new(), 0);
    for (leaf, colour) in view.leaves.iter().zip(COLOURS) {
        let cells = cells(leaf.lease, view.capacity, width).min(width - drawn);
        bar.push(Span::raw("█".repeat(cells)).fg(colour));
        legend.push(Span::raw("█").fg(colour));
        legend.push(Span::raw(format!(" {} {}/s   ", leaf.name, amount(leaf.lease))));
        drawn += cells;
    }
    bar.push(Span::raw("░".repeat(width - drawn)).fg(NOBODYS));
    legend.push(Span::raw("░").fg(NOBODYS));
    legend.push(Span::raw(format!(" nobody {}/s", amount(view.free()))));
    let block = Block::bordered().title(title.bold()).border_style(style);
    frame.render_widget(Paragraph::new(vec![Line::from(bar), Line::from(legend)]).block(block), area);
}

/// Draws the joint between a leaf and the root: their stream, if there is one.
fn draw_joint(frame: &mut Frame<'_>, between: Rect, leaf: Rect, root: Root) {
    // Beside the title of the leaf.
    let x = leaf.x + leaf.width / 4 * 3;
    let is_joined = root != Root::Away;
    let marks = [
        (between.y.saturating_sub(1), "┬", true),
        (between.y, if is_joined { "│" } else { "╳" }, !is_joined),
        (leaf.y, "┴", true),
    ];
    for (y, mark, always) in marks {
        if (always || is_joined)
            && let Some(cell) = frame.buffer_mut().cell_mut((x, y))
        {
            cell.set_symbol(mark);
            if !is_joined {
                cell.set_fg(Color::Red);
            }
        }
    }
}

/// A leaf: its lease, and what its clients have and want.
fn draw_leaf(frame: &mut Frame<'_>, area: Rect, leaf: &Leaf, widest: f64, colour: Color) {
    let title = Line::from(vec![
        Span::raw(format!(" {}: ", leaf.name)).bold(),
        Span::raw(format!("{}/s", amount(leaf.lease))).fg(colour).bold(),
        Span::raw(format!(" for {:.1} s ", leaf.ends)),
    ]);
    let wanted = format!(" wanted {}/s ", amount(leaf.wants));
    let key = Line::from(vec![
        Span::raw(" "),
        Span::raw("█").fg(colour),
        Span::raw(" has "),
        Span::raw("░").fg(NOBODYS),
        Span::raw(" wants "),
    ]);
    let block =
        Block::bordered().title(title).title_bottom(wanted).title_bottom(key.alignment(Alignment::Right));
    let inner = block.inner(area);
    let rows = usize::from(inner.height);
    let longest = leaf.clients.iter().map(|client| client.name.len()).max().unwrap_or(0);
    let row = |client| client_row(client, longest, usize::from(inner.width), widest, colour);
    let mut lines: Vec<Line<'_>> = leaf.clients.iter().take(rows).map(row).collect();
    if leaf.clients.len() > rows && lines.pop().is_some() {
        lines.push(Line::raw(format!("… and {} more", leaf.clients.len() + 1 - rows)).dim());
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn client_row(client: &Client, longest: usize, width: usize, widest: f64, colour: Color) -> Line<'static> {
    let figures = match client.rung {
        "leased" => format!(" {:>5} of {:>5}", amount(client.has), amount(client.wants)),
        rung => format!(" {rung:>14}"),
    };
    let bar = width.saturating_sub(longest + 1 + figures.len());
    let (has, wants) = (cells(client.has, widest, bar), cells(client.wants, widest, bar));
    Line::from(vec![
        Span::raw(format!("{:longest$} ", client.name)),
        Span::raw("█".repeat(has)).fg(colour),
        Span::raw("░".repeat(wants.saturating_sub(has))).fg(NOBODYS),
        Span::raw(" ".repeat(bar - has.max(wants))),
        Span::raw(figures),
    ])
}

/// The number of cells, out of `width`, that stand for `amount`, if all of them stand for `widest`.
fn cells(amount: f64, widest: f64, width: usize) -> usize {
    ((amount / widest * width as f64).round() as usize).min(width)
}

/// In five places as long as it can be.
fn amount(amount: f64) -> String {
    if amount < 999.95 { format!("{amount:.1}") } else { format!("{amount:.0}") }
}

#[cfg(test)]
mod tests;
