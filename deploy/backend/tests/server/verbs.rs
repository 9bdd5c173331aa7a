//! The verbs beside `serve`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::process::{Program, folder_with_users, program, text};
use crate::support::{authorization, lock, send, state};

/// Runs a verb on the database in `folder`.
fn on_database(folder: &Path, args: &[&str]) -> Output {
    program(args)
        .arg("--database")
        .arg(folder.join("state.db"))
        .output()
        .unwrap()
}

#[test]
fn user_add_prints_a_line_that_the_server_takes() {
    let folder = folder_with_users();
    let mut child = program(&["user", "add", "bob"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"built here\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let mut users = fs::OpenOptions::new()
        .append(true)
        .open(folder.path().join("users"))
        .unwrap();
    users.write_all(&output.stdout).unwrap();

    let program = Program::serve(folder.path());
    let bob = authorization("bob", "built here");
    assert_eq!(send(program.address, "GET", "/state/web", &bob, "").status, 404);
    assert_eq!(program.send("GET", "/state/web", "").status, 404);
}

#[test]
fn a_user_without_a_password_is_refused() {
    let output = program(&["user", "add", "bob"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(
        text(&output.stderr).starts_with("error: the password is empty"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn an_old_version_is_found_and_restored_beside_a_running_server() {
    let folder = folder_with_users();
    let program = Program::serve(folder.path());
    program.send("POST", "/state/group/web", &state("A", 1));
    program.send("POST", "/state/group/web", &state("A", 2));

    let listed = on_database(folder.path(), &["versions", "group/web"]);
    let lines: Vec<&str> = text(&listed.stdout).lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("      1  ") && lines[0].contains("serial 1 "),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("*     2  ") && lines[1].ends_with("lineage A  by alice"),
        "{lines:?}"
    );

    let restored = on_database(folder.path(), &["restore", "group/web", "1"]);
    assert_eq!(
        text(&restored.stdout),
        "version 1 of group/web is current, as version 3\n"
    );
    assert_eq!(program.send("GET", "/state/group/web", "").body, state("A", 1));

    let listed = on_database(folder.path(), &["versions", "group/web", "--format", "json"]);
    let json = text(&listed.stdout);
    assert!(json.contains("\"version\": 3,\n    \"current\": true"), "{json}");
    let checked = on_database(folder.path(), &["check"]);
    assert_eq!(text(&checked.stdout), "ok: 1 state(s), 3 version(s), 0 lock(s)\n");
}

#[test]
fn a_restore_that_cannot_be_is_refused_with_exit_code_3() {
    let folder = folder_with_users();
    let program = Program::serve(folder.path());
    program.send("POST", "/state/web", &state("A", 1));
    let missing = on_database(folder.path(), &["restore", "web", "7"]);
    assert_eq!(missing.status.code(), Some(3));
    assert_eq!(
        text(&missing.stderr),
        "error: version 7 of web is not kept; see `versions web`\n"
    );

    program.send("LOCK", "/state/web", &lock("x"));
    let locked = on_database(folder.path(), &["restore", "web", "1"]);
    assert_eq!(locked.status.code(), Some(3));
    assert!(
        text(&locked.stderr).contains(&lock("x")),
        "{}",
        text(&locked.stderr)
    );
}

#[test]
fn a_verb_on_a_database_that_is_not_there_fails_and_makes_none() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&["check"][..], &["versions", "web"], &["restore", "web", "1"]] {
        assert_eq!(
            on_database(folder.path(), args).status.code(),
            Some(1),
            "{args:?}"
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn damage_is_reported_with_exit_code_1() {
    let folder = folder_with_users();
    let program = Program::serve(folder.path());
    program.send("POST", "/state/web", &state("A", 1));
    program.stop();
    let database = folder.path().join("state.db");
    let mut bytes = fs::read(&database).unwrap();
    let lineage = bytes
        .windows(12)
        .position(|window| window == b"\"lineage\": \"")
        .unwrap();
    bytes[lineage + 12] = b'B';
    fs::write(&database, bytes).unwrap();

    let checked = on_database(folder.path(), &["check"]);
    assert_eq!(checked.status.code(), Some(1));
    assert_eq!(
        text(&checked.stdout),
        "web: version 1: its bytes are not what its row says\n"
    );
}
