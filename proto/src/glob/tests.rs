//! Patterns against a plain matcher, and the patterns that are refused.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(pattern: &str, matches: &[&str], fails: &[&str]) {
    let glob = Glob::new(pattern).unwrap();
    for name in matches {
        assert!(glob.matches(name), "{pattern} should match {name}");
    }
    for name in fails {
        assert!(!glob.matches(name), "{pattern} should not match {name}");
    }
}

#[test]
fn text_matches_itself_and_nothing_else() {
    check("db", &["db"], &["", "d", "db1", "1db", "DB"]);
    check("db/orders größe", &["db/orders größe"], &["db/orders grösse"]);
    check("{a,b}", &["{a,b}"], &["a", "b"]);
}

#[test]
fn star_stops_at_a_slash() {
    check("db-*", &["db-", "db-1", "db-a-b"], &["db", "db-1/x", "xdb-1"]);
    check("*-db", &["-db", "a-db", "-db-db"], &["a/b-db", "a-db/"]);
    check("db/*", &["db/", "db/1"], &["db", "db/1/2"]);
    check("db/*/read", &["db//read", "db/1/read"], &["db/1/2/read", "db/read"]);
    check("a*b*c*d/e", &["abcd/e", "axbxxcxdd/e"], &["abcdx/e", "abc/d/e", "abcd/ee"]);
    check("a*b?c*x", &["abbcx", "a-b-b-c-x"], &["abcx", "abbc"]);
}

#[test]
fn star_alone_matches_everything() {
    check("*", &["", "db", "db/1", "a/b/c/", "größe"], &[]);
    // Two stars are not that star.
    check("**", &["", "db"], &["db/1"]);
    check("**b", &["b", "ab"], &["a/b"]);
}

#[test]
fn question_mark_is_one_character_but_a_slash() {
    check("db?", &["db1", "dbß", "db☺"], &["db", "db12", "db/"]);
    check("??", &["☺☺"], &["☺", "a", "abc"]);
    check("*??", &["ab", "abc"], &["☺"]);
}

#[test]
fn class_is_one_character() {
    check("ab[c]", &["abc"], &["ab", "abb", "abcc"]);
    check("ab[b-d]", &["abb", "abc", "abd"], &["aba", "abe"]);
    check("db[0-9a-f]", &["db0", "db9", "dba", "dbf"], &["dbg", "db-"]);
    check("[α-ω]*", &["λ", "λambda"], &["a", "Λ"]);
    check("[z-a]", &[], &["a", "m", "z", "-"]);
    check("[*?[]", &["*", "?", "["], &["x", "]"]);
    check("[a^!]", &["a", "^", "!"], &["b"]);
}

#[test]
fn caret_negates_a_class_which_then_matches_a_slash() {
    check("ab[^c]", &["abd", "ab☺", "ab/"], &["abc", "ab"]);
    check("ab[^a-c]", &["abd"], &["aba", "abb", "abc"]);
    check("[^^]", &["a"], &["^"]);
}

#[test]
fn backslash_takes_the_meaning_away() {
    check("a\\*b", &["a*b"], &["ab", "axb"]);
    check("a\\bc", &["abc"], &["a\\bc"]);
    check("\\[a]", &["[a]"], &["a"]);
    check("[\\]a]", &["]", "a"], &["\\"]);
    check("[x\\-z]", &["x", "-", "z"], &["y", "\\"]);
    check("[\\--\\]]", &["-", "A", "]"], &["a"]);
}

#[test]
fn stretch_between_stars_settles_at_the_first_place() {
    check("*[^a]*b", &["xb", "xyb"], &["x/b"]);
}

#[test]
fn malformed_pattern_is_refused_with_its_place() {
    for (pattern, fault) in [
        ("", "nothing to match at character 1"),
        ("a\\", "nothing behind the backslash at character 2"),
        ("a[", "no ] for the [ at character 2"),
        ("a[^", "no ] for the [ at character 2"),
        ("größe[a-", "no ] for the [ at character 6"),
        ("a*b/[bc", "no ] for the [ at character 5"),
        ("[a\\", "no ] for the [ at character 1"),
        ("[]a]", "empty class (write \\] for the character itself) at character 2"),
        ("[^]a]", "empty class (write \\] for the character itself) at character 3"),
        ("[-]", "stray - in a class (write \\- for the character itself) at character 2"),
        ("[x-]", "stray - in a class (write \\- for the character itself) at character 3"),
        ("[-x]", "stray - in a class (write \\- for the character itself) at character 2"),
        ("[a-b-c]", "stray - in a class (write \\- for the character itself) at character 5"),
    ] {
        assert_eq!(Glob::new(pattern).unwrap_err().to_string(), fault, "{pattern}");
    }
}

#[test]
fn long_hostile_pattern_costs_a_product_not_a_power() {
    let glob = Glob::new(&"a*".repeat(2_000)).unwrap();
    assert!(!glob.matches(&("a".repeat(1_999) + "b")));
}

/// Tries every way in which a star may end: too simple to be wrong, and slow.
fn oracle(pattern: &[char], name: &[char]) -> bool {
    let Some((&first, rest)) = pattern.split_first() else { return name.is_empty() };
    if first == '*' {
        return oracle(rest, name)
            || name.split_first().is_some_and(|(&c, behind)| c != '/' && oracle(pattern, behind));
    }
    let Some((&c, behind)) = name.split_first() else { return false };
    match first {
        '?' => c != '/' && oracle(rest, behind),
        '\\' => c == rest[0] && oracle(&rest[1..], behind),
        '[' => {
            let end = rest.iter().position(|&c| c == ']').unwrap();
            class_oracle(&rest[..end], c) && oracle(&rest[end + 1..], behind)
        }
        literal => c == literal && oracle(rest, behind),
    }
}

/// Classes here are written `a-c` or `^a-c`.
fn class_oracle(class: &[char], c: char) -> bool {
    match class {
        ['^', low, '-', high] => !(*low..=*high).contains(&c),
        [low, '-', high] => (*low..=*high).contains(&c),
        _ => unreachable!(),
    }
}

fn ask_oracle(pattern: &str, name: &str) -> bool {
    oracle(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
}

const TERMS: [&str; 9] = ["*", "*", "?", "[a-b]", "[b-ö]", "\\*", "a", "b", "/"];

fn pattern(terms: Vec<&'static str>) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(terms), 1..8)
        .prop_map(|terms| terms.concat())
        .prop_filter("means something else", |pattern| pattern != "*")
}

fn name() -> impl Strategy<Value = String> {
    "[abö*/]{0,8}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn agrees_with_the_oracle_while_no_class_matches_a_slash(pattern in pattern(TERMS.to_vec()), name in name()) {
        prop_assert_eq!(Glob::new(&pattern).unwrap().matches(&name), ask_oracle(&pattern, &name));
    }

    #[test]
    fn never_matches_what_the_oracle_does_not(
        pattern in pattern([&TERMS[..], &["[^a-b]", "[^b-ö]"]].concat()),
        name in name(),
    ) {
        let found = Glob::new(&pattern).unwrap().matches(&name);
        prop_assert!(!found || ask_oracle(&pattern, &name));
        // Without a slash there is nothing a later place could win.
        prop_assert!(found || name.contains('/') || !ask_oracle(&pattern, &name));
    }

    #[test]
    fn any_text_is_parsed_or_refused_within_it(text in "[\\[\\]^\\\\*?/a-c-]{0,12}", name in name()) {
        match Glob::new(&text) {
            Ok(glob) => prop_assert!(!glob.is_plain() || glob.matches(&name) == (name == text)),
            Err(bad) => prop_assert!((1..=text.chars().count().max(1)).contains(&bad.at)),
        }
    }
}
