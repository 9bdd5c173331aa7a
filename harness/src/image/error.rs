use std::io;
use std::path::PathBuf;

use crate::cache::CacheError;

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The cache cannot be used, or its disk is full.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The spec names something that cannot be a package, a unit, or a path in the guest.
    #[error("{what} {name:?} is not a valid {what}; {rule}")]
    Name {
        /// "package", "unit", "path" or "suite".
        what: &'static str,
        /// What was given.
        name: String,
        /// What is allowed.
        rule: &'static str,
    },
    /// Programs that build an image are not installed.
    #[error("missing: {}; install them: apt-get install --yes {}", programs.join(", "), packages.join(" "))]
    Missing {
        /// The programs and files.
        programs: Vec<&'static str>,
        /// The Debian packages that hold them.
        packages: Vec<&'static str>,
    },
    /// A plain user builds an image, and the system does not let the user have more user ids.
    #[error(
        "building an image without root needs {}; run once as root: {command}",
        missing.join(" and ")
    )]
    Rootless {
        /// What is not there.
        missing: Vec<&'static str>,
        /// The one command that sets it up.
        command: String,
    },
    /// A program failed.
    #[error("{program} failed ({status}) while it made the image:\n{tail}\nhint: {hint}")]
    Program {
        /// Its name.
        program: &'static str,
        /// How it ended.
        status: String,
        /// The last lines that it wrote to stderr.
        tail: String,
        /// What to do.
        hint: &'static str,
    },
    /// The image has no kernel, or the kernel has not the modules that a guest needs.
    #[error("{0}; use a kernel package like linux-image-cloud-amd64")]
    Kernel(String),
    /// A file could not be read or written.
    #[error("{action} {}: {source}; check its permissions and the free space", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
}

/// An [`ImageError::Io`] of this action on this path.
pub(super) fn io_error(action: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> ImageError {
    let path = path.to_owned();
    move |source| ImageError::Io { action, path, source }
}
