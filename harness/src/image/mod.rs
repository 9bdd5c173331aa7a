//! Guest images made of Debian packages, and the initrd that starts them.
//!
//! An image is a read-only squashfs, the kernel that starts it, the modules its initrd loads, and a prepared empty
//! disk. A guest sees the squashfs under a writable layer on a copy of that disk, so what it writes survives a reboot
//! and never touches the image. Images hold no secret and no identity: host keys, the machine id, addresses and the
//! clock come to a guest when it starts.

mod build;
mod disk;
mod error;
mod extract;
mod files;
mod initrd;
mod modules;
mod run;
mod scratch;
mod spec;
mod tools;

use std::path::{Path, PathBuf};

pub use error::ImageError;
pub use files::GuestFile;
pub use initrd::{AGENT_PORT, DISK_SERIAL, ROOT_SERIAL};
pub use spec::ImageSpec;

use crate::cache::{Cache, Key, Progress};

/// A finished image in the cache.
#[derive(Debug, Clone)]
pub struct Image {
    cache: Cache,
    key: Key,
    folder: PathBuf,
}

impl Image {
    /// The image of this spec: from the cache, or built now, which takes a minute or two.
    ///
    /// However many processes ask at once, one builds. `progress` gets a line for each step.
    pub fn obtain(cache: &Cache, spec: &ImageSpec, progress: Progress<'_>) -> Result<Self, ImageError> {
        let plan = spec.plan()?;
        let key = plan.key();
        let folder = cache.entry("image", &key, progress, |folder| {
            build::build(cache, &plan, folder, progress)
        })?;
        Ok(Self {
            cache: cache.clone(),
            key,
            folder,
        })
    }

    /// The key over everything that went in.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The read-only root file system, a squashfs.
    pub fn root(&self) -> PathBuf {
        self.folder.join(build::ROOT)
    }

    /// The kernel, for QEMU's `-kernel`.
    pub fn kernel(&self) -> PathBuf {
        self.folder.join(build::KERNEL)
    }

    /// The installed packages, one `name version` a line: what to look at when two images differ.
    pub fn packages(&self) -> PathBuf {
        self.folder.join(build::PACKAGES)
    }

    /// The empty disk for the writable layer of guests, never to be written to itself.
    pub fn disk(&self) -> PathBuf {
        self.folder.join(build::DISK)
    }

    /// Writes a fresh disk for the writable layer of one guest to `path`; it is sparse and takes a few megabytes.
    pub fn new_disk(&self, path: &Path) -> Result<(), ImageError> {
        disk::copy_sparse(&self.disk(), path).map_err(|source| ImageError::Io {
            action: "cannot write the disk",
            path: path.to_owned(),
            source,
        })
    }

    /// The initrd that starts this image with this agent, from the cache or packed now, which takes a moment.
    ///
    /// `agent` is a static program; the guest runs it as `agent serve PORT` from early in the boot.
    pub fn initrd(&self, agent: &[u8]) -> Result<PathBuf, ImageError> {
        let key = initrd::key(&self.key, agent);
        let folder = self.cache.entry("initrd", &key, &|_| (), |folder| {
            initrd::pack(&extract::parts(&self.folder)?, agent, &folder.join(initrd::FILE))
        })?;
        Ok(folder.join(initrd::FILE))
    }
}

/// Whether this machine can build images: an error names all that is missing, with the command that installs it.
pub fn check_host() -> Result<(), ImageError> {
    tools::Tools::find().map(drop)
}
