//! Tests of the writer of the record.

use std::time::Duration;

use lessor_proto::Amount;

use super::super::outbox::Outbox;
use super::*;
use crate::election::ClockBounds;

fn first() -> RecordChange {
    let terms = Terms { authority: Duration::from_secs(4), ..Terms::default() };
    RecordChange { terms: Some(terms), ..RecordChange::default() }
}

fn resource(number: usize) -> ResourceId {
    ResourceId::new(format!("r{number}"), 256).unwrap()
}

#[test]
fn batches_fit_into_a_transaction_and_a_ticket_is_done_with_its_last() {
    let (keys, config) = (RecordKeys::new("p", "n"), ElectionConfig::new("n", "a", 1));
    let bounds = ClockBounds::default();
    let (mut writer, mut out) =
        (Writer::new(7, &Record::default(), Epoch(7), first(), 0), Outbox::new(Duration::from_secs(1)));
    let marks = (0..250).map(|number| (resource(number), Amount::from_units(1))).collect();
    let deletes = (0..50).map(|number| resource(1_000 + number)).collect();
    let ticket = writer.push(RecordChange { marks, deletes, ..RecordChange::default() });
    let (mut sizes, mut done) = (Vec::new(), Vec::new());
    for revision in 1..10 {
        let mut context =
            StepContext { now: Time::ZERO, keys: &keys, config: &config, bounds: &bounds, out: &mut out };
        writer.advance(&mut context);
        let Some(batch) = &writer.batch else { break };
        assert_eq!(batch.txn.order.mod_revision, revision - 1);
        sizes.push((batch.txn.puts.len(), batch.txn.deletes.len()));
        match writer.on_answer(&mut context, Ok(Answer::Written { revision })) {
            Wrote::Tickets(tickets) => done.push(tickets),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(sizes, [(50, 50), (100, 0), (100, 0), (4, 0)]);
    assert_eq!(done, [vec![Ticket(1)], vec![], vec![], vec![ticket]]);
}

#[test]
fn of_two_marks_in_one_batch_the_later_counts() {
    let (keys, config) = (RecordKeys::new("p", "n"), ElectionConfig::new("n", "a", 1));
    let mut writer = Writer::new(7, &Record::default(), Epoch(7), first(), 0);
    let one = |mark| RecordChange {
        marks: [(resource(1), Amount::from_units(mark))].into(),
        ..RecordChange::default()
    };
    writer.push(one(5));
    writer.push(one(3));
    let batch = writer.next_batch(Time::ZERO, &keys, &config);
    assert_eq!(batch.txn.puts[1], ("p/n/mark/r1".to_owned(), "1 millionths 3000000".to_owned()));
    assert_eq!(batch.tickets.len(), 3);
}
