//! The disk of a guest's writable layer: an ext4 file system made once per image and copied per guest.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;

use nix::errno::Errno;
use nix::unistd::{Whence, lseek};

use super::error::{ImageError, io_error};

/// Writes an empty ext4 file system of this many bytes; the same bytes each time.
pub(super) fn make(mke2fs: &Path, bytes: u64, path: &Path) -> Result<(), ImageError> {
    let file = File::create(path).map_err(io_error("cannot write", path))?;
    file.set_len(bytes).map_err(io_error("cannot write", path))?;
    let seed = "c1e7d1b4-5d4b-4c41-8a44-70726f766973";
    let made = Command::new(mke2fs)
        .args([
            "-q", "-F", "-t", "ext4", "-m", "0", "-L", "provisor", "-U", seed, "-E",
        ])
        .arg(format!(
            "lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0,hash_seed={seed}"
        ))
        .arg(path)
        .env("E2FSPROGS_FAKE_TIME", super::build::EPOCH)
        .env("MKE2FS_CONFIG", "/dev/null")
        .output()
        .map_err(io_error("cannot run", mke2fs))?;
    if made.status.success() {
        return Ok(());
    }
    Err(ImageError::Program {
        program: "mke2fs",
        status: made.status.to_string(),
        tail: String::from_utf8_lossy(&made.stderr).into_owned(),
        hint: "choose a disk size of at least 64 MiB",
    })
}

/// Copies a file and keeps its holes, so that a disk of gigabytes costs what is written in it.
pub(super) fn copy_sparse(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = File::create(to)?;
    let length = source.metadata()?.len();
    target.set_len(length)?;
    let mut at = 0;
    while let Some(start) = seek(&source, at, Whence::SeekData)? {
        at = seek(&source, start, Whence::SeekHole)?.unwrap_or(length as i64);
        source.seek(SeekFrom::Start(start as u64))?;
        target.seek(SeekFrom::Start(start as u64))?;
        io::copy(&mut (&source).take((at - start) as u64), &mut target)?;
    }
    target.flush()
}

/// Where the next data or hole starts; `None` past the last.
fn seek(file: &File, from: i64, what: Whence) -> io::Result<Option<i64>> {
    match lseek(file, from, what) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::ENXIO) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn a_copy_has_the_same_bytes_and_keeps_the_holes() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let file = File::create(&from).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(b"first", 0).unwrap();
        file.write_all_at(b"middle", 10 << 20).unwrap();

        copy_sparse(&from, &to).unwrap();

        assert!(std::fs::read(&from).unwrap() == std::fs::read(&to).unwrap());
        let copied = std::fs::metadata(&to).unwrap();
        assert!(copied.blocks() * 512 < 1 << 20, "{} blocks", copied.blocks());
    }

    #[test]
    fn a_file_of_holes_only_and_an_empty_file_are_copied() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        for length in [0, 1 << 20] {
            File::create(&from).unwrap().set_len(length).unwrap();
            copy_sparse(&from, &to).unwrap();
            assert_eq!(std::fs::metadata(&to).unwrap().len(), length);
        }
    }
}
