//! Certificates, made by openssl for one test.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::house::etcd::is_there;

/// A directory with an authority, and what it has certified.
pub(crate) struct Papers {
    directory: TempDir,
}

// === impl Papers ===

impl Papers {
    /// An authority of its own; nothing, and it is said, where openssl is not installed.
    pub(crate) fn new() -> Option<Papers> {
        if !is_there("openssl", "version", "openssl") {
            return None;
        }
        let papers = Papers { directory: tempfile::tempdir().unwrap() };
        papers.make("ca", &["-addext", "basicConstraints=critical,CA:TRUE"]);
        Some(papers)
    }

    /// A certificate for somebody on this machine, and its key.
    pub(crate) fn certify(&self, name: &str) {
        let (ca, key) = (self.path("ca.pem"), self.path("ca.key"));
        let extensions = [
            "basicConstraints=critical,CA:FALSE",
            "subjectAltName=IP:127.0.0.1",
            "extendedKeyUsage=serverAuth,clientAuth",
        ];
        let mut arguments = vec!["-CA", &ca, "-CAkey", &key];
        arguments.extend(extensions.iter().flat_map(|extension| ["-addext", extension]));
        self.make(name, &arguments);
    }

    /// Where `name.pem` or `name.key` is.
    pub(crate) fn path(&self, file: &str) -> String {
        self.directory.path().join(file).to_str().unwrap().to_owned()
    }

    /// Writes another file beside them.
    pub(crate) fn write(&self, file: &str, text: &str) -> String {
        std::fs::write(Path::new(&self.path(file)), text).unwrap();
        self.path(file)
    }

    fn make(&self, name: &str, arguments: &[&str]) {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-days", "2", "-subj", &format!("/CN={name}")]).args(arguments);
        openssl.args(["-out", &self.path(&format!("{name}.pem"))]);
        openssl.args(["-keyout", &self.path(&format!("{name}.key"))]);
        let made = openssl.stdin(Stdio::null()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}
