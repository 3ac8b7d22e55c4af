//! The repository itself: what its pages name is there, and its files begin with what they are.

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
