//! Tests of tokens.

use proptest::prelude::*;

use super::*;

fn resource(name: &str) -> ResourceId {
    ResourceId::new(name, 256).unwrap()
}

fn bearer(resource: &ResourceId) -> Bearer<'_> {
    Bearer { node: "root", kind: HolderKind::Client, holder: "web-1", incarnation: Incarnation(7), resource }
}

const CONTENT: Content = Content { order: Order { epoch: Epoch(3), seq: 9 }, amount: Amount::from_units(40) };
const KEY: Key = Key::new([7; 32]);

#[test]
fn a_token_says_what_it_was_made_of() {
    let db = resource("db");
    let keys = TokenKeys::new(KEY);
    let token = keys.token(&bearer(&db), CONTENT);
    assert_eq!(token.len(), 40);
    assert_eq!(keys.open(&bearer(&db), &token), Ok(CONTENT));
}

#[test]
fn it_is_good_for_nobody_and_nothing_else() {
    let (db, queue) = (resource("db"), resource("queue"));
    let keys = TokenKeys::new(KEY);
    let token = keys.token(&bearer(&db), CONTENT);
    let others = [
        Bearer { node: "leaf", ..bearer(&db) },
        Bearer { kind: HolderKind::Node, ..bearer(&db) },
        Bearer { holder: "web-2", ..bearer(&db) },
        Bearer { incarnation: Incarnation(8), ..bearer(&db) },
        Bearer { resource: &queue, ..bearer(&db) },
    ];
    for other in others {
        assert_eq!(keys.open(&other, &token), Err(Doubt::Forged), "{other:?}");
    }
    assert_eq!(TokenKeys::new(Key::new([8; 32])).open(&bearer(&db), &token), Err(Doubt::Forged));
    assert_eq!(keys.open(&bearer(&db), &[]), Err(Doubt::Missing));
}

/// Leaders of other versions believe it: what is sealed, and in which order, stays as it is.
#[test]
fn a_seal_is_the_beginning_of_a_keyed_hash_of_all_that_is_sealed() {
    let db = resource("db");
    let mut hasher = blake3::Hasher::new_keyed(&[7; 32]);
    hasher.update(&[1, 0]).update(&7_u64.to_le_bytes()).update(&CONTENT.to_bytes());
    for name in ["root", "web-1", "db"] {
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
    }
    let mut seal = [0; SEAL];
    hasher.finalize_xof().fill(&mut seal);
    assert_eq!(TokenKeys::new(KEY).token(&bearer(&db), CONTENT)[super::CONTENT..], seal);
}

#[test]
fn names_do_not_run_into_each_other() {
    let keys = TokenKeys::new(KEY);
    let db = resource("db");
    let one = Bearer { node: "ab", holder: "c", ..bearer(&db) };
    let other = Bearer { node: "a", holder: "bc", ..bearer(&db) };
    assert_eq!(keys.open(&other, &keys.token(&one, CONTENT)), Err(Doubt::Forged));
}

#[test]
fn all_leaders_of_a_node_are_one_holder() {
    let db = resource("db");
    let leader = |incarnation| Bearer { kind: HolderKind::Node, incarnation, ..bearer(&db) };
    let keys = TokenKeys::new(KEY);
    assert_eq!(
        keys.open(&leader(Incarnation(5)), &keys.token(&leader(Incarnation(4)), CONTENT)),
        Ok(CONTENT)
    );
}

#[test]
fn the_key_before_is_believed_and_none_older() {
    let db = resource("db");
    let [first, second, third] = [1, 2, 3].map(|byte| Key::new([byte; 32]));
    let token = TokenKeys::new(first.clone()).token(&bearer(&db), CONTENT);
    let rotated = TokenKeys { current: second.clone(), previous: Some(first) };
    assert_eq!(rotated.open(&bearer(&db), &token), Ok(CONTENT));
    let again = TokenKeys { current: third, previous: Some(second) };
    assert_eq!(again.open(&bearer(&db), &token), Err(Doubt::Forged));
}

#[test]
fn keys_do_not_show_in_logs() {
    assert_eq!(format!("{KEY:?}"), "Key(…)");
}

proptest! {
    // One bit of a token is changed, or it is cut or lengthened.
    #[test]
    fn a_token_that_was_touched_is_forged(at in 0usize..40, bit in 0u8..8, length in 1usize..60) {
        let db = resource("db");
        let keys = TokenKeys::new(KEY);
        let token = keys.token(&bearer(&db), CONTENT);
        let mut touched = token.clone();
        touched[at] ^= 1 << bit;
        prop_assert_eq!(keys.open(&bearer(&db), &touched), Err(Doubt::Forged));
        let mut cut = token.clone();
        cut.resize(length, 0);
        prop_assert_eq!(keys.open(&bearer(&db), &cut).is_ok(), length == token.len());
    }
}
