//! Writes the seeds of all targets into a folder, where cargo-fuzz looks for them: `seeds FOLDER`.

use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: seeds FOLDER");
        std::process::exit(2);
    };
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (target, seeds) in lessor_fuzz::seeds::of_repository(&repository) {
        let folder = folder.join(target);
        std::fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
