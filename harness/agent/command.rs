//! One command: its process, its three streams, and when it counts as ended.
//!
//! The rule: a command has ended when its first process has. What stands in its output pipes at that moment still
//! belongs to it; what a background child writes later is read and thrown away, so that the child is neither
//! waited for nor killed by a closed pipe.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::sys::{self, Epoll, Interest};
use crate::tree::{Cgroups, MARKER, Tree};
use crate::wire::{Bytes, CHUNK, Ending, Exec, Frame, WINDOW};

/// What a token of [`Epoll`] stands for besides the command's serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Process,
    Stdin,
    Stdout,
    Stderr,
}

/// The token of a part of a command; serial numbers start at 1, so 0 to 3 are free for others.
pub(crate) fn token(serial: u64, part: Part) -> u64 {
    serial << 2 | part as u64
}

/// The reverse of [`token`].
pub(crate) fn parse_token(token: u64) -> (u64, Part) {
    let part = [Part::Process, Part::Stdin, Part::Stdout, Part::Stderr][(token & 3) as usize];
    (token >> 2, part)
}

/// Whether the port takes more output now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Some,
    None,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Running,
    /// The first process has ended; the pipes are being emptied.
    Ended,
    /// Reported. Only the pipes of background children are left.
    Reported,
}

/// A command that was started.
pub(crate) struct Running {
    id: u32,
    serial: u64,
    child: Child,
    process: Watched<OwnedFd>,
    tree: Tree,
    phase: Phase,
    deadline: Instant,
    deadline_passed: bool,
    stdin: Option<Watched<File>>,
    stdin_queue: VecDeque<u8>,
    stdin_ended: bool,
    stdout: Option<OutputPipe>,
    stderr: Option<OutputPipe>,
    window: usize,
}

struct OutputPipe {
    pipe: Watched<File>,
    /// How many bytes of it still belong to the command; all until the first process has ended.
    left: usize,
}

impl Running {
    /// Starts a command. An error is what a shell would say on stderr, and the code it would exit with.
    pub(crate) fn start(
        id: u32,
        serial: u64,
        exec: &Exec,
        marker: String,
        cgroups: &Cgroups,
    ) -> Result<Self, (String, u8)> {
        let mut command = prepare(exec)?;
        command.env(MARKER, &marker);
        let (cgroup, procs) = cgroups.create(serial).unzip();
        sys::in_own_session(&mut command, procs);
        let started = command
            .spawn()
            .and_then(|child| Ok((sys::pidfd(child.id())?, child)));
        // Also closes our copies of the child's ends and of the cgroup's file.
        drop(command);
        let (pidfd, mut child) = started.map_err(|error| {
            if let Some(cgroup) = &cgroup {
                let _ = std::fs::remove_dir(cgroup);
            }
            let code = if error.kind() == io::ErrorKind::NotFound {
                127
            } else {
                126
            };
            (format!("cannot start {}: {error}", exec.argv[0]), code)
        })?;
        let pipe = |fd: OwnedFd| {
            sys::set_nonblocking(fd.as_fd())
                .map_err(|error| (format!("cannot prepare a pipe: {error}"), 126))?;
            Ok(Watched::new(File::from(fd)))
        };
        let stdin = child.stdin.take().map(|stdin| pipe(stdin.into())).transpose()?;
        let stdout = child
            .stdout
            .take()
            .map(|stdout| pipe(stdout.into()))
            .transpose()?;
        let stderr = child
            .stderr
            .take()
            .map(|stderr| pipe(stderr.into()))
            .transpose()?;
        let output = |pipe| OutputPipe {
            pipe,
            left: usize::MAX,
        };
        Ok(Self {
            id,
            serial,
            tree: Tree {
                leader: child.id(),
                marker,
                cgroup,
            },
            child,
            process: Watched::new(pidfd),
            phase: Phase::Running,
            // A deadline beyond what the clock can say is none: a century will do.
            deadline: Instant::now() + Duration::from_millis(exec.deadline.min(100 * 365 * 86_400_000)),
            deadline_passed: false,
            stdin,
            stdin_queue: VecDeque::new(),
            stdin_ended: false,
            stdout: stdout.map(output),
            stderr: stderr.map(output),
            window: WINDOW,
        })
    }

    /// Whether the host still speaks of this command under this number.
    pub(crate) fn is(&self, id: u32) -> bool {
        self.id == id && self.phase != Phase::Reported
    }

    /// When the command must be killed.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (self.phase == Phase::Running && !self.deadline_passed).then_some(self.deadline)
    }

    /// The deadline has come.
    pub(crate) fn kill_at_deadline(&mut self) {
        self.deadline_passed = true;
        self.tree.kill();
    }

    /// The host wants it gone.
    pub(crate) fn kill(&self) {
        self.tree.kill();
    }

    /// The host has gone. A running command is killed, and nothing more is said of it: the next host gives its number
    /// to another. One that was reported may have left daemons behind on purpose; they stay.
    pub(crate) fn abandon(&mut self) {
        if self.phase != Phase::Reported {
            self.tree.kill();
            self.phase = Phase::Reported;
            self.close_stdin();
        }
    }

    /// The host took output.
    pub(crate) fn credit(&mut self, bytes: u32) {
        self.window = self.window.saturating_add(bytes as usize).min(WINDOW);
    }

    /// The host sends input.
    pub(crate) fn feed(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) {
        self.stdin_queue.extend(bytes);
        self.write_stdin(frames);
    }

    /// The host has no more input.
    pub(crate) fn end_stdin(&mut self, frames: &mut Vec<Frame>) {
        self.stdin_ended = true;
        self.write_stdin(frames);
    }

    /// Something happened to a part of the command.
    pub(crate) fn advance(&mut self, part: Part, room: Room, frames: &mut Vec<Frame>) {
        match part {
            Part::Stdin => self.write_stdin(frames),
            Part::Stdout | Part::Stderr => self.read_output(part, room, frames),
            Part::Process => self.end(),
        }
    }

    /// Watches just what can make progress. False when nothing is left of the command.
    pub(crate) fn settle(&mut self, epoll: &Epoll, room: Room, frames: &mut Vec<Frame>) -> bool {
        self.report_if_drained(frames);
        let wants_output = self.phase == Phase::Reported || (room == Room::Some && self.window > 0);
        let serial = self.serial;
        let reaped = self.phase == Phase::Reported && matches!(self.child.try_wait(), Ok(Some(_)) | Err(_));
        let lives = self.phase == Phase::Running || (self.phase == Phase::Reported && !reaped);
        self.process
            .watch(epoll, lives, Interest::Read, token(serial, Part::Process));
        let writes = !self.stdin_queue.is_empty();
        if let Some(stdin) = &mut self.stdin {
            stdin.watch(epoll, writes, Interest::Write, token(serial, Part::Stdin));
        }
        for (output, part) in [(&mut self.stdout, Part::Stdout), (&mut self.stderr, Part::Stderr)] {
            if let Some(output) = output {
                output
                    .pipe
                    .watch(epoll, wants_output, Interest::Read, token(serial, part));
            }
        }
        let open = self.stdout.is_some() || self.stderr.is_some();
        !reaped || open || !self.tree.forget()
    }

    fn close_stdin(&mut self) {
        self.stdin = None;
        self.stdin_queue.clear();
    }

    fn write_stdin(&mut self, frames: &mut Vec<Frame>) {
        let mut taken = 0;
        while !self.stdin_queue.is_empty() {
            let queued = self.stdin_queue.as_slices().0;
            match self.stdin.as_mut().map(|stdin| stdin.inner.write(queued)) {
                Some(Ok(written)) => {
                    self.stdin_queue.drain(..written);
                    taken += written;
                }
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Nobody reads it any more: the rest is thrown away, as a pipe in a shell would.
                Some(Err(_)) | None => {
                    taken += self.stdin_queue.len();
                    self.close_stdin();
                }
            }
        }
        if self.stdin_ended && self.stdin_queue.is_empty() {
            self.stdin = None;
        }
        if taken > 0 {
            frames.push(Frame::Credit {
                id: self.id,
                bytes: taken as u32,
            });
        }
    }

    fn read_output(&mut self, part: Part, room: Room, frames: &mut Vec<Frame>) {
        let (id, discard) = (self.id, self.phase == Phase::Reported);
        let limit = if discard { CHUNK } else { CHUNK.min(self.window) };
        if limit == 0 || (!discard && room == Room::None) {
            return;
        }
        let slot = if part == Part::Stdout {
            &mut self.stdout
        } else {
            &mut self.stderr
        };
        let Some(output) = slot else { return };
        let mut chunk = vec![0; if discard { limit } else { limit.min(output.left) }];
        match output.pipe.inner.read(&mut chunk) {
            Ok(0) => *slot = None,
            Ok(_) if discard => {}
            Ok(read) => {
                output.left -= read;
                self.window -= read;
                chunk.truncate(read);
                let bytes = Bytes(chunk);
                frames.push(match part {
                    Part::Stdout => Frame::Stdout { id, bytes },
                    _ => Frame::Stderr { id, bytes },
                });
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => *slot = None,
        }
    }

    fn end(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        self.phase = Phase::Ended;
        for output in [&mut self.stdout, &mut self.stderr].into_iter().flatten() {
            output.left = sys::readable_bytes(output.pipe.inner.as_fd()).unwrap_or(0);
        }
    }

    fn report_if_drained(&mut self, frames: &mut Vec<Frame>) {
        let drained = |output: &Option<OutputPipe>| output.as_ref().is_none_or(|output| output.left == 0);
        if self.phase != Phase::Ended || !drained(&self.stdout) || !drained(&self.stderr) {
            return;
        }
        self.close_stdin();
        self.phase = Phase::Reported;
        // Only here is the process reaped: until now its number could be used to find its tree.
        let ending = match self.child.wait() {
            _ if self.deadline_passed => Ending::Deadline,
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Ending::Code(code as u8),
                (None, signal) => Ending::Signal(signal.unwrap_or(0)),
            },
            Err(_) => Ending::Signal(0),
        };
        frames.push(Frame::Exit { id: self.id, ending });
    }
}

fn prepare(exec: &Exec) -> Result<Command, (String, u8)> {
    let (program, arguments) = exec
        .argv
        .split_first()
        .ok_or(("no program was named".to_owned(), 126))?;
    let folder = if exec.cwd.is_empty() { "/" } else { &exec.cwd };
    if !Path::new(folder).is_dir() {
        return Err((
            format!("cannot change to the folder {folder}: it does not exist"),
            126,
        ));
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    // An agent started by a bare init has next to no environment.
    for (name, value) in [
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        ("HOME", "/root"),
    ] {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    command.envs(exec.env.iter().map(|(name, value)| (name, value)));
    command.stdin(if exec.stdin { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// A descriptor that is watched only while somebody waits for it: a pipe that is at its end is "ready" for ever.
struct Watched<T: AsFd> {
    inner: T,
    on: bool,
}

impl<T: AsFd> Watched<T> {
    fn new(inner: T) -> Self {
        Self { inner, on: false }
    }

    fn watch(&mut self, epoll: &Epoll, wanted: bool, interest: Interest, token: u64) {
        if wanted == self.on {
            return;
        }
        let changed = if wanted {
            epoll.add(self.inner.as_fd(), interest, token)
        } else {
            epoll.remove(self.inner.as_fd())
        };
        self.on = if changed.is_ok() { wanted } else { self.on };
    }
}
