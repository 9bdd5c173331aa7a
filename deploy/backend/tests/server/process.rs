//! The program: its ready line, its signals, its end by SIGKILL, its other verbs.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use provisor_backend::state::{Lock, StateKey};
use provisor_backend::store::{KeepVersions, Locked, SqliteStore, Standing, Store as _};
use tempfile::TempDir;

use crate::support::{PASSWORD, Reply, USER, authorization, lock, send, state, write_users};

/// The program as a child. Dropping it kills it.
struct Program {
    child: Child,
    address: SocketAddr,
    log: BufReader<ChildStderr>,
}

impl Program {
    fn serve(folder: &Path) -> Self {
        let mut child = serve_command(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim_end()
            .strip_prefix("listening on http://")
            .unwrap()
            .parse()
            .unwrap();
        Self { child, address, log }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Reads the log until a line holds `text`.
    fn wait_for_log(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(
                self.log.read_line(&mut line).unwrap(),
                0,
                "the log ended without {text:?}"
            );
        }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> Reply {
        send(self.address, method, path, &authorization(USER, PASSWORD), body)
    }

    /// Ends it by SIGTERM; gives all of the log that was not read.
    fn stop(mut self) -> String {
        self.signal(Signal::SIGTERM);
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        assert!(self.child.wait().unwrap().success());
        log
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_provisor-backend"));
    command.args(args);
    command
}

fn serve_command(folder: &Path) -> Command {
    let mut command = program(&["serve", "--listen", "127.0.0.1:0"]);
    command
        .arg("--database")
        .arg(folder.join("state.db"))
        .arg("--users")
        .arg(folder.join("users"));
    command
}

fn folder_with_users() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_users(&folder.path().join("users"), PASSWORD);
    folder
}

/// Runs a verb on the database in `folder`.
fn on_database(folder: &Path, args: &[&str]) -> Output {
    program(args)
        .arg("--database")
        .arg(folder.join("state.db"))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_restart_keeps_states_and_locks() {
    let folder = folder_with_users();
    let program = Program::serve(folder.path());
    assert_eq!(program.send("POST", "/state/web", &state("A", 1)).status, 200);
    assert_eq!(program.send("LOCK", "/state/web", &lock("x")).status, 200);
    program.stop();

    let program = Program::serve(folder.path());
    assert_eq!(program.send("GET", "/state/web", "").body, state("A", 1));
    let held = program.send("LOCK", "/state/web", &lock("y"));
    assert_eq!((held.status, held.body), (423, lock("x")));
}

#[test]
fn a_request_in_flight_is_finished_before_the_end() {
    let folder = folder_with_users();
    let mut program = Program::serve(folder.path());
    let body = state("A", 1);
    let mut stream = TcpStream::connect(program.address).unwrap();
    let credentials = authorization(USER, PASSWORD);
    write!(
        stream,
        "POST /state/web HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\n"
    )
    .unwrap();
    write!(stream, "{credentials}Content-Length: {}\r\n\r\n", body.len()).unwrap();
    let mut answer = [0; 25];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(
        text(&answer),
        "HTTP/1.1 100 Continue\r\n\r\n",
        "the server waits for the body"
    );

    program.signal(Signal::SIGTERM);
    program.wait_for_log("stopping");
    stream.write_all(body.as_bytes()).unwrap();
    assert_eq!(Reply::read(&mut stream).status, 200);
    assert!(program.child.wait().unwrap().success());

    let program = Program::serve(folder.path());
    assert_eq!(program.send("GET", "/state/web", "").body, body);
}

#[test]
fn what_was_acknowledged_survives_sigkill() {
    const ACKNOWLEDGED: u64 = 20;
    let folder = folder_with_users();
    let mut program = Program::serve(folder.path());
    assert_eq!(program.send("LOCK", "/state/web", &lock("x")).status, 200);

    let (acknowledge, acknowledged) = mpsc::channel();
    let address = program.address;
    let writer = thread::spawn(move || {
        let credentials = authorization(USER, PASSWORD);
        for serial in 1.. {
            let written = std::panic::catch_unwind(|| {
                send(
                    address,
                    "POST",
                    "/state/web?ID=x",
                    &credentials,
                    &state("A", serial),
                )
                .status
            });
            match written {
                Ok(status) => assert_eq!(status, 200),
                Err(_) => return,
            }
            acknowledge.send(serial).unwrap();
        }
    });
    acknowledged
        .iter()
        .find(|serial| *serial == ACKNOWLEDGED)
        .unwrap();
    program.child.kill().unwrap();
    writer.join().unwrap();
    let last = acknowledged.iter().last().unwrap_or(ACKNOWLEDGED);

    let store = SqliteStore::open_existing(&folder.path().join("state.db"), KeepVersions::default()).unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let key: StateKey = "web".parse().unwrap();
    let versions = store.versions(&key).unwrap();
    let current = versions
        .iter()
        .find(|version| version.standing == Standing::Current)
        .unwrap();
    let serial = current.summary.identity.as_ref().unwrap().serial;
    assert!(
        serial == last || serial == last + 1,
        "acknowledged up to {last}, stored {serial}"
    );
    let held = Lock::parse(lock("x").into()).unwrap();
    assert_eq!(
        store.lock(&key, &Lock::parse(lock("y").into()).unwrap()).unwrap(),
        Locked::Held(held)
    );
}

#[test]
fn sighup_reads_the_users_again() {
    let folder = folder_with_users();
    let mut program = Program::serve(folder.path());
    assert_eq!(program.send("GET", "/state/web", "").status, 404);

    write_users(&folder.path().join("users"), "new");
    program.signal(Signal::SIGHUP);
    program.wait_for_log("read again");
    assert_eq!(program.send("GET", "/state/web", "").status, 401);
    let new = authorization(USER, "new");
    assert_eq!(send(program.address, "GET", "/state/web", &new, "").status, 404);

    fs::write(folder.path().join("users"), "nonsense").unwrap();
    program.signal(Signal::SIGHUP);
    program.wait_for_log("stay as they were");
    assert_eq!(send(program.address, "GET", "/state/web", &new, "").status, 404);
}

#[test]
fn the_log_tells_of_requests_and_holds_no_secret() {
    let folder = folder_with_users();
    let program = Program::serve(folder.path());
    let secret = state("A", 1).replace("{}", "{\"value\": \"canary-in-the-state\"}");
    program.send("POST", "/state/web?ID=canary-in-the-query", &secret);
    program.send("LOCK", "/state/web", &lock("x"));
    program.send("LOCK", "/state/web", &lock("y"));
    send(
        program.address,
        "GET",
        "/state/web",
        &authorization("mallory", "canary-guess"),
        "",
    );
    let log = program.stop();

    let length = secret.len();
    let line = format!(
        "method=\"POST\" path=\"web\" user=\"alice\" status=200 received={length} sent=0 milliseconds="
    );
    assert!(log.contains(&line), "{line} is not in\n{log}");
    assert!(
        log.contains("status=423") && log.contains("the lock is held under"),
        "{log}"
    );
    assert!(log.contains("status=401"), "{log}");
    for header in [
        authorization(USER, PASSWORD),
        authorization("mallory", "canary-guess"),
    ] {
        let encoded = header.trim_end().rsplit(' ').next().unwrap().to_owned();
        assert!(!log.contains("canary") && !log.contains(&encoded), "{log}");
    }
}

#[test]
fn a_users_file_that_others_may_read_stops_the_start() {
    let folder = folder_with_users();
    let users = folder.path().join("users");
    fs::set_permissions(&users, fs::Permissions::from_mode(0o644)).unwrap();
    let output = serve_command(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let path = users.display();
    let error =
        format!("error: the users file {path} has mode 0644; take it from others with `chmod o= {path}`\n");
    assert_eq!(text(&output.stderr), error);
    assert!(!folder.path().join("state.db").exists());
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

#[test]
fn an_address_that_is_taken_is_named() {
    let folder = folder_with_users();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let mut command = program(&["serve", "--listen", &address]);
    command
        .arg("--database")
        .arg(folder.path().join("state.db"))
        .arg("--users")
        .arg(folder.path().join("users"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = format!("error: cannot listen on {address}: ");
    assert!(
        text(&output.stderr).starts_with(&error),
        "{}",
        text(&output.stderr)
    );
}
