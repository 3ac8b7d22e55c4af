//! The picture of the demo, drawn into a buffer.

use super::*;
use crate::demo::target::Judge;
use crate::demo::view::Tenant;

/// A moment in which west has more than east, and everybody wants more than it has but for the first of each.
fn moment(root: Root) -> View {
    let leaf = |name: &'static str, lease: f64, ends: f64| {
        let client = |number: u32| Client {
            name: format!("{name}-{number}"),
            wants: f64::from(number) * 30.0,
            has: lease / 6.0,
            rung: "leased",
        };
        let clients: Vec<Client> = (1..=6).map(client).collect();
        Leaf { name, lease, ends, wants: clients.iter().map(|client| client.wants).sum(), clients }
    };
    View {
        seconds: 12.0,
        length: 30.0,
        limit: 500,
        capacity: 480.0,
        says: "east grows hungry",
        judge: Judge::default(),
        root,
        leaves: vec![leaf("west", 300.0, 4.4), leaf("east", 150.0, 4.6)],
        tenants: tenants(),
        fronts: 2,
        summary:
            "limit 500/s, highest second seen at the target 479, refused 0, share used 98.1 % of 480/s, \
                  over-commitment 0"
                .to_owned(),
    }
}

/// One as usual, one who bursts, one who rests, one who does nothing at the moment.
fn tenants() -> Vec<Tenant> {
    let tenant = |name, tier, rests, refused| {
        let (hits, limit, granted) = (tier as u32 * 4, tier as u32 * 28, 1234);
        Tenant { name, tier, hits, limit, rests, granted, refused }
    };
    vec![
        tenant("ann", 1, None, 0),
        tenant("bob", 2, None, 0),
        tenant("greedy", 1, Some(4.26), 517),
        tenant("cat", 0, None, 0),
    ]
}

/// The picture as text, a line a row.
fn picture(width: u16, height: u16, view: &View) -> Vec<String> {
    let history: Vec<(f64, f64)> = (0..120).map(|at| (f64::from(at) / 10.0, 4.0 * f64::from(at))).collect();
    let buffer = frame(width, height, view, &history);
    let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(row).collect()
}

#[track_caller]
fn holds(rows: &[String], text: &str) {
    assert!(rows.iter().any(|row| row.contains(text)), "no {text:?} in\n{}", rows.join("\n"));
}

#[test]
fn everything_is_there_in_a_small_terminal_and_in_a_large_one() {
    for (width, height) in [(80, 24), (120, 40)] {
        let rows = picture(width, height, &moment(Root::Serves));
        println!("{}", rows.join("\n"));
        for text in [
            "a root leases 480/s to 2 leaves, and they to 12 clients",
            " root: 480/s ",
            "█ west 300.0/s   █ east 150.0/s   ░ nobody 30.0/s",
            " west: 300.0/s for 4.4 s ",
            " east: 150.0/s for 4.6 s ",
            " wanted 630.0/s ",
            " target: 0/s  highest 0  limit 500 ",
            " refused 0 ",
            " tenants of west-1 and west-2 ",
            "ann    1 4/28  as usual    1234  0",
            "bob    2 8/56  bursts      1234  0",
            "greedy 1 4/28  rests 4.3 s 1234  517",
            "cat            as usual    1234  0",
            "▶ east grows hungry",
            "over-commitment 0",
        ] {
            holds(&rows, text);
        }
        for client in 1..=6 {
            holds(&rows, &format!("west-{client} █"));
            holds(&rows, &format!("50.0 of {:5.1}", f64::from(client) * 30.0));
        }
    }
}

#[test]
fn bars_are_as_long_as_what_they_stand_for() {
    let rows = picture(80, 24, &moment(Root::Serves));
    let count = |row: &str, cell: char| row.chars().filter(|&found| found == cell).count();
    // 78 cells are 480, of which 450 are held.
    let bar = &rows[2];
    assert_eq!((count(bar, '█'), count(bar, '░')), (73, 5), "{bar}");
}

#[test]
fn a_leaf_that_is_cut_off_is_seen_to_be() {
    let joint = |view: &View| picture(80, 24, view)[5].clone();
    assert_eq!(joint(&moment(Root::Serves)).matches('│').count(), 2);
    let away = moment(Root::Away);
    assert_eq!(joint(&away).matches('╳').count(), 2);
    holds(&picture(80, 24, &away), " root: away ");
    holds(&picture(80, 24, &moment(Root::Learns(3.24))), "learns who has what of it for 3.2 s more");
}

#[test]
fn who_does_not_fit_is_counted() {
    let mut view = moment(Root::Serves);
    let many: Vec<Client> = view.leaves[0].clients.iter().cycle().take(25).cloned().collect();
    view.leaves[0].clients = many;
    let rows = picture(80, 24, &view);
    holds(&rows, "… and 19 more");
    holds(&rows, "over-commitment 0");
}

#[test]
fn where_there_is_no_room_for_tenants_there_is_still_the_target() {
    let rows = picture(60, 24, &moment(Root::Serves));
    assert!(!rows.iter().any(|row| row.contains("tenants of")), "{}", rows.join("\n"));
    holds(&rows, " target: 0/s  highest 0  limit 500 ");
}

#[test]
fn no_terminal_is_too_small() {
    for (width, height) in [(1, 1), (10, 3), (40, 8), (79, 12), (300, 5)] {
        picture(width, height, &moment(Root::Learns(0.0)));
    }
}

#[test]
fn amounts_take_five_places() {
    assert_eq!([0.0, 9.96, 999.94, 999.96, 4_800.2].map(amount), ["0.0", "10.0", "999.9", "1000", "4800"]);
}
