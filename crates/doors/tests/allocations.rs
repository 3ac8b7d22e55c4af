//! The way from a request to its rule: it takes no memory but that of the key's name, and that only where it has none left.

use lessor_doors::name::{Joint, KeyName};
use lessor_doors::rules::Matcher;
use lessor_doors::rules::document::DoorsFile;
use lessor_doors::rules::ratelimit::join;

#[test]
fn a_descriptor_finds_its_rule_and_name_without_allocating() {
    let file = "domain: d\ndescriptors: [{key: a, value: x, descriptors: [{key: b, value: 'y*', rate_limit: {unit: day, requests_per_unit: 1}}]}]";
    let book = join(DoorsFile::default(), &[("x".to_owned(), file.to_owned())]).expect("rules");
    let set = book.set("d").expect("the set");
    let Matcher::Tree(tree) = &set.matcher else { panic!("a tree") };
    let entries = [("a", "x"), ("b", "y/z")];
    let mut key = KeyName::new(Joint::Comma);
    let mut name = || {
        let found = tree.find(entries).expect("a rule");
        key.clear(Joint::Comma);
        (0..2)
            .filter(|place| found.open & 1 << place != 0)
            .for_each(|place| key.push(entries[place].1.as_bytes()));
        key.within(&set.rules[found.rule].limits[0].resource).len()
    };
    assert_eq!(name(), "y%2Fz".len());
    let counted = allocation_counter::measure(|| {
        name();
    });
    assert_eq!(counted.count_total, 0);
}
