//! The disk of a machine, as small as a state directory needs it: what was not synced may be lost with the power, and a full
//! disk takes nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use lessor_server::election::files::Files;

use crate::rng::Rng;

/// A disk.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Names as programs see them, and the files that they are of.
    names: BTreeMap<PathBuf, u64>,
    /// Names that are there after a loss of power.
    synced: BTreeMap<PathBuf, u64>,
    files: BTreeMap<u64, Content>,
    /// Files that there have been.
    numbered: u64,
    /// Calls until the program that makes them is gone; absent: it goes on.
    left: Option<u32>,
    full: bool,
}

#[derive(Clone, Debug)]
struct Content {
    bytes: Vec<u8>,
    /// The bytes of it that are there after a loss of power.
    synced: usize,
}

// === impl Disk ===

impl Disk {
    /// The bytes of a file, if it is there.
    #[must_use]
    pub fn read(&self, path: &Path) -> Option<&[u8]> {
        Some(&self.files[self.names.get(path)?].bytes)
    }

    /// The program is gone after so many more calls: later ones do nothing.
    pub fn leave(&mut self, calls: u32) {
        self.left = Some(calls);
    }

    /// Another program begins.
    pub fn begin(&mut self) {
        self.left = None;
    }

    /// Whether there is room for nothing more.
    pub fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// The machine loses power, and starts again: of names and bytes that were not synced some are there.
    pub fn lose_power(&mut self, rng: &mut Rng) {
        if rng.chance(500) {
            self.names = self.synced.clone();
        }
        self.synced = self.names.clone();
        for content in self.files.values_mut().filter(|content| content.synced < content.bytes.len()) {
            let kept = rng.index(content.bytes.len() - content.synced + 1);
            content.bytes.truncate(content.synced + kept);
            content.synced = content.bytes.len();
        }
        self.forget();
    }

    /// Some byte of a file is another one. Whether there is such a file.
    pub fn damage(&mut self, path: &Path, rng: &mut Rng) -> bool {
        let Some(file) = self.names.get(path).and_then(|file| self.files.get_mut(file)) else { return false };
        let at = rng.index(file.bytes.len());
        file.bytes.get_mut(at).map(|byte| *byte ^= 1).is_some()
    }

    /// A file has no bytes any more, which needs no room. Whether there is such a file.
    pub fn empty(&mut self, path: &Path) -> bool {
        let Some(file) = self.names.get(path).and_then(|file| self.files.get_mut(file)) else { return false };
        *file = Content { bytes: Vec::new(), synced: 0 };
        true
    }

    fn call(&mut self) -> io::Result<()> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1).ok_or(io::ErrorKind::Interrupted)?;
        }
        Ok(())
    }

    /// Files without a name are gone.
    fn forget(&mut self) {
        let Disk { names, synced, files, .. } = self;
        files.retain(|file, _| names.values().chain(synced.values()).any(|named| named == file));
    }
}

impl Files for Disk {
    fn put(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.call()?;
        self.numbered += 1;
        self.names.insert(path.to_owned(), self.numbered);
        let bytes = if self.full { Vec::new() } else { bytes.to_vec() };
        self.files.insert(self.numbered, Content { bytes, synced: 0 });
        if self.full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.call()?;
        let file = self.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        let content = self.files.get_mut(file).ok_or(io::ErrorKind::NotFound)?;
        // As much as there is room for.
        let taken = if self.full { bytes.len() / 2 } else { bytes.len() };
        content.bytes.extend_from_slice(&bytes[..taken]);
        if self.full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self, path: &Path) -> io::Result<()> {
        self.call()?;
        let file = self.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        self.files.entry(*file).and_modify(|content| content.synced = content.bytes.len());
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?;
        let file = self.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        self.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn sync_directory(&mut self, _: &Path) -> io::Result<()> {
        self.call()?;
        self.synced = self.names.clone();
        self.forget();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use lessor_server::election::files::{add, replace};

    use super::*;

    const DIRECTORY: &str = "d";

    fn after(calls: u32, power: bool, seed: u64) -> (bool, Option<Vec<u8>>) {
        let (mut disk, path) = (Disk::default(), Path::new("d/state"));
        replace(&mut disk, Path::new(DIRECTORY), "state", b"one").expect("there is room");
        disk.leave(calls);
        let done = replace(&mut disk, Path::new(DIRECTORY), "state", b"two").is_ok();
        if power {
            disk.lose_power(&mut Rng::new(seed));
        }
        (done, disk.read(path).map(<[u8]>::to_vec))
    }

    #[test]
    fn a_file_is_the_one_before_or_the_one_after_wherever_a_program_ends() {
        for (calls, power, seed) in
            (0..=4).flat_map(|calls| (0..20).map(move |seed| (calls, seed % 2 > 0, seed)))
        {
            let (done, found) = after(calls, power, seed);
            let found = found.expect("it is there");
            assert_eq!(done, calls == 4);
            match done {
                true => assert_eq!(found, b"two"),
                false => assert!(found == b"one" || found == b"two", "{found:?}"),
            }
        }
    }

    #[test]
    fn a_full_disk_takes_nothing_and_can_be_emptied() {
        let (mut disk, path) = (Disk::default(), Path::new("d/state"));
        replace(&mut disk, Path::new(DIRECTORY), "state", b"one").expect("there is room");
        disk.set_full(true);
        assert!(replace(&mut disk, Path::new(DIRECTORY), "state", b"two").is_err());
        assert_eq!(disk.read(path), Some(&b"one"[..]));
        assert!(disk.empty(path) && disk.read(path) == Some(&[][..]));
    }

    #[test]
    fn of_what_is_added_a_part_may_be_there_and_all_before_it_is() {
        let path = Path::new("d/state");
        let mut kept = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut disk = Disk::default();
            replace(&mut disk, Path::new(DIRECTORY), "state", b"one").expect("there is room");
            disk.leave(1);
            assert!(add(&mut disk, Path::new(DIRECTORY), "state", b"two").is_err());
            disk.lose_power(&mut Rng::new(seed));
            kept.insert(disk.read(path).expect("it is there").to_vec());
        }
        assert!(kept.iter().eq([&b"one"[..], b"onet", b"onetw", b"onetwo"]), "{kept:?}");
        let mut disk = Disk::default();
        replace(&mut disk, Path::new(DIRECTORY), "state", b"one").expect("there is room");
        disk.set_full(true);
        assert!(add(&mut disk, Path::new(DIRECTORY), "state", b"two").is_err());
        assert_eq!(disk.read(path), Some(&b"onet"[..]));
    }

    #[test]
    fn what_was_not_synced_goes_with_the_power() {
        let path = Path::new("d/state");
        let mut kept = [0; 2];
        for seed in 0..500 {
            let mut disk = Disk::default();
            disk.put(path, b"one").expect("there is room");
            disk.lose_power(&mut Rng::new(seed));
            kept[usize::from(disk.read(path) == Some(b"one"))] += 1;
        }
        assert!(kept.iter().all(|&count| count > 20), "{kept:?}");
    }
}
