//! Boards as they are drawn, in terminals of several sizes.

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Modifier;
use serde_json::json;

use super::super::tests::{at, hear, holder, page, resource};
use super::*;

fn drawn(board: &Board, (columns, rows): (u16, u16), look: Appearance) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, board, look)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> Vec<String> {
    let Rect { width, height, .. } = buffer.area;
    let line = |row| (0..width).map(|column| buffer[(column, row)].symbol()).collect::<String>();
    (0..height).map(|row| line(row).trim_end().to_owned()).collect()
}

fn seen(board: &Board, columns: u16, rows: u16) -> Vec<String> {
    text(&drawn(board, (columns, rows), Appearance { now: at(65), has_colours: true }))
}

fn board() -> Board {
    let mut board = Board::new(None);
    let mut users = resource("db/users", (37.0, 100.0), 37.0, 0.0);
    users["lease_ends_in_seconds"] = json!(12.0);
    for out in [50.0, 500.0] {
        let orders = resource("db/orders", (out, 500.0), 851.0, 20.0);
        hear(&mut board, page(&[users.clone(), orders]), at(60));
    }
    board
}

#[test]
fn resources_are_rows_with_bars() {
    assert_eq!(
        seen(&board(), 100, 9),
        [
            "lessor top  node root, epoch 71, leads for 3h 2m                                        07:01:00 UTC",
            "2 resources · 1 full · 1 short · 4 clients",
            "resource     full▼                out       of  wanted   short  clients trend",
            "db/orders    ██████████  100%     500    500/s     851      20        2 ▁█",
            "db/users     ████░░░░░░   37%      37    100/s      37       -        2 ▃▃",
            "",
            "",
            "db/orders (rate, FAIR_SHARE, template *)",
            "q leave   ? keys   Enter holders   / filter   s sort   p pause   r t d f h e views",
        ]
    );
    // What is out of the ordinary where there is room, and columns from the right are left out where there is none.
    assert!(
        seen(&board(), 130, 9)[4].ends_with("▃▃               lease 12 s"),
        "{:?}",
        seen(&board(), 130, 9)
    );
    assert_eq!(seen(&board(), 48, 9)[3], "db/orders    ██████████  100%     500    500/s");
}

#[test]
fn holders_are_rows_of_who_has_wants_and_misses_what() {
    let mut board = board();
    board.on_key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
    assert_eq!(seen(&board, 60, 8)[1..3], ["db/orders", "asks who has it …"]);
    let mut orders = resource("db/orders", (500.0, 500.0), 851.0, 20.0);
    orders["clients"] = json!(3);
    let mut paris = holder("paris", 100.0, 100.0, 100.0);
    (paris["kind"], paris["subclients"]) = (json!("node"), json!(31));
    orders["holders"] =
        json!([holder("web-1", 300.0, 451.0, 320.0), holder("web-2", 100.0, 300.0, 100.0), paris]);
    hear(&mut board, page(&[orders]), at(62));
    assert_eq!(
        seen(&board, 118, 10)[1..8],
        [
            "db/orders  (rate, FAIR_SHARE, template *)",
            "leased 500 of 500/s, wanted 851, 3 clients",
            &format!("{}  100%", "█".repeat(111)),
            "3 holders · 1 short by 20 together",
            "client       has ░ wants      has   wants   share  short▼ state      priority  ends in      heard stands for",
            "web-1        ███████░░░       300     451     320      20 settled           0   58.0 s  1.5 s ago",
            "web-2        ██░░░░░          100     300     100       - settled           0   58.0 s  1.5 s ago",
        ]
    );
    assert!(seen(&board, 118, 10)[8].ends_with("31 clients"));
    hear(&mut board, None, at(63));
    assert_eq!(seen(&board, 60, 8)[2], "nobody holds or wants it");
}

#[test]
fn a_server_that_is_away_is_said_above_what_it_said_last() {
    let mut board = Board::new(None);
    assert_eq!(seen(&board, 60, 8)[0].trim_end(), "lessor top  asks who leads …");
    board.on_fault("refused".to_owned(), at(61));
    assert_eq!(seen(&board, 60, 8)[1], " NO NEWS since 07:01:01 UTC, for 4s: refused");
    board = self::board();
    board.on_fault("no answer\nfrom root:1".to_owned(), at(62));
    let lines = seen(&board, 100, 9);
    assert_eq!(lines[1], " NO NEWS since 07:01:00 UTC, for 5s: no answer from root:1");
    assert!(lines[4].starts_with("db/orders    ██████████  100%"), "{lines:?}");
}

#[test]
fn overrides_and_a_configuration_that_is_not_in_force_are_said_in_a_few_lines() {
    let mut board = Board::new(None);
    let row = |id: u32| json!({"id": format!("o-{id}"), "what": "cap db 3", "reason": "less", "by": "ann", "ends_in_seconds": 60.0});
    let status = json!({
        "node": "root", "epoch": 71, "leading_seconds": 1.0, "config_version": 3, "later_config": 4,
        "overrides": (0..5).map(row).collect::<Vec<_>>(), "resources_in_all": 0, "resources": [],
    });
    let page = json!({"ready": true, "leads": true, "leader": null, "status": status});
    hear(&mut board, Some(serde_json::from_value(page).unwrap()), at(60));
    let lines = seen(&board, 120, 9);
    assert!(
        lines[1].starts_with("grants nothing: version 3 of the configuration is here, and 4"),
        "{lines:?}"
    );
    assert!(lines[2].starts_with("override o-0"), "{lines:?}");
    assert_eq!(lines[3], "… and 4 more");
    assert_eq!(lines[5], "nobody holds or wants anything of that");
}

#[test]
fn a_terminal_that_is_too_small_says_how_large_it_should_be() {
    for (columns, rows) in [(39, 20), (100, 7), (12, 3), (1, 1)] {
        let lines = seen(&board(), columns, rows).join(" ");
        assert!(!lines.contains("db/orders"), "{lines}");
        if columns > 30 {
            let wanted = format!("the terminal has {columns}×{rows} cells; wanted 40×8 or more (q leaves)");
            assert_eq!(lines.trim_end().replace("  ", " "), wanted);
        }
    }
    assert!(seen(&board(), 40, 8)[3].starts_with("db/orders    ██████████  100%"));
}

#[test]
fn keys_and_the_filter_that_is_typed_are_shown() {
    let mut board = board();
    let press = |board: &mut Board, code| _ = board.on_key(KeyEvent::new(code, KeyModifiers::NONE));
    press(&mut board, KeyCode::Char('?'));
    let lines = seen(&board, 100, 16);
    assert!(lines.iter().any(|line| line.contains("Enter  who has the resource")), "{lines:?}");
    for code in [KeyCode::Char('x'), KeyCode::Char('/'), KeyCode::Char('u'), KeyCode::Char('s')] {
        press(&mut board, code);
    }
    let lines = seen(&board, 100, 9);
    assert_eq!(lines[8], "/us█   Enter keeps it, Esc takes it away");
    assert_eq!(lines[1], "2 resources · 1 with \"us\" · 0 full · 0 short · 2 clients");
    assert!(lines[3].starts_with("db/users"), "{lines:?}");
    press(&mut board, KeyCode::Enter);
    press(&mut board, KeyCode::Char('p'));
    assert!(seen(&board, 100, 9)[0].ends_with(" PAUSED at 07:01:00 UTC"));
}

#[test]
fn colours_say_what_is_scarce_and_are_left_out_where_nobody_wants_them() {
    let mut board = board();
    let over = resource("gone/over", (700.0, 500.0), 700.0, 0.0);
    hear(&mut board, page(&[over, resource("db/users", (37.0, 100.0), 37.0, 0.0)]), at(60));
    let looks = |has_colours| drawn(&board, (100, 9), Appearance { now: at(60), has_colours });
    let coloured = looks(true);
    assert_eq!([coloured[(13, 3)].fg, coloured[(13, 4)].fg], [Color::Red, Color::Green]);
    assert!(
        coloured[(0, 3)].modifier.contains(Modifier::REVERSED | Modifier::BOLD),
        "it is chosen, and bold"
    );
    let plain = looks(false);
    assert!(plain.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert_eq!(text(&coloured), text(&plain));
}

#[test]
fn names_that_steer_terminals_do_nothing() {
    let mut board = Board::new(None);
    hear(&mut board, page(&[resource("a\u{1b}[2Jb\u{7}c", (1.0, 2.0), 1.0, 0.0)]), at(60));
    for cell in drawn(&board, (100, 9), Appearance { now: at(60), has_colours: true }).content() {
        assert!(!cell.symbol().contains(char::is_control), "{:?}", cell.symbol());
    }
}

#[test]
fn plain_lines_are_the_heading_and_the_rows() {
    let board = board();
    assert_eq!(
        lines(&board, 100),
        "node root, epoch 71, leads for 3h 2m\n\
         2 resources · 1 full · 1 short · 4 clients\n\
         resource     full▼                out       of  wanted   short  clients trend\n\
         db/orders    ██████████  100%     500    500/s     851      20        2 ▁█\n\
         db/users     ████░░░░░░   37%      37    100/s      37       -        2 ▃▃\n"
    );
}

#[test]
fn a_sheet_is_its_title_its_columns_and_its_lines() {
    use super::super::board::TopNews;
    use super::super::sheet::TopView;
    let mut board = Board::new(None).with_view(TopView::History);
    assert_eq!(seen(&board, 60, 8)[1..3], ["revisions", "asks …"]);
    board.on_news(TopNews::Sheet("revision message\n       3 less\n       2 more\n".to_owned()), at(60));
    board.on_key(KeyEvent::new(KeyCode::Down, KeyModifiers::NONE));
    let lines = seen(&board, 60, 8);
    assert_eq!(lines[1..4], ["revisions · 1 above", "revision message", "       2 more"]);
    assert_eq!(lines[7], "q leave   ? keys   Esc back   / filter   p pause   r t d f h");

    // Words go on in the next line, and the worst is red.
    let mut board = Board::new(None).with_view(TopView::Findings);
    board.on_news(TopNews::Sheet("FAULT promise: db/orders: more is out than may be\n".to_owned()), at(60));
    let lines = seen(&board, 40, 8);
    assert_eq!(lines[2..4], ["FAULT promise: db/orders: more is out", "than may be"]);
    let drawn = drawn(&board, (40, 8), Appearance { now: at(65), has_colours: true });
    assert_eq!(drawn[(0, 2)].fg, Color::Red);
}
