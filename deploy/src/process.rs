//! Child processes with a deadline: all output is kept, and every line of stderr can be watched as it comes.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// A child that ended by itself.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// All of its stdout.
    pub stdout: Vec<u8>,
    /// All of its stderr, as text.
    pub stderr: String,
}

impl Finished {
    /// The last lines of stderr, for an error message.
    pub fn last_lines(&self) -> String {
        last_lines(&self.stderr, 12)
    }
}

/// Why there is no [`Finished`].
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The program could not be started.
    #[error("cannot start `{program}`: {source}; install it or give its path")]
    NotStarted {
        /// The program, as it was called.
        program: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The deadline passed; the child was killed.
    #[error("`{program}` did not end within {seconds} s and was stopped; its last words: {stderr}")]
    Deadline {
        /// The program, as it was called.
        program: String,
        /// The deadline.
        seconds: u64,
        /// Its last lines of stderr.
        stderr: String,
    },
    /// The child could not be waited for.
    #[error("cannot wait for `{program}`: {source}; run it again")]
    NotWaited {
        /// The program, as it was called.
        program: String,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// Runs a child to its end: feeds `stdin`, collects both outputs, gives each line of stderr to `on_line`.
pub fn run(
    command: &mut Command,
    stdin: &[u8],
    deadline: Duration,
    on_line: &mut dyn FnMut(&str),
) -> Result<Finished, ProcessError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| ProcessError::NotStarted {
            program: program.clone(),
            source,
        })?;
    let events = watch(&mut child, stdin.to_vec());
    let end = Instant::now() + deadline;
    let (mut stdout, mut stderr) = (Vec::new(), String::new());
    let mut open = 2;
    while open > 0 {
        match events.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Event::Line(line)) => {
                on_line(line.trim_end());
                stderr.push_str(&line);
            }
            Ok(Event::Stdout(bytes)) => {
                stdout = bytes;
                open -= 1;
            }
            Ok(Event::StderrClosed) => open -= 1,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                stop(&mut child);
                return Err(ProcessError::Deadline {
                    program,
                    seconds: deadline.as_secs(),
                    stderr: last_lines(&stderr, 12),
                });
            }
        }
    }
    let status = child
        .wait()
        .map_err(|source| ProcessError::NotWaited { program, source })?;
    Ok(Finished {
        status,
        stdout,
        stderr,
    })
}

/// The last `count` lines of a text.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

enum Event {
    Line(String),
    Stdout(Vec<u8>),
    StderrClosed,
}

/// Threads rather than scoped ones: a grandchild that keeps a pipe open must not keep us past the deadline.
fn watch(child: &mut Child, stdin: Vec<u8>) -> mpsc::Receiver<Event> {
    let (sender, events) = mpsc::channel();
    if let Some(mut pipe) = child.stdin.take() {
        // A child that ends without reading its input is no error of ours: its exit code tells.
        std::thread::spawn(move || drop(pipe.write_all(&stdin)));
    }
    if let Some(pipe) = child.stdout.take() {
        let sender = sender.clone();
        std::thread::spawn(move || drop(sender.send(Event::Stdout(read_all(pipe)))));
    }
    if let Some(pipe) = child.stderr.take() {
        std::thread::spawn(move || read_lines(pipe, &sender));
    }
    events
}

fn read_all(mut pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _partial_is_kept = pipe.read_to_end(&mut bytes);
    bytes
}

fn read_lines(pipe: impl Read, sender: &Sender<Event>) {
    let mut reader = BufReader::new(pipe);
    let mut bytes = Vec::new();
    while matches!(reader.read_until(b'\n', &mut bytes), Ok(read) if read > 0) {
        if sender
            .send(Event::Line(String::from_utf8_lossy(&bytes).into_owned()))
            .is_err()
        {
            return;
        }
        bytes.clear();
    }
    let _nobody_waits = sender.send(Event::StderrClosed);
}

fn stop(child: &mut Child) {
    let _already_gone = child.kill();
    let _already_gone = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_outputs_the_code_and_every_line_are_kept() {
        let mut lines = Vec::new();
        let finished = run(
            &mut shell("cat; echo one >&2; echo two >&2; exit 3"),
            b"input",
            Duration::from_secs(60),
            &mut |line| lines.push(line.to_owned()),
        )
        .unwrap();
        assert_eq!(finished.status.code(), Some(3));
        assert_eq!(finished.stdout, b"input");
        assert_eq!(finished.stderr, "one\ntwo\n");
        assert_eq!(lines, ["one", "two"]);
    }

    #[test]
    fn a_deadline_stops_the_child_even_when_a_grandchild_keeps_its_pipes() {
        let error = run(
            &mut shell("echo late >&2; sleep 600 & wait"),
            b"",
            Duration::from_millis(300),
            &mut |_| {},
        )
        .unwrap_err();
        assert!(matches!(error, ProcessError::Deadline { stderr, .. } if stderr == "late"));
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(
            &mut Command::new("/absent/tool"),
            b"",
            Duration::from_secs(1),
            &mut |_| {},
        );
        assert!(error.unwrap_err().to_string().contains("/absent/tool"));
    }

    #[test]
    fn a_message_gets_the_last_lines_only() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("a\n", 2), "a");
    }
}
