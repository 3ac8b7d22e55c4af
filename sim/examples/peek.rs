//! What is in the books when the town of one seed breaks a rule: `peek SEED [polling] [flat] [faults-only] [-Kind]`.

use lessor_sim::faults::Mischief;
use lessor_sim::swarm::{Options, live, plan};
use lessor_sim::town::Town;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let seed = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(0);
    let without = Mischief::ALL.into_iter().filter(|kind| has(&format!("-{kind:?}"))).collect();
    let options = Options {
        polling: has("polling"),
        flat: has("flat"),
        without,
        judged: !has("faults-only"),
        ..Options::default()
    };
    let plan = plan(seed, &options);
    for (number, place) in plan.places.iter().enumerate() {
        let (above, terms, transport) = (place.parent, place.terms, place.transport);
        println!("place {number}: under {above:?}, {terms:?}, {transport:?}, streams: {}", place.streams);
    }
    for (number, client) in plan.clients.iter().enumerate() {
        println!("client {number}: {} at {} {:?}", client.name, client.place, client.way);
    }
    println!("{:?} {:?}", plan.drift, plan.manners);
    let mut town = Town::new(seed, &plan);
    town.keep_story(100_000);
    match live(&mut town, &plan, options.judged) {
        Ok(()) => println!("no rule is broken"),
        Err(violation) => println!("{violation}"),
    }
    println!("{}", town.ledgers());
}
