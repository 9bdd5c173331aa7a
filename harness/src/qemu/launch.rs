//! Starting QEMU and watching over it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use super::Paths;
use super::process::Process;
use crate::artifacts::MachineArtifacts;
use crate::console::{Console, Search};
use crate::death::{self, Death, DeathNotice, DeathWatch, Evidence};
use crate::guard::{self, Guard, GuardError};
use crate::qmp::{QemuEvent, Qmp, QmpError};
use crate::timeline::Timeline;
use crate::wait::Deadline;

/// QEMU greets within a tenth of a second; the rest is for a host with more to do.
const GREETING_PATIENCE: Duration = Duration::from_secs(60);

/// How long a QEMU that hung up may take to end, until it is killed.
const ENDING_PATIENCE: Duration = Duration::from_secs(5);

/// How long the monitor of an ended QEMU is read.
const LAST_WORDS_PATIENCE: Duration = Duration::from_secs(1);

/// How often the console is searched for a panic.
const CONSOLE_PAUSE: Duration = Duration::from_millis(50);

/// What to start, and where what it says goes.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The machine's name.
    pub machine: String,
    /// QEMU: a path, or a name to be found on `PATH`.
    pub program: PathBuf,
    /// Its arguments; see [`args`](super::args()).
    pub args: Vec<OsString>,
    /// The sockets that the arguments name.
    pub paths: Paths,
    /// The machine's evidence.
    pub files: MachineArtifacts,
    /// The test's folder of evidence, for messages.
    pub artifacts: PathBuf,
    /// Where the program that guards it is kept.
    pub guard_folder: PathBuf,
    /// QEMU's temporary folder: what a guest writes to a shared disk is there.
    pub scratch: PathBuf,
    /// The test's timeline.
    pub timeline: Timeline,
}

/// A QEMU that runs and is watched over.
///
/// It ends with the process that started it, however that one ends; dropping the value kills it.
#[derive(Debug)]
pub struct Qemu {
    machine: String,
    process: Process,
    monitor: Qmp,
    death: DeathWatch,
    notice: DeathNotice,
    resets: watch::Receiver<u32>,
    console: Console,
    stderr: PathBuf,
    artifacts: PathBuf,
}

/// Why QEMU does not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It cannot be started at all.
    #[error("QEMU does not start: {error}; on Debian it is in the package qemu-system-x86")]
    Spawn {
        /// Why.
        error: GuardError,
    },
    /// It ended before its monitor answered.
    #[error("at its start, {}: what it said is below{evidence}", Death::Exited { how: *.how })]
    DiedAtStart {
        /// How it ended.
        how: guard::Death,
        /// What it said.
        evidence: Box<Evidence>,
    },
    /// Its monitor does not answer.
    #[error("QEMU runs, but its monitor said nothing for {:.0} s: is the host overloaded?{evidence}", .waited.as_secs_f64())]
    Mute {
        /// How long it was waited for.
        waited: Duration,
        /// What it said elsewhere.
        evidence: Box<Evidence>,
    },
    /// Its monitor answered, and refused.
    #[error("QEMU's monitor failed at the start: {error}{evidence}")]
    Monitor {
        /// What it said.
        error: QmpError,
        /// What QEMU said elsewhere.
        evidence: Box<Evidence>,
    },
    /// A socket or a file for it cannot be made.
    #[error("cannot prepare {} for QEMU: check permissions and free space", .path.display())]
    Prepare {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Qemu {
    /// Starts QEMU and waits until its monitor answers. Its watch runs on the current tokio runtime.
    ///
    /// # Errors
    /// [`LaunchError`]; nothing is left running then.
    pub async fn launch(launch: Launch) -> Result<Self, LaunchError> {
        let Launch {
            machine,
            program,
            args,
            paths,
            files,
            artifacts,
            guard_folder,
            scratch,
            timeline,
        } = launch;
        let prepare = |path: &Path| {
            let path = path.to_owned();
            move |source| LaunchError::Prepare { path, source }
        };
        std::fs::write(&files.command, command_lines(&program, &args)).map_err(prepare(&files.command))?;
        let log = File::create(&files.qmp).map_err(prepare(&files.qmp))?;
        let stderr = File::create(&files.stderr).map_err(prepare(&files.stderr))?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let listener = UnixListener::bind(&paths.qmp).map_err(prepare(&paths.qmp))?;
        let console = Console::new(&paths.console);
        let evidence = || Box::new(Evidence::gather(&machine, &console, &files.stderr, &artifacts));

        let guard = Guard::new(program)
            .args(args)
            .env("PATH", path)
            .env("TMPDIR", scratch)
            .stderr(stderr);
        let process = Process::keep(
            guard
                .spawn(&guard_folder)
                .await
                .map_err(|error| LaunchError::Spawn { error })?,
        );
        let (sender, events) = mpsc::unbounded_channel();
        let deadline = Deadline::after(GREETING_PATIENCE);
        let greeting = deadline.limit(greet(listener, log, sender));
        let greeted = tokio::select! {
            biased;
            greeted = greeting => greeted,
            how = process.ended() => return Err(LaunchError::DiedAtStart { how, evidence: evidence() }),
        };
        let monitor = match greeted {
            Some(Ok(monitor)) => monitor,
            Some(Err(QmpError::Closed { .. })) => {
                if Deadline::after(ENDING_PATIENCE)
                    .limit(process.ended())
                    .await
                    .is_none()
                {
                    process.kill();
                }
                return Err(LaunchError::DiedAtStart {
                    how: process.ended().await,
                    evidence: evidence(),
                });
            }
            Some(Err(error)) => {
                process.kill();
                process.ended().await;
                return Err(LaunchError::Monitor {
                    error,
                    evidence: evidence(),
                });
            }
            None => {
                let waited = deadline.waited();
                process.kill();
                process.ended().await;
                return Err(LaunchError::Mute {
                    waited,
                    evidence: evidence(),
                });
            }
        };

        let (notice, death) = death::death_watch();
        let (reset, resets) = watch::channel(0);
        let watch = Watch {
            machine: machine.clone(),
            process: process.clone(),
            notice: notice.clone(),
            reset,
            panic: console.search(death::PANIC_ON_CONSOLE, console.start()),
            console: console.clone(),
            timeline,
        };
        tokio::spawn(watch.run(events));
        Ok(Self {
            machine,
            process,
            monitor,
            death,
            notice,
            resets,
            console,
            stderr: files.stderr,
            artifacts,
        })
    }

    /// Its monitor.
    pub fn monitor(&self) -> &Qmp {
        &self.monitor
    }

    /// Sees its guest's death.
    pub fn death(&self) -> &DeathWatch {
        &self.death
    }

    /// How often its guest has rebooted.
    pub fn resets(&self) -> watch::Receiver<u32> {
        self.resets.clone()
    }

    /// Its guest's console.
    pub fn console(&self) -> &Console {
        &self.console
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Drops `kept` when it has ended. Must be called on the runtime that it was launched on.
    pub(crate) fn keep_until_gone(&self, kept: impl Send + 'static) {
        let process = self.process.clone();
        tokio::spawn(async move {
            process.ended().await;
            drop(kept);
        });
    }

    /// What a failure shows of it, as of now.
    pub fn evidence(&self) -> Evidence {
        Evidence::gather(&self.machine, &self.console, &self.stderr, &self.artifacts)
    }

    /// Has it killed, without waiting for that.
    pub fn give_up(&self) {
        self.notice.tell(Death::Stopped);
        self.process.kill();
    }

    /// Kills it, and returns when no process of it is left. A death that was noticed before remains the one that is told.
    pub async fn kill(&self) {
        self.give_up();
        self.process.ended().await;
    }

    /// Ends it in order, so that it writes out what it holds; kills it if that takes too long.
    ///
    /// # Errors
    /// The death that came before.
    pub async fn quit(&self) -> Result<(), Death> {
        let before = self.death.seen();
        self.notice.tell(Death::Stopped);
        // It may hang up instead of answering.
        let asked = async {
            let _ = self.monitor.execute(qapi::qmp::quit {}).await;
            self.process.ended().await;
        };
        if Deadline::after(ENDING_PATIENCE).limit(asked).await.is_none() {
            self.kill().await;
        }
        before.map_or(Ok(()), Err)
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Waits for QEMU to call, and greets it.
async fn greet(
    listener: UnixListener,
    log: File,
    events: mpsc::UnboundedSender<QemuEvent>,
) -> Result<Qmp, QmpError> {
    let accepted: io::Result<(UnixStream, _)> = listener.accept().await;
    let (stream, _) = accepted.map_err(|source| QmpError::Closed { source })?;
    Qmp::open(stream, log, events).await
}

/// One argument a line, so that two runs can be compared.
fn command_lines(program: &Path, args: &[OsString]) -> String {
    let lines = std::iter::once(program.as_os_str()).chain(args.iter().map(OsString::as_os_str));
    lines
        .map(|line| format!("{}\n", line.to_string_lossy()))
        .collect()
}

/// Sees every way in which a guest's life can end, and tells of it once.
struct Watch {
    machine: String,
    process: Process,
    notice: DeathNotice,
    reset: watch::Sender<u32>,
    panic: Search,
    console: Console,
    timeline: Timeline,
}

impl Watch {
    async fn run(mut self, mut events: mpsc::UnboundedReceiver<QemuEvent>) {
        let mut pause = tokio::time::interval(CONSOLE_PAUSE);
        pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => self.see(&event),
                how = self.process.ended() => {
                    // What it said last tells more than how it ended. Its end closes the channel.
                    let last_words = async {
                        while let Some(event) = events.recv().await {
                            self.see(&event);
                        }
                    };
                    let _ = Deadline::after(LAST_WORDS_PATIENCE).limit(last_words).await;
                    self.look_at_console();
                    self.timeline.note(&self.machine, Death::Exited { how });
                    self.notice.tell(Death::Exited { how });
                    return;
                }
                _ = pause.tick() => self.look_at_console(),
            }
        }
    }

    fn see(&self, event: &QemuEvent) {
        if *event == QemuEvent::GuestReset {
            self.reset.send_modify(|resets| *resets += 1);
        }
        if let Some(death) = Death::of_event(event) {
            self.end(death);
        }
    }

    fn look_at_console(&mut self) {
        if let Ok(Some(found)) = self.panic.look() {
            let rest = self.console.since(found).unwrap_or_default();
            let line = format!(
                "{}{}",
                death::PANIC_ON_CONSOLE,
                rest.lines().next().unwrap_or_default()
            );
            self.end(Death::PanicOnConsole { line });
        }
    }

    /// A guest that died does not go on, so that the evidence stays as it was and its memory is free.
    fn end(&self, death: Death) {
        self.timeline.note(&self.machine, &death);
        self.notice.tell(death);
        self.process.kill();
    }
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
