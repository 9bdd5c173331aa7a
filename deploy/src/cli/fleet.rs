//! The fleet's files, read, checked and resolved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use provisor_model::{Diagnostic, FleetFiles, Loaded, Resolution};

use super::{Exit, output};

/// A fleet in which everything has its answer.
pub(super) struct Fleet {
    pub(super) loaded: Loaded,
    pub(super) resolution: Resolution,
    pub(super) files: FleetFiles,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum FleetError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}; give the fleet's folder with --fleet DIR")]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// What the files say is wrong.
    #[error("the fleet's files have mistakes")]
    Mistakes {
        diagnostics: Vec<Diagnostic>,
        files: FleetFiles,
    },
}

impl Fleet {
    /// What to look at all the same: of the files, then of who answers whom.
    pub(super) fn warnings(&self) -> Vec<Diagnostic> {
        [self.loaded.warnings.as_slice(), self.resolution.warnings()].concat()
    }

    /// Says that there is no such node, and which there are.
    pub(super) fn no_node(&self, node: &str) -> Exit {
        let names: Vec<_> = self.loaded.model.nodes().map(|node| node.name.as_str()).collect();
        output::error(&format!(
            "the fleet has no node `{node}`; its nodes are {}",
            names.join(", ")
        ));
        Exit::Refused
    }
}

/// Reads a fleet up to the stage that finds mistakes, and reports all of that stage.
pub(super) fn open(folder: &Path) -> Result<Fleet, FleetError> {
    let files = read(folder)?;
    let mistakes = |diagnostics| FleetError::Mistakes {
        diagnostics,
        files: files.clone(),
    };
    let loaded = provisor_model::load(&files).map_err(mistakes)?;
    let resolution = provisor_model::resolve(&loaded.model).map_err(mistakes)?;
    Ok(Fleet {
        loaded,
        resolution,
        files,
    })
}

/// `fleet.toml`, `pins.toml` if there is one, and every TOML file of `components/`, by their paths in the folder.
pub(super) fn read(folder: &Path) -> Result<FleetFiles, FleetError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| FleetError::Unreadable { path, source }
    };
    let mut texts = BTreeMap::new();
    let fleet = folder.join("fleet.toml");
    texts.insert(
        "fleet.toml".to_owned(),
        std::fs::read_to_string(&fleet).map_err(failed(&fleet))?,
    );
    let pins = folder.join("pins.toml");
    if pins.is_file() {
        texts.insert(
            "pins.toml".to_owned(),
            std::fs::read_to_string(&pins).map_err(failed(&pins))?,
        );
    }
    let components = folder.join("components");
    if components.is_dir() {
        for entry in std::fs::read_dir(&components).map_err(failed(&components))? {
            let path = entry.map_err(failed(&components))?.path();
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let text = std::fs::read_to_string(&path).map_err(failed(&path))?;
                texts.insert(format!("components/{name}"), text);
            }
        }
    }
    Ok(FleetFiles(texts))
}
