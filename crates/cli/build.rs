//! The version that `lessor --version` says: that of the package, and the commit that it is built from. That is what
//! `LESSOR_COMMIT` says, as in a package that is built without the repository, or else what git says. Without either it is the
//! version alone.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=LESSOR_COMMIT");
    let commit = std::env::var("LESSOR_COMMIT").ok().or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    let commit = commit.unwrap_or_default();
    println!("cargo::rustc-env=LESSOR_BUILT_FROM={commit}");
    let commit = if commit.is_empty() { commit } else { format!(" ({commit})") };
    println!("cargo::rustc-env=LESSOR_VERSION={}{commit}", env!("CARGO_PKG_VERSION"));
    // HEAD names a branch, whose commit stands in a file of its own; and both change their place with worktrees.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        if let Some(path) = git(&["rev-parse", "--git-path", name])
            && std::fs::exists(&path).unwrap_or(false)
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
}

/// The answer of git about the repository that this file stands in; nothing if there is none, or no git.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
