//! The program: its ready line, its signals, its end by SIGKILL, its other verbs.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use provisor_backend::state::{Lock, StateKey};
use provisor_backend::store::{KeepVersions, Locked, SqliteStore, Standing, Store as _};
use rstest::rstest;
use tempfile::TempDir;

use crate::support::{PASSWORD, Reply, USER, authorization, lock, send, state, write_users};

/// The program as a child. Dropping it kills it.
pub(crate) struct Program {
    child: Child,
    pub(crate) address: SocketAddr,
    log: BufReader<ChildStderr>,
}

impl Program {
    pub(crate) fn serve(folder: &Path) -> Self {
        Self::start(&mut serve_command(folder))
    }

    fn start(command: &mut Command) -> Self {
        let mut child = command
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

    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> Reply {
        send(self.address, method, path, &authorization(USER, PASSWORD), body)
    }

    /// Ends it by SIGTERM; gives all of the log that was not read.
    pub(crate) fn stop(mut self) -> String {
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

pub(crate) fn program(args: &[&str]) -> Command {
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

pub(crate) fn folder_with_users() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_users(&folder.path().join("users"), PASSWORD);
    folder
}

pub(crate) fn text(bytes: &[u8]) -> &str {
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

#[rstest]
#[case::a_path("", "notify")]
#[case::an_abstract_name("@", "provisor-backend-test")]
fn systemd_is_told_when_clients_can_connect(#[case] prefix: &str, #[case] name: &str) {
    let folder = folder_with_users();
    let socket = folder.path().join(name);
    let address = match prefix {
        "" => UnixAddr::from_pathname(&socket),
        _ => UnixAddr::from_abstract_name(socket.as_os_str().as_bytes()),
    };
    let systemd = UnixDatagram::bind_addr(&address.unwrap()).unwrap();
    systemd.set_read_timeout(Some(Duration::from_secs(50))).unwrap();
    let mut command = serve_command(folder.path());
    let program = Program::start(command.env("NOTIFY_SOCKET", format!("{prefix}{}", socket.display())));
    let mut message = [0; 16];
    let length = systemd.recv(&mut message).unwrap();
    assert_eq!(text(&message[..length]), "READY=1");
    assert_eq!(send(program.address, "GET", "/health", "", "").body, "ok\n");
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
