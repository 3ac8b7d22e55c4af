//! The repository itself: its pages name what is there, its files begin with their nouns, a name is one type's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust file below `folder` that belongs to the workspace.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the workspace") {
        let path = entry.expect("an entry of it").path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            false => {}
        }
    }
    found
}

fn workspace() -> Vec<PathBuf> {
    let rooms = ["proto", "crates", "sim"];
    let files: Vec<PathBuf> = rooms.iter().flat_map(|room| sources(&root().join(room))).collect();
    assert!(files.len() > 400, "{} files", files.len());
    files
}

#[test]
fn every_threat_names_a_test_that_there_is() {
    let page = read(&root().join("SECURITY.md"));
    let (_, table) = page.split_once("| threat | answer | test |").expect("the table");
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 10, "{} threats", rows.len());
    let sources: String = workspace().iter().map(|path| read(path)).collect();
    let mut faults = Vec::new();
    for row in rows {
        let tests = quoted(row.rsplit('|').nth(1).expect("the last column"));
        if tests.is_empty() {
            faults.push(format!("no test: {row}"));
        }
        let gone = tests.iter().filter(|(_, name)| !sources.contains(&format!("fn {name}(")));
        faults.extend(gone.map(|(_, name)| format!("no such test: {name}")));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The parts of a text between backticks, each with what stands between it and the one before.
fn quoted(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split('`').collect();
    parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Whether `source` defines `name`, which may begin with the type that it belongs to.
fn defines(source: &str, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    ["fn", "struct", "enum", "trait", "const"].iter().any(|keyword| {
        source.match_indices(&format!("{keyword} {name}")).any(|(at, found)| {
            let after = source[at + found.len()..].chars().next();
            !after.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
        })
    })
}

#[test]
fn what_the_architecture_names_is_there() {
    let page = read(&root().join("ARCHITECTURE.md"));
    let (mut paths, mut names, mut last) = (0, 0, None::<PathBuf>);
    for (between, part) in quoted(&page) {
        let is_path = part.contains('/') && !part.starts_with("src/") && !part.contains(' ');
        if is_path {
            let path = root().join(part);
            assert!(path.exists(), "ARCHITECTURE.md names {part}, which is not there");
            paths += 1;
            last = Some(path);
            continue;
        }
        if let Some(path) = last.take().filter(|path| between == " " && path.is_file()) {
            assert!(defines(&read(&path), part), "{} does not define {part}", path.display());
            names += 1;
        }
    }
    assert!(paths > 40 && names > 20, "{paths} paths, {names} names");
}

#[test]
fn every_file_begins_with_what_it_is() {
    let is_bare = |path: &&PathBuf| !read(path).starts_with("//! ");
    let bare: Vec<PathBuf> = workspace().iter().filter(is_bare).cloned().collect();
    assert!(bare.is_empty(), "these do not begin with //!: {bare:#?}");
}

/// Words that a file does not begin with, beside those of [`HEADLESS`].
const HEADLESS_FILE: [&str; 4] = ["When ", "Where ", "That ", "So "];

#[test]
fn a_file_begins_with_its_noun() {
    let mut found = Vec::new();
    for path in workspace() {
        let text = read(&path);
        let line = text.lines().next().unwrap_or_default();
        let head = line.strip_prefix("//! ").unwrap_or_default();
        if HEADLESS.iter().chain(&HEADLESS_FILE).any(|word| head.starts_with(word)) {
            found.push(format!("{}: {line}", path.display()));
        }
    }
    assert!(found.is_empty(), "{} files do not begin with a noun:\n{}", found.len(), found.join("\n"));
}

/// The name of the type that `line` defines, if it belongs to a file and not to a function or a trait.
fn defined_type(line: &str) -> Option<&str> {
    let after = match line.strip_prefix("pub") {
        Some(after) => match after.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => after,
        }
        .strip_prefix(' ')?,
        None => line,
    };
    let after = after.strip_prefix("unsafe ").unwrap_or(after);
    let keywords = ["struct ", "enum ", "trait ", "type ", "union "];
    let rest = keywords.iter().find_map(|keyword| after.strip_prefix(keyword))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Some(&rest[..end.unwrap_or(rest.len())]).filter(|name| !name.is_empty())
}

#[test]
fn types_are_found_where_they_are_defined() {
    assert_eq!(defined_type("pub struct Node {"), Some("Node"));
    assert_eq!(defined_type("pub(super) enum Kept<T> {"), Some("Kept"));
    assert_eq!(defined_type("pub(in crate::node) type Books = u8;"), Some("Books"));
    assert_eq!(defined_type("trait Observer: Send {"), Some("Observer"));
    for line in ["    type Output = u8;", "pub fn node()", "/// pub struct Node", "published struct Node"] {
        assert_eq!(defined_type(line), None, "{line}");
    }
}

#[test]
fn the_name_of_a_type_stands_once_in_a_crate() {
    let crates = [
        "proto",
        "crates/algorithms",
        "crates/client",
        "crates/doors",
        "crates/server",
        "crates/tower",
        "crates/yaml",
        "crates/console",
        "crates/cli",
        "crates/python",
        "sim",
    ];
    let mut found = Vec::new();
    for folder in crates {
        let mut places = BTreeMap::<String, Vec<String>>::new();
        for path in sources(&root().join(folder).join("src")) {
            let is_of_tests = path.iter().any(|part| part == "tests" || part == "tests.rs");
            for (number, line) in read(&path).lines().enumerate().filter(|_| !is_of_tests) {
                if let Some(name) = defined_type(line) {
                    let place = format!("{}:{}", path.display(), number + 1);
                    places.entry(name.to_owned()).or_default().push(place);
                }
            }
        }
        assert!(places.len() > 5, "{folder}: {} types", places.len());
        let twice = places.iter().filter(|(_, places)| places.len() > 1);
        found.extend(twice.map(|(name, places)| format!("{folder}: {name}: {}", places.join(", "))));
    }
    assert!(found.is_empty(), "{} names stand for several types:\n{}", found.len(), found.join("\n"));
}

/// The most fields of a type that decides something.
const MOST_FIELDS: usize = 12;

/// Types with more, by the files where they are defined: each is a row that is written, read or shown as a whole, and decides nothing.
const ROWS: [(&str, &str, &str); 31] = [
    ("crates/algorithms/src/tiers/decision.rs", "Decision", "one decision, as it is handed out"),
    ("crates/cli/src/explain.rs", "Life", "a row of a page, as it is read"),
    ("crates/cli/src/explain.rs", "ResourceRow", "a row of a page, as it is read"),
    ("crates/cli/src/status/node.rs", "Resource", "a row of a page, as it is read"),
    ("crates/client/src/decision.rs", "Decision", "one decision, as it is handed out"),
    ("crates/client/src/session/config.rs", "SessionConfig", "settings"),
    ("crates/client/src/shell/metrics.rs", "ResourceMetrics", "figures of a page"),
    ("crates/console/src/holders.rs", "HolderLine", "a row of a page"),
    ("crates/console/src/node.rs", "NodeLine", "a row of a page"),
    ("crates/console/src/resources.rs", "ResourceLine", "a row of a page"),
    ("crates/console/src/tiers/drawn.rs", "DrawnLane", "a row of a page"),
    ("crates/doors/src/pool/counts.rs", "PoolCounts", "figures of a page"),
    ("crates/doors/src/rules.rs", "Rule", "an entry of the rules, as their file says it"),
    ("crates/server/src/config.rs", "NodeConfig", "settings"),
    ("crates/server/src/plan/forecast.rs", "ResourceForecast", "a row of a page"),
    ("crates/server/src/record.rs", "Record", "what leaders leave, as it is written and read"),
    ("crates/server/src/repository/template.rs", "Template", "an entry of the configuration"),
    ("crates/server/src/resource/explain.rs", "HolderExplanation", "a row of a page"),
    ("crates/server/src/resource/status.rs", "HolderStatus", "a row of a page"),
    ("crates/server/src/resource/status.rs", "ResourceStatus", "a row of a page"),
    ("crates/server/src/shell/driver/traffic.rs", "Traffic", "counters of a page"),
    ("crates/server/src/shell/options.rs", "ServerOptions", "settings"),
    ("sim/src/counts.rs", "Counts", "figures of a simulation"),
    ("sim/src/measure/figures.rs", "Figures", "figures of a measurement"),
    ("sim/src/plan.rs", "ResourcePlan", "settings of a simulation"),
    ("sim/src/plan.rs", "SimulationPlan", "settings of a simulation"),
    ("sim/src/report/line.rs", "ReportLine", "a line of a report"),
    ("sim/src/resource.rs", "Resource", "an entry of the configuration of a simulation"),
    ("sim/src/rules.rs", "Rules", "settings of a simulation"),
    ("sim/src/tenants/line.rs", "TenantsLine", "a line of a report"),
    ("sim/src/windows.rs", "WindowsRun", "settings of a measurement"),
];

/// A struct with named fields: its name, the number of them, and whether it is a message or the arguments of a command.
#[derive(PartialEq, Eq, Debug)]
struct Fields {
    name: String,
    count: usize,
    is_spoken: bool,
}

/// The structs with named fields that `source` defines outside of functions and modules.
fn structs(source: &str) -> Vec<Fields> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some(name) = defined_type(line).filter(|_| line.contains("struct ")) else { continue };
        let head = lines[number..].iter().position(|line| line.ends_with(['{', ';', '}']));
        let Some(head) = head.map(|more| number + more).filter(|&head| lines[head].ends_with('{')) else {
            continue;
        };
        let body = lines[head + 1..].iter().take_while(|line| **line != "}");
        let count = body.filter(|line| is_field(line)).count();
        let above = lines[..number].iter().rev().take_while(|line| line.starts_with(['#', '/']));
        let is_spoken = above
            .filter(|line| line.starts_with("#[derive("))
            .any(|line| ["Args", "Parser", "Message"].iter().any(|derived| line.contains(derived)));
        found.push(Fields { name: name.to_owned(), count, is_spoken });
    }
    found
}

/// Whether a line of the body of a struct begins a field.
fn is_field(line: &str) -> bool {
    let Some(field) = line.strip_prefix("    ").filter(|field| !field.starts_with([' ', '/', '#'])) else {
        return false;
    };
    let field = match field.strip_prefix("pub") {
        Some(field) => field.split_once(' ').map_or("", |(_, name)| name),
        None => field,
    };
    field
        .split_once(':')
        .is_some_and(|(name, _)| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_'))
}

#[test]
fn fields_are_counted() {
    let source = "/// A node.\n#[derive(Debug)]\npub(crate) struct Node<'a>\nwhere\n    T: Copy,\n{\n    /// Its name: a word.\n    \
                  #[serde(rename = \"n\")]\n    pub(super) name: &'a str,\n    call: Box<\n        dyn Fn() -> u8,\n    >,\n}\n\
                  struct Unit;\nstruct One(u8);\n#[derive(Debug, Args)]\nstruct Serve {\n    pub port: u16,\n}\n";
    let fields = |name: &str, count, is_spoken| Fields { name: name.to_owned(), count, is_spoken };
    assert_eq!(structs(source), [fields("Node", 2, false), fields("Serve", 1, true)]);
}

#[test]
fn a_type_has_few_fields_or_is_a_row() {
    let messages = root().join("proto/src/message");
    let (mut found, mut wide, mut structs_seen) = (Vec::new(), Vec::new(), 0);
    for path in workspace() {
        let is_of_tests = path.iter().any(|part| part == "tests" || part == "tests.rs");
        if is_of_tests || path.starts_with(&messages) {
            continue;
        }
        for Fields { name, count, is_spoken } in structs(&read(&path)) {
            structs_seen += 1;
            if count <= MOST_FIELDS || is_spoken {
                continue;
            }
            let is_row = |row: &&(&str, &str, &str)| path == root().join(row.0) && name == row.1;
            match ROWS.iter().find(is_row) {
                Some(row) => wide.push(row),
                None => found.push(format!("{}: {name}: {count}", path.display())),
            }
        }
    }
    assert!(structs_seen > 400, "{structs_seen} structs");
    assert!(
        found.is_empty(),
        "{} types have more than {MOST_FIELDS} fields:\n{}",
        found.len(),
        found.join("\n")
    );
    let gone: Vec<_> = ROWS.iter().filter(|row| !wide.contains(row)).collect();
    assert!(gone.is_empty(), "these have few fields, or are gone: {gone:?}");
}

/// The glossary of the README, and the README without it.
fn glossary() -> (String, String) {
    let page = read(&root().join("README.md"));
    let (before, after) = page.split_once("\n## Words\n").expect("the README has a section Words");
    let (words, rest) = after.split_once("\n## ").expect("a section after Words");
    (words.to_owned(), format!("{before}\n{rest}"))
}

/// The terms of a table: its first column, which may hold several.
fn terms(table: &str) -> Vec<String> {
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")).skip(2);
    let cells = rows.filter_map(|row| row.split_once(" |"));
    cells.flat_map(|(cell, _)| cell.split(", ")).map(str::to_owned).collect()
}

/// Whether `term` is a word of `text`, which is in lower case, or words of it; with or without an s behind.
fn uses(text: &str, term: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    text.match_indices(term).any(|(at, _)| {
        let after = &text[at + term.len()..];
        let after = after.strip_prefix('s').unwrap_or(after);
        !is_letter(text[..at].chars().next_back()) && !is_letter(after.chars().next())
    })
}

#[test]
fn a_term_is_used_as_a_word() {
    assert!(uses("two ghosts, and set_ceiling", "ghost") && uses("two ghosts, and set_ceiling", "ceiling"));
    assert!(!uses("a release", "lease") && !uses("a holder", "hold") && !uses("", "tier"));
}

#[test]
fn words_of_the_glossary_are_used() {
    let (words, rest) = glossary();
    let mut text = rest.to_lowercase();
    for page in ["ARCHITECTURE.md", "docs/leases.md", "docs/operations.md", "docs/domains.md"] {
        text.push_str(&read(&root().join(page)).to_lowercase());
    }
    let tests = root().join("crates/cli/tests");
    for path in workspace().iter().filter(|path| !path.starts_with(&tests)) {
        let source = read(path);
        // The glossary of a crate is a glossary too.
        source.lines().filter(|line| !line.starts_with("//! |")).for_each(|line| {
            text.push_str(&line.to_lowercase());
            text.push('\n');
        });
    }
    let terms = terms(&words);
    assert!(terms.len() > 25, "{terms:?}");
    for term in &terms {
        assert!(uses(&text, term), "the glossary has {term:?}, which nothing uses");
    }
}

#[test]
fn the_nouns_of_the_rules_and_of_the_readme_are_in_the_glossary() {
    let (words, rest) = glossary();
    let terms = terms(&words);
    // Those that the rules use, and those that somebody meets who reads the README, calls a client or reads its log.
    let read = "root leaf parent tenant stream limiter rate gauge permit share template record task leader burst rung";
    let text = rest.to_lowercase();
    for noun in read.split(' ') {
        let plural = noun.replace("leaf", "leave");
        assert!(uses(&text, noun) || uses(&text, &plural), "the README does not use {noun:?} any more");
    }
    let rules = "ghost mark ceiling claim floor ladder debt charge basis epoch domain tier hold lease grant";
    let nouns = format!("{read} {rules}");
    let missing: Vec<&str> = nouns.split(' ').filter(|noun| !terms.iter().any(|term| term == noun)).collect();
    assert!(missing.is_empty(), "the glossary of the README lacks {missing:?}");
}

/// Words that a doc does not begin with: the noun comes first.
const HEADLESS: [&str; 8] =
    ["What ", "Who ", "Whoever ", "Whom ", "How ", "So much ", "So many ", "So long "];

#[test]
fn the_doc_of_an_item_begins_with_its_noun() {
    let mut found = Vec::new();
    for path in workspace() {
        let text = read(&path);
        let mut before = "";
        for (number, line) in text.lines().map(str::trim_start).enumerate() {
            let doc = line.strip_prefix("/// ").filter(|_| !before.starts_with("///"));
            if doc.is_some_and(|doc| HEADLESS.iter().any(|word| doc.starts_with(word))) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
            before = line;
        }
    }
    assert!(found.is_empty(), "{} docs do not begin with a noun:\n{}", found.len(), found.join("\n"));
}
