//! The files of the rules of doors: found, read, and read again when they have changed.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use lessor_doors::pattern::Pattern;
use lessor_doors::rules::RuleBook;
use lessor_doors::rules::document::DoorsFile;
use lessor_doors::rules::ratelimit::join;
use lessor_server::shell::source::MAX_BYTES;

/// The files that somebody named.
#[derive(Clone, Default, Debug)]
pub(crate) struct RuleFiles {
    pub(crate) doors: Option<PathBuf>,
    /// Files of the rate limit service, or directories of them.
    pub(crate) ratelimit: Vec<PathBuf>,
    /// The document in place of a file.
    pub(crate) document: DoorsFile,
    /// Whether the document stands for a file that is not there.
    pub(crate) is_optional: bool,
}

/// Files, and what of them has been seen.
#[derive(Debug)]
pub(super) struct RuleSource {
    files: RuleFiles,
    /// The content that was put in force, or was faulty.
    read: RuleTexts,
    /// The content of the last look. A file that is just being written has another one in the next.
    seen: RuleTexts,
    named: Vec<String>,
}

/// The names of files and what is in them, or why that cannot be read.
type RuleTexts = Vec<(String, Result<String, String>)>;

// === impl RuleFiles ===

impl RuleFiles {
    /// The rules in them.
    ///
    /// # Errors
    /// All that is wrong, in words with places.
    pub(crate) fn load(&self) -> anyhow::Result<RuleBook> {
        RuleSource::new(self.clone()).load()
    }

    /// The names of them in messages.
    pub(crate) fn names(&self) -> String {
        let all = self.doors.iter().chain(&self.ratelimit);
        all.map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    }

    /// The names of files that a document names are those beside it.
    fn beside(&self, name: &str) -> PathBuf {
        let folder = self.doors.as_deref().and_then(Path::parent);
        folder.map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
    }

    /// Reads all files, of which a document names those.
    fn texts(&self, named: &[String]) -> RuleTexts {
        let mut texts = Vec::new();
        texts.extend(self.doors.iter().map(|path| named_text(path)));
        for path in named.iter().map(|name| self.beside(name)).chain(self.ratelimit.iter().cloned()) {
            match expanded(&path) {
                Ok(paths) => texts.extend(paths.iter().map(|path| named_text(path))),
                Err(fault) => texts.push((path.display().to_string(), Err(fault.to_string()))),
            }
        }
        texts
    }
}

// === impl RuleSource ===

impl RuleSource {
    pub(super) fn new(files: RuleFiles) -> RuleSource {
        RuleSource { files, read: Vec::new(), seen: Vec::new(), named: Vec::new() }
    }

    /// Whether something else stands there than was read, for two looks.
    pub(super) fn look(&mut self) -> bool {
        let now = self.files.texts(&self.named);
        let is_settled = now == self.seen;
        self.seen = now;
        is_settled && self.seen != self.read
    }

    /// Reads all files. From then on their content has been seen, faulty or not.
    ///
    /// # Errors
    /// All that is wrong, in words with places; what was loaded before should then stay in force.
    pub(super) fn load(&mut self) -> anyhow::Result<RuleBook> {
        let document = self.document();
        if let Ok(document) = &document {
            self.named.clone_from(&document.service().files);
        }
        self.read = self.files.texts(&self.named);
        self.seen.clone_from(&self.read);
        let document = document?;
        let service = self.read.iter().skip(usize::from(self.files.doors.is_some()));
        let mut texts = Vec::new();
        for (name, text) in service {
            match text {
                Ok(text) => texts.push((name.clone(), text.clone())),
                Err(fault) => bail!("{name}: {fault}"),
            }
        }
        join(document, &texts).map_err(|faults| anyhow!("{}", faults.join("\n")))
    }

    fn document(&self) -> anyhow::Result<DoorsFile> {
        let Some(path) = &self.files.doors else {
            return Ok(self.files.document.clone());
        };
        if self.files.is_optional && !path.exists() {
            return Ok(self.files.document.clone());
        }
        match named_text(path) {
            (name, Ok(text)) => DoorsFile::parse(&name, &text).map_err(|faults| anyhow!("{faults}")),
            (name, Err(fault)) => bail!("{name}: {fault}"),
        }
    }
}

/// The files that a path means: one, those of a directory, or those that a star in its last part matches.
fn expanded(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let is_yaml = |name: &str| [".yaml", ".yml"].iter().any(|end| name.ends_with(end));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let found = match name.contains('*') {
        true => {
            let pattern = Pattern::new(name);
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            listed(folder.unwrap_or(Path::new(".")), |name| pattern.matches(name))?
        }
        false if path.is_dir() => listed(path, is_yaml)?,
        false => return Ok(vec![path.to_owned()]),
    };
    if found.is_empty() {
        bail!("there is no such file; wanted one at least");
    }
    Ok(found)
}

/// The files of a directory whose names `fits`, in their order. Those that begin with a dot are hidden.
fn listed(folder: &Path, fits: impl Fn(&str) -> bool) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with('.') && fits(name) && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn named_text(path: &Path) -> (String, Result<String, String>) {
    (path.display().to_string(), text(path).map_err(|fault| fault.to_string()))
}

fn text(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("more than {MAX_BYTES} bytes; wanted fewer");
    }
    String::from_utf8(bytes)
        .map_err(|fault| anyhow!("byte {} is not UTF-8", fault.utf8_error().valid_up_to()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str =
        "domain: one\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 5}}]";

    #[test]
    fn files_are_found_by_name_by_star_and_in_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        write("one.yaml", ONE);
        write(".hidden.yaml", "nonsense");
        write("notes.txt", "nonsense");
        let doors = write("doors.yml", "ratelimit: [\"o*.yaml\"]");
        let by_star = RuleFiles { doors: Some(doors.clone()), ratelimit: Vec::new(), ..RuleFiles::default() };
        assert!(by_star.load().unwrap().set("one").is_some());
        std::fs::remove_file(&doors).unwrap();
        let by_folder =
            RuleFiles { doors: None, ratelimit: vec![folder.path().to_owned()], ..RuleFiles::default() };
        assert_eq!(by_folder.load().unwrap().sets().len(), 1);
        let gone =
            RuleFiles { doors: None, ratelimit: vec![folder.path().join("x*.yaml")], ..RuleFiles::default() };
        let fault = gone.load().unwrap_err().to_string();
        assert!(fault.ends_with("x*.yaml: there is no such file; wanted one at least"), "{fault}");
        assert!(by_star.load().unwrap_err().to_string().contains("No such file"));
    }

    #[test]
    fn what_has_changed_is_noticed_once_it_has_settled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.yaml");
        std::fs::write(&path, ONE).unwrap();
        let mut source =
            RuleSource::new(RuleFiles { doors: None, ratelimit: vec![path.clone()], ..RuleFiles::default() });
        source.load().unwrap();
        assert!(!source.look() && !source.look());
        std::fs::write(&path, "domain: half").unwrap();
        assert!(!source.look());
        std::fs::write(&path, ONE.replace("one", "two")).unwrap();
        assert!(!source.look() && source.look() && source.look());
        assert!(source.load().unwrap().set("two").is_some());
        assert!(!source.look());
        std::fs::write(&path, "domain: [half").unwrap();
        assert!(!source.look() && source.look());
        source.load().unwrap_err();
        assert!(!source.look(), "a fault is told once");
    }
}
