//! Host folders that a guest sees read-only, as a disk of their own.

use std::ffi::OsString;
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
}

/// The serial number of a guest's `index`-th shared folder.
pub(crate) fn serial(index: usize) -> String {
    format!("provisor-share{index}")
}

/// Packs `folder` into the squashfs `image`. 90 MB take 0.13 s.
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
        return Ok(());
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
        assert!(std::fs::read(&image).unwrap().starts_with(b"hsqs"));
    }
}
