//! A state that OpenTofu could not store (`errored.tfstate`) is kept under a dated name and stored where it belongs, if it
//! follows from what is there. Applying again first would fork the state.

use std::path::PathBuf;

use jiff::Timestamp;

use crate::state::State;
use crate::store::Client;
use crate::transfer::{Over, TransferError, Transferred, transfer};
use crate::workdir::{Cycle, WorkDir, WorkDirError, read_if_there, remove_if_there, write_whole};

/// Why an errored state was not stored. It is kept in any case.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// The backend does not take it, or somebody wrote in between.
    #[error(
        "the state of the last apply is not stored: {source}\nit is kept as {kept}; run again once this is settled"
    )]
    Transfer {
        /// What went wrong.
        source: TransferError,
        /// The dated copy.
        kept: PathBuf,
    },
    /// The working directory.
    #[error(transparent)]
    WorkDir(#[from] WorkDirError),
}

/// Stores the errored state of the remote cycle on the backend. Returns where its dated copy is.
pub fn push(
    client: &Client,
    workdir: &WorkDir,
    errored: &State,
    now: Timestamp,
) -> Result<(PathBuf, Transferred), SalvageError> {
    let kept = keep(workdir, Cycle::Remote, now)?;
    let transferred = transfer(
        client,
        workdir,
        errored,
        Over::Nothing,
        "salvage of an errored state",
    )
    .map_err(|source| SalvageError::Transfer {
        source,
        kept: kept.clone(),
    })?;
    remove_if_there(&workdir.errored(Cycle::Remote))?;
    Ok((kept, transferred))
}

/// Makes the errored state of the local cycle the local state. Returns where the dated copy of it is.
pub fn adopt(workdir: &WorkDir, errored: &State, now: Timestamp) -> Result<PathBuf, WorkDirError> {
    let kept = keep(workdir, Cycle::Local, now)?;
    workdir.set_aside(&workdir.state(), now)?;
    write_whole(&workdir.state(), errored.bytes())?;
    remove_if_there(&workdir.errored(Cycle::Local))?;
    Ok(kept)
}

/// Sets an errored state aside that is not to be stored. Returns where it is.
pub fn set_aside(workdir: &WorkDir, cycle: Cycle, now: Timestamp) -> Result<PathBuf, WorkDirError> {
    workdir.set_aside(&workdir.errored(cycle), now)
}

/// A dated copy, made before anything can go wrong; the original goes when its content is where it belongs.
fn keep(workdir: &WorkDir, cycle: Cycle, now: Timestamp) -> Result<PathBuf, WorkDirError> {
    let bytes = read_if_there(&workdir.errored(cycle))?.unwrap_or_default();
    let target = workdir.salvage(&workdir.errored(cycle), now)?;
    write_whole(&target, &bytes)?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::StateAddress;
    use crate::state::samples::state;
    use crate::store::fake_backend::{FakeBackend, Fault};
    use crate::store::{Credentials, Patience};
    use rstest::rstest;

    struct Scene {
        _home: tempfile::TempDir,
        backend: FakeBackend,
        workdir: WorkDir,
        client: Client,
    }

    fn scene(cycle: Cycle, errored: &State, remote: Option<&State>) -> Scene {
        let (home, backend) = (tempfile::tempdir().unwrap(), FakeBackend::start());
        let address = StateAddress::parse(&backend.url()).unwrap();
        let workdir = WorkDir::open(home.path(), &address, Timestamp::UNIX_EPOCH).unwrap();
        std::fs::write(workdir.errored(cycle), errored.bytes()).unwrap();
        backend.held(|held| held.state = remote.map(|state| state.bytes().to_vec()));
        let client = Client::new(address, &Credentials::default(), Patience::of_a_poll()).unwrap();
        Scene {
            _home: home,
            backend,
            workdir,
            client,
        }
    }

    #[rstest]
    #[case::absent(None)]
    #[case::older(Some(state("L", 1, &[])))]
    #[case::stored_after_all(Some(state("L", 2, &["a"])))]
    fn an_errored_state_is_stored_where_it_follows(#[case] remote: Option<State>) {
        let errored = state("L", 2, &["a"]);
        let scene = scene(Cycle::Remote, &errored, remote.as_ref());
        let (kept, _) = push(&scene.client, &scene.workdir, &errored, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(std::fs::read(kept).unwrap(), errored.bytes());
        assert_eq!(
            scene.backend.held(|held| held.state.clone()).unwrap(),
            errored.bytes()
        );
        assert!(!scene.workdir.errored(Cycle::Remote).exists());
    }

    #[rstest]
    #[case::another_lineage(state("M", 1, &[]))]
    #[case::newer(state("L", 3, &["a"]))]
    fn an_errored_state_that_does_not_follow_is_kept_and_not_stored(#[case] remote: State) {
        let errored = state("L", 2, &["a"]);
        let scene = scene(Cycle::Remote, &errored, Some(&remote));
        let error = push(&scene.client, &scene.workdir, &errored, Timestamp::UNIX_EPOCH).unwrap_err();
        let SalvageError::Transfer {
            source: TransferError::Conflict { .. },
            kept,
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!(std::fs::read(kept).unwrap(), errored.bytes());
        assert_eq!(
            scene.backend.held(|held| held.state.clone()).unwrap(),
            remote.bytes()
        );
        assert!(scene.workdir.errored(Cycle::Remote).exists());
    }

    #[test]
    fn a_push_that_fails_can_be_repeated() {
        let errored = state("L", 2, &["a"]);
        let scene = scene(Cycle::Remote, &errored, None);
        scene
            .backend
            .script("POST", 1, Fault::Answer(500, "", "disk full"));
        push(&scene.client, &scene.workdir, &errored, Timestamp::UNIX_EPOCH).unwrap_err();
        push(&scene.client, &scene.workdir, &errored, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(
            scene.backend.held(|held| held.state.clone()).unwrap(),
            errored.bytes()
        );
    }

    #[test]
    fn an_errored_state_of_the_local_cycle_becomes_the_local_state() {
        let errored = state("L", 2, &["a"]);
        let scene = scene(Cycle::Local, &errored, None);
        std::fs::write(scene.workdir.state(), "torn").unwrap();
        adopt(&scene.workdir, &errored, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(std::fs::read(scene.workdir.state()).unwrap(), errored.bytes());
        assert!(!scene.workdir.errored(Cycle::Local).exists());
        let kept = std::fs::read_dir(scene.workdir.root().join("salvage"))
            .unwrap()
            .count();
        assert_eq!(kept, 2, "the errored one and the one it replaced");
    }
}
