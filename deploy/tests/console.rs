//! A console over a real fleet, by lines on its standard input.
#![allow(clippy::unwrap_used, reason = "test code outside of test functions")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

const FLEET: &str = r#"
name = "demo"

[environments.test]

[groups.alice]
environment = "test"

[groups.alice.nodes.app]
address = "192.0.2.20"
components = ["website"]

[groups.alice.nodes.site]
address = "192.0.2.21"
components = ["website"]
"#;

struct Console {
    folder: tempfile::TempDir,
}

impl Console {
    fn new() -> Console {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("fleet/components")).unwrap();
        let console = Console { folder };
        std::fs::write(console.path("fleet/fleet.toml"), FLEET).unwrap();
        std::fs::write(console.path("fleet/components/website.toml"), "").unwrap();
        console
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_provisor"));
        command
            .env_clear()
            .env("HOME", self.path("home"))
            .arg("--fleet")
            .arg(self.path("fleet"))
            .arg("--state-home")
            .arg(self.path("state"))
            .arg("console")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Types a script, and waits for the end of the session.
    fn session(&self, script: &str) -> Said {
        let mut child = self.command().spawn().unwrap();
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }
}

struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

#[test]
fn a_session_runs_verbs_and_survives_wrong_lines() {
    let console = Console::new();
    let said =
        console.session("check\nchek\nshow 'app\nshow app --format json\nshow absent\n\nexit\nshow site\n");
    let order = [
        "the fleet is well: 2 nodes",
        "unrecognized subcommand 'chek'",
        "'check'",
        "exit code 3",
        "the ' at column 6 is never closed",
        "exit code 3",
        "the fleet has no node `absent`",
        "exit code 3",
    ];
    let mut rest = said.stderr.as_str();
    for text in order {
        let at = rest.find(text).unwrap_or_else(|| panic!("no {text:?} in {rest}"));
        rest = &rest[at + text.len()..];
    }
    let plan: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(plan["name"], "app", "{}", said.stdout);
    assert_eq!(said.code, Some(0));
}

#[test]
fn the_end_of_the_input_leaves_the_console() {
    let said = Console::new().session("check");
    assert!(said.stderr.contains("the fleet is well"), "{}", said.stderr);
    assert_eq!(said.code, Some(0));
}

#[test]
fn help_lists_the_verbs_and_is_no_failure() {
    let said = Console::new().session("help\nhelp show\n");
    assert!(
        said.stdout.contains("Print the plan of one node"),
        "{}",
        said.stdout
    );
    assert!(
        said.stdout.contains("Usage: show [OPTIONS] <NODE>"),
        "{}",
        said.stdout
    );
    assert_eq!(said.stderr, "");
}

#[test]
fn a_broken_fleet_is_told_and_the_console_goes_on() {
    let console = Console::new();
    std::fs::write(console.path("fleet/fleet.toml"), FLEET.replace("\"demo\"", "3")).unwrap();
    let said = console.session("check\nhelp show\n");
    assert!(said.stderr.contains("fleet.toml:2:"), "{}", said.stderr);
    assert!(said.stderr.contains("the fleet has 1 error"), "{}", said.stderr);
    assert!(said.stderr.contains("exit code 3"), "{}", said.stderr);
    assert!(said.stdout.contains("Usage: show"), "{}", said.stdout);
    assert_eq!(said.code, Some(0));
}

#[test]
fn an_edit_is_seen_by_the_next_line() {
    let console = Console::new();
    let mut child = console.command().spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    writeln!(stdin, "check").unwrap();
    assert!(stderr.next().unwrap().unwrap().contains("2 nodes"));
    let third = "\n[groups.alice.nodes.third]\naddress = \"192.0.2.22\"\n";
    std::fs::write(console.path("fleet/fleet.toml"), format!("{FLEET}{third}")).unwrap();
    writeln!(stdin, "check").unwrap();
    assert!(stderr.next().unwrap().unwrap().contains("3 nodes"));
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn ctrl_c_ends_the_running_verb_and_not_the_console() {
    let console = Console::new();
    std::fs::write(console.path("users"), "").unwrap();
    std::fs::set_permissions(console.path("users"), PermissionsExt::from_mode(0o600)).unwrap();
    // A group of its own stands for the terminal's: its Ctrl-C reaches the console and the verb.
    let mut child = console.command().process_group(0).spawn().unwrap();
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(
        stdin,
        "backend serve --listen 127.0.0.1:0 --database {} --users {}",
        console.path("states").display(),
        console.path("users").display()
    )
    .unwrap();
    assert!(stdout.next().unwrap().unwrap().starts_with("listening on "));
    killpg(group, Signal::SIGINT).unwrap();
    writeln!(stdin, "show site --format json\nexit").unwrap();
    let plan: String = stdout.map(|line| line.unwrap()).collect();
    assert!(plan.contains("\"site\""), "{plan}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn only_lines_that_are_verbs_are_kept_and_only_for_this_user() {
    let console = Console::new();
    console
        .session("check\ncanary-71c0\n check\nbackend check --database http://alice:canary@db/\nshow app\n");
    let path = console.path("state/console-history");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "check\nshow app\n");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}
