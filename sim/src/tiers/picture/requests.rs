//! The chart of granted and refused requests, as bars.

use std::time::Duration;

use lessor_algorithms::tiers::Bound;

use super::{END, Frame, GLOBAL, GRANTED, HARD, INK, LEFT, REFUSED, REQUESTS};
use crate::svg::{Area, Svg, TextPlace};
use crate::tiers::history::History;
use crate::tiers::text::step;
use crate::tiers::{notation, seconds};

/// The hits of one bar: granted, then refused by tiers, by the hard limit, by the global limit.
type Bar = [u64; 4];

const COLOURS: [&str; 4] = [GRANTED, REFUSED, HARD, GLOBAL];
const SAID: [&str; 4] =
    ["granted", "refused by tiers", "refused by the hard limit", "refused by the global limit"];
/// Room for what the bars mean.
const HEAD: f64 = 22.0;

/// Draws them from `top` on.
pub(super) fn draw(svg: &mut Svg, frame: &Frame<'_>, top: f64) {
    let history = frame.history;
    let time = step(history.end / 240);
    let bars = bars(history, time);
    let granted = bars.iter().map(|bar| bar[0]).max().unwrap_or(0);
    let refused = bars.iter().map(|bar| bar[1..].iter().sum()).max().unwrap_or(0);
    let scale = (REQUESTS - HEAD - 8.0) / (granted + refused).max(1) as f64;
    let base = top + HEAD + granted as f64 * scale;
    let words = format!("hits in {}", notation::short(Duration::from_nanos(time)));
    svg.words(super::at(16.0, top + 16.0, 14.0), "requests", &format!("fill=\"{INK}\" font-weight=\"bold\""));
    svg.words(super::at(16.0, top + 33.0, 12.0), &words, &format!("fill=\"{}\"", super::GREY));
    legend(svg, &bars, top);
    for (index, bar) in bars.iter().enumerate() {
        let x = frame.x(time * index as u64);
        let width = (frame.x(time * (index as u64 + 1)).min(END) - x - 0.6).max(0.6);
        let (mut y, said) = (base, frame_words(time * index as u64));
        for (kind, &hits) in bar.iter().enumerate().filter(|(_, hits)| **hits > 0) {
            let height = hits as f64 * scale;
            let from = if kind == 0 { base - height } else { y };
            y = if kind == 0 { y } else { y + height };
            let area = Area { x, y: from, width, height };
            svg.rect(area, &format!("fill=\"{}\"", COLOURS[kind]), &format!("{hits} {} {said}", SAID[kind]));
        }
    }
    svg.line((LEFT, base), (END, base), &format!("stroke=\"{INK}\" stroke-width=\"0.8\""));
    let mut mark = |hits: u64, y: f64| {
        let place = TextPlace { x: LEFT - 6.0, y: y + 4.0, size: 11.0, anchor: "end" };
        svg.words(place, &hits.to_string(), &format!("fill=\"{}\"", super::GREY));
    };
    mark(0, base);
    // Not on top of each other.
    if granted as f64 * scale > 12.0 {
        mark(granted, base - granted as f64 * scale);
    }
    if refused as f64 * scale > 12.0 {
        mark(refused, base + refused as f64 * scale);
    }
}

fn frame_words(time: u64) -> String {
    format!("from {} s on", seconds(time))
}

fn bars(history: &History, time: u64) -> Vec<Bar> {
    let count = usize::try_from(history.end.div_ceil(time)).unwrap_or(0).max(1);
    let mut bars = vec![Bar::default(); count];
    for request in &history.requests {
        let bar = &mut bars[usize::try_from(request.arrival.at / time).unwrap_or(0).min(count - 1)];
        let granted = request.decision.granted;
        bar[0] += u64::from(granted);
        let kind = match request.decision.bound {
            Some(Bound::Hard) => 2,
            Some(Bound::Global) => 3,
            Some(Bound::Tiers | Bound::Debt) | None => 1,
        };
        bar[kind] += u64::from(request.arrival.copies - granted);
    }
    bars
}

fn legend(svg: &mut Svg, bars: &[Bar], top: f64) {
    let mut x = LEFT + 8.0;
    for kind in (0..4).filter(|&kind| bars.iter().any(|bar| bar[kind] > 0)) {
        let area = Area { x, y: top + 4.0, width: 10.0, height: 10.0 };
        svg.rect(area, &format!("fill=\"{}\"", COLOURS[kind]), "");
        svg.words(super::at(x + 15.0, top + 13.0, 12.0), SAID[kind], &format!("fill=\"{INK}\""));
        x += 36.0 + 6.9 * SAID[kind].len() as f64;
    }
}
