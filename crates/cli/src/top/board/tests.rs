//! Keys and pages, and what a board then asks for and shows.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::tests::{at, hear, holder, page, resource};
use super::*;

fn three() -> Option<NodePage> {
    page(&[
        resource("db/users", (37.0, 100.0), 37.0, 0.0),
        resource("mail", (90.0, 100.0), 95.0, 5.0),
        resource("db/orders", (100.0, 100.0), 300.0, 0.0),
    ])
}

fn press(board: &mut Board, codes: &[KeyCode]) -> Vec<Reaction> {
    codes.iter().map(|&code| board.on_key(KeyEvent::new(code, KeyModifiers::NONE))).collect()
}

fn typed(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).collect()
}

fn names(board: &Board) -> Vec<&str> {
    board.resources.rows(board.all_resources()).iter().map(|row| row.resource.as_str()).collect()
}

fn chosen(board: &Board) -> Option<&str> {
    let rows = board.resources.rows(board.all_resources());
    board.resources.chosen(&rows).map(|at| rows[at].resource.as_str())
}

#[test]
fn the_fullest_come_first_and_keys_sort_otherwise() {
    let mut board = Board::new(None);
    hear(&mut board, three(), at(0));
    assert_eq!(names(&board), ["db/orders", "mail", "db/users"]);
    press(&mut board, &typed("S"));
    assert_eq!(names(&board), ["db/users", "mail", "db/orders"]);
    press(&mut board, &typed("s"));
    assert_eq!((board.resources.order, names(&board)[0]), (ResourceOrder::Short, "mail"));
    press(&mut board, &typed("ssss"));
    assert_eq!(names(&board), ["db/orders", "db/users", "mail"], "by name");
    press(&mut board, &typed("s"));
    assert_eq!(board.resources.order, ResourceOrder::Full, "and again from the first");
    let over = resource("tiny", (2.0, 1.0), 2.0, 0.0);
    hear(&mut board, page(&[resource("a", (9.0, 1.0), 0.0, 0.0), over]), at(1));
    assert_eq!(names(&board), ["a", "tiny"], "both are over, one by more");
}

#[test]
fn the_chosen_row_stays_chosen_wherever_it_goes() {
    let mut board = Board::new(None);
    hear(&mut board, three(), at(0));
    assert_eq!(chosen(&board), Some("db/orders"));
    press(&mut board, &[KeyCode::Down]);
    assert_eq!(chosen(&board), Some("mail"));
    hear(
        &mut board,
        page(&[resource("mail", (1.0, 100.0), 1.0, 0.0), resource("x", (9.0, 10.0), 9.0, 0.0)]),
        at(1),
    );
    assert_eq!((names(&board), chosen(&board)), (vec!["x", "mail"], Some("mail")));
    press(&mut board, &[KeyCode::PageDown, KeyCode::End]);
    assert_eq!(chosen(&board), Some("mail"), "there is none below");
    hear(&mut board, page(&[resource("x", (9.0, 10.0), 9.0, 0.0)]), at(2));
    assert_eq!(chosen(&board), Some("x"), "the one that was chosen has gone");
    hear(&mut board, page(&[]), at(3));
    assert_eq!(chosen(&board), None);
    assert_eq!(press(&mut board, &[KeyCode::Enter]), [Reaction::Stay], "there is nothing to look at");
}

#[test]
fn a_filter_is_a_part_of_names_or_a_pattern() {
    let mut board = Board::new(None);
    hear(&mut board, three(), at(0));
    // Keys are letters while it is typed.
    assert_eq!(press(&mut board, &typed("/q")), [Reaction::Stay, Reaction::Stay]);
    assert_eq!((names(&board).len(), board.filter()), (0, "q"));
    press(&mut board, &[KeyCode::Backspace]);
    press(&mut board, &typed("DB"));
    assert_eq!(names(&board), ["db/orders", "db/users"], "while it is typed");
    press(&mut board, &[KeyCode::Enter, KeyCode::Char('/'), KeyCode::Esc]);
    assert_eq!(names(&board).len(), 3);
    press(&mut board, &typed("/*/u*"));
    press(&mut board, &[KeyCode::Enter]);
    assert_eq!((names(&board), board.is_typing), (vec!["db/users"], false));
    press(&mut board, &[KeyCode::Esc]);
    assert_eq!(names(&board).len(), 3);
}

#[test]
fn enter_asks_who_has_the_resource_and_escape_goes_back_to_it() {
    let mut board = Board::new(Some("db/*".to_owned()));
    let path = "/status?holders=0&resources=1000&order=busiest&matching=db%2F%2A".to_owned();
    assert_eq!(board.query(), TopQuery::Node { path });
    hear(&mut board, three(), at(0));
    assert_eq!(press(&mut board, &[KeyCode::Down, KeyCode::Enter]), [Reaction::Stay, Reaction::Ask]);
    let path = "/status?holders=500&resources=1&resource=mail".to_owned();
    assert_eq!(board.query(), TopQuery::One { path });
    let mut mail = resource("mail", (90.0, 100.0), 95.0, 5.0);
    mail["holders"] = serde_json::json!([
        holder("full", 60.0, 60.0, 60.0),
        holder("wishes", 20.0, 90.0, 20.0),
        holder("short", 10.0, 20.0, 15.0),
    ]);
    hear(&mut board, page(&[mail]), at(1));
    let names = |board: &Board| -> Vec<String> {
        let close = board.close.as_ref().unwrap();
        close.holders.rows(&close.row().unwrap().holders).iter().map(|row| row.client.clone()).collect()
    };
    assert_eq!(names(&board), ["short", "wishes", "full"]);
    press(&mut board, &typed("s"));
    assert_eq!(names(&board), ["full", "wishes", "short"], "by what they have");
    press(&mut board, &typed("/sh"));
    press(&mut board, &[KeyCode::Enter]);
    assert_eq!(names(&board), ["wishes", "short"]);
    assert_eq!(press(&mut board, &[KeyCode::Esc, KeyCode::Esc]), [Reaction::Stay, Reaction::Ask]);
    assert_eq!((chosen(&board), board.node.as_ref().unwrap().resources().len()), (Some("mail"), 3));
}

#[test]
fn a_server_that_is_away_leaves_what_it_said() {
    let mut board = Board::new(None);
    board.on_fault("refused".to_owned(), at(5));
    board.on_fault("refused again".to_owned(), at(7));
    let outage = board.outage.as_ref().unwrap();
    assert_eq!((outage.since.at, outage.why.as_str()), (at(5).at, "refused again"));
    hear(&mut board, three(), at(9));
    assert!(board.outage.is_none());
    board.on_fault("gone".to_owned(), at(11));
    assert_eq!((names(&board).len(), board.heard.unwrap().at), (3, at(9).at));
}

#[test]
fn trends_are_of_the_last_looks_and_of_resources_that_there_are() {
    let mut board = Board::new(None);
    for second in 0..40 {
        hear(&mut board, page(&[resource("a", (f64::from(second), 100.0), 0.0, 0.0)]), at(0));
    }
    let trend: Vec<f64> = board.trend("a").collect();
    assert_eq!((trend.len(), trend[0], trend[31]), (32, 0.08, 0.39));
    hear(&mut board, three(), at(1));
    assert_eq!((board.trend("a").len(), board.trend("mail").len()), (0, 1));
}

#[test]
fn keys_pause_explain_themselves_and_leave() {
    let mut board = Board::new(None);
    assert_eq!(press(&mut board, &typed("p")), [Reaction::Stay]);
    assert!(board.is_paused);
    assert_eq!(
        press(&mut board, &typed("p")),
        [Reaction::Ask],
        "what has happened meanwhile is wanted at once"
    );
    press(&mut board, &typed("?"));
    assert!(board.shows_keys);
    assert_eq!(press(&mut board, &typed("p")), [Reaction::Stay]);
    assert!(!board.shows_keys && !board.is_paused, "any key takes them away, and does nothing else");
    assert_eq!(press(&mut board, &typed("?q")), [Reaction::Stay, Reaction::Leave]);
    assert_eq!(press(&mut board, &typed("q")), [Reaction::Leave]);
    press(&mut board, &typed("/"));
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(board.on_key(interrupt), Reaction::Leave, "also while a filter is typed");
}

#[test]
fn letters_turn_to_sheets_and_back_to_what_was_in_sight() {
    let mut board = Board::new(Some("db/*".to_owned()));
    hear(&mut board, three(), at(0));
    let pattern = Some("db/*".to_owned());
    for (key, kind) in [
        ("t", SheetKind::Tree(pattern)),
        ("d", SheetKind::Domains),
        ("f", SheetKind::Findings),
        ("h", SheetKind::History),
        // Of the resource that is chosen, and not of a sheet.
        ("e", SheetKind::History),
        ("re", SheetKind::Explain { resource: "db/orders".to_owned(), client: None }),
    ] {
        press(&mut board, &typed(key));
        assert_eq!(board.query(), TopQuery::Sheet(kind), "{key}");
    }
    assert_eq!(press(&mut board, &[KeyCode::Esc, KeyCode::Enter]), [Reaction::Ask; 2]);
    let mut orders = resource("db/orders", (100.0, 100.0), 300.0, 0.0);
    orders["holders"] =
        serde_json::json!([holder("web-1", 60.0, 90.0, 60.0), holder("web-2", 40.0, 40.0, 40.0)]);
    hear(&mut board, page(&[orders]), at(1));
    press(&mut board, &[KeyCode::Down, KeyCode::Char('e')]);
    let client = Some("web-2".to_owned());
    assert_eq!(
        board.query(),
        TopQuery::Sheet(SheetKind::Explain { resource: "db/orders".to_owned(), client })
    );
    assert_eq!(press(&mut board, &[KeyCode::Esc]), [Reaction::Ask]);
    assert!(board.close.is_some(), "the holders are in sight again");
    press(&mut board, &typed("f"));
    assert_eq!(press(&mut board, &typed("r")), [Reaction::Ask]);
    assert!(board.close.is_none() && board.sheet.is_none());
}

#[test]
fn a_sheet_is_filtered_and_gone_through_and_left_by_escape() {
    let mut board = Board::new(None).with_view(TopView::History);
    board.on_news(TopNews::Sheet("revision\n3 a\n2 b\n1 a\n".to_owned()), at(0));
    assert_eq!(press(&mut board, &[KeyCode::End, KeyCode::Enter]), [Reaction::Stay; 2]);
    assert_eq!(board.sheet.as_ref().unwrap().offset, 2);
    press(&mut board, &typed("/a"));
    let lines = |board: &Board| board.sheet.as_ref().unwrap().lines().1.join(",");
    assert_eq!((lines(&board), board.filter()), ("3 a,1 a".to_owned(), "a"));
    press(&mut board, &[KeyCode::Enter]);
    assert_eq!(press(&mut board, &[KeyCode::Esc]), [Reaction::Stay]);
    assert_eq!(lines(&board), "3 a,2 b,1 a");
    assert_eq!(press(&mut board, &[KeyCode::Esc]), [Reaction::Ask]);
    assert!(board.sheet.is_none());
}
