//! The documents of a push: files, each for some nodes, checked as servers check them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lessor_server::repository::Repository;
use lessor_server::revision::RevisionDocument;
use lessor_server::shell::source;

/// A document, and its text.
pub(super) type Text = (RevisionDocument, String);

/// A file, and the nodes that it is for.
#[derive(Clone, Debug)]
pub(super) struct ForNodes {
    nodes: String,
    file: PathBuf,
}

// === impl ForNodes ===

impl ForNodes {
    /// `GLOB=FILE`.
    pub(super) fn parse(text: &str) -> Result<ForNodes, String> {
        match text.split_once('=') {
            Some((nodes, file)) if !nodes.is_empty() && !file.is_empty() => {
                Ok(ForNodes { nodes: nodes.to_owned(), file: file.into() })
            }
            _ => Err("wanted GLOB=FILE, as paris=leaf.yaml or '*=leaf.yaml'".to_owned()),
        }
    }

    /// A file for all nodes.
    pub(super) fn all(file: PathBuf) -> ForNodes {
        ForNodes { nodes: "*".to_owned(), file }
    }

    /// The text of the file.
    pub(super) fn read(&self) -> anyhow::Result<Text> {
        let name = self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&self.file)
            .with_context(|| format!("cannot read {}", self.file.display()))?;
        Ok((RevisionDocument::new(&self.nodes, name, &text), text))
    }
}

/// Says all that is wrong with some documents.
pub(super) fn check(texts: &[Text]) -> anyhow::Result<()> {
    let mut count = 0;
    for (document, text) in texts {
        match source::parse(&document.name, text) {
            Ok(repository) => count += check_version(document, &repository),
            Err(faults) => {
                eprintln!("{faults}");
                count += faults.count();
            }
        }
    }
    match count {
        0 => Ok(()),
        1 => bail!("1 fault; nothing was pushed"),
        count => bail!("{count} faults; nothing was pushed"),
    }
}

fn check_version(document: &RevisionDocument, repository: &Repository) -> usize {
    let version = repository.version();
    if version == 0 {
        return 0;
    }
    eprintln!(
        "{}: version: {version}; wanted none: revisions at etcd are numbered; take the line out",
        document.name
    );
    1
}

/// Writes a file that is not there yet.
pub(super) fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let mut file =
        std::fs::File::create_new(path).with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}
