//! A frame of the demonstration as an SVG image.
//!
//! Blocks, lines of boxes and dots are drawn as shapes, as fonts of browsers do not join them; all else is text, each run of
//! which is as wide as its cells, whatever font there is. What a run shows is beside it as data, so that a picture can be drawn
//! again from itself.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// Of a cell, in pixels.
const WIDTH: f64 = 9.0;
const HEIGHT: f64 = 19.0;
/// Above and below a block, so that bars of neighbours are told apart.
const INSET: f64 = 2.5;
/// Around all cells.
const MARGIN: f64 = 14.0;
const BACKGROUND: &str = "#14181d";
const INK: &str = "#d7dce2";
const FONT: &str = "DejaVu Sans Mono, Liberation Mono, Menlo, Consolas, monospace";

/// The look of a run of cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Look {
    colour: Color,
    modifier: Modifier,
}

/// Cells side by side that look the same.
#[derive(Clone, PartialEq, Eq, Debug)]
struct CellRun {
    column: u16,
    row: u16,
    look: Look,
    symbols: String,
}

/// The frame as an SVG image.
pub(super) fn svg(buffer: &Buffer) -> String {
    let area = buffer.area;
    let (width, height) = (
        f64::from(area.width).mul_add(WIDTH, 2.0 * MARGIN),
        f64::from(area.height).mul_add(HEIGHT, 2.0 * MARGIN),
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         data-columns=\"{}\" data-rows=\"{}\" font-family=\"{FONT}\" font-size=\"15\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n",
        area.width, area.height
    );
    runs(buffer).iter().for_each(|run| svg.push_str(&run.drawn()));
    svg + "</svg>\n"
}

/// The cells that show anything, in runs.
fn runs(buffer: &Buffer) -> Vec<CellRun> {
    let mut runs: Vec<CellRun> = Vec::new();
    for row in 0..buffer.area.height {
        let mut is_open = false;
        for column in 0..buffer.area.width {
            let cell = &buffer[(column, row)];
            let (symbol, look) = (cell.symbol(), Look::of(cell));
            if symbol == " " {
                // A word may go on behind one space.
                let next = (column + 1 < buffer.area.width).then(|| &buffer[(column + 1, row)]);
                let goes_on = next.is_some_and(|next| next.symbol() != " " && Look::of(next) == look);
                is_open = is_open && goes_on && runs.last().is_some_and(|run| run.look == look);
                if is_open && let Some(run) = runs.last_mut() {
                    run.symbols.push(' ');
                }
                continue;
            }
            match runs.last_mut() {
                Some(run) if is_open && run.look == look => run.symbols.push_str(symbol),
                _ => runs.push(CellRun { column, row, look, symbols: symbol.to_owned() }),
            }
            is_open = true;
        }
    }
    runs
}

// === impl Look ===

impl Look {
    fn of(cell: &Cell) -> Look {
        Look { colour: cell.fg, modifier: cell.modifier & (Modifier::BOLD | Modifier::DIM) }
    }

    fn fill(self) -> &'static str {
        match self.colour {
            Color::Cyan => "#4fc3d9",
            Color::Magenta => "#d98be0",
            Color::Green => "#6fcf7f",
            Color::Red => "#ff6b5e",
            Color::Yellow => "#f2c94c",
            Color::DarkGray => "#6b7683",
            _ if self.modifier.contains(Modifier::DIM) => "#98a2ad",
            _ => INK,
        }
    }

    /// The colour by its name, and `bold` and `dim`.
    fn words(self) -> String {
        let mut words = self.colour.to_string();
        for (modifier, word) in [(Modifier::BOLD, " bold"), (Modifier::DIM, " dim")] {
            words.push_str(if self.modifier.contains(modifier) { word } else { "" });
        }
        words
    }
}

// === impl CellRun ===

impl CellRun {
    fn drawn(&self) -> String {
        let (left, top) =
            (f64::from(self.column).mul_add(WIDTH, MARGIN), f64::from(self.row).mul_add(HEIGHT, MARGIN));
        let symbols: Vec<char> = self.symbols.chars().collect();
        let mut inner = String::new();
        let mut from = 0;
        for part in symbols.chunk_by(|one, other| is_shape(*one) == is_shape(*other)) {
            let x = left + from as f64 * WIDTH;
            match is_shape(part[0]) {
                true => inner.push_str(&path(part, x, top)),
                false => inner.push_str(&text(part, x, top)),
            }
            from += part.len();
        }
        let weight = if self.look.modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
        format!(
            "<g data-at=\"{},{}\" data-look=\"{}\" data-cells=\"{}\" fill=\"{}\"{weight}>{inner}</g>\n",
            self.column,
            self.row,
            self.look.words(),
            escaped(&self.symbols),
            self.look.fill()
        )
    }
}

/// Whether a symbol is drawn, and not written.
fn is_shape(symbol: char) -> bool {
    matches!(symbol, '\u{2500}'..='\u{259f}' | '\u{2800}'..='\u{28ff}')
}

/// Text that takes as much room as its cells.
fn text(symbols: &[char], x: f64, top: f64) -> String {
    let words: String = symbols.iter().collect();
    if words.trim().is_empty() {
        return String::new();
    }
    let (y, width) = (top + HEIGHT * 0.75, symbols.len() as f64 * WIDTH);
    let words = escaped(&words);
    format!(
        "<text x=\"{x}\" y=\"{y:.2}\" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">{words}</text>"
    )
}

/// All symbols of a part as one path. Blocks of the same kind are one rectangle, so that no seam is seen between them.
fn path(symbols: &[char], x: f64, top: f64) -> String {
    let (mut shape, mut faint) = (String::new(), String::new());
    let mut from = 0;
    for same in symbols.chunk_by(|one, other| one == other) {
        let left = x + from as f64 * WIDTH;
        let width = same.len() as f64 * WIDTH;
        match same[0] {
            '█' => rect(&mut shape, left, top + INSET, width, HEIGHT - 2.0 * INSET),
            '░' => rect(&mut faint, left, top + INSET, width, HEIGHT - 2.0 * INSET),
            '─' => rect(&mut shape, left, top + HEIGHT / 2.0 - 0.6, width, 1.2),
            symbol => {
                for place in 0..same.len() {
                    cell(&mut shape, symbol, left + place as f64 * WIDTH, top);
                }
            }
        }
        from += same.len();
    }
    let drawn = |path: &str, style: &str| match path.is_empty() {
        true => String::new(),
        false => format!("<path d=\"{path}\"{style}/>"),
    };
    drawn(&shape, "") + &drawn(&faint, " fill-opacity=\"0.45\"")
}

/// One symbol that does not join with others of its kind.
fn cell(path: &mut String, symbol: char, x: f64, top: f64) {
    if let Some(dots @ 1..) = (symbol as u32).checked_sub(0x2800).filter(|_| symbol >= '\u{2800}') {
        return braille(path, dots, x, top);
    }
    // Which arms a line has: left, right, up, down.
    let arms = match symbol {
        '│' => [false, false, true, true],
        '┌' => [false, true, false, true],
        '┐' => [true, false, false, true],
        '└' => [false, true, true, false],
        '┘' => [true, false, true, false],
        '┬' => [true, true, false, true],
        '┴' => [true, true, true, false],
        '├' => [false, true, true, true],
        '┤' => [true, false, true, true],
        '┼' => [true; 4],
        '╳' => return cross(path, x, top),
        _ => [false; 4],
    };
    let (middle_x, middle_y) = (x + WIDTH / 2.0 - 0.6, top + HEIGHT / 2.0 - 0.6);
    let [left, right, up, down] = arms;
    if left || right {
        let from = if left { x } else { middle_x };
        let to = if right { x + WIDTH } else { middle_x + 1.2 };
        rect(path, from, middle_y, to - from, 1.2);
    }
    if up || down {
        let from = if up { top } else { middle_y };
        let to = if down { top + HEIGHT } else { middle_y + 1.2 };
        rect(path, middle_x, from, 1.2, to - from);
    }
}

/// The dots of a braille symbol, of which there are two columns of four.
fn braille(path: &mut String, dots: u32, x: f64, top: f64) {
    const PLACES: [(u32, u32); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
    for (bit, (column, row)) in PLACES.into_iter().enumerate() {
        if dots & 1 << bit != 0 {
            let left = x + f64::from(column) * WIDTH / 2.0 + WIDTH / 4.0 - 1.5;
            let upper = top + f64::from(row) * HEIGHT / 4.0 + HEIGHT / 8.0 - 1.5;
            rect(path, left, upper, 3.0, 3.0);
        }
    }
}

fn cross(path: &mut String, x: f64, top: f64) {
    let (right, bottom) = (x + WIDTH, top + HEIGHT);
    write!(
        path,
        "M{:.2},{top:.2}L{right:.2},{:.2}L{:.2},{bottom:.2}L{x:.2},{:.2}ZM{:.2},{top:.2}L{x:.2},{:.2}L{:.2},{bottom:.2}L{right:.2},{:.2}Z",
        x + 1.5,
        bottom - 1.5,
        right - 1.5,
        top + 1.5,
        right - 1.5,
        bottom - 1.5,
        x + 1.5,
        top + 1.5
    )
    .expect("a string takes everything");
}

fn rect(path: &mut String, x: f64, y: f64, width: f64, height: f64) {
    write!(path, "M{x:.2},{y:.2}h{width:.2}v{height:.2}h-{width:.2}z").expect("a string takes everything");
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests;
