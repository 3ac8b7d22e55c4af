//! Tests of the notation of tiers.

use super::*;

#[test]
fn what_is_shown_is_what_was_read() {
    for text in [
        "5/1s",
        "5/1s, 50/5s:5s:15s",
        "100/10s:1m:2m:skippable:sliding/10",
        "5000/5m:5m:23h55m",
        "7/1s:3s:fixed",
        "7/1s:bucket",
    ] {
        let policy = text.parse::<Tiers>().unwrap().policy(None, None).unwrap();
        assert_eq!(shown(&policy), text);
    }
    let limited = "5/1s".parse::<Tiers>().unwrap().policy(Some(3), Some(40)).unwrap();
    assert_eq!(shown(&limited), "5/1s, hard 3, global 40");
    assert_eq!(shown(&limited.with_windows(Windows::Reset)), "5/1s, hard 3, global 40, windows reset");
    assert_eq!(shown(&TierPolicy::new(Vec::new(), None, None).unwrap()), "closed");
}

#[test]
fn a_wrong_tier_is_told_with_the_part_that_is_wrong() {
    for (text, found, wanted) in [
        ("5", "5", TIERS),
        ("x/1s", "x", NUMBER),
        ("0/1s", "0", NUMBER),
        ("5/1", "1", LONGER),
        ("5/0s", "0s", LONGER),
        ("5/1s:soon", "soon", TIME),
        ("5/1s:1s:2s:3s", "3s", "no third time: active time and cooldown stand there"),
        ("5/1s:sliding/0", "sliding/0", COUNT),
        ("5/1s, 6", "6", TIERS),
    ] {
        assert_eq!(text.parse::<Tiers>(), Err(BadTier { found: found.to_owned(), wanted }), "{text}");
    }
}

#[test]
fn when_a_pattern_comes_and_how_it_pauses_stand_in_any_order() {
    let [one, other] = ["5/s@1s..9s on 2s off 3s", "5/s on 2s off 3s @ 1s..9s"].map(str::parse::<Pattern>);
    let second = Duration::from_secs;
    let on_off = Some((second(2), second(3)));
    let shape = Shape::Steady(5, second(1));
    assert_eq!(one, Ok(Pattern { shape, from: second(1), until: Some(second(9)), on_off }));
    assert_eq!(one, other);
}

#[test]
fn a_wrong_pattern_is_told_with_the_part_that_is_wrong() {
    for (text, found, wanted) in [
        ("", "", RATE),
        ("5", "5", RATE),
        ("-5/s", "-5", NUMBER),
        ("5/week-end", "5/week-end", RATE),
        ("5/0s", "5/0s", RATE),
        ("burst x@1s", "x", NUMBER),
        ("burst 5@1s..2s", "1s..2s", "one time, as in burst 60@3s"),
        ("every 5s", "every 5s", "every TIME: NUMBER as in every 15s: 50"),
        ("every 0s: 5", "0s", LONGER),
        ("5/s@3", "3", "from when until when, as in 10s..20s, 10s.. or ..20s"),
        ("5/s@3s..2s", "3s..2s", "an end behind the beginning"),
        ("5/s@x..", "x", TIME),
        ("5/s on 2s", "2s", "TIME off TIME as in 2s off 8s"),
        ("5/s on 2s off 0s", "0s", LONGER),
    ] {
        assert_eq!(text.parse::<Pattern>(), Err(BadPattern { found: found.to_owned(), wanted }), "{text}");
    }
}
