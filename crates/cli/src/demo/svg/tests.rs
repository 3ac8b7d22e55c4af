//! Frames as pictures, and the one that README.md shows.

use std::path::PathBuf;

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::*;

/// The text of an attribute.
fn attribute<'a>(text: &'a str, name: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name} in {text}"));
    rest.split_once('"').unwrap().0
}

fn plain(words: &str) -> String {
    words.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// The frame that a picture shows, by what stands beside its runs.
fn read(svg: &str) -> Buffer {
    let [columns, rows] = ["data-columns", "data-rows"].map(|name| attribute(svg, name).parse().unwrap());
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    for run in svg.split("<g data-at").skip(1) {
        let run = format!(" data-at{run}");
        let (column, row) = attribute(&run, " data-at").split_once(',').unwrap();
        let mut words = attribute(&run, "data-look").split(' ');
        let style = Style::new().fg(words.next().unwrap().parse().unwrap());
        let style = words.fold(style, |style, word| match word {
            "bold" => style.add_modifier(Modifier::BOLD),
            "dim" => style.add_modifier(Modifier::DIM),
            other => panic!("{other:?} is no look"),
        });
        let cells = plain(attribute(&run, "data-cells"));
        buffer.set_string(column.parse().unwrap(), row.parse().unwrap(), cells, style);
    }
    buffer
}

#[test]
fn a_picture_can_be_drawn_again_from_itself() {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 3));
    buffer.set_string(0, 0, "┌ root: a<b & \"c\" ─┐", Style::new().add_modifier(Modifier::BOLD));
    buffer.set_string(0, 1, "│██░░", Style::new().fg(Color::Cyan));
    buffer.set_string(7, 1, "⣀⠒x", Style::new().fg(Color::DarkGray).add_modifier(Modifier::DIM));
    let drawn = svg(&buffer);
    assert_eq!(svg(&read(&drawn)), drawn);
    assert!(
        drawn.contains(">root: a&lt;b &amp; \"c\"") || drawn.contains("root: a&lt;b &amp; &quot;c&quot;"),
        "{drawn}"
    );
    // Shapes are no text.
    assert!(!drawn.contains(">█") && !drawn.contains(">┌") && !drawn.contains(">⣀"), "{drawn}");
}

#[test]
fn symbols_that_join_are_one_shape() {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 1));
    buffer.set_string(0, 0, "████", Style::new());
    assert_eq!(svg(&buffer).matches("<path").count(), 1);
    assert!(svg(&buffer).contains(&format!("h{:.2}v", 4.0 * WIDTH)), "{}", svg(&buffer));
}

/// The picture in README.md is the last of a real run, drawn as pictures are: `lessor demo --svg docs/demo.svg` makes another,
/// and `REWRITE=1` draws the same frame anew.
#[test]
fn the_picture_of_the_readme_is_drawn_as_pictures_are() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.contains("](docs/demo.svg)"), "README.md shows no docs/demo.svg");
    let path = root.join("docs/demo.svg");
    let shown = std::fs::read_to_string(&path).unwrap();
    let drawn = svg(&read(&shown));
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, &drawn).unwrap();
    }
    assert!(drawn == shown, "{} is drawn in another way; REWRITE=1 draws it anew", path.display());
    for words in
        ["root: 480/s", "west:", "east:", "tenants of west-1 and west-2", "refused 0 ", "over-commitment 0"]
    {
        assert!(shown.contains(words), "no {words:?} in {}", path.display());
    }
}
