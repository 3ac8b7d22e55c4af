//! The post's configurations through the simulation of tiers ("Charon Simulator", eric-fritz.com, 2017), with its numbers.
//!
//! What each answer should be is told in the stories of `lessor-algorithms`; here is what people are shown of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use lessor_algorithms::tiers::Contract;
use lessor_sim::rng::Rng;
use lessor_sim::tiers::{
    Arrival, Doing, Entered, History, Lane, TextStyle, Tiers, TiersFigures, csv, run, svg, text,
};

const SECOND: u64 = 1_000_000_000;

/// Plays requests for a hit each, one after the other: as many at each time, in nanoseconds, as `asked` says.
fn play(policy: &str, asked: &[(u64, usize)], seconds: u64) -> History {
    let contract = Contract::from(policy.parse::<Tiers>().unwrap().policy(None, None).unwrap());
    let ones = |&(at, times): &(u64, usize)| std::iter::repeat_n(Arrival { at, copies: 1, min: 1 }, times);
    run(&contract, &asked.iter().flat_map(ones).collect::<Vec<_>>(), &[], seconds * SECOND)
}

/// The hits that were granted of those that were asked for at the same time.
fn granted(history: &History) -> Vec<u32> {
    let same = history.requests.chunk_by(|one, other| one.arrival.at == other.arrival.at);
    same.map(|requests| requests.iter().map(|request| request.decision.granted).sum()).collect()
}

/// When it did what, in milliseconds.
fn times(lane: &Lane, doing: Doing) -> Vec<(u64, u64)> {
    let phases = lane.phases.iter().filter(|phase| phase.doing == doing);
    phases.map(|phase| (phase.from / 1_000_000, phase.until / 1_000_000)).collect()
}

/// The story `simple`: five in any second, and a second is over a nanosecond after it.
#[test]
fn simple_grants_five_in_any_second() {
    let asked = [
        (0, 1),
        (SECOND * 9 / 10, 5),
        (SECOND, 1),
        (SECOND + 1, 1),
        (SECOND * 19 / 10, 1),
        (SECOND * 19 / 10 + 1, 6),
    ];
    let history = play("5/1s", &asked, 4);
    assert_eq!(granted(&history), [1, 4, 0, 1, 0, 4]);
    let figures = TiersFigures::new(&history);
    assert_eq!((figures.most_in_a_second, figures.tiers[0].entered, figures.tiers[0].fullest), (5, 2, 5));
    assert_eq!(times(&history.lanes[0], Doing::Current), [(0, 1000), (1000, 2000)]);
}

/// The story `penalty`: fifty in five seconds, and not again before fifteen more are over.
#[test]
fn penalties_cool_down_while_the_lower_tier_goes_on() {
    let asked = [
        (0, 6),
        (SECOND, 20),
        (4 * SECOND, 100),
        (5 * SECOND, 8),
        (6 * SECOND + 1, 6),
        (39 * SECOND / 2, 6),
        (20 * SECOND, 10),
    ];
    let history = play("5/1s, 50/5s:5s:15s", &asked, 40);
    assert_eq!(granted(&history), [6, 20, 29, 5, 5, 5, 10]);
    let [lower, higher] = &history.lanes[..] else { panic!("two tiers") };
    assert_eq!(times(higher, Doing::Current), [(0, 5_000), (20_000, 25_000)]);
    assert_eq!(times(higher, Doing::Cooling), [(5_000, 20_000), (25_000, 40_000)]);
    assert_eq!(higher.entered, [(0, 1), (20 * SECOND, 1)].map(|(at, from)| Entered { at, from }));
    assert_eq!(times(lower, Doing::Shadowed), [(0, 1_000), (20_000, 20_500)]);
    let figures = TiersFigures::new(&history);
    let [lower, higher] = &figures.tiers[..] else { panic!("two tiers") };
    assert_eq!((lower.hits, higher.hits, higher.cooldown_s), (20, 60, 30.0));
    assert_eq!(figures.refused.tiers, 76);
}

/// The story `punishment`: the sixth in a second is granted in the prison, and then nothing for fifteen.
#[test]
fn punishment_is_a_prison_for_fifteen_seconds() {
    let asked = [(0, 7), (SECOND * 149 / 10, 1000), (15 * SECOND, 5)];
    let history = play("5/1s, 1/15s", &asked, 20);
    assert_eq!(granted(&history), [6, 0, 5]);
    let prison = &history.lanes[1];
    assert_eq!(times(prison, Doing::Current), [(0, 15_000)]);
    assert_eq!((prison.hits, prison.columns.iter().map(|column| column.refused).sum::<u32>()), (1, 1001));
    let figures = TiersFigures::new(&history);
    assert_eq!((figures.longest_without_s, figures.tiers[0].shadowed_s), (15.0, 1.0));
}

/// The story `batch_of_the_post`: fifty in fifteen seconds from the first, then closed for thirty.
#[test]
fn batches_are_closed_while_they_cool_down() {
    let asked = [(0, 30), (14 * SECOND, 30), (15 * SECOND, 1), (45 * SECOND - 1, 1), (45 * SECOND, 51)];
    let history = play("50/15s:15s:30s", &asked, 60);
    assert_eq!(granted(&history), [30, 20, 0, 0, 50]);
    assert_eq!(times(&history.lanes[0], Doing::Cooling), [(15_000, 45_000)]);
    // Whom no tier lets in is told of the fake one, and stands in the lane of the first.
    let table = csv(&history);
    assert!(table.contains("\n15,1,1,0,tiers,1,0,0,0,20,0,45\n"), "{table}");
    assert_eq!(history.lanes[0].columns[300].refused, 1);
}

/// A policy of up to three tiers that is as odd as it likes.
fn drawn(rng: &mut Rng) -> String {
    let kinds = ["", ":sliding/4", ":fixed", ":bucket", ":skippable"];
    let tier = |rng: &mut Rng| {
        let (limit, window, active, cooldown) =
            (rng.between(1, 9), rng.between(1, 4), rng.between(0, 9), rng.between(0, 9));
        format!("{limit}/{window}s:{active}s:{cooldown}s{}", kinds[rng.index(kinds.len())])
    };
    let tiers = rng.between(1, 3);
    (0..tiers).map(|_| tier(rng)).collect::<Vec<_>>().join(", ")
}

/// Checks what holds of the lanes of one policy, whatever it is and whatever is asked.
fn check_lanes(lanes: &[&Lane], granted: u64, end: u64, said: &str) {
    assert_eq!(lanes.iter().map(|lane| lane.hits).sum::<u64>(), granted, "{said}");
    for lane in lanes {
        let hits: u64 = lane.columns.iter().map(|column| u64::from(column.granted)).sum();
        assert_eq!(hits, lane.hits, "{said}");
        let fullest = lane.columns.iter().map(|column| column.fullest).max();
        assert!(fullest <= Some(lane.tier.limit), "{said}: {fullest:?}");
        assert!(lane.phases.iter().all(|phase| phase.from < phase.until && phase.until <= end), "{said}");
        assert!(lane.phases.windows(2).all(|pair| pair[0].until <= pair[1].from), "{said}");
    }
    // The current one is the highest that is active.
    for (lane, above) in
        lanes.iter().enumerate().flat_map(|(at, lane)| lanes[at + 1..].iter().map(move |above| (lane, above)))
    {
        for current in lane.phases.iter().filter(|phase| phase.doing == Doing::Current) {
            let mut active = above.phases.iter().filter(|phase| phase.doing != Doing::Cooling);
            assert!(active.all(|phase| phase.until <= current.from || current.until <= phase.from), "{said}");
        }
    }
}

#[test]
fn what_is_shown_of_odd_policies_adds_up() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let policies: Vec<String> = (0..rng.between(1, 2)).map(|_| drawn(&mut rng)).collect();
        let read = |text: &String| text.parse::<Tiers>().unwrap().policy(None, None).unwrap();
        let contract = Contract::new(policies.iter().map(read).collect()).unwrap();
        let (mut at, end) = (0, 60 * SECOND);
        let mut asked = Vec::new();
        while at < end {
            let copies = rng.between(1, 6) as u32;
            asked.push(Arrival { at, copies, min: rng.between(0, u64::from(copies)) as u32 });
            at += rng.below(8) * SECOND / 4;
        }
        let history = run(&contract, &asked, &[], end);
        let (figures, said) =
            (TiersFigures::new(&history), format!("seed {seed}: {}", policies.join(" and ")));
        assert_eq!(figures.asked, figures.granted + figures.refused.sum(), "{said}");
        assert_eq!(
            figures.tiers.iter().map(|tier| tier.refused).sum::<u64>(),
            figures.refused.tiers,
            "{said}"
        );
        for policy in 0..policies.len() {
            let lanes: Vec<&Lane> = history.lanes.iter().filter(|lane| lane.policy == policy).collect();
            check_lanes(&lanes, figures.granted, end, &said);
        }
        assert_eq!(csv(&history).lines().count(), 1 + asked.len());
        assert!(svg(&history).ends_with("</svg>"));
        assert!(text(&history, TextStyle { width: 80, has_colours: false }).lines().count() > 5);
    }
}
