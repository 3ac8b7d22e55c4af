//! The way from a request to its rule: ten thousand rules, four entries, and the name of the key.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use http::HeaderName;
use lessor_doors::attribute::{Attribute, Attributes};
use lessor_doors::name::{Joint, KeyName};
use lessor_doors::rules::Matcher;
use lessor_doors::rules::document::DoorsFile;
use lessor_doors::rules::ratelimit::join;

const RULES: usize = 10_000;

/// A tree of four levels, with patterns on two of them.
fn tree() -> String {
    let mut text = String::from("domain: shop\ndescriptors:\n");
    for tenant in 0..RULES / 4 {
        let limit = "rate_limit: {unit: minute, requests_per_unit: 100}";
        let _ = write!(
            text,
            "- key: tenant\n  value: tenant-{tenant}\n  descriptors:\n  - key: method\n    value: GET\n    descriptors:\n    - key: \
             path\n      value: /api/*\n      descriptors: [{{key: remote_address, {limit}}}, {{key: remote_address, value: \
             '10.*', {limit}}}]\n    - {{key: path, {limit}}}\n  - {{key: method, {limit}}}\n"
        );
    }
    text
}

struct Request([(Attribute, &'static str); 4]);

impl Attributes for Request {
    fn value(&self, attribute: &Attribute) -> Option<Cow<'_, str>> {
        self.0.iter().find(|(known, _)| known == attribute).map(|&(_, value)| Cow::Borrowed(value))
    }
}

fn descriptors(criterion: &mut Criterion) {
    let book = join(DoorsFile::default(), &[("tree.yaml".to_owned(), tree())]).expect("rules");
    let set = book.set("shop").expect("the set");
    assert_eq!(set.rules.len(), RULES);
    let Matcher::Tree(tree) = &set.matcher else { panic!("a tree") };
    let entries = [
        ("tenant", "tenant-2345"),
        ("method", "GET"),
        ("path", "/api/orders/17"),
        ("remote_address", "192.0.2.7"),
    ];
    let mut key = KeyName::new(Joint::Comma);
    criterion.bench_function("descriptor of four entries, 10,000 rules", |bencher| {
        bencher.iter(|| {
            let found = tree.find(black_box(entries)).expect("a rule");
            key.clear(Joint::Comma);
            for (place, (_, value)) in entries.iter().enumerate() {
                if found.open & 1 << place != 0 {
                    key.push(value.as_bytes());
                }
            }
            black_box(key.within(&set.rules[found.rule].limits[0].resource).len())
        });
    });
}

fn attributes(criterion: &mut Criterion) {
    let mut text = String::from("sets:\n  edge:\n    rules:\n");
    for rule in 0..RULES {
        let _ = writeln!(
            text,
            "    - {{match: {{path: '/api/{rule}/*', method: [GET, POST]}}, key: [header.x-tenant, remote_address], limit: 100/1m}}"
        );
    }
    let book = DoorsFile::parse("doors.yaml", &text).expect("rules").into_rules();
    let set = book.set("edge").expect("the set");
    let Matcher::Table(table) = &set.matcher else { panic!("a table") };
    let request = Request([
        (Attribute::Path, "/api/2345/orders"),
        (Attribute::Method, "GET"),
        (Attribute::Header(HeaderName::from_static("x-tenant")), "tenant-2345"),
        (Attribute::RemoteAddress(None), "192.0.2.7"),
    ]);
    let mut key = KeyName::new(Joint::Comma);
    criterion.bench_function("attributes, 10,000 rules", |bencher| {
        bencher.iter(|| {
            let values = table.values(black_box(&request));
            let found = table.find(&values);
            key.clear(Joint::Comma);
            for &slot in &table.rows()[found[0]].key {
                key.push(values[slot].as_deref().unwrap_or_default().as_bytes());
            }
            black_box(key.within(&set.rules[found[0]].limits[0].resource).len())
        });
    });
}

criterion_group!(benches, descriptors, attributes);
criterion_main!(benches);
