//! Laws of names: whatever clients write, no two keys of a rule have one name, and each can be leased.

use lessor_doors::name::{Joint, KeyName, LONGEST, encode};
use proptest::collection::vec;
use proptest::prelude::*;

fn name(values: &[Vec<u8>], joint: Joint, prefix: &str) -> String {
    let mut key = KeyName::new(joint);
    values.iter().for_each(|value| key.push(value));
    key.within(prefix).to_owned()
}

/// The bytes that an encoded value stands for.
fn decode(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit =
                    || bytes.next().and_then(|digit| (digit as char).to_digit(16)).expect("a digit") as u8;
                digit() << 4 | digit()
            }
            byte => byte,
        });
    }
    decoded
}

/// Values as an attacker would choose them: what has a meaning in names, and names that are made of it.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        "[a-c%/|,=~ .*]{0,3}".prop_map(String::into_bytes),
        Just(b"%2F".to_vec()),
        Just("\u{2003}ÿ".as_bytes().to_vec()),
        vec(any::<u8>(), 0..4),
        Just(vec![b'x'; 120]),
    ];
    vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn a_value_can_be_read_from_what_it_is_encoded_as(value in value()) {
        let mut text = String::new();
        encode(&value, &mut text);
        prop_assert_eq!(decode(&text), value);
        prop_assert!(!text.contains(['/', '|', ',', '=', '~', ' ']) && !text.chars().any(char::is_control));
    }

    #[test]
    fn no_two_lists_of_values_have_one_name(
        (one, other) in (1_usize..4).prop_flat_map(|values| (vec(value(), values), vec(value(), values))),
        comma in any::<bool>(),
        prefix in 0_usize..120,
    ) {
        let (joint, prefix) = (if comma { Joint::Comma } else { Joint::Slash }, "p".repeat(prefix));
        let names = [&one, &other].map(|values| name(values, joint, &prefix));
        prop_assert_eq!(one == other, names[0] == names[1], "{:?}", names);
        prop_assert!(names.iter().all(|name| prefix.len() + name.len() <= LONGEST));
    }

    #[test]
    fn nobody_writes_the_name_of_a_value_that_was_cut(long in vec(any::<u8>(), 201..400)) {
        let cut = name(std::slice::from_ref(&long), Joint::Comma, "");
        prop_assert!(cut.contains('~'));
        let written = name(&[cut.clone().into_bytes()], Joint::Comma, "");
        prop_assert_ne!(written, cut);
    }
}
