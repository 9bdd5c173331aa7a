//! `pins.toml` on disk: read with the fleet, and replaced in one step.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use provisor_model::names::NameError;
use provisor_model::pins::edit::EditError;
use provisor_model::{Diagnostic, FleetFiles, Model};

use super::fleet::{self, FleetError};
use super::{Exit, Format, diagnostics, output};

/// The file, below the fleet's folder.
pub(super) const PINS: &str = "pins.toml";

/// Why pins were not changed. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub(super) enum PinsError {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("{error}; {}", .error.help())]
    Name { error: NameError },
    #[error("cannot write {path}: {source}; make the fleet's folder writable for you")]
    Write { path: PathBuf, source: std::io::Error },
}

impl From<NameError> for PinsError {
    fn from(error: NameError) -> PinsError {
        PinsError::Name { error }
    }
}

impl PinsError {
    /// Shows it; nothing was touched.
    pub(super) fn refuse(&self, folder: &Path, format: Format) -> Exit {
        match self {
            PinsError::Fleet(error) => return diagnostics::refuse(error, folder, format),
            PinsError::Edit(_) | PinsError::Name { .. } | PinsError::Write { .. } => output::error(self),
        }
        Exit::Refused
    }
}

/// The fleet's files, and the text of the pins; empty where there are none yet.
pub(super) fn read(folder: &Path) -> Result<(FleetFiles, String), FleetError> {
    let files = fleet::read(folder)?;
    let text = files.0.get(PINS).cloned().unwrap_or_default();
    Ok((files, text))
}

/// The fleet of `files` with `pins` as its pins; `None` is without any.
pub(super) fn model(files: &FleetFiles, pins: Option<&str>) -> Result<Model, FleetError> {
    let mut files = files.clone();
    match pins {
        Some(text) => files.0.insert(PINS.to_owned(), text.to_owned()),
        None => files.0.remove(PINS),
    };
    match provisor_model::load(&files) {
        Ok(loaded) => Ok(loaded.model),
        Err(diagnostics) => Err(mistakes(files, diagnostics)),
    }
}

/// Diagnostics of a fleet, to be shown with its files.
pub(super) fn mistakes(files: FleetFiles, diagnostics: Vec<Diagnostic>) -> FleetError {
    FleetError::Mistakes { diagnostics, files }
}

/// Replaces the file: written beside it, then renamed over it, with the mode that it had.
pub(super) fn write(folder: &Path, text: &str) -> Result<(), PinsError> {
    let path = folder.join(PINS);
    let replace = || {
        let mode = std::fs::metadata(&path).map_or(0o644, |metadata| metadata.permissions().mode() & 0o777);
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file()
            .set_permissions(std::fs::Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)
    };
    match replace() {
        Ok(_) => Ok(()),
        Err(source) => Err(PinsError::Write {
            path: path.clone(),
            source,
        }),
    }
}
