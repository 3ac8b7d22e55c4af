//! Proxies of others, as they are, with the recipes of configs/doors.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::front::free_address;
use crate::house::etcd::{is_there, said};
use crate::house::{AGES, eventually, repository_file};

/// A proxy that may be there, and the files of its recipe.
pub(crate) struct Double {
    program: Option<PathBuf>,
    /// The address of the recipe, as it says it: a port is the last of it.
    serves: &'static str,
    /// Its files, by their paths in the repository.
    files: &'static [&'static str],
    /// The texts that are replaced in them besides, each of which has to be there.
    replaced: &'static [(&'static str, &'static str)],
    command: fn(&Place) -> Command,
}

/// The place where one is started.
pub(crate) struct Place<'a> {
    pub(crate) program: PathBuf,
    pub(crate) address: &'a str,
    /// The folder with the files of its recipe, as it is for here.
    pub(crate) directory: &'a Path,
}

/// A proxy that runs, ended when dropped.
pub(crate) struct Running {
    pub(crate) address: String,
    child: Child,
    _directory: TempDir,
}

/// The program of a package of Debian, if it is installed.
///
/// # Panics
/// When it is not, and must be.
pub(crate) fn debian(program: &str, argument: &str, package: &str) -> Option<PathBuf> {
    is_there(program, argument, package).then(|| program.into())
}

/// A program that tools/doubles brings, if it did.
///
/// # Panics
/// When it did not, and must have: where nobody has it for this machine it has said so.
pub(crate) fn fetched(program: &str) -> Option<PathBuf> {
    let path = repository_file("target/doubles").join(program);
    if path.with_extension("none").exists() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no {program} for this machine");
        return None;
    }
    said(path.exists(), program, "none: tools/doubles brings it").then_some(path)
}

// === impl Double ===

impl Double {
    pub(crate) fn new(
        program: Option<PathBuf>,
        serves: &'static str,
        files: &'static [&'static str],
        command: fn(&Place) -> Command,
    ) -> Double {
        Double { program, serves, files, replaced: &[], command }
    }

    /// The same with more that is replaced in its files.
    pub(crate) fn replacing(self, replaced: &'static [(&'static str, &'static str)]) -> Double {
        Double { replaced, ..self }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.program.is_some()
    }

    /// Runs the recipe at a port that is free, with these addresses in the place of those of the recipe.
    ///
    /// # Panics
    /// When the recipe has not one of them, or the program does not serve.
    pub(crate) async fn run(&self, addresses: &[(&str, &str)]) -> Running {
        let program = self.program.as_ref().expect("it is there");
        for _ in 0..5 {
            let directory = tempfile::tempdir().unwrap();
            // Another process may have it by then, and another one is tried.
            let address = free_address();
            let mut texts: Vec<String> = self.files.iter().map(|file| text(file)).collect();
            let port = address.rsplit(':').next().unwrap();
            let at = format!("{}{port}", self.serves.trim_end_matches(|it: char| it.is_ascii_digit()));
            let own = (self.serves, &*at);
            for &(there, here) in addresses.iter().chain([&own]).chain(self.replaced) {
                // Where it serves may be said by a flag, and then stands in the line that says how to start it.
                assert!(texts.iter().any(|text| text.contains(there)), "the recipe has no {there}");
                for text in &mut texts {
                    *text = text.replace(there, here);
                }
            }
            for (file, text) in self.files.iter().zip(texts) {
                let name = Path::new(file).file_name().expect("a file");
                std::fs::write(directory.path().join(name), text).unwrap();
            }
            let place = Place { program: program.clone(), address: &address, directory: directory.path() };
            let mut command = (self.command)(&place);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
            let mut has_ended = false;
            eventually("it serves, or has ended", async || {
                has_ended = child.try_wait().unwrap().is_some();
                has_ended || TcpStream::connect(&address).await.is_ok()
            })
            .await;
            if !has_ended {
                return Running { address, child, _directory: directory };
            }
        }
        panic!("{} does not start", program.display());
    }
}

// === impl Running ===

impl Running {
    /// Ends it as an operator would.
    pub(crate) async fn stop(mut self) {
        let pid = i32::try_from(self.child.id().expect("it has not ended")).ok().and_then(Pid::from_raw);
        kill_process(pid.unwrap(), Signal::TERM).unwrap();
        let _ = timeout(AGES, self.child.wait()).await.expect("it ends in time");
    }
}

fn text(file: &str) -> String {
    std::fs::read_to_string(repository_file(file)).unwrap()
}
