//! A fleet on disk that a test may change.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::setup::{Programs, Setup};

/// A copy of one of the model's fleets.
pub(super) struct ForkedFleet(TempDir);

/// Two providers of every name, each pinned by one of two nodes.
pub(super) fn two_providers() -> ForkedFleet {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/fixtures/two-providers");
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join("components")).unwrap();
    for folder in ["", "components"] {
        for entry in std::fs::read_dir(source.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                std::fs::copy(&path, copy.path().join(folder).join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    ForkedFleet(copy)
}

impl ForkedFleet {
    pub(super) fn setup(&self) -> Setup {
        Setup {
            fleet: self.0.path().to_owned(),
            programs: Programs::default(),
            state_home: PathBuf::new(),
            backend_address: None,
        }
    }

    pub(super) fn pins(&self) -> String {
        std::fs::read_to_string(self.0.path().join("pins.toml")).unwrap()
    }

    pub(super) fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.path().join(file), text).unwrap();
    }
}
