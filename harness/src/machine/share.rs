//! Host folders that a guest sees read-only, as a disk of their own.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A host folder and where the guest sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) host: PathBuf,
    pub(crate) guest: String,
}

/// Why a folder cannot be shared.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// There is no such folder.
    #[error("cannot share {}: there is no such folder on the host", .folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// The program that packs it is not there.
    #[error("cannot run mksquashfs to share {}: install the package squashfs-tools", .folder.display())]
    NoProgram {
        /// The folder.
        folder: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The program failed.
    #[error("cannot share {}: mksquashfs ended with {status}: {said}; is the disk full?", .folder.display())]
    Failed {
        /// The folder.
        folder: PathBuf,
        /// How it ended.
        status: String,
        /// The last line it printed.
        said: String,
    },
    /// Its disk cannot be given its size, of which nearly all is a hole.
    #[error("cannot make {} as large as a shared disk is: use a file system with sparse files for PROVISOR_CACHE", .image.display())]
    Widen {
        /// The disk.
        image: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

fn widen(image: &Path) -> io::Result<()> {
    let file = File::options().write(true).open(image)?;
    file.set_len(file.metadata()?.len().next_power_of_two().max(LEAST_BYTES))
}

/// The serial number of a guest's `index`-th shared folder.
pub(crate) fn serial(index: usize) -> String {
    format!("provisor-share{index}")
}

/// The least size of a share's disk. Of one size they are one template's, whatever is in them; the rest is a hole.
const LEAST_BYTES: u64 = 16 << 30;

/// Packs `folder` into a disk `image` with a squashfs on it. 90 MB take 0.13 s.
pub(crate) fn pack(folder: &Path, image: &Path) -> Result<(), ShareError> {
    if !folder.is_dir() {
        return Err(ShareError::Missing {
            folder: folder.to_owned(),
        });
    }
    let output = Command::new("mksquashfs")
        .args(pack_args(folder, image))
        .stdin(Stdio::null())
        .output()
        .map_err(|source| ShareError::NoProgram {
            folder: folder.to_owned(),
            source,
        })?;
    if output.status.success() {
        return widen(image).map_err(|source| ShareError::Widen {
            image: image.to_owned(),
            source,
        });
    }
    let said = String::from_utf8_lossy(&output.stderr)
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned();
    Err(ShareError::Failed {
        folder: folder.to_owned(),
        status: output.status.to_string(),
        said,
    })
}

/// In the guest the files belong to root, whoever they belong to on the host.
fn pack_args(folder: &Path, image: &Path) -> Vec<OsString> {
    let options = [
        "-comp",
        "lz4",
        "-all-root",
        "-no-xattrs",
        "-no-progress",
        "-quiet",
        "-noappend",
    ];
    [folder.into(), image.into()]
        .into_iter()
        .chain(options.map(OsString::from))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let message = pack(&folder.path().join("none"), &folder.path().join("image"))
            .unwrap_err()
            .to_string();
        assert!(
            message.ends_with("none: there is no such folder on the host"),
            "{message}"
        );
    }

    #[test]
    fn a_serial_fits_the_twenty_bytes_that_a_disk_has_for_it() {
        assert!(serial(99).len() <= 20);
    }

    #[test]
    fn a_packed_folder_is_a_squashfs() {
        let folder = tempfile::tempdir().unwrap();
        let (content, image) = (folder.path().join("content"), folder.path().join("image"));
        std::fs::create_dir(&content).unwrap();
        std::fs::write(content.join("tool"), "#!/bin/sh\n").unwrap();
        pack(&content, &image).unwrap();
        let mut magic = [0; 4];
        File::open(&image).unwrap().read_exact(&mut magic).unwrap();
        assert_eq!(&magic, b"hsqs");
        let packed = image.metadata().unwrap();
        assert_eq!(packed.len(), LEAST_BYTES);
        assert!(packed.blocks() * 512 < 1 << 20, "{} blocks", packed.blocks());
    }
}
