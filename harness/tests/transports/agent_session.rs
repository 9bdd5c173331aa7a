//! What holds of a session with an agent beyond running commands.

use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::{Command as HostCommand, Stdio};

use crate::peers::{kill_group, read_to_end, start_agent};
use provisor_harness::agent::{Agent, AgentError, Bytes, Interface, Setup, SetupFile};
use provisor_harness::exec::{Command, Event, Execute, Stream, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

/// A second descriptor of one connection: when the first is closed the agent notices nothing, as at a serial port.
fn another(stream: &StdUnixStream) -> UnixStream {
    UnixStream::from_std(stream.try_clone().unwrap()).unwrap()
}

#[tokio::test]
async fn the_boot_id_is_the_kernel_s() {
    let folder = tempfile::tempdir().unwrap();
    let (stream, mut process) = start_agent(folder.path(), &[]).await;
    let agent = Agent::connect(stream).await.unwrap();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(agent.boot_id(), boot_id.trim_end());
    kill_group(&mut process);
    agent.closed().await;
}

#[tokio::test]
async fn a_command_inherits_only_its_three_streams() {
    let folder = tempfile::tempdir().unwrap();
    let (stream, mut process) = start_agent(folder.path(), &[]).await;
    let agent = Agent::connect(stream).await.unwrap();
    // The fourth is the folder that `ls` reads.
    let output = agent.run("ls /proc/self/fd").check_ok().await.unwrap();
    assert_eq!(output.stdout_text(), "0\n1\n2\n3");
    kill_group(&mut process);
}

#[tokio::test]
async fn a_new_host_takes_over_from_one_that_vanished_within_a_frame() {
    let folder = tempfile::tempdir().unwrap();
    let (stream, mut process) = start_agent(folder.path(), &[]).await;
    let stream = stream.into_std().unwrap();

    let first = Agent::connect(another(&stream)).await.unwrap();
    let held = folder.path().join("held").display().to_string();
    assert!(HostCommand::new("mkfifo").arg(&held).status().unwrap().success());
    let command = Command::shell("exec 3>\"$HELD\"; echo up; setsid sleep 1000").env("HELD", &held);
    let gone = tokio::spawn(async move { read_to_end(&held).await });
    let mut orphan = first.start(command).await.unwrap();
    assert_eq!(
        orphan.next().await,
        Some(Event::Output(Stream::Stdout, b"up\n".to_vec()))
    );
    // Output that nobody takes is under way in the other direction, in pieces.
    let flood = first.start("yes".into()).await.unwrap();
    std::mem::forget((orphan, flood));
    drop(first);
    // The beginning of a frame of 200 bytes.
    another(&stream)
        .write_all(&[200, 0, 0, 0, 5, 1, 2, 3])
        .await
        .unwrap();

    let second = Agent::connect(another(&stream)).await.unwrap();
    assert_eq!(
        second.run("echo here").check_ok().await.unwrap().stdout_text(),
        "here"
    );
    assert_eq!(gone.await.unwrap(), "", "commands of the first host are killed");
    kill_group(&mut process);
}

#[tokio::test]
async fn whoever_is_no_agent_of_this_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("port")).unwrap();
    let host = UnixStream::connect(folder.path().join("port")).await.unwrap();
    let (mut guest, _) = listener.accept().await.unwrap();
    let fake_agent = async {
        let mut preamble = [0; 40];
        guest.read_exact(&mut preamble).await.unwrap();
        preamble[14] += 1;
        let check = preamble[..32]
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
                (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
            });
        preamble[32..].copy_from_slice(&check.to_le_bytes());
        guest.write_all(&preamble).await.unwrap();
    };
    let (connected, ()) = tokio::join!(Agent::connect(host), fake_agent);
    assert!(
        matches!(connected, Err(AgentError::Version { theirs, ours }) if theirs == ours + 1),
        "{connected:?}"
    );
}

#[tokio::test]
async fn a_peer_that_closes_before_it_answers_is_an_error() {
    let (host, guest) = tokio::io::duplex(64);
    drop(guest);
    assert!(matches!(Agent::connect(host).await, Err(AgentError::Closed)));
}

#[tokio::test]
async fn a_setup_stops_at_the_step_that_fails_and_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let (stream, mut process) = start_agent(folder.path(), &[]).await;
    let agent = Agent::connect(stream).await.unwrap();
    let never = folder.path().join("never").display().to_string();
    let setup = Setup {
        commands: vec![
            vec!["sh".into(), "-c".into(), "echo why >&2; exit 3".into()],
            vec!["touch".into(), never.clone()],
        ],
        ..Setup::default()
    };
    let error = agent.setup(&setup).await.unwrap_err().to_string();
    assert!(
        error.contains("command sh -c echo why >&2; exit 3: exit status: 3: why"),
        "{error}"
    );
    assert!(!std::path::Path::new(&never).exists());
    agent.setup(&Setup::default()).await.unwrap();
    kill_group(&mut process);
}

/// In namespaces of its own the agent may set up what it could not on this machine. The clock, the entropy and disks
/// are shown in guests.
#[tokio::test]
async fn a_setup_gives_host_name_hosts_addresses_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    let listener = UnixListener::bind(&port).unwrap();
    let program = provisor_harness::agent::install(folder.path()).unwrap();
    let script = "mount -t tmpfs none /etc && exec \"$0\" serve \"$1\" --without-cgroups";
    let mut process = HostCommand::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--net",
            "--uts",
            "--mount",
            "sh",
            "-c",
            script,
        ])
        .arg(program)
        .arg(format!("unix:{}", port.display()))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let agent = Agent::connect(listener.accept().await.unwrap().0).await.unwrap();
    let loopback = Interface {
        mac: [0; 6],
        new_mac: None,
        addresses: vec![
            ("10.9.8.7".parse().unwrap(), 24),
            ("fd09::7".parse().unwrap(), 64),
        ],
        gateway: Some("10.9.8.1".parse().unwrap()),
        up: true,
    };
    let file = SetupFile {
        path: "/etc/deep/key".into(),
        content: Bytes(b"secret".to_vec()),
        mode: 0o600,
        uid: 0,
        gid: 0,
    };
    let mut setup = Setup {
        hostname: Some("app".into()),
        hosts: vec![("10.9.8.6".parse().unwrap(), vec!["db".into(), "db.mesh".into()])],
        interfaces: vec![loopback],
        files: vec![file],
        commands: vec![vec!["touch".into(), "/etc/last".into()]],
        ..Setup::default()
    };
    // The second time the first address is replaced.
    agent.setup(&setup).await.unwrap();
    setup.interfaces[0].addresses[0].0 = "10.9.8.70".parse().unwrap();
    agent.setup(&setup).await.unwrap();

    let seen = async |command: &str| agent.run(command).check_ok().await.unwrap().stdout_text();
    assert_eq!(seen("uname -n").await, "app");
    assert_eq!(
        seen("cat /etc/hosts").await,
        "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 app\n10.9.8.6 db db.mesh"
    );
    assert_eq!(
        seen("stat -c %a /etc/deep/key; cat /etc/deep/key").await,
        "600\nsecret"
    );
    assert_eq!(seen("ls /etc").await, "deep\nhosts\nlast");
    let addresses = seen("cat /proc/net/fib_trie").await;
    assert!(
        addresses.contains("10.9.8.70") && !addresses.contains("10.9.8.7\n"),
        "{addresses}"
    );
    assert!(
        seen("cat /proc/net/if_inet6")
            .await
            .contains("fd090000000000000000000000000007")
    );
    let routes = seen("cat /proc/net/route").await;
    assert!(routes.contains("lo\t00000000\t0108090A"), "{routes}");

    setup.interfaces[0].mac = [2, 0, 0, 0, 0, 9];
    let error = agent.setup(&setup).await.unwrap_err().to_string();
    assert!(
        error.contains("interface 02:00:00:00:00:09: no interface has this MAC"),
        "{error}"
    );
    process.kill().unwrap();
    process.wait().unwrap();
}
