//! Where this user's files are.

use std::path::{Path, PathBuf};

/// `$XDG_STATE_HOME/provisor`, or `~/.local/state/provisor`.
pub(super) fn state_home() -> PathBuf {
    variable("XDG_STATE_HOME")
        .unwrap_or_else(|| home().join(".local/state"))
        .join("provisor")
}

/// A path as a fleet file has it: `~/` is this user's home, and a relative one starts at the fleet's folder.
pub(super) fn expand(path: &str, fleet: &Path) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => home().join(rest),
        None => fleet.join(path),
    }
}

fn home() -> PathBuf {
    variable("HOME").unwrap_or_else(|| "/".into())
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_fleet_file_start_at_the_fleet_or_at_home() {
        let fleet = Path::new("/fleet");
        assert_eq!(expand("/keys/id", fleet), Path::new("/keys/id"));
        assert_eq!(expand("keys/id", fleet), Path::new("/fleet/keys/id"));
        assert_eq!(expand("~/id", fleet), home().join("id"));
    }
}
