//! One run of the program: its streams go to a log, its standard output to a reader as well, and it is always waited for.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::ops::ControlFlow;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;

use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use super::{Interrupts, Program};

/// Lines of standard error that are kept for an error message.
const KEPT_LINES: usize = 30;

/// What to start.
#[derive(Debug)]
pub struct Invocation<'a> {
    /// The program.
    pub program: &'a Program,
    /// Where it runs.
    pub folder: PathBuf,
    /// Its arguments; no secret stands here.
    pub args: Vec<String>,
    /// What its environment has besides the cleaned one of this process.
    pub environment: Vec<(&'static str, OsString)>,
    /// Its standard input: the working directory's lock, which lives as long as it does.
    pub input: File,
    /// Where its output is appended.
    pub log: PathBuf,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What is done with the lines of standard output.
pub trait Stdout {
    /// Takes a line; `Break` asks the program to end, and the lines that still come are taken too.
    fn line(&mut self, line: &str) -> ControlFlow<()>;
}

/// Why a program could not be run.
#[derive(Debug, thiserror::Error)]
#[error("{program}: {source}; check the program and that the working directory can be written")]
pub struct ChildError {
    /// The program.
    pub program: PathBuf,
    /// What the system says.
    pub source: io::Error,
}

impl Invocation<'_> {
    /// Runs it to its end. Returns the exit and the last lines of standard error.
    pub fn run(
        self,
        interrupts: &Interrupts,
        stdout: &mut dyn Stdout,
    ) -> Result<(Exit, Vec<String>), ChildError> {
        let program = self.program.path.clone();
        self.start(interrupts, stdout)
            .map_err(|source| ChildError { program, source })
    }

    fn start(self, interrupts: &Interrupts, stdout: &mut dyn Stdout) -> io::Result<(Exit, Vec<String>)> {
        let log = Mutex::new(open_log(&self.log)?);
        let mut command = self.program.command();
        command
            .args(&self.args)
            .envs(self.environment)
            .current_dir(&self.folder)
            .stdin(Stdio::from(self.input));
        // Its own group: Ctrl-C of a terminal reaches it through us only, once.
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
        interrupts.attach(pid);
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (written, kept) = std::thread::scope(|scope| {
            let kept = scope.spawn(|| err.map(|err| keep_lines(err, &log)).unwrap_or_default());
            let written = out.map_or(Ok(()), |out| follow(out, &log, interrupts, stdout));
            (written, kept.join().unwrap_or_default())
        });
        let exit = reap(&mut child, pid, interrupts)?;
        written?;
        Ok((exit, kept))
    }
}

fn follow(
    out: impl Read,
    log: &Mutex<File>,
    interrupts: &Interrupts,
    stdout: &mut dyn Stdout,
) -> io::Result<()> {
    let mut asked_to_end = false;
    let mut failure = None;
    for_each_line(out, |line| {
        // A full disk must not end the reading: the program would block on its output for ever.
        if let Err(error) = append(log, line) {
            failure.get_or_insert(error);
        }
        if stdout.line(line).is_break() && !asked_to_end {
            asked_to_end = true;
            interrupts.interrupt_child();
        }
    })?;
    failure.map_or(Ok(()), Err)
}

fn keep_lines(err: impl Read, log: &Mutex<File>) -> Vec<String> {
    let mut kept = std::collections::VecDeque::new();
    // What cannot be read or logged is missing from the message, and the exit code still tells.
    let _ = for_each_line(err, |line| {
        let _ = append(log, line);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line.to_owned());
    });
    kept.into()
}

fn for_each_line(stream: impl Read, mut take: impl FnMut(&str)) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        take(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
        line.clear();
    }
    Ok(())
}

fn append(log: &Mutex<File>, line: &str) -> io::Result<()> {
    let mut log = log
        .lock()
        .map_err(|_| io::Error::other("the other writer of the log died"))?;
    writeln!(log, "{line}")
}

fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Waits without reaping first, so that no signal is ever forwarded to another process of the same id.
fn reap(child: &mut Child, pid: Pid, interrupts: &Interrupts) -> io::Result<Exit> {
    while let Err(error) = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
        if error != nix::errno::Errno::EINTR {
            return Err(error.into());
        }
    }
    interrupts.detach();
    let status = child.wait()?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    })
}
