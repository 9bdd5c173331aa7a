use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::build::NEED;
use super::error::{ImageError, io_error};
use super::tools::Mode;
use crate::cache::require_space;

/// Where the packages are unpacked: under the cache, so that its disk is the only one that fills; but a rootless
/// build works as another user, whom a home folder of mode 0700 keeps out, and then in the system's place for
/// temporary files.
pub(super) enum Scratch {
    Beside(PathBuf),
    Apart(tempfile::TempDir),
}

impl Scratch {
    pub(super) fn for_build_in(folder: &Path, mode: Mode) -> Result<Self, ImageError> {
        let path = folder.join("scratch");
        fs::create_dir(&path).map_err(io_error("cannot create", &path))?;
        if mode == Mode::Root || open_to_others(&path) {
            return Ok(Self::Beside(path));
        }
        fs::remove_dir(&path).map_err(io_error("cannot remove", &path))?;
        let base = std::env::temp_dir();
        require_space(&base, NEED)?;
        let apart = tempfile::Builder::new()
            .prefix("provisor-image-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(&base)
            .map_err(io_error("cannot create a folder in", &base))?;
        Ok(Self::Apart(apart))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Beside(path) => path,
            Self::Apart(dir) => dir.path(),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Self::Beside(path) = self {
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn open_to_others(path: &Path) -> bool {
    path.ancestors()
        .all(|folder| fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0))
}
