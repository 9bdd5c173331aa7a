//! The other side of a connection, on this machine: a real agent, a real sshd.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use provisor_harness::agent::{self, Agent};
use provisor_harness::exec::Transport;
use provisor_harness::ssh::{KeyPair, Login, Ssh};
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixListener, UnixStream};

/// The two ways to run a command. The agent has two ways to find a command's descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Agent,
    AgentWithoutCgroups,
    Ssh,
}

/// A machine that is this one.
pub(crate) struct Peer {
    pub(crate) commands: Box<dyn Transport>,
    pub(crate) folder: TempDir,
    processes: Arc<Mutex<Vec<Child>>>,
}

impl Peer {
    pub(crate) async fn start(way: Way) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let processes = Arc::new(Mutex::new(Vec::new()));
        let commands: Box<dyn Transport> = match way {
            Way::Ssh => Box::new(connect_to_sshd(folder.path(), Arc::clone(&processes)).await),
            Way::Agent | Way::AgentWithoutCgroups => {
                let flag = if way == Way::Agent {
                    &[][..]
                } else {
                    &["--without-cgroups"]
                };
                let (stream, agent) = start_agent(folder.path(), flag).await;
                processes.lock().unwrap().push(agent);
                Box::new(Agent::connect(stream).await.unwrap())
            }
        };
        Self {
            commands,
            folder,
            processes,
        }
    }

    /// The machine dies: nobody says goodbye.
    pub(crate) fn die(&self) {
        for process in self.processes.lock().unwrap().iter_mut() {
            kill_group(process);
        }
    }

    /// A new named pipe. A process can wait at it, and holds it open until it ends.
    pub(crate) fn fifo(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.die();
    }
}

/// Reads a named pipe until its last writer has ended.
pub(crate) async fn read_to_end(fifo: &str) -> String {
    let fifo = fifo.to_owned();
    let read = move || {
        let mut text = String::new();
        fs::File::open(fifo).unwrap().read_to_string(&mut text).unwrap();
        text
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}

/// Lets whoever waits at a named pipe go on.
pub(crate) async fn write_to(fifo: &str, text: &'static str) {
    let fifo = fifo.to_owned();
    tokio::task::spawn_blocking(move || fs::write(fifo, text).unwrap())
        .await
        .unwrap();
}

/// The agent in a process of its own, and the stream to it.
pub(crate) async fn start_agent(folder: &Path, flags: &[&str]) -> (UnixStream, Child) {
    let port = folder.join("port");
    let listener = UnixListener::bind(&port).unwrap();
    let mut command = Command::new(agent::install(folder).unwrap());
    command
        .arg("serve")
        .arg(format!("unix:{}", port.display()))
        .args(flags);
    let agent = command.stdin(Stdio::null()).process_group(0).spawn().unwrap();
    (listener.accept().await.unwrap().0, agent)
}

/// Ends a process with its group and reaps it.
pub(crate) fn kill_group(process: &mut Child) {
    let group = format!("-{}", process.id());
    let _ = Command::new("kill")
        .args(["-9", "--", &group])
        .stderr(Stdio::null())
        .status();
    process.wait().unwrap();
}

/// An sshd for each connection, on a port that the kernel chose.
async fn connect_to_sshd(folder: &Path, processes: Arc<Mutex<Vec<Child>>>) -> Ssh {
    let (user, host) = (KeyPair::generate(), KeyPair::generate());
    let config = write_sshd_config(folder, &user, &host);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let stream = listener.accept().await.unwrap().0.into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        let connection = OwnedFd::from(stream);
        let mut sshd = Command::new(sshd_path());
        sshd.arg("-i").arg("-e").arg("-f").arg(config);
        sshd.stdin(connection.try_clone().unwrap())
            .stdout(connection)
            .stderr(Stdio::null());
        processes
            .lock()
            .unwrap()
            .push(sshd.process_group(0).spawn().unwrap());
    });
    let login = Login::new(user_name(), user.private(), host.public()).unwrap();
    Ssh::connect(address, &login).await.unwrap()
}

fn write_sshd_config(folder: &Path, user: &KeyPair, host: &KeyPair) -> PathBuf {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        let mut open = fs::OpenOptions::new();
        let file = open.write(true).create_new(true).mode(0o600).open(&path);
        std::io::Write::write_all(&mut file.unwrap(), text.as_bytes()).unwrap();
        path.display().to_string()
    };
    let host_key = write("host_key", host.private());
    let authorized = write("authorized_keys", &format!("{}\n", user.public()));
    let config = format!(
        "HostKey {host_key}\nAuthorizedKeysFile {authorized}\nStrictModes no\nUsePAM no\nPidFile none\n\
         PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel QUIET\n\
         SetEnv HOME={home}\n",
        // A shell that sshd starts reads its start-up file: not the one of whoever runs the tests.
        home = folder.display()
    );
    // Started as root, sshd insists on this empty folder; Debian makes it when the service starts.
    if user_name() == "root" && !Path::new("/run/sshd").exists() {
        fs::create_dir_all("/run/sshd").unwrap();
        fs::set_permissions("/run/sshd", fs::Permissions::from_mode(0o755)).unwrap();
    }
    write("sshd_config", &config).into()
}

fn sshd_path() -> &'static str {
    let path = "/usr/sbin/sshd";
    assert!(
        Path::new(path).exists(),
        "{path} is missing: install openssh-server"
    );
    path
}

fn user_name() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}
