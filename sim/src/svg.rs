//! The few shapes of which our own pictures are made, as SVG.

use std::fmt::{Display, Write as _};

/// Shapes, one over the other.
#[derive(Clone, Default, Debug)]
pub(crate) struct Svg(String);

/// A rectangle, in pixels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Where words stand, and how.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct TextPlace {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) size: f64,
    /// `start`, `middle` or `end`.
    pub(crate) anchor: &'static str,
}

/// Words that begin at a place.
pub(crate) fn at(x: f64, y: f64, size: f64) -> TextPlace {
    TextPlace { x, y, size, anchor: "start" }
}

/// The style of what is filled with a colour.
pub(crate) fn ink(colour: &str) -> String {
    format!("fill=\"{colour}\"")
}

/// The style of bold words.
pub(crate) fn bold(colour: &str) -> String {
    format!("fill=\"{colour}\" font-weight=\"bold\"")
}

const FONT: &str = "DejaVu Sans, Liberation Sans, Arial, sans-serif";

// === impl Svg ===

impl Svg {
    /// The picture, of such a size, with definitions of what shapes name.
    pub(crate) fn finish(self, width: f64, height: f64, definitions: &str) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FONT}\">\n<defs>{definitions}</defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>",
            self.0
        )
    }

    fn add(&mut self, shape: impl Display) {
        writeln!(self.0, "{shape}").expect("a string takes everything");
    }

    /// A rectangle; what is said of it is shown to whoever points at it.
    pub(crate) fn rect(&mut self, area: Area, style: &str, said: &str) {
        let Area { x, y, width, height } = area;
        let title = if said.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(said)) };
        let [x, y, width, height] = [x, y, width, height].map(Pixels);
        self.add(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {style}>{title}</rect>"
        ));
    }

    pub(crate) fn circle(&mut self, x: f64, y: f64, radius: f64, style: &str) {
        let [x, y, radius] = [x, y, radius].map(Pixels);
        self.add(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {style}/>"));
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(Pixels);
        self.add(format_args!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {style}/>"));
    }

    pub(crate) fn path(&mut self, path: &str, style: &str) {
        self.add(format_args!("<path d=\"{path}\" {style}/>"));
    }

    pub(crate) fn words(&mut self, place: TextPlace, words: &str, style: &str) {
        let TextPlace { x, y, size, anchor } = place;
        let ([x, y], words) = ([x, y].map(Pixels), escaped(words));
        self.add(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\" {style}>{words}</text>"
        ));
    }
}

/// A length, to the hundredth of a pixel.
#[derive(Clone, Copy)]
pub(crate) struct Pixels(pub(super) f64);

impl Display for Pixels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", (self.0 * 100.0).round() / 100.0)
    }
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_become_shapes() {
        let mut svg = Svg::default();
        svg.words(TextPlace { x: 1.0, y: 2.345_678, size: 12.0, anchor: "start" }, "a<b & c>d", "");
        let picture = svg.finish(10.0, 20.0, "");
        assert!(picture.contains("x=\"1\" y=\"2.35\""), "{picture}");
        assert!(picture.contains(">a&lt;b &amp; c&gt;d</text>"), "{picture}");
    }
}
