//! Two clients that tell each other what their domains do, and no server: a relay passes on what it is told.

use std::collections::BTreeMap;

use lessor_proto::ResourceId;
use lessor_proto::message::{DomainEntry, DomainHits, DomainNews, DomainReport};
use proptest::prelude::*;

use super::*;
use crate::decision::{Decision, Ground};

const AT_ONCE: Duration = Duration::ZERO;
/// By how much the relay's clock is ahead.
const AHEAD: Duration = Duration::from_secs(1_000);
const NANO: Duration = Duration::from_nanos(1);

/// Two clients, a relay, and how long a message takes up to it and down from it.
struct Two {
    now: Time,
    ways: [Duration; 2],
    lease: Limiter,
    clients: [Domains; 2],
    /// The number of each client's stream, and whether it was told anything on it.
    streams: [(u64, bool); 2],
    /// The hits of each, as far as they were told.
    did: [BTreeMap<Arc<str>, Vec<DomainEntry>>; 2],
}

// === impl Two ===

impl Two {
    /// Each domain may hit so often in a minute.
    fn of(limit: u32) -> Two {
        Two::new(rules(policy(&[(limit, 60, 60, 0)])), [AT_ONCE; 2])
    }

    fn new(rules: Rules, ways: [Duration; 2]) -> Two {
        let clients = [domains(rules.clone()), domains(rules)];
        let did = [BTreeMap::new(), BTreeMap::new()];
        let mut two = Two { now: at(10.0), ways, lease: lease(None), clients, streams: [(0, false); 2], did };
        for who in [0, 1] {
            two.attend(who);
            assert_eq!(two.pass(who).expect("it asks first").domains, []);
        }
        two
    }

    /// The client has a stream that it did not have before.
    fn attend(&mut self, who: usize) {
        self.streams[who] = (self.streams[who].0 + 1, false);
        self.clients[who].attend(Some(self.streams[who].0));
    }

    fn ask(&self, who: usize, copies: u32) -> Decision {
        self.clients[who].request(&self.lease, "tenant", copies, 1, self.now)
    }

    /// Takes the report of a client as soon as it would tell it, and passes it on to the other if that uses the
    /// domain too.
    fn pass(&mut self, who: usize) -> Option<DomainReport> {
        self.now = self.now.max(self.clients[who].next_deadline()?);
        let report = self.clients[who].next_message(self.now, &resource())?;
        self.now += self.ways[0];
        let heard_at = self.now;
        let mut back = Vec::new();
        let mut on = Vec::new();
        for hits in &report.domains {
            let known = self.did[who].entry(Arc::clone(&hits.domain)).or_default();
            if hits.all {
                known.clear();
            }
            known.extend_from_slice(&hits.entries);
            if let Some(entries) = self.did[1 - who].get(&hits.domain) {
                on.push(DomainHits { others: 1, ..hits.clone() });
                let all = DomainHits { all: true, others: 1, entries: entries.clone(), ..hits.clone() };
                back.extend(hits.all.then_some(all));
            }
        }
        let hot: Vec<Arc<str>> = report.domains.iter().map(|hits| Arc::clone(&hits.domain)).collect();
        let news = self.news(heard_at, report.version);
        self.now += self.ways[1];
        let begins = !std::mem::replace(&mut self.streams[who].1, true);
        let to_who = DomainNews { heard: report.id, begins, hot: hot.clone(), domains: back, ..news.clone() };
        self.clients[who].on_update(self.now, &to_who);
        if self.streams[1 - who].1 {
            self.clients[1 - who].on_update(self.now, &DomainNews { hot, domains: on, ..news });
        }
        Some(report)
    }

    /// The report of a client on the one domain: whether it is all, and the number of hits.
    fn told(&mut self, who: usize) -> Option<(bool, u32)> {
        let report = self.pass(who)?;
        let [hits] = &report.domains[..] else { panic!("one domain: {report:?}") };
        Some((hits.all, hits.entries.iter().map(|entry| entry.hits).sum()))
    }

    /// The first has made `hits` and the second one, and both know.
    fn met(limit: u32, hits: u32) -> Two {
        let mut two = Two::of(limit);
        two.meet(hits);
        two
    }

    fn meet(&mut self, hits: u32) {
        assert_eq!(self.ask(0, hits).granted, hits);
        assert_eq!(self.told(0), Some((true, hits)));
        assert_eq!(self.ask(1, 1).granted, 1, "it knows that the domain is hot, and nothing of its hits");
        assert_eq!(self.told(1), Some((true, 1)));
    }

    /// News without any, said at `now`.
    fn news(&self, now: Time, version: u32) -> DomainNews {
        DomainNews {
            resource: resource(),
            version,
            now: now + AHEAD,
            heard: 0,
            heard_at: now + AHEAD,
            members: 2,
            nodes: 0,
            begins: false,
            hot: Vec::new(),
            calm: Vec::new(),
            domains: Vec::new(),
        }
    }
}

fn resource() -> ResourceId {
    ResourceId::new("db", 256).unwrap()
}

/// A message that comes slowly says of the clock at the other end only that it is no further behind, and hits that are placed by it
/// are forgotten too early.
#[test]
fn hits_that_were_placed_by_what_came_slowly_are_told_again_once_something_comes_quickly() {
    for (slow, is_again) in [(Duration::from_secs(3), true), (Duration::from_millis(400), false)] {
        let mut two = Two::new(rules(policy(&[(10, 60, 60, 0)])), [AT_ONCE, slow]);
        two.meet(4);
        two.ways = [AT_ONCE; 2];
        assert_eq!(two.ask(0, 1).granted, 1);
        assert_eq!(two.told(0), Some((false, 1)), "by the clock as it is known");
        // The second has heard of that, and what came to it had come as slowly.
        for (who, hits) in [(0, 5), (1, 1)] {
            let known =
                |two: &Two| -> Vec<Time> { two.did[who]["tenant"].iter().map(|entry| entry.at).collect() };
            let before = known(&two);
            assert_eq!(two.told(who), is_again.then_some((true, hits)), "{slow:?} {who}");
            let later = if is_again { slow } else { AT_ONCE };
            // The clocks may have drifted by a little.
            let moved = known(&two)[0].since(before[0]);
            assert!(moved.abs_diff(later) < Duration::from_millis(10), "{moved:?}, not {later:?}");
            assert_eq!(two.told(who), None, "and once");
        }
    }
}

#[test]
fn what_one_does_counts_in_both() {
    let mut two = Two::met(10, 6);
    let second = two.ask(1, 100);
    assert_eq!((granted(second), second.others), ((3, TIERS), 1));
    assert_eq!(two.told(1), Some((false, 3)), "only what was not told before");
    let first = two.ask(0, 1);
    assert_eq!((granted(first), first.others, first.hits_in_tier), ((0, TIERS), 1, 10));
    assert!(first.is_doubtful());
    assert_eq!((two.told(0), two.told(1)), (None, None));
}

#[test]
fn of_a_domain_that_is_far_from_its_limit_nothing_is_told() {
    let mut two = Two::of(100);
    assert_eq!((two.ask(0, 24).granted, two.told(0)), (24, None), "two clients: a quarter each");
    assert_eq!((two.ask(0, 1).granted, two.told(0)), (1, Some((true, 25))));
}

#[test]
fn what_was_told_too_much_is_told_anew() {
    let mut two = Two::met(10, 9);
    assert_eq!(granted(two.ask(1, 1)), (0, TIERS));
    two.clients[0].settle(&two.lease, "tenant", 9, 4, two.now);
    assert_eq!(two.told(0), Some((true, 4)));
    assert_eq!(granted(two.ask(1, 100)), (5, TIERS));
}

#[test]
fn on_another_stream_everything_is_told_again_and_takes_the_place_of_what_was_told() {
    let mut two = Two::met(20, 6);
    two.attend(0);
    assert_eq!(two.ask(0, 2).granted, 2);
    assert_eq!(two.pass(0).map(|report| (report.id, report.ask, report.domains)), Some((1, true, vec![])));
    assert_eq!(two.told(0), Some((true, 8)));
    let states = [0, 1].map(|who| two.clients[who].peek("tenant", 100, 1, two.now).granted);
    assert_eq!(states, [11, 11], "eight and one of twenty are used");
}

#[test]
fn without_a_stream_what_is_known_stays() {
    let two = Two::met(10, 6);
    two.clients[1].attend(None);
    assert_eq!((two.clients[1].next_deadline(), two.clients[1].ask()), (None, None));
    assert_eq!(granted(two.ask(1, 100)), (3, TIERS));
}

#[test]
fn who_hears_nothing_of_others_is_granted_the_least_or_refused_as_is_configured() {
    for refuses_unheard in [false, true] {
        let rules = Rules { refuses_unheard, ..rules(policy(&[(10, 60, 60, 0)])) };
        let mut two = Two::new(rules, [AT_ONCE; 2]);
        two.meet(6);
        let ask = |now| two.clients[1].request(&two.lease, "tenant", 7, 2, now);
        assert_eq!(granted(ask(two.now)), (3, TIERS));
        let last = two.now + UNREACHABLE_AFTER;
        assert_eq!(granted(ask(last)), (0, TIERS), "it still hears of others");
        let alone = two.clients[1].request(&two.lease, "alone", 100, 1, last);
        assert_eq!(granted(alone), (10, TIERS));

        let unheard = ask(last + NANO);
        let expected = if refuses_unheard { (0, Ground::Policies) } else { (2, Ground::Unheard) };
        assert_eq!((unheard.granted, unheard.ground), expected);
        let alone = two.clients[1].request(&two.lease, "alone", 7, 1, last + NANO);
        assert_eq!(granted(alone), (0, TIERS), "of a domain that nobody else uses everything is known");
        assert_eq!(two.clients[1].counts().unheard, u64::from(!refuses_unheard));
    }
}

#[test]
fn a_server_that_has_nothing_to_say_of_a_calm_domain_is_not_out_of_hearing() {
    let calm = || {
        let two = Two::met(10, 6);
        let calm = vec![Arc::from("tenant")];
        two.clients[1].on_update(two.now, &DomainNews { calm, ..two.news(two.now, 0) });
        two
    };
    let on_another_stream = || {
        let mut two = Two::met(10, 6);
        two.attend(1);
        two.pass(1).expect("it asks first");
        two
    };
    for mut two in [calm(), on_another_stream()] {
        two.now += Duration::from_secs(61);
        assert_eq!(granted(two.ask(1, 100)), (10, TIERS));
        assert_eq!(granted(two.ask(1, 1)), (0, TIERS), "all of them were made here");
    }
}

#[test]
fn hits_that_were_made_unheard_are_told() {
    let mut two = Two::met(10, 9);
    two.now += UNREACHABLE_AFTER + NANO;
    assert_eq!(two.ask(1, 1).ground, Ground::Unheard);
    assert_eq!(two.told(1), Some((false, 1)));
    assert_eq!(granted(two.ask(0, 1)), (0, TIERS));
}

#[test]
fn a_domain_with_too_long_a_name_is_never_told() {
    let mut two = Two::of(10);
    let long = "x".repeat(300);
    let ask = |two: &Two| two.clients[0].request(&two.lease, &long, 5, 1, two.now).granted;
    assert_eq!((ask(&two), ask(&two), ask(&two)), (5, 5, 0), "it is limited all the same");
    assert_eq!(two.pass(0), None);
    two.attend(0);
    assert_eq!(two.pass(0).map(|report| report.domains), Some(vec![]));
    assert_eq!(two.pass(0), None);
}

#[test]
fn a_domain_that_had_no_policies_for_a_while_is_told_of_again() {
    let mut two = Two::met(10, 6);
    assert_eq!(two.ask(0, 1).granted, 1);
    let before = two.clients[0].policies();
    let closed = Policies::new(Rules { default: None, ..Rules::default() }).unwrap();
    two.clients[0].follow(Some(Arc::new(closed)));
    assert_eq!(two.pass(0), None, "it is no domain of theirs");
    two.clients[0].follow(before);
    assert_eq!(two.told(0), Some((true, 7)));
}

#[test]
fn where_nothing_is_hot_on_another_stream_little_is_told() {
    let mut two = Two::met(100, 50);
    assert_eq!((two.ask(0, 1).granted, two.told(0)), (1, Some((false, 1))), "it is hot");
    two.attend(0);
    let news = DomainNews { heard: 1, begins: true, ..two.news(two.now, 0) };
    two.clients[0].next_message(two.now, &resource()).expect("it asks first");
    two.clients[0].on_update(two.now, &news);
    two.clients[0].next_message(two.now, &resource()).expect("it tells everything");
    assert_eq!((two.ask(0, 1).granted, two.clients[0].next_deadline()), (1, None));
}

proptest! {
    /// The hits of another client cease to count no later than they do where they were made, and no more than a round trip
    /// before that.
    #[test]
    fn hits_of_others_count_no_longer_than_they_should(up in 0..400_u64, down in 0..400_u64, ago in 0..300_u64) {
        let ways = [up, down].map(Duration::from_millis);
        let mut two = Two::new(rules(policy(&[(10, 5, 5, 0)])), ways);
        let made = two.now;
        prop_assert_eq!(two.ask(0, 10).granted, 10);
        two.now += Duration::from_millis(ago);
        prop_assert_eq!(two.told(0), Some((true, 10)));
        // One more is made by the other, which only so hears of the ten.
        prop_assert_eq!(two.ask(1, 1).granted, 1);
        prop_assert_eq!(two.told(1), Some((true, 1)));

        let free = |now| two.clients[1].peek("tenant", 100, 1, now).granted;
        let end = made + Duration::from_secs(5);
        prop_assert_eq!(free(end + NANO), 9);
        // Clocks are taken to drift apart by one part in 999.
        let early = ways[0] + ways[1] + Duration::from_millis(20);
        prop_assert_eq!(free(Time::from_nanos((end.as_nanos()) - u64::try_from(early.as_nanos()).unwrap())), 0);
    }
}

/// The clock was wrong for a while: what still comes in answer to what was said before is not about what is said after it.
#[test]
fn news_from_before_a_new_beginning_on_the_same_stream_answer_nothing() {
    let two = Two::met(10, 6);
    let client = &two.clients[1];
    client.attend(None);
    client.attend(Some(two.streams[1].0));
    let question = client.ask().expect("there is a stream");
    let version = client.policies().expect("there are policies").version();
    client.on_update(two.now, &DomainNews { heard: 500, ..two.news(two.now, version) });
    assert!(!client.is_acked(question));
    let asked = client.next_message(two.now, &resource()).expect("it asks");
    assert!(asked.ask && asked.id == question, "{asked:?}");
    client.on_update(two.now, &DomainNews { heard: asked.id, begins: true, ..two.news(two.now, version) });
    assert!(client.is_acked(question));
}
