//! The chart of the load that the target has seen over time, against its limit.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType};

use crate::demo::view::View;

/// From so many rows on there is room for an axis of time.
const ROWS_FOR_TIME: u16 = 12;
/// The limit stands a little below the upper edge.
const HEADROOM: f64 = 1.1;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View, history: &[(f64, f64)]) {
    let (limit, length) = (f64::from(view.limit), view.length.max(1.0));
    let limit_line = [(0.0, limit), (length, limit)];
    let mut times = Axis::default().bounds([0.0, length]);
    if area.height >= ROWS_FOR_TIME {
        times = times.labels([0.0, length / 2.0, length].map(|seconds| format!("{seconds:.0} s")));
    }
    let most = limit * HEADROOM;
    let amounts = Axis::default().bounds([0.0, most]).labels(["0".to_owned(), format!("{most:.0}")]);
    let time = Line::raw(format!(" {:.0} of {:.0} s; q to quit ", view.seconds, view.length));
    let block = Block::bordered()
        .title(title(view))
        .title_bottom(refused(view))
        .title_bottom(time.alignment(Alignment::Right));
    let chart = Chart::new(vec![line(&limit_line, Color::Red), line(history, Color::Green)])
        .block(block)
        .legend_position(None)
        .x_axis(times)
        .y_axis(amounts);
    frame.render_widget(chart, area);
}

fn title(view: &View) -> Line<'static> {
    let judge = &view.judge;
    Line::from(vec![
        Span::raw(" target: ").bold(),
        Span::raw(format!("{}/s", judge.rate())).fg(Color::Green).bold(),
        Span::raw(format!("  highest {}  ", judge.highest)),
        Span::raw(format!("limit {} ", view.limit)).fg(Color::Red),
    ])
}

fn refused(view: &View) -> Line<'static> {
    match view.judge.refused {
        0 => Line::raw(" refused 0 "),
        refused => Line::raw(format!(" refused {refused} ")).fg(Color::Red).bold(),
    }
}

fn line(points: &[(f64, f64)], colour: Color) -> Dataset<'_> {
    Dataset::default()
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(Style::new().fg(colour))
        .data(points)
}
