use super::*;
use crate::marker::Cause;

fn address(text: &str) -> StateAddress {
    StateAddress::parse(text).unwrap()
}

fn open(home: &Path) -> WorkDir {
    WorkDir::open(home, &address("http://host/s"), Timestamp::UNIX_EPOCH).unwrap()
}

#[test]
fn a_second_run_of_the_same_key_is_refused_and_told_who_has_it() {
    let home = tempfile::tempdir().unwrap();
    let held = open(home.path());
    let error = WorkDir::open(home.path(), &address("http://host/s/"), Timestamp::UNIX_EPOCH).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(&lock::who()) && text.contains(&std::process::id().to_string()),
        "{text}"
    );
    WorkDir::open(home.path(), &address("http://host/other"), Timestamp::UNIX_EPOCH).unwrap();
    drop(held);
    open(home.path());
}

#[test]
fn a_child_that_has_the_lock_as_its_input_keeps_it() {
    let home = tempfile::tempdir().unwrap();
    let workdir = open(home.path());
    let shared = workdir.shared_lock().unwrap();
    // As by SIGKILL: the descriptor is closed and nothing is unlocked.
    nix::unistd::close(std::os::fd::AsRawFd::as_raw_fd(&*workdir.lock)).unwrap();
    std::mem::forget(workdir);
    assert!(matches!(
        WorkDir::open(home.path(), &address("http://host/s"), Timestamp::UNIX_EPOCH),
        Err(WorkDirError::Busy { .. })
    ));
    drop(shared);
}

#[test]
fn a_directory_of_another_address_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = open(home.path()).root().join("address");
    std::fs::write(path, "http://other/s\n").unwrap();
    let error = WorkDir::open(home.path(), &address("http://host/s"), Timestamp::UNIX_EPOCH).unwrap_err();
    assert!(matches!(error, WorkDirError::OtherAddress { found, .. } if found == "http://other/s"));
}

#[test]
fn a_marker_is_read_as_it_was_written_and_a_damaged_one_is_no_absent_one() {
    let home = tempfile::tempdir().unwrap();
    let workdir = open(home.path());
    assert_eq!(workdir.read_marker().unwrap(), None);
    let marker = Marker {
        lineage: "L".into(),
        serial: 3,
        at: Timestamp::UNIX_EPOCH,
        cause: Cause::Migrated,
    };
    workdir.write_marker(&marker).unwrap();
    assert_eq!(workdir.read_marker().unwrap(), Some(marker));
    std::fs::write(workdir.marker(), "{").unwrap();
    assert!(matches!(
        workdir.read_marker(),
        Err(WorkDirError::MarkerDamaged { .. })
    ));
}

#[test]
fn retiring_keeps_the_state_and_its_backup_under_dated_names() {
    let home = tempfile::tempdir().unwrap();
    let workdir = open(home.path());
    std::fs::write(workdir.state(), "new").unwrap();
    std::fs::write(workdir.root().join("terraform.tfstate.backup"), "old").unwrap();
    workdir.retire_state(Timestamp::UNIX_EPOCH).unwrap();
    assert!(!workdir.state().exists());
    let read = |name: &str| std::fs::read_to_string(workdir.root().join(name)).unwrap();
    assert_eq!(read("terraform.tfstate.migrated-19700101T000000.000000Z"), "new");
    assert_eq!(
        read("terraform.tfstate.backup.migrated-19700101T000000.000000Z"),
        "old"
    );
}

#[test]
fn only_the_newest_runs_are_kept() {
    let home = tempfile::tempdir().unwrap();
    let workdir = open(home.path());
    for run in 0..KEPT_RUNS + 5 {
        workdir.run(&format!("{run:03}")).unwrap();
    }
    let mut left: Vec<_> = std::fs::read_dir(workdir.root().join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left.len(), KEPT_RUNS);
    assert_eq!(left[0], "005");
}

#[test]
fn the_directory_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let mode = std::fs::metadata(open(home.path()).root())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}
