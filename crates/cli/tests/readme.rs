//! The commands that README.md shows, as it shows them: each line of a `console` block that begins with `$ lessor`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod house;

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::house::{AGES, House, Outcome, lessor, repository_file};

/// Where `lessor serve` listens if it is not told.
const DEFAULT: &str = "127.0.0.1:15000";
/// Long enough for a demonstration to end as it always does.
const DEMO: &str = "3s";

/// A command line: what follows `lessor`.
type Line = Vec<String>;

/// A command, and what the text shows below it.
#[derive(PartialEq, Debug)]
struct Shown {
    line: Line,
    output: Vec<String>,
}

/// The commands in the `console` blocks of a Markdown text, in their order.
fn commands(markdown: &str) -> Vec<Shown> {
    let mut inside = false;
    let mut goes_on = false;
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for line in markdown.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            inside = !inside && info.trim() == "console";
            goes_on = false;
        } else if inside && (goes_on || line.starts_with("$ lessor ")) {
            let (text, more) = line.strip_suffix('\\').map_or((line, false), |text| (text, true));
            match lines.last_mut().filter(|_| goes_on) {
                Some((command, _)) => command.push_str(text),
                None => lines.push((text.trim_start_matches("$ lessor ").to_owned(), Vec::new())),
            }
            goes_on = more;
        } else if inside && let Some((_, output)) = lines.last_mut() {
            output.push(line.to_owned());
        }
    }
    lines.into_iter().map(|(line, output)| Shown { line: words(&line), output }).collect()
}

/// Splits as a shell does, which is asked for nothing more than quotes, a comment, and to go on at once.
fn words(line: &str) -> Line {
    let mut words = Vec::new();
    let (mut word, mut begun, mut quote) = (String::new(), false, None);
    for character in line.chars() {
        match (quote, character) {
            (None, '\'' | '"') => (quote, begun) = (Some(character), true),
            (Some(open), _) if character == open => quote = None,
            (None, '#') if !begun => break,
            (None, ' ') => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (None, '|' | '>' | '<' | ';' | '$' | '`') => {
                panic!("{line:?} wants a shell; wanted a plain command")
            }
            _ => (word, begun) = (word + character.encode_utf8(&mut [0; 4]), true),
        }
    }
    words.extend(begun.then_some(word));
    words.pop_if(|last| last == "&");
    words
}

/// Somebody who does what README.md says, line by line.
#[derive(Default)]
struct Reader {
    servers: Vec<House>,
    /// Those who hold leases until they are interrupted.
    holding: Vec<(Child, Lines<BufReader<ChildStdout>>)>,
    /// Addresses in the text, and what stands for them here.
    addresses: Vec<(String, String)>,
}

// === impl Reader ===

impl Reader {
    async fn follow(&mut self, Shown { line, output }: Shown) {
        println!("$ lessor {}", line.join(" "));
        match line[0].as_str() {
            "serve" => self.serve(line).await,
            "get" if line.iter().any(|word| word == "--hold") => self.hold(line).await,
            "demo" => drop(self.run(with(line, "--for", DEMO).0).await),
            "sim" => {
                let plots = tempfile::tempdir().unwrap();
                drop(self.run(smaller(line, plots.path())).await);
            }
            "get" | "check" => {
                let out = self.run(line).await;
                assert_eq!(out.lines().collect::<Vec<_>>(), output, "README.md shows another output");
            }
            _ => drop(self.run(line).await),
        }
    }

    /// Starts a server on ports that are free.
    async fn serve(&mut self, line: Line) {
        let (line, listen) = with(self.here(line), "--listen", "127.0.0.1:0");
        let (line, http) = with(line, "--http", "127.0.0.1:0");
        let (line, _) = with(line, "--log-format", "json");
        let house = House::run(command(&line)).await;
        self.addresses.push((listen.unwrap_or(DEFAULT.to_owned()), house.address().to_string()));
        self.addresses.extend(http.map(|http| (http, house.http().to_string())));
        self.servers.push(house);
    }

    /// Runs a command that ends by itself.
    async fn run(&self, line: Line) -> String {
        let output = timeout(AGES, self.command(line.clone()).output()).await;
        let output = output.unwrap_or_else(|_| panic!("lessor {} does not end", line.join(" "))).unwrap();
        let Outcome { code, out, err } = Outcome::of(&output);
        print!("{out}{err}");
        assert_eq!(code, Some(0));
        assert!(!out.is_empty(), "it says nothing");
        out
    }

    /// Starts a command that goes on, and waits until it has said something.
    async fn hold(&mut self, line: Line) {
        let mut child = self.command(line).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = timeout(AGES, lines.next_line()).await.expect("it says something").unwrap();
        println!("{}", first.expect("it says something"));
        self.holding.push((child, lines));
    }

    /// Ends all that goes on, as people do.
    async fn end(self) {
        for (mut child, _) in self.holding {
            let pid = i32::try_from(child.id().unwrap()).ok().and_then(Pid::from_raw).unwrap();
            kill_process(pid, Signal::INT).unwrap();
            let status = timeout(AGES, child.wait()).await.expect("it ends").unwrap();
            assert!(status.success(), "{status}");
        }
        for server in self.servers {
            server.stop().await;
        }
    }

    fn command(&self, line: Line) -> Command {
        let mut command = command(&self.here(line));
        // Whoever names no server means the one that listens where servers do by default.
        let server = self.addresses.iter().rev().find(|(shown, _)| shown == DEFAULT);
        command.envs(server.map(|(_, here)| ("LESSOR_SERVER", here)));
        command
    }

    /// The line with the addresses that are in use here.
    fn here(&self, line: Line) -> Line {
        let here =
            |word: String| self.addresses.iter().fold(word, |word, (shown, here)| word.replace(shown, here));
        line.into_iter().map(here).collect()
    }
}

/// Sets an option, and gives back what it was.
fn with(mut line: Line, option: &str, value: &str) -> (Line, Option<String>) {
    match line.iter().position(|word| word == option) {
        Some(place) => {
            let old = std::mem::replace(&mut line[place + 1], value.to_owned());
            (line, Some(old))
        }
        None => {
            line.extend([option.to_owned(), value.to_owned()]);
            (line, None)
        }
    }
}

/// A simulation that is over soon: what is simulated stays, how much of it does not.
fn smaller(mut line: Line, plots: &Path) -> Line {
    let plots = plots.display().to_string();
    // An hour takes its time without optimisation.
    line.iter_mut().filter(|word| *word == "seven").for_each(|word| *word = "five".to_owned());
    let small = [("--seeds", "1..1"), ("--clients", "200"), ("--minutes", "1"), ("--out", plots.as_str())];
    for (option, value) in small {
        if let Some(at) = line.iter().position(|word| word == option) {
            line[at + 1] = value.to_owned();
        }
    }
    line
}

/// The command, run where the README is.
fn command(line: &Line) -> Command {
    let arguments: Vec<&str> = line.iter().map(String::as_str).collect();
    let mut command = lessor(&arguments);
    command.current_dir(repository_file("."));
    command
}

#[tokio::test]
async fn the_commands_of_the_readme_do_what_it_says() {
    let path = repository_file("README.md");
    let text = std::fs::read_to_string(&path).expect("there is a README.md");
    let commands = commands(&text);
    for wanted in ["serve", "get", "status", "check"] {
        let shown = commands.iter().any(|shown| shown.line[0] == wanted);
        assert!(shown, "README.md has no line `$ lessor {wanted} …` in a block marked ```console");
    }
    let mut reader = Reader::default();
    for shown in commands {
        reader.follow(shown).await;
    }
    reader.end().await;
}

/// The README's figures of Doorman are what its command prints. Ours would take minutes without optimisation.
#[tokio::test]
async fn the_figures_of_doorman_are_those_that_its_command_prints() {
    let mut command = lessor(&["sim", "seven", "--mode", "doorman", "--seeds", "1..8"]);
    // It computes, without optimisation.
    let output = timeout(10 * AGES, command.output()).await.expect("it ends in time").unwrap();
    let outcome = Outcome::of(&output);
    let medians = outcome.out.lines().find(|line| line.contains(" median ")).expect("a line of medians");
    let cells: Vec<&str> =
        medians.trim_matches(['│', ' ']).split("  ").filter(|cell| !cell.is_empty()).collect();
    let (used, too_much) = (cells[1].trim(), cells[7].trim().trim_end_matches(" s"));
    let readme = std::fs::read_to_string(repository_file("README.md")).unwrap();
    for said in [format!("and theirs {used};"), format!("those of theirs for {too_much} seconds of the hour")]
    {
        assert!(readme.contains(&said), "README.md does not say {said:?}; {medians}");
    }
}

#[test]
fn command_lines_are_read_as_a_shell_reads_them() {
    let text = "```console\n$ lessor serve --config a.yaml &  # in the background\nserving\n$ lessor get 'db/a b' \\\n    --wants 8\n$ cargo run\n```\n\
                ```sh\n$ lessor nothing\n```\n```console\n$ lessor status \"\"\n```\n";
    let shown = |line: &[&str], output: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Shown { line: owned(line), output: owned(output) }
    };
    let expected = [
        shown(&["serve", "--config", "a.yaml"], &["serving"]),
        shown(&["get", "db/a b", "--wants", "8"], &["$ cargo run"]),
        shown(&["status", ""], &[]),
    ];
    assert_eq!(commands(text), expected);
}

/// The README's program against the README's server: nobody tells it what to want, and it does one thing after
/// the other.
#[tokio::test]
async fn the_readmes_program_is_served_from_its_first_job_on() {
    let house =
        House::open(&std::fs::read_to_string(repository_file("configs/quickstart.yaml")).unwrap()).await;
    let client = lessor_client::Client::builder(house.address().to_string()).connect().await.unwrap();
    let queries = client.rate("db-orders").open().unwrap();
    for job in 0..30 {
        queries.acquire(1).await.unwrap_or_else(|refused| panic!("job {job}: {refused}"));
    }
    assert!(queries.lease().capacity > Some(lessor_proto::Amount::from_units(2)), "{:?}", queries.lease());
    client.close().await;
    house.stop().await;
}
