//! The fleet as its files are now: read again at each line and each completion, and checked again when they changed.

use std::path::{Path, PathBuf};

use provisor_model::FleetFiles;

use super::catalogue::Catalogue;
use crate::cli::{diagnostics, fleet};

/// A fleet's folder, and what was last seen in it.
#[derive(Debug)]
pub(super) struct Watch {
    folder: PathBuf,
    seen: Option<Result<FleetFiles, String>>,
    catalogue: Catalogue,
    health: Health,
    told: Health,
}

/// Whether the fleet can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Health {
    Well,
    Mistakes(usize),
    Unreadable(String),
}

impl Watch {
    /// Looks for the first time; how the fleet is now is no news.
    pub(super) fn new(folder: &Path) -> Watch {
        let mut watch = Watch {
            folder: folder.to_owned(),
            seen: None,
            catalogue: Catalogue::default(),
            health: Health::Well,
            told: Health::Well,
        };
        watch.look();
        watch.told = watch.health.clone();
        watch
    }

    /// Reads the files again. Names that were read before stay where the files cannot be read now.
    pub(super) fn look(&mut self) {
        let seen = fleet::read(&self.folder).map_err(|error| error.to_string());
        if self.seen.as_ref() == Some(&seen) {
            return;
        }
        self.health = match &seen {
            Ok(files) => match provisor_model::load(files) {
                Ok(loaded) => {
                    self.catalogue = Catalogue::of(&loaded.model);
                    match provisor_model::resolve(&loaded.model) {
                        Ok(_) => Health::Well,
                        Err(mistakes) => Health::Mistakes(mistakes.len()),
                    }
                }
                Err(mistakes) => {
                    self.catalogue = Catalogue::glean(files, &self.catalogue);
                    Health::Mistakes(mistakes.len())
                }
            },
            Err(message) => Health::Unreadable(message.clone()),
        };
        self.seen = Some(seen);
    }

    /// How the fleet's health changed since this was last asked.
    pub(super) fn news(&mut self) -> Option<String> {
        if self.told == self.health {
            return None;
        }
        self.told = self.health.clone();
        Some(match &self.health {
            Health::Well => "the fleet is well again".to_owned(),
            Health::Mistakes(count) => format!(
                "the fleet has {} now; `check` shows what to do",
                diagnostics::count(*count, "error")
            ),
            Health::Unreadable(message) => message.clone(),
        })
    }

    /// The names as they were last seen.
    pub(super) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_seen_and_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(folder.path().join("fleet.toml"), text).unwrap();
        let fleet = "name = \"demo\"\n[environments.test]\n[groups.alice]\nenvironment = \"test\"\n\
                     [groups.alice.nodes.app]\naddress = \"192.0.2.20\"\n";
        write(fleet);
        let mut watch = Watch::new(folder.path());
        assert_eq!(watch.news(), None);
        assert!(watch.catalogue().nodes.contains("app"));

        write(&fleet.replace("nodes.app", "nodes.site").replace("\"demo\"", "3"));
        watch.look();
        assert!(watch.news().unwrap().starts_with("the fleet has 1 error now"));
        assert_eq!(watch.news(), None);
        assert!(watch.catalogue().nodes.contains("site"));

        std::fs::remove_file(folder.path().join("fleet.toml")).unwrap();
        watch.look();
        assert!(watch.news().unwrap().contains("cannot read"));
        assert!(watch.catalogue().nodes.contains("site"));

        write(fleet);
        watch.look();
        assert_eq!(watch.news().unwrap(), "the fleet is well again");
    }
}
