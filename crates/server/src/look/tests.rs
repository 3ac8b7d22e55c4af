//! Tests of looks: who is asked what, who waits for it, and what is shown when somebody does not answer.

use lessor_proto::message::{Hello, HolderKind, LookKind};
use lessor_proto::{ClientId, Incarnation, wire};
use prost::Message as _;

use super::*;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn peer(number: u64) -> Peer {
    Peer::from(number)
}

fn open(looks: &mut Looks, number: u64, name: &str, line: Option<u64>, can_be_asked: bool) {
    open_as(looks, number, (name, line, number), can_be_asked);
}

/// The same for the leader of an epoch.
fn open_as(
    looks: &mut Looks,
    number: u64,
    (name, line, epoch): (&str, Option<u64>, u64),
    can_be_asked: bool,
) {
    let holder = ClientId::new(name, 256).unwrap();
    let hello = Hello { line, ..Hello::new(HolderKind::Node, holder, Incarnation(epoch)) };
    looks.handle(at(0), LookEvent::Opened { peer: peer(number), hello, can_be_asked });
}

fn tree(body: &[u8]) -> LookQuestion {
    LookQuestion { kind: LookKind::Tree, body: body.to_vec() }
}

fn said(bytes: &[u8]) -> NodeContent {
    NodeContent { bytes: Some(bytes.to_vec()), ..NodeContent::default() }
}

/// All that is to be done at a moment. Content is handed in at once, if it is given.
fn outputs(looks: &mut Looks, now: Time, content: Option<&NodeContent>) -> Vec<LookOutput> {
    let mut all = Vec::new();
    while let Some(output) = looks.poll(now, |_| true) {
        match (output, content) {
            (LookOutput::Content { look, .. }, Some(content)) => looks.content(now, look, content.clone()),
            (output, _) => all.push(output),
        }
    }
    all
}

fn looks_in(outputs: &[LookOutput]) -> Vec<(u64, Look)> {
    let look = |output: &LookOutput| match output {
        LookOutput::Look { peer, look } => Some((peer.number(), Look::clone(look))),
        _ => None,
    };
    outputs.iter().filter_map(look).collect()
}

/// The views in outputs, each as text: content, and those below by name.
fn views(outputs: &[LookOutput]) -> Vec<(u64, String)> {
    let view = |output: &LookOutput| match output {
        LookOutput::View { ticket, bytes } => {
            Some((*ticket, text(&ViewTree::read(bytes, MOST_LEVELS).unwrap())))
        }
        _ => None,
    };
    outputs.iter().filter_map(view).collect()
}

fn text(view: &ViewTree) -> String {
    let content = String::from_utf8(view.content.clone().unwrap_or_default()).unwrap();
    let below: Vec<String> = view
        .below
        .iter()
        .map(|branch| match &branch.view {
            Some(view) => format!("{}={}", branch.node, text(view)),
            None => format!("{} {:?}", branch.node, branch.seen),
        })
        .collect();
    let unnamed = if view.unnamed > 0 { format!(" +{}", view.unnamed) } else { String::new() };
    if below.is_empty() { content + &unnamed } else { format!("{content}({}){unnamed}", below.join(", ")) }
}

/// A child shows this for the look of that number, in parts of so many bytes.
fn show(looks: &mut Looks, now: Time, number: u64, id: u64, bytes: &[u8], each: usize) {
    let chunks: Vec<&[u8]> = bytes.chunks(each).collect();
    for (part, chunk) in chunks.iter().enumerate() {
        let is_last = part + 1 == chunks.len();
        let part = ViewPart { id, part: part as u32, is_last, body: chunk.to_vec() };
        looks.handle(now, LookEvent::Shown { peer: peer(number), part });
    }
}

fn packed(content: &str) -> Vec<u8> {
    PackedView::pack(Some(content.into()), Vec::new(), BOUNDS).bytes
}

#[test]
fn each_child_is_asked_and_what_came_is_one_view() {
    let mut looks = Looks::default();
    open(&mut looks, 1, "paris", None, true);
    open(&mut looks, 2, "tokyo", None, true);
    open(&mut looks, 3, "lima", None, false);
    let ticket = looks.ask(at(0), tree(b"q"), PATIENCE).unwrap();
    let known = NodeContent { known: vec!["oslo".into(), "paris".into()], ..said(b"root") };
    let asked = looks_in(&outputs(&mut looks, at(0), Some(&known)));
    assert_eq!(asked.iter().map(|(peer, _)| *peer).collect::<Vec<_>>(), [1, 2]);
    let look = &asked[0].1;
    assert_eq!((look.kind, look.body.as_slice(), look.bounds.levels), (LookKind::Tree, &b"q"[..], 15));
    assert_eq!(look.patience, Duration::from_millis(1_750), "an eighth is kept for the way");

    show(&mut looks, at(5), 2, asked[1].1.id, &packed("t"), 3);
    assert!(outputs(&mut looks, at(5), None).is_empty(), "paris is waited for");
    show(&mut looks, at(9), 1, asked[0].1.id, &packed("p"), 1_000);
    let said = views(&outputs(&mut looks, at(9), None));
    assert_eq!(said, [(ticket, "root(lima CannotBeAsked, oslo CannotBeAsked, paris=p, tokyo=t)".to_owned())]);
    assert_eq!(looks.running(), 0);
}

#[test]
fn ten_who_ask_cost_one_look_and_whoever_comes_within_a_second_none() {
    let mut looks = Looks::default();
    open(&mut looks, 1, "paris", None, true);
    let tickets: Vec<u64> = (0..10).map(|_| looks.ask(at(0), tree(b"q"), PATIENCE).unwrap()).collect();
    let asked = looks_in(&outputs(&mut looks, at(0), Some(&said(b"root"))));
    assert_eq!(asked.len(), 1);
    show(&mut looks, at(1), 1, asked[0].1.id, &packed("p"), 100);
    let answered = views(&outputs(&mut looks, at(1), None));
    assert_eq!(answered.iter().map(|(ticket, _)| *ticket).collect::<Vec<_>>(), tickets);

    let again = looks.ask(at(1_000), tree(b"q"), PATIENCE).unwrap();
    assert_eq!(views(&outputs(&mut looks, at(1_000), None)), [(again, "root(paris=p)".to_owned())]);
    looks.ask(at(1_000), tree(b"other"), PATIENCE).unwrap();
    looks.ask(at(1_001), tree(b"q"), PATIENCE).unwrap();
    assert_eq!(looks.running(), 2, "another question, and one that is a second old");
}

#[test]
fn whoever_does_not_answer_is_silent_and_keeps_nobody_waiting_again() {
    let mut looks = Looks::default();
    open(&mut looks, 1, "paris", None, true);
    open(&mut looks, 2, "tokyo", None, true);
    looks.ask(at(0), tree(b"q"), PATIENCE).unwrap();
    let asked = looks_in(&outputs(&mut looks, at(0), Some(&said(b"root"))));
    show(&mut looks, at(1), 1, asked[0].1.id, &packed("p"), 100);
    assert_eq!(looks.next_deadline(), Some(at(2_000)));
    assert!(outputs(&mut looks, at(1_999), None).is_empty());
    let shown = |looks: &mut Looks, now| views(&outputs(looks, now, None)).pop().map(|(_, text)| text);
    assert_eq!(shown(&mut looks, at(2_000)).unwrap(), "root(paris=p, tokyo Silent)");

    // The next one does not wait for it.
    looks.ask(at(4_000), tree(b"q"), PATIENCE).unwrap();
    let second = looks_in(&outputs(&mut looks, at(4_000), Some(&said(b"root"))));
    assert_eq!(second.iter().map(|(peer, _)| *peer).collect::<Vec<_>>(), [1]);
    show(&mut looks, at(4_001), 1, second[0].1.id, &packed("p"), 100);
    assert_eq!(shown(&mut looks, at(4_001)).unwrap(), "root(paris=p, tokyo Silent)");

    // It answers late: that is passed over, and it is asked again.
    show(&mut looks, at(5_000), 2, asked[1].1.id, &packed("late"), 2);
    assert!(outputs(&mut looks, at(5_000), None).is_empty());
    looks.ask(at(6_000), tree(b"q"), PATIENCE).unwrap();
    let third = looks_in(&outputs(&mut looks, at(6_000), Some(&said(b"root"))));
    assert_eq!(third.len(), 2);
    // It never does: it is asked again after ten seconds.
    assert!(shown(&mut looks, at(8_000)).is_some());
    looks.ask(at(15_999), tree(b"q"), PATIENCE).unwrap();
    assert_eq!(looks_in(&outputs(&mut looks, at(15_999), Some(&said(b"root")))), []);
    looks.ask(at(18_000), tree(b"q"), PATIENCE).unwrap();
    assert_eq!(looks_in(&outputs(&mut looks, at(18_000), Some(&said(b"root")))).len(), 2);
}

#[test]
fn a_child_is_asked_one_thing_at_a_time() {
    let mut looks = Looks::default();
    open(&mut looks, 1, "paris", None, true);
    let one = looks.ask(at(0), tree(b"1"), PATIENCE).unwrap();
    let two = looks.ask(at(0), tree(b"2"), PATIENCE).unwrap();
    let asked = looks_in(&outputs(&mut looks, at(0), Some(&said(b"root"))));
    assert_eq!(asked.len(), 1);
    show(&mut looks, at(100), 1, asked[0].1.id, &packed("p1"), 100);
    let next = outputs(&mut looks, at(100), None);
    assert_eq!(views(&next), [(one, "root(paris=p1)".to_owned())]);
    let asked = looks_in(&next);
    assert_eq!((asked[0].1.body.as_slice(), asked.len()), (&b"2"[..], 1));
    show(&mut looks, at(200), 1, asked[0].1.id, &packed("p2"), 100);
    assert_eq!(views(&outputs(&mut looks, at(200), None)), [(two, "root(paris=p2)".to_owned())]);
}

#[test]
fn the_node_above_is_shown_parts_of_one_view() {
    let mut looks = Looks::default();
    let content = "x".repeat(ViewPart::LONGEST);
    let look = |id, bytes| {
        let bounds = ViewBounds { bytes, nodes: 10, levels: 3 };
        let look = Look { id, kind: LookKind::Tree, patience: PATIENCE, bounds, body: b"q".to_vec() };
        LookEvent::Asked { stream: 7, look: Box::new(look) }
    };
    looks.handle(at(0), look(5, 1 << 20));
    let shown = outputs(&mut looks, at(0), Some(&said(content.as_bytes())));
    let parts: Vec<&ViewPart> = shown
        .iter()
        .map(|output| match output {
            LookOutput::Show { stream: 7, part } if part.id == 5 => part,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        parts.iter().map(|part| (part.part, part.is_last)).collect::<Vec<_>>(),
        [(0, false), (1, true)]
    );
    assert!(parts.iter().all(|part| part.body.len() <= ViewPart::LONGEST));
    let whole: Vec<u8> = parts.iter().flat_map(|part| part.body.clone()).collect();
    assert_eq!(text(&ViewTree::read(&whole, 3).unwrap()), content);

    // Less is wanted than there is.
    looks.handle(at(2_000), look(6, 1_000));
    let shown = outputs(&mut looks, at(2_000), Some(&said(content.as_bytes())));
    let [LookOutput::Show { part, .. }] = &shown[..] else { panic!("{} outputs", shown.len()) };
    assert_eq!(ViewTree::read(&part.body, 3).unwrap().content, None);
}

#[test]
fn a_stream_that_ends_leaves_a_silent_child_and_a_later_one_of_its_line_takes_its_place() {
    let mut looks = Looks::default();
    open(&mut looks, 1, "paris", Some(9), true);
    open(&mut looks, 2, "paris", Some(9), true);
    open(&mut looks, 3, "tokyo", None, true);
    let ticket = looks.ask(at(0), tree(b"q"), PATIENCE).unwrap();
    let asked = looks_in(&outputs(&mut looks, at(0), Some(&said(b"root"))));
    assert_eq!(asked.iter().map(|(peer, _)| *peer).collect::<Vec<_>>(), [2, 3]);
    looks.handle(at(1), LookEvent::Closed { peer: peer(2) });
    show(&mut looks, at(1), 2, asked[0].1.id, &packed("gone"), 100);
    show(&mut looks, at(1), 3, asked[1].1.id, &packed("t"), 100);
    let said = views(&outputs(&mut looks, at(1), None));
    assert_eq!(said, [(ticket, "root(paris Silent, tokyo=t)".to_owned())]);
}

#[test]
fn of_two_leaders_of_a_line_the_later_is_asked_though_the_stream_of_the_former_came_last() {
    let mut looks = Looks::default();
    open_as(&mut looks, 1, ("paris", Some(9), 6), true);
    open_as(&mut looks, 2, ("paris", Some(9), 5), true);
    let asked = |looks: &mut Looks, now| {
        let ticket = looks.ask(at(now), tree(format!("{now}").as_bytes()), PATIENCE).unwrap();
        let asked = looks_in(&outputs(looks, at(now), Some(&said(b"root"))));
        let [(of, look)] = &asked[..] else { panic!("{asked:?}") };
        show(looks, at(now), *of, look.id, &packed("p"), 100);
        assert_eq!(views(&outputs(looks, at(now), None)), [(ticket, "root(paris=p)".to_owned())]);
        *of
    };
    assert_eq!(asked(&mut looks, 0), 1);
    open_as(&mut looks, 3, ("paris", Some(9), 6), true);
    assert_eq!(asked(&mut looks, 10), 3, "the last stream of one leader");
    looks.handle(at(20), LookEvent::Closed { peer: peer(3) });
    looks.handle(at(20), LookEvent::Closed { peer: peer(1) });
    assert_eq!(asked(&mut looks, 20), 2, "nobody else is there");
}

#[test]
fn parts_that_nobody_asked_for_or_that_do_not_fit_together_do_no_harm() {
    let mut looks = Looks::default();
    open(&mut looks, 1, "paris", None, true);
    open(&mut looks, 2, "tokyo", None, true);
    show(&mut looks, at(0), 1, 77, &packed("unasked"), 2);
    show(&mut looks, at(0), 9, 77, &packed("nobody"), 2);
    looks.ask(at(0), tree(b"q"), PATIENCE).unwrap();
    let asked = looks_in(&outputs(&mut looks, at(0), Some(&said(b"root"))));
    let gap = ViewPart { id: asked[0].1.id, part: 1, is_last: true, body: packed("p") };
    looks.handle(at(1), LookEvent::Shown { peer: peer(1), part: gap });
    show(&mut looks, at(1), 2, asked[1].1.id, b"no view at all", 100);
    let said = views(&outputs(&mut looks, at(1), None));
    assert_eq!(said[0].1, "root(paris Malformed, tokyo Malformed)");
}

#[test]
fn a_view_stays_within_its_bounds() {
    let mut looks = Looks::default();
    for number in 1..=40 {
        open(&mut looks, number, &format!("n{number:02}"), None, true);
    }
    let bounds = ViewBounds { bytes: 100_000, nodes: 31, levels: 1 };
    let look = Look { id: 5, kind: LookKind::Tree, patience: PATIENCE, bounds, body: Vec::new() };
    looks.handle(at(0), LookEvent::Asked { stream: 7, look: Box::new(look) });
    let asked = looks_in(&outputs(&mut looks, at(0), Some(&said(b"mid"))));
    assert!(asked.iter().all(|(_, look)| look.bounds.levels == 0));
    // One says more than all may together.
    show(&mut looks, at(1), 1, asked[0].1.id, &vec![0; 200_000], 60_000);
    // One has a level too many.
    let below = PackedView::of(packed("deep")).unwrap();
    let below = vec![frame::PackedBranch { node: "x".into(), seen: Seen::Shown, view: Some(below) }];
    let deep = PackedView::pack(Some(b"d".to_vec()), below, BOUNDS).bytes;
    show(&mut looks, at(1), 2, asked[1].1.id, &deep, 100);
    let shown = outputs(&mut looks, at(2_000), None);
    let [LookOutput::Show { part, .. }] = &shown[..] else { panic!("{} outputs", shown.len()) };
    let view = ViewTree::read(&part.body, 1).unwrap();
    let seen: Vec<Seen> = view.below.iter().map(|branch| branch.seen).collect();
    assert_eq!(seen[..3], [Seen::LeftOut, Seen::LeftOut, Seen::Silent]);
    assert_eq!((view.below.len(), view.unnamed), (30, 10));
}

#[test]
fn what_was_given_up_too_soon_is_no_answer_for_others() {
    let mut looks = Looks::default();
    let look =
        Look { id: 5, kind: LookKind::Tree, patience: Duration::ZERO, bounds: BOUNDS, body: b"q".to_vec() };
    looks.handle(at(0), LookEvent::Asked { stream: 7, look: Box::new(look) });
    let ticket = looks.ask(at(0), tree(b"q"), PATIENCE).unwrap();
    let said = views(&outputs(&mut looks, at(0), Some(&said(b"root"))));
    assert_eq!(said, [(ticket, "root".to_owned())]);
}

#[test]
fn what_a_node_says_of_itself_steers_no_terminal() {
    let row = wire::TreeResource { resource: "db\u{1b}[2J".into(), capacity: 1.0, ..Default::default() };
    let node = wire::TreeNode { version: Some("1\u{9b}".into()), resource: vec![row], ..Default::default() };
    let below = wire::ViewBelow { node: "par\u{7}is".into(), seen: Seen::Silent.into(), view: None };
    let view = wire::View { content: Some(node.encode_to_vec()), below: vec![below], unnamed: None };
    let view = ViewTree::read(&view.encode_to_vec(), 1).unwrap();
    let tree = tree::NodeBranch::of("root".to_owned(), view);
    let figures = tree.figures.unwrap();
    assert_eq!(
        (figures.version.as_str(), figures.resources[0].resource.as_str()),
        ("1\u{fffd}", "db\u{fffd}[2J")
    );
    assert_eq!(tree.below[0].node, "par\u{fffd}is");
    let said = serde_json::json!({"a\u{1b}": ["b\u{1b}", 1.5]});
    assert_eq!(readable(said), serde_json::json!({"a\u{fffd}": ["b\u{fffd}", 1.5]}));
}

#[test]
fn no_more_looks_are_begun_than_a_node_can_bear() {
    let mut looks = Looks::default();
    open(&mut looks, 1, "paris", None, true);
    for number in 0..16_u8 {
        looks.ask(at(0), tree(&[number]), PATIENCE).unwrap();
    }
    assert_eq!(looks.ask(at(0), tree(b"more"), PATIENCE), Err(TooManyLooks));
    outputs(&mut looks, at(0), Some(&said(b"root")));
    assert_eq!(views(&outputs(&mut looks, at(2_000), None)).len(), 16);
    assert!(looks.ask(at(2_000), tree(b"more"), PATIENCE).is_ok());
}

#[test]
fn each_child_may_be_asked_something_of_its_own_when_the_node_has_said_what() {
    let mut looks = Looks::default();
    for (number, name) in [(1, "paris"), (2, "tokyo"), (3, "lima")] {
        open(&mut looks, number, name, None, name != "lima");
    }
    let question = LookQuestion { kind: LookKind::PlanSupply, body: b"change".to_vec() };
    looks.ask(at(0), question.clone(), PATIENCE).unwrap();
    assert!(looks_in(&outputs(&mut looks, at(0), None)).is_empty(), "nobody knows yet what to ask");
    looks.ask(at(0), question, PATIENCE).unwrap();
    let bodies = [("tokyo", b"T"), ("lima", b"L")].map(|(name, body)| (name.to_owned(), body.to_vec()));
    let content = NodeContent {
        passing: LookPassing::Each(bodies.into()),
        known: vec!["oslo".into()],
        ..said(b"root")
    };
    looks.content(at(0), 2, content);
    let asked = looks_in(&outputs(&mut looks, at(0), None));
    assert_eq!((asked.len(), asked[0].0, asked[0].1.body.as_slice()), (1, 2, &b"T"[..]));
    show(&mut looks, at(1), 2, asked[0].1.id, &packed("t"), 100);
    let said = views(&outputs(&mut looks, at(1), None));
    assert_eq!(
        said.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(),
        ["root(lima CannotBeAsked, tokyo=t)", "root(lima CannotBeAsked, tokyo=t)"]
    );
}
