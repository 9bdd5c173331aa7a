//! A guarded program never outlives the process that asked for it.
//!
//! That something is gone is seen at a pipe that it holds open: its end comes when the last holder has ended.

#![allow(clippy::unwrap_used, reason = "what a test needs may fail as the test does")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, pipe};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use provisor_harness::guard::{Death, Guard, GuardError};

/// A program with a child, a child in a session of its own, and an orphan there.
const TREE: &str = "sleep 1000 & setsid sleep 1000 & (setsid sleep 1000 &) ; echo up; sleep 1000";

fn shell(text: &str) -> Guard {
    Guard::new("/bin/sh").args(["-c", text])
}

/// Reads the line `up`, so that all of the tree is there.
fn wait_until_up(reader: &mut impl BufRead) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
}

fn to_end(mut reader: impl Read) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn exit_codes_and_signals_pass_through() {
    let cache = tempfile::tempdir().unwrap();
    let cases = [
        ("exit 0", Death::Exited(0)),
        ("exit 255", Death::Exited(255)),
        ("kill -15 $$; sleep 1000", Death::Signal(15)),
        ("kill -9 $$; sleep 1000", Death::Signal(9)),
    ];
    for (text, death) in cases {
        let guarded = shell(text).spawn(cache.path()).await.unwrap();
        assert_eq!(guarded.wait().await, death, "{text}");
        assert_eq!(guarded.death(), Some(death), "{text}");
    }
}

#[tokio::test]
async fn the_program_gets_its_arguments_its_environment_and_nothing_else() {
    let cache = tempfile::tempdir().unwrap();
    let (reader, writer) = pipe().unwrap();
    let (errors, error_writer) = pipe().unwrap();
    let guarded = Guard::new("/bin/sh")
        .args(["-c", "echo \"$1\"; cd /proc/$$; tr '\\0' '\\n' <environ; readlink fd/0; ls /proc/self/fd >&2; echo $$ >&2"])
        .args(["sh", "an argument"])
        .env("VALUE", "a value")
        .stdout(File::from(OwnedFd::from(writer)))
        .stderr(File::from(OwnedFd::from(error_writer)))
        .spawn(cache.path())
        .await
        .unwrap();
    assert_eq!(guarded.wait().await, Death::Exited(0));
    assert_eq!(to_end(reader), "an argument\nVALUE=a value\n/dev/null\n");
    assert_eq!(to_end(errors), format!("0\n1\n2\n3\n{}\n", guarded.pid()));
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let cache = tempfile::tempdir().unwrap();
    let error = Guard::new("/no/such/program")
        .spawn(cache.path())
        .await
        .unwrap_err();
    assert!(matches!(error, GuardError::Program { .. }), "{error:?}");
    assert!(
        error
            .to_string()
            .starts_with("cannot start /no/such/program: No such file"),
        "{error}"
    );
}

#[tokio::test]
async fn kill_returns_when_program_and_descendants_are_gone() {
    let cache = tempfile::tempdir().unwrap();
    let (reader, writer) = pipe().unwrap();
    let mut reader = BufReader::new(reader);
    let mut guarded = shell(TREE)
        .stdout(OwnedFd::from(writer).into())
        .spawn(cache.path())
        .await
        .unwrap();
    wait_until_up(&mut reader);
    assert_eq!(guarded.death(), None);
    assert_eq!(guarded.kill().await, Death::Signal(9));
    assert!(fs::metadata(format!("/proc/{}", guarded.pid())).is_err());
    assert_eq!(to_end(reader), "");
    assert_eq!(guarded.kill().await, Death::Signal(9));
}

#[tokio::test]
async fn dropping_it_kills_it() {
    let cache = tempfile::tempdir().unwrap();
    let (reader, writer) = pipe().unwrap();
    let mut reader = BufReader::new(reader);
    let guarded = shell(TREE)
        .stdout(OwnedFd::from(writer).into())
        .spawn(cache.path())
        .await
        .unwrap();
    wait_until_up(&mut reader);
    drop(guarded);
    assert_eq!(to_end(reader), "");
}

#[tokio::test]
async fn descendants_do_not_outlive_a_program_that_ends_by_itself() {
    let cache = tempfile::tempdir().unwrap();
    let (reader, writer) = pipe().unwrap();
    let text = "setsid sleep 1000 & (setsid sleep 1000 &) ; exit 7";
    let guarded = shell(text)
        .stdout(OwnedFd::from(writer).into())
        .spawn(cache.path())
        .await
        .unwrap();
    assert_eq!(guarded.wait().await, Death::Exited(7));
    assert_eq!(to_end(reader), "");
}

#[tokio::test]
async fn the_program_dies_when_its_guard_is_killed() {
    let cache = tempfile::tempdir().unwrap();
    let (reader, writer) = pipe().unwrap();
    let mut reader = BufReader::new(reader);
    let program = shell("echo up; exec sleep 1000").stdout(OwnedFd::from(writer).into());
    let guarded = program.spawn(cache.path()).await.unwrap();
    wait_until_up(&mut reader);
    kill_hard(&parent(guarded.pid()));
    assert_eq!(guarded.wait().await, Death::Unknown);
    assert_eq!(to_end(reader), "");
}

const HOLDER_FOLDER: &str = "PROVISOR_TEST_HOLDER_FOLDER";

/// The process that asks is this very test, started once more in the role of the holder.
#[tokio::test]
async fn the_program_dies_with_the_process_that_asked_even_by_sigkill() {
    if let Some(folder) = std::env::var_os(HOLDER_FOLDER) {
        let output = File::options()
            .write(true)
            .open(Path::new(&folder).join("output"))
            .unwrap();
        shell(TREE)
            .stdout(output)
            .spawn(Path::new(&folder))
            .await
            .unwrap()
            .wait()
            .await;
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("output");
    assert!(Command::new("mkfifo").arg(&output).status().unwrap().success());
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "the_program_dies_with_the_process_that_asked_even_by_sigkill",
        ])
        .env(HOLDER_FOLDER, folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(File::open(output).unwrap());
    wait_until_up(&mut output);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(to_end(output), "");
}

fn parent(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))
        .unwrap()
        .trim()
        .to_owned()
}

fn kill_hard(pid: &str) {
    assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success());
}
