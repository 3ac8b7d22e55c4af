//! Certificates as the commands of `docs/security.md` make them.

use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use super::{AGES, House, everything, repository_file};

/// The certificates that the page makes.
pub(crate) struct Certificates(TempDir);

// === impl Certificates ===

impl Certificates {
    /// Runs the commands of the page.
    pub(crate) async fn made() -> Certificates {
        let page = std::fs::read_to_string(repository_file("docs/security.md")).unwrap();
        let (_, after) = page.split_once("\n## Turning it on\n").unwrap();
        let script = after.split("```").nth(1).unwrap().strip_prefix("sh\n").unwrap();
        assert!(script.contains("openssl"), "{script}");
        let certificates = Certificates(tempfile::tempdir().unwrap());
        certificates.run("sh", &["-ec", script]).await;
        certificates
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn put(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Runs a command of the system beside the certificates, and gives back all that it says.
    pub(crate) async fn run(&self, program: &str, arguments: &[&str]) -> String {
        let (ended, said) = self.try_to_run(program, arguments).await;
        assert!(ended, "{program} {arguments:?}: {said}");
        said
    }

    pub(crate) async fn try_to_run(&self, program: &str, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder()).stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(AGES, command.output()).await.expect("it ends in time").expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    /// A server that shows `name`, and believes clients of the authority.
    pub(crate) async fn serve(&self, name: &str, more: &[&str]) -> House {
        let (certificate, key) = (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        let ca = self.path("ca.pem");
        let flags = ["--tls-cert", &certificate, "--tls-key", &key, "--tls-client-ca", &ca];
        House::open_with(&everything(100.0, 60), &[&flags, more].concat()).await
    }

    /// The flags of a client that shows `name`.
    pub(crate) fn client(&self, name: &str) -> Vec<String> {
        let flags = [
            ("--ca", "ca.pem".to_owned()),
            ("--cert", format!("{name}.pem")),
            ("--key", format!("{name}.key")),
        ];
        flags.into_iter().flat_map(|(flag, file)| [flag.to_owned(), self.path(&file)]).collect()
    }
}
