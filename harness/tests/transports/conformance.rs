//! What `exec` promises, shown of every way to run a command.

use std::fs;
use std::time::Duration;

use crate::peers::{Peer, Way, read_to_end, write_to};
use provisor_harness::exec::{Command, Event, ExecError, Execute, ExitStatus, Process, Stream};

macro_rules! shown_of_every_way {
    ($($claim:ident)*) => {
        shown_of! { agent, Way::Agent, $($claim)* }
        shown_of! { agent_without_cgroups, Way::AgentWithoutCgroups, $($claim)* }
        shown_of! { ssh, Way::Ssh, $($claim)* }
    };
}

macro_rules! shown_of {
    ($module:ident, $way:expr, $($claim:ident)*) => {
        mod $module {
            use super::{Peer, Way};
            $(#[tokio::test]
            async fn $claim() {
                super::$claim(Peer::start($way).await).await;
            })*
        }
    };
}

shown_of_every_way! {
    every_exit_code_arrives
    every_signal_arrives
    both_streams_arrive_apart_as_bytes
    large_output_arrives_whole_with_its_exit_code
    a_mebibyte_of_input_is_echoed
    a_quarter_of_a_gibibyte_comes_out_while_much_goes_in
    a_quiet_command_is_not_given_up
    input_that_nobody_reads_is_dropped
    without_input_there_is_nothing_to_read
    arguments_environment_and_folder_are_taken_literally
    what_cannot_be_started_ends_like_in_a_shell
    output_is_seen_while_the_command_runs
    commands_run_beside_each_other
    a_caller_that_does_not_read_does_not_stop_other_commands
    a_background_child_is_neither_waited_for_nor_killed
    output_is_whole_although_a_background_child_holds_it_open
    a_deadline_kills_all_descendants
    a_dropped_process_is_killed_with_its_descendants
    a_command_is_lost_at_once_when_the_machine_dies
    a_file_is_written_and_read_whole
}

async fn every_exit_code_arrives(peer: Peer) {
    for code in 0..=255 {
        let output = peer.commands.run(format!("exit {code}")).await.unwrap();
        assert_eq!(output.status, ExitStatus::Code(code));
    }
}

async fn every_signal_arrives(peer: Peer) {
    // Those that SSH has names for.
    for signal in [1, 2, 3, 4, 6, 8, 9, 10, 11, 13, 14, 15] {
        let output = peer
            .commands
            .run(format!("ulimit -c 0; kill -{signal} $$; sleep 1000"))
            .await
            .unwrap();
        assert_eq!(output.status, ExitStatus::Signal(signal));
    }
}

async fn both_streams_arrive_apart_as_bytes(peer: Peer) {
    let command = r"printf '\377\000\r\n'; printf '\376\001' >&2; printf end";
    let output = peer.commands.run(command).check_ok().await.unwrap();
    assert_eq!(output.stdout, b"\xff\0\r\nend");
    assert_eq!(output.stderr, b"\xfe\x01");
}

async fn large_output_arrives_whole_with_its_exit_code(peer: Peer) {
    let output = peer
        .commands
        .run("seq 1 300000 >&2 & seq 1 500000; wait; exit 3")
        .await
        .unwrap();
    assert_eq!(output.status, ExitStatus::Code(3));
    assert!(output.stdout == numbers(500_000), "{} bytes", output.stdout.len());
    assert!(output.stderr == numbers(300_000), "{} bytes", output.stderr.len());
}

async fn a_mebibyte_of_input_is_echoed(peer: Peer) {
    let input: Vec<u8> = (0..1 << 20)
        .map(|index: u32| (index.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let output = peer
        .commands
        .run(Command::new("cat").stdin(input.clone()))
        .check_ok()
        .await
        .unwrap();
    assert!(output.stdout == input, "{} bytes", output.stdout.len());
}

async fn a_quarter_of_a_gibibyte_comes_out_while_much_goes_in(peer: Peer) {
    const OUT: usize = 256 << 20;
    const IN: usize = 64 << 20;
    let text = format!(
        "exec 3<&0; yes abcdefg | head -c {IN} | cmp - /dev/fd/3 >&2 & yes 0123456 | head -c {OUT}; wait $!"
    );
    let command = Command::shell(text).stdin(b"abcdefg\n".repeat(IN / 8));
    let (mut length, mut right) = (0, true);
    let run = peer
        .commands
        .run(command)
        .keep_last(16)
        .on_output(|stream, bytes| {
            if stream == Stream::Stdout {
                right &= repeats(b"0123456\n", length, bytes);
                length += bytes.len();
            }
        });
    let output = run.check_ok().await.unwrap();
    assert_eq!(output.stdout, b"0123456\n0123456\n");
    assert_eq!((length, right), (OUT, true));
}

/// Whether `bytes` are what stands at `offset` in `pattern` over and over.
fn repeats(pattern: &[u8], offset: usize, bytes: &[u8]) -> bool {
    let begin = offset % pattern.len();
    let whole = pattern.repeat(bytes.len() / pattern.len() + 2);
    whole[begin..].starts_with(bytes)
}

async fn a_quiet_command_is_not_given_up(peer: Peer) {
    let go = peer.fifo("go");
    let hours = Duration::from_secs(3 * 3600);
    let command = Command::shell("read word <\"$GO\"; echo \"$word\"")
        .env("GO", &go)
        .deadline(hours);
    let mut process = peer.commands.start(command).await.unwrap();
    peer.commands.run("true").check_ok().await.unwrap();
    tokio::time::pause();
    tokio::time::advance(hours / 2).await;
    tokio::time::resume();
    write_to(&go, "still here\n").await;
    assert_eq!(process.next().await, Some(stdout("still here\n")));
    assert_eq!(process.next().await, Some(Event::Ended(ExitStatus::Code(0))));
}

async fn input_that_nobody_reads_is_dropped(peer: Peer) {
    let command = Command::shell("exec <&-; echo done").stdin(vec![0; 1 << 20]);
    assert_eq!(
        peer.commands.run(command).check_ok().await.unwrap().stdout,
        b"done\n"
    );
}

async fn without_input_there_is_nothing_to_read(peer: Peer) {
    let output = peer
        .commands
        .run("cat; readlink /proc/self/fd/0")
        .check_ok()
        .await
        .unwrap();
    assert_eq!(output.stdout_text(), "/dev/null");
    let output = peer
        .commands
        .run(Command::new("cat").stdin(""))
        .check_ok()
        .await
        .unwrap();
    assert_eq!(output.stdout, b"");
}

async fn arguments_environment_and_folder_are_taken_literally(peer: Peer) {
    let texts = [
        "",
        "a b",
        "it's",
        r"\n \\ \c",
        "*",
        "$HOME `id`",
        "new\nline\n",
        "é%s",
        "--",
    ];
    for text in texts {
        let folder = peer.folder.path().join(format!("in {}", text.len()));
        fs::create_dir_all(&folder).unwrap();
        let command = Command::new("sh").args(["-c", r#"printf '%s|%s|' "$1" "$TEXT"; pwd"#, "sh", text]);
        let command = command.env("TEXT", text).cwd(folder.to_str().unwrap());
        let output = peer.commands.run(command).check_ok().await.unwrap();
        assert_eq!(
            output.stdout_text(),
            format!("{text}|{text}|{}", folder.display())
        );
    }
    assert_eq!(peer.commands.run("pwd").check_ok().await.unwrap().stdout, b"/\n");
}

async fn what_cannot_be_started_ends_like_in_a_shell(peer: Peer) {
    let cases = [
        (Command::new("/no/such/program"), 127),
        (Command::new("no-such-program"), 127),
        (Command::new("/dev/null"), 126),
        (Command::new("true").cwd("/no/such/folder"), 126),
    ];
    for (command, code) in cases {
        let output = peer.commands.run(command).await.unwrap();
        assert_eq!(output.status, ExitStatus::Code(code), "{output}");
        assert_ne!(output.stderr, b"", "{output}");
    }
}

async fn output_is_seen_while_the_command_runs(peer: Peer) {
    let go = peer.fifo("go");
    let command = Command::shell("echo one; read word <\"$GO\"; echo \"$word\"; exit 4").env("GO", &go);
    let mut process = peer.commands.start(command).await.unwrap();
    assert_eq!(process.next().await, Some(stdout("one\n")));
    write_to(&go, "two\n").await;
    assert_eq!(process.next().await, Some(stdout("two\n")));
    assert_eq!(process.next().await, Some(Event::Ended(ExitStatus::Code(4))));
    assert_eq!(process.next().await, None);
}

async fn commands_run_beside_each_other(peer: Peer) {
    let (there, back) = (peer.fifo("there"), peer.fifo("back"));
    let both = |text: &str| Command::shell(text).env("THERE", &there).env("BACK", &back);
    let (first, second) = tokio::join!(
        peer.commands
            .run(both("echo ball >\"$THERE\"; cat \"$BACK\""))
            .check_ok(),
        peer.commands
            .run(both("read ball <\"$THERE\"; echo \"$ball returned\" >\"$BACK\""))
            .check_ok(),
    );
    assert_eq!(second.unwrap().stdout, b"");
    assert_eq!(first.unwrap().stdout_text(), "ball returned");
}

async fn a_caller_that_does_not_read_does_not_stop_other_commands(peer: Peer) {
    let unread = peer.commands.start("yes".into()).await.unwrap();
    let output = peer.commands.run("seq 1 100000").check_ok().await.unwrap();
    assert!(output.stdout == numbers(100_000));
    drop(unread);
}

async fn a_background_child_is_neither_waited_for_nor_killed(peer: Peer) {
    let (go, result) = (peer.fifo("go"), peer.fifo("result"));
    let text = "(read word; echo late; echo late >&2; echo alive >\"$RESULT\") <\"$GO\" & echo early";
    let command = Command::shell(text).env("GO", &go).env("RESULT", &result);
    let output = peer.commands.run(command).check_ok().await.unwrap();
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (&b"early\n"[..], &b""[..])
    );
    write_to(&go, "go\n").await;
    assert_eq!(read_to_end(&result).await, "alive\n");
}

async fn output_is_whole_although_a_background_child_holds_it_open(peer: Peer) {
    let go = peer.fifo("go");
    let command = Command::shell("(read word) <\"$GO\" & seq 1 200000; exit 5").env("GO", &go);
    let output = peer.commands.run(command).await.unwrap();
    assert_eq!(output.status, ExitStatus::Code(5));
    assert!(output.stdout == numbers(200_000), "{} bytes", output.stdout.len());
    write_to(&go, "end\n").await;
}

/// A child, one with a session of its own, and one that is an orphan besides: all hold `$HELD` open.
const TREE: &str = "exec 3>\"$HELD\"
sleep 1000 &
setsid sleep 1000 &
(setsid sleep 1000 &)
env -i sleep 1000 &
echo up
sleep 1000";

async fn a_deadline_kills_all_descendants(peer: Peer) {
    let held = peer.fifo("held");
    let gone = tokio::spawn(ended(held.clone()));
    let tree = Command::shell(TREE)
        .env("HELD", &held)
        .deadline(Duration::from_secs(3));
    let error = peer.commands.run(tree).await.unwrap_err();
    let ExecError::Deadline { output, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(output.stdout, b"up\n", "it was not up in time");
    assert_eq!(holders(&held), Vec::<String>::new());
    assert_eq!(gone.await.unwrap(), "");
    assert!(error.to_string().contains("did not end within 3s"), "{error}");
}

async fn a_dropped_process_is_killed_with_its_descendants(peer: Peer) {
    let held = peer.fifo("held");
    let tree = Command::shell(TREE).env("HELD", &held);
    let (mut process, gone) = (
        peer.commands.start(tree).await.unwrap(),
        tokio::spawn(ended(held)),
    );
    assert_eq!(process.next().await, Some(stdout("up\n")));
    drop(process);
    assert_eq!(gone.await.unwrap(), "");
}

async fn a_command_is_lost_at_once_when_the_machine_dies(peer: Peer) {
    let mut process: Process = peer.commands.start("echo up; yes >&2".into()).await.unwrap();
    assert_eq!(process.next().await, Some(stdout("up\n")));
    peer.die();
    let last = loop {
        match process.next().await {
            Some(Event::Output(Stream::Stderr, _)) => {}
            event => break event,
        }
    };
    assert_eq!(last, Some(Event::Ended(ExitStatus::Lost)));
    let error = peer.commands.run("true").await.unwrap_err();
    assert!(matches!(error, ExecError::Disconnected { .. }), "{error:?}");
}

async fn a_file_is_written_and_read_whole(peer: Peer) {
    let path = peer.folder.path().join("it's a file");
    let path = path.to_str().unwrap();
    let content: Vec<u8> = (0..700_000_u32).map(|index| (index % 251) as u8).collect();
    peer.commands.write_file(path, &content, 0o640).await.unwrap();
    assert!(fs::read(path).unwrap() == content);
    assert!(peer.commands.read_file(path).await.unwrap() == content);
    let mode = peer
        .commands
        .run(Command::new("stat").args(["-c", "%a", path]))
        .check_ok()
        .await
        .unwrap();
    assert_eq!(mode.stdout_text(), "640");
    let error = peer.commands.read_file("/no/such/file").await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot transfer /no/such/file: it was not read"),
        "{error}"
    );
    let error = peer
        .commands
        .write_file("/no/such/file", b"x", 0o600)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("1 bytes were not written"), "{error}");
}

fn stdout(text: &str) -> Event {
    Event::Output(Stream::Stdout, text.as_bytes().to_vec())
}

async fn ended(fifo: String) -> String {
    read_to_end(&fifo).await
}

fn numbers(last: u32) -> Vec<u8> {
    (1..=last)
        .map(|number| format!("{number}\n"))
        .collect::<String>()
        .into_bytes()
}

/// The processes that have a file open for writing, by their links in `/proc`; this one only reads it.
fn holders(path: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let own = std::process::id().to_string();
    processes
        .filter_map(|process| process.file_name().into_string().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            fs::read_link(format!("/proc/{pid}/fd/3")).is_ok_and(|file| file.to_str() == Some(path))
        })
        .collect()
}
