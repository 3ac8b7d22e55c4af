//! Files that are replaced as a whole, and are there when that has been said: written beside the one before, synced, put in
//! its place, and the directory synced. And what is added to one, which is there when that has been said.

use std::io;
use std::path::Path;

/// The operations that a file system is asked for.
#[expect(clippy::missing_errors_doc, reason = "each fails when the file system does not do it")]
pub trait Files {
    /// A file of these bytes that nobody else may read; another one of that name goes.
    fn put(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Bytes behind those of a file that is there.
    fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// The content that was put there is there after a crash.
    fn sync(&mut self, path: &Path) -> io::Result<()>;
    /// Gives a file another name; another one of that name goes.
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;
    /// Names in a directory are those after a crash.
    fn sync_directory(&mut self, directory: &Path) -> io::Result<()>;
}

/// Replaces the file `name`.
///
/// # Errors
/// The first that the file system tells of. The file is then as it was, or as it was to be.
pub fn replace(files: &mut impl Files, directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let (beside, path) = (directory.join(format!("{name}.new")), directory.join(name));
    files.put(&beside, bytes)?;
    files.sync(&beside)?;
    files.rename(&beside, &path)?;
    files.sync_directory(directory)
}

/// Adds to the file `name`.
///
/// # Errors
/// The first that the file system tells of. A part of it may be there then.
pub fn add(files: &mut impl Files, directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = directory.join(name);
    files.append(&path, bytes)?;
    files.sync(&path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;

    /// A file system whose machine loses power: names and bytes that were not synced may be there after that, or not, or in part.
    #[derive(Clone, Default)]
    struct Fragile {
        /// As programs see it: a name, and which file it is.
        names: BTreeMap<PathBuf, usize>,
        /// As it is after a crash at the worst moment.
        durable: BTreeMap<PathBuf, usize>,
        /// Bytes, and how many of them were synced.
        bytes: Vec<(Vec<u8>, usize)>,
        /// Calls until the power goes.
        left: usize,
    }

    impl Fragile {
        fn call(&mut self) -> io::Result<()> {
            self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::Other)?;
            Ok(())
        }

        /// The contents that may be found in a file after a crash.
        fn after_crash(&self, path: &Path) -> Vec<Vec<u8>> {
            let files = [self.durable.get(path), self.names.get(path)].into_iter().flatten();
            let found = files.flat_map(|&file| {
                let (bytes, synced) = &self.bytes[file];
                (*synced..=bytes.len()).map(|kept| bytes[..kept].to_vec())
            });
            found.collect()
        }
    }

    impl Files for Fragile {
        fn put(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
            self.call()?;
            self.names.insert(path.to_owned(), self.bytes.len());
            self.bytes.push((bytes.to_vec(), 0));
            Ok(())
        }

        fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
            self.call()?;
            self.bytes[self.names[path]].0.extend_from_slice(bytes);
            Ok(())
        }

        fn sync(&mut self, path: &Path) -> io::Result<()> {
            self.call()?;
            let (bytes, synced) = &mut self.bytes[self.names[path]];
            *synced = bytes.len();
            Ok(())
        }

        fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
            self.call()?;
            let file = self.names.remove(from).expect("it is there");
            self.names.insert(to.to_owned(), file);
            Ok(())
        }

        fn sync_directory(&mut self, _: &Path) -> io::Result<()> {
            self.call()?;
            self.durable = self.names.clone();
            Ok(())
        }
    }

    #[test]
    fn wherever_the_power_goes_a_file_is_whole_and_it_is_the_last_that_was_said_to_be_written() {
        let (directory, path) = (Path::new("d"), Path::new("d/state"));
        for left in 0..=8 {
            let mut files = Fragile { left, ..Fragile::default() };
            let done: Vec<bool> = ["one", "two"]
                .map(|text| replace(&mut files, directory, "state", text.as_bytes()).is_ok())
                .into();
            let found = files.after_crash(path);
            let texts: Vec<&str> = found.iter().map(|bytes| std::str::from_utf8(bytes).unwrap()).collect();
            match done[..] {
                [_, true] => assert!(texts.iter().all(|&text| text == "two"), "{left}: {texts:?}"),
                [true, false] => {
                    assert!(texts.iter().all(|text| ["one", "two"].contains(text)), "{left}: {texts:?}");
                }
                _ => assert!(texts.iter().all(|&text| text == "one"), "{left}: {texts:?}"),
            }
            assert_eq!(done, [left >= 4, left >= 8]);
        }
    }

    #[test]
    fn wherever_the_power_goes_what_was_said_to_be_added_is_there_behind_what_was() {
        let (directory, path) = (Path::new("d"), Path::new("d/state"));
        for left in 4..=8 {
            let mut files = Fragile { left, ..Fragile::default() };
            replace(&mut files, directory, "state", b"one").unwrap();
            let done =
                ["two", "six"].map(|text| add(&mut files, directory, "state", text.as_bytes()).is_ok());
            assert_eq!(done, [left >= 6, left >= 8]);
            let least = 3 + 3 * done.iter().filter(|&&is_done| is_done).count();
            for bytes in files.after_crash(path) {
                assert!(bytes.len() >= least && b"onetwosix".starts_with(&bytes), "{left}: {bytes:?}");
            }
        }
    }
}
