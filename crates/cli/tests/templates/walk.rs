//! The walk of docs/operations.md: each of its commands, as it is shown, and what is shown below it.

use std::process::Stdio;

use tokio::time::timeout;

use crate::house::etcd::Etcd;
use crate::house::{AGES, House, Outcome, eventually, lessor, repository_file};
use crate::site::has;

/// A command, and the lines that are shown below it.
#[derive(Debug)]
struct Step {
    words: Vec<String>,
    output: String,
}

/// Addresses and folders of the page, and what stands for them here.
type Places = Vec<(String, String)>;

/// The commands in the `console` blocks of the walk.
fn steps(page: &str) -> Vec<Step> {
    let (_, walk) = page.split_once("### Ten minutes on one machine\n").expect("the page has a walk");
    let (walk, _) = walk.split_once("\n### ").expect("a section behind it");
    let (mut is_inside, mut steps) = (false, Vec::<Step>::new());
    for line in walk.lines() {
        if let Some(info) = line.strip_prefix("```") {
            is_inside = info == "console";
        } else if let Some(command) = line.strip_prefix("$ lessor ").filter(|_| is_inside) {
            steps.push(Step { words: words(command), output: String::new() });
        } else if let Some(step) = steps.last_mut().filter(|_| is_inside) {
            step.output.push_str(&format!("{line}\n"));
        }
    }
    steps
}

/// Splits at spaces, but for those between quotes.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('"').enumerate();
    let words = parts.flat_map(|(number, part)| match number % 2 {
        1 => vec![part.to_owned()],
        _ => part.split_whitespace().map(str::to_owned).collect(),
    });
    words.filter(|word| word != "&").collect()
}

fn here(step: &Step, places: &Places) -> Vec<String> {
    let put =
        |word: &String| places.iter().fold(word.clone(), |word, (shown, here)| word.replace(shown, here));
    step.words.iter().map(put).collect()
}

/// Starts a server of the walk, at a port that is free.
async fn serve(step: &Step, places: &mut Places) -> House {
    let listen = step.words.iter().position(|word| word == "--listen").expect("it says where") + 1;
    let mut words = here(step, places);
    let shown = words[listen].clone();
    words[listen] = "127.0.0.1:0".to_owned();
    words.extend(["--http", "127.0.0.1:0", "--log-format", "json"].map(str::to_owned));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let house = House::run(lessor(&words)).await;
    places.push((shown, house.address().to_string()));
    has(&house, 1.0).await;
    house
}

async fn run(step: &Step, places: &Places) -> Outcome {
    let words = here(step, places);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = lessor(&words);
    command.current_dir(repository_file(".")).stdin(Stdio::null());
    let output = timeout(AGES * 2, command.output()).await;
    Outcome::of(&output.unwrap_or_else(|_| panic!("{words:?} does not end")).unwrap())
}

/// Starts somebody who holds something, at a server that hears of it; it ends with the test.
async fn hold(step: &Step, places: &Places, house: &House) -> tokio::process::Child {
    let words = here(step, places);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let holder = lessor(&words).stdout(Stdio::null()).spawn().expect("the binary starts");
    eventually("it holds something", async || {
        house.resource(words[1]).await.is_some_and(|resource| resource["leased"].as_f64() > Some(0.0))
    })
    .await;
    holder
}

#[tokio::test]
async fn the_commands_of_the_walk_do_what_the_page_says() {
    let page = std::fs::read_to_string(repository_file("docs/operations.md")).unwrap();
    let steps = steps(&page);
    let Some(etcd) = Etcd::started().await else { return };
    let files = tempfile::tempdir().unwrap();
    let mut places = vec![
        ("http://127.0.0.1:2379".to_owned(), etcd.url()),
        ("/tmp/walk-files".to_owned(), files.path().join("out").display().to_string()),
    ];
    let (mut servers, mut holders) = (Vec::new(), Vec::new());
    for step in &steps {
        println!("$ lessor {}", step.words.join(" "));
        if step.words[0] == "serve" {
            servers.push(serve(step, &mut places).await);
            continue;
        }
        if step.words.iter().any(|word| word == "--hold") {
            holders.push(hold(step, &places, servers.last().expect("somebody to hold from")).await);
            continue;
        }
        let outcome = run(step, &places).await;
        print!("{}{}", outcome.out, outcome.err);
        assert_eq!(outcome.code, Some(0), "{step:?}");
        assert!(
            step.output.is_empty() || step.output == outcome.out,
            "the page shows another output: {step:?}"
        );
        if ["set", "rollback"].contains(&step.words[0].as_str()) {
            assert!(outcome.out.ends_with("in force at 3 of 3 tasks\n"), "{outcome:?}");
        }
    }
    let commands: Vec<&str> = steps.iter().map(|step| step.words[0].as_str()).collect();
    for wanted in [
        "push",
        "serve",
        "plan",
        "history",
        "set",
        "diff",
        "show",
        "push-freeze",
        "rollback",
        "export",
        "prune",
    ] {
        assert!(commands.contains(&wanted), "the walk does not show {wanted}");
    }
    drop(holders);
    for server in servers {
        server.stop().await;
    }
}
