//! The state of a bootstrap's local cycle moves to the backend that the cycle deployed.
//!
//! Its order makes every step one to resume from: store and read back, then the marker, then the local copy is retired.
//! Before the marker, the next run finds the same bytes on both sides; after it, a leftover to set aside.

use jiff::Timestamp;

use crate::marker::{Cause, Marker};
use crate::state::State;
use crate::store::Client;
use crate::transfer::{Over, TransferError, Transferred, transfer};
use crate::workdir::{WorkDir, WorkDirError};

/// Why a migration stopped.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// Before the backend had the state: the working directory still has it.
    #[error(
        "the state did not move to the backend: {source}\nit is still in the working directory; run --bootstrap again to resume"
    )]
    Transfer {
        /// What went wrong.
        source: TransferError,
    },
    /// After that.
    #[error(transparent)]
    WorkDir(#[from] WorkDirError),
}

/// Moves `local` to the backend.
pub fn migrate(
    client: &Client,
    workdir: &WorkDir,
    local: &State,
    now: Timestamp,
) -> Result<Transferred, MigrateError> {
    let transferred = transfer(
        client,
        workdir,
        local,
        Over::DestroyedFleets,
        "bootstrap migration",
    )
    .map_err(|source| MigrateError::Transfer { source })?;
    finish(workdir, local, now)?;
    Ok(transferred)
}

/// What is left to do once the backend has the state: the marker, then the local copy.
pub fn finish(workdir: &WorkDir, stored: &State, now: Timestamp) -> Result<(), WorkDirError> {
    let view = stored.view();
    let marker = Marker {
        lineage: view.lineage.clone(),
        serial: view.serial,
        at: now,
        cause: Cause::Migrated,
    };
    workdir.write_marker(&marker)?;
    workdir.retire_state(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::StateAddress;
    use crate::lock::LockInfo;
    use crate::state::Relation;
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

    fn scene(local: &State, remote: Option<&State>) -> Scene {
        let (home, backend) = (tempfile::tempdir().unwrap(), FakeBackend::start());
        let address = StateAddress::parse(&backend.url()).unwrap();
        let workdir = WorkDir::open(home.path(), &address, Timestamp::UNIX_EPOCH).unwrap();
        std::fs::write(workdir.state(), local.bytes()).unwrap();
        backend.held(|held| held.state = remote.map(|state| state.bytes().to_vec()));
        let client = Client::new(address, &Credentials::default(), Patience::of_a_poll()).unwrap();
        Scene {
            _home: home,
            backend,
            workdir,
            client,
        }
    }

    impl Scene {
        fn migrate(&self, local: &State) -> Result<Transferred, MigrateError> {
            migrate(&self.client, &self.workdir, local, Timestamp::UNIX_EPOCH)
        }

        fn is_migrated(&self, local: &State) -> bool {
            self.backend
                .held(|held| held.state.as_deref() == Some(local.bytes()) && held.lock.is_none())
                && self
                    .workdir
                    .read_marker()
                    .unwrap()
                    .is_some_and(|marker| marker.serial == local.view().serial)
                && !self.workdir.state().exists()
                && !self.workdir.lease().exists()
        }
    }

    #[rstest]
    #[case::absent(None, Transferred::Stored)]
    #[case::a_destroyed_fleet(Some(state("M", 9, &[])), Transferred::Stored)]
    #[case::older(Some(state("L", 3, &["a"])), Transferred::Stored)]
    #[case::the_same(Some(state("L", 4, &["a", "b"])), Transferred::WasThere)]
    fn a_state_moves_with_its_lineage_and_serial(
        #[case] remote: Option<State>,
        #[case] expected: Transferred,
    ) {
        let local = state("L", 4, &["a", "b"]);
        let scene = scene(&local, remote.as_ref());
        assert_eq!(scene.migrate(&local).unwrap(), expected);
        assert!(scene.is_migrated(&local));
        let writes = scene
            .backend
            .methods()
            .iter()
            .filter(|method| *method == "POST")
            .count();
        assert_eq!(writes, usize::from(expected == Transferred::Stored));
    }

    #[rstest]
    #[case::newer(state("L", 5, &["a"]), Relation::Older)]
    #[case::newer_and_destroyed(state("L", 5, &[]), Relation::Older)]
    #[case::a_strangers_fleet(state("M", 1, &["c"]), Relation::Unrelated)]
    #[case::two_runs_at_once(state("L", 4, &["c"]), Relation::Diverged)]
    fn nothing_is_written_over_what_does_not_precede_it(#[case] remote: State, #[case] expected: Relation) {
        let local = state("L", 4, &["a"]);
        let scene = scene(&local, Some(&remote));
        let Err(MigrateError::Transfer {
            source: TransferError::Conflict { relation, .. },
        }) = scene.migrate(&local)
        else {
            panic!("it was written")
        };
        assert_eq!(relation, expected);
        assert!(!scene.backend.methods().contains(&"POST".to_owned()));
        assert!(scene.workdir.state().exists());
        assert_eq!(scene.workdir.read_marker().unwrap(), None);
        assert_eq!(
            scene.backend.held(|held| held.lock.clone()),
            None,
            "the lock is given back"
        );
    }

    #[rstest]
    #[case::at_the_lock("LOCK", 1, Fault::DieAfter)]
    #[case::at_the_first_read("GET", 1, Fault::Answer(500, "", "no"))]
    #[case::in_the_middle_of_the_post("POST", 1, Fault::DieReading)]
    #[case::at_the_post("POST", 1, Fault::Answer(500, "", "disk full"))]
    #[case::at_the_reading_back("GET", 2, Fault::DieAnswering)]
    #[case::at_the_unlock("UNLOCK", 1, Fault::Answer(500, "", "no"))]
    fn a_migration_that_stops_anywhere_is_resumed_by_the_next(
        #[case] method: &str,
        #[case] nth: usize,
        #[case] fault: Fault,
    ) {
        let local = state("L", 4, &["a"]);
        let scene = scene(&local, None);
        scene.backend.script(method, nth, fault);
        scene.migrate(&local).unwrap_err();
        assert!(scene.workdir.state().exists(), "the local state is kept");
        assert_eq!(
            scene.workdir.read_marker().unwrap(),
            None,
            "no marker before the backend has it"
        );
        scene.migrate(&local).unwrap();
        assert!(scene.is_migrated(&local));
    }

    #[test]
    fn a_post_whose_answer_was_lost_is_settled_by_reading_back() {
        let local = state("L", 4, &["a"]);
        let scene = scene(&local, None);
        scene.backend.script("POST", 1, Fault::DieAfter);
        assert_eq!(scene.migrate(&local).unwrap(), Transferred::Stored);
        assert!(scene.is_migrated(&local));
    }

    #[test]
    fn a_lock_of_somebody_else_stops_it_and_is_left_alone() {
        let local = state("L", 4, &["a"]);
        let scene = scene(&local, None);
        let other = LockInfo::new("OperationTypeApply", Timestamp::UNIX_EPOCH).body();
        scene.backend.held(|held| held.lock = Some(other.clone()));
        assert!(matches!(
            scene.migrate(&local),
            Err(MigrateError::Transfer {
                source: TransferError::Locked { .. }
            })
        ));
        assert_eq!(scene.backend.held(|held| held.lock.clone()), Some(other));
        assert_eq!(scene.backend.methods(), ["LOCK"]);
    }

    #[test]
    fn a_backend_that_returns_something_else_is_not_trusted() {
        let local = state("L", 4, &["a"]);
        let scene = scene(&local, None);
        scene.backend.script("POST", 1, Fault::Answer(200, "", ""));
        assert!(matches!(
            scene.migrate(&local),
            Err(MigrateError::Transfer {
                source: TransferError::NotReadBack { .. }
            })
        ));
        assert!(scene.workdir.state().exists());
    }

    #[test]
    fn a_lock_that_was_lost_stops_the_write() {
        let local = state("L", 4, &["a"]);
        let scene = scene(&local, None);
        scene.backend.script("POST", 1, Fault::ForgetLock);
        assert!(matches!(
            scene.migrate(&local),
            Err(MigrateError::Transfer {
                source: TransferError::Lease(_)
            })
        ));
        assert!(scene.workdir.state().exists());
    }
}
