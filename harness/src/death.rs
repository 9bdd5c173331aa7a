//! How a guest's life ends, and what is told of it.
//!
//! Every wait races the guest's death, so that a panic or a killed QEMU ends it at once and with evidence, rather
//! than at its deadline and without.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::console::{self, Console};
use crate::guard;
use crate::qmp::QemuEvent;

/// The end of a guest's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Death {
    /// Its kernel panicked and told QEMU so.
    Panicked,
    /// Its console shows that the kernel panicked.
    PanicOnConsole {
        /// The line that says so.
        line: String,
    },
    /// It switched itself off, and nobody had asked it to.
    PoweredOff,
    /// QEMU stopped it since one of its disks failed: the host's disk is full, most often.
    DiskError {
        /// What the host's system said.
        reason: String,
    },
    /// QEMU ended.
    Exited {
        /// How.
        how: guard::Death,
    },
    /// The test stopped or killed it.
    Stopped,
}

impl Death {
    /// The end that an event of QEMU means, if it means one. A guest's own reboot does not.
    pub fn of_event(event: &QemuEvent) -> Option<Self> {
        match event {
            QemuEvent::GuestPanicked => Some(Self::Panicked),
            QemuEvent::GuestPoweredOff => Some(Self::PoweredOff),
            QemuEvent::DiskStopped { reason } => Some(Self::DiskError {
                reason: reason.clone(),
            }),
            QemuEvent::GuestReset | QemuEvent::Other { .. } => None,
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked => formatter.write_str("the guest's kernel panicked"),
            Self::PanicOnConsole { line } => write!(formatter, "the guest's console says: {line}"),
            Self::PoweredOff => formatter.write_str("the guest switched itself off"),
            Self::DiskError { reason } => {
                write!(
                    formatter,
                    "QEMU stopped the guest, a disk failed ({reason}): see if the host's disk is full"
                )
            }
            Self::Exited {
                how: guard::Death::Exited(code),
            } => write!(formatter, "QEMU ended with exit code {code}"),
            Self::Exited {
                how: guard::Death::Signal(signal),
            } => write!(formatter, "QEMU was killed by signal {signal}"),
            Self::Exited {
                how: guard::Death::Unknown,
            } => formatter.write_str("QEMU was killed with its guard"),
            Self::Stopped => formatter.write_str("the test had stopped it"),
        }
    }
}

/// The line in which a console says that the kernel panicked.
pub(crate) const PANIC_ON_CONSOLE: &str = "Kernel panic - not syncing";

/// Announces one guest's death: the first one told is the one that counts.
#[derive(Clone, Debug)]
pub struct DeathNotice {
    sender: watch::Sender<Option<Death>>,
}

/// Sees one guest's death. Clones see the same.
#[derive(Clone, Debug)]
pub struct DeathWatch {
    receiver: watch::Receiver<Option<Death>>,
}

/// A notice and the watch that sees it.
pub fn death_watch() -> (DeathNotice, DeathWatch) {
    let (sender, receiver) = watch::channel(None);
    (DeathNotice { sender }, DeathWatch { receiver })
}

impl DeathNotice {
    /// Tells of the guest's death, unless one was told already.
    pub fn tell(&self, death: Death) {
        self.sender.send_if_modified(|told| {
            let first = told.is_none();
            told.get_or_insert(death);
            first
        });
    }
}

impl DeathWatch {
    /// The guest's death, if it is dead.
    pub fn seen(&self) -> Option<Death> {
        self.receiver.borrow().clone()
    }

    /// Waits for the guest's death.
    pub async fn died(&self) -> Death {
        let mut receiver = self.receiver.clone();
        match receiver.wait_for(Option::is_some).await {
            Ok(told) => told.clone().unwrap_or(Death::Stopped),
            // Whoever watched over the guest is gone: so is the guest.
            Err(_) => self.seen().unwrap_or(Death::Stopped),
        }
    }

    /// Waits for `work`, but no longer than the guest lives.
    ///
    /// # Errors
    /// The guest's death.
    pub async fn race<T>(&self, work: impl Future<Output = T>) -> Result<T, Death> {
        tokio::select! {
            biased;
            death = self.died() => Err(death),
            done = work => Ok(done),
        }
    }
}

/// Lines of the console, and of QEMU's own output, that an error shows.
const LINES_SHOWN: usize = 20;

/// What a failure shows of a guest: the end of its console, what QEMU said, and where the rest is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The guest.
    pub machine: String,
    /// The last lines of its console.
    pub console: String,
    /// The last lines QEMU itself printed.
    pub stderr: String,
    /// The folder of the test's artifacts.
    pub artifacts: PathBuf,
}

impl Evidence {
    /// Gathers what there is now.
    pub fn gather(machine: &str, console: &Console, stderr: &Path, artifacts: &Path) -> Self {
        let said = console::tail(stderr, LINES_SHOWN);
        // Emulation tells of each feature of the CPU model that it lacks; it means nothing.
        let told: Vec<_> = said
            .lines()
            .filter(|line| !line.contains("TCG doesn't support requested feature"))
            .collect();
        Self {
            machine: machine.to_owned(),
            console: console.tail(LINES_SHOWN),
            stderr: told.join("\n"),
            artifacts: artifacts.to_owned(),
        }
    }
}

/// Follows an error's own text: it begins with a line break and ends in the path of the artifacts.
impl fmt::Display for Evidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut quote = |title: &str, text: &str| match text {
            "" => write!(formatter, "\n{title}: nothing"),
            text => {
                write!(formatter, "\n{title}:")?;
                text.lines()
                    .try_for_each(|line| write!(formatter, "\n  | {line}"))
            }
        };
        quote(
            &format!("the last lines of the console of `{}`", self.machine),
            &self.console,
        )?;
        quote("QEMU said", &self.stderr)?;
        write!(formatter, "\nartifacts: {}", self.artifacts.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_guest_s_life_is_a_death() {
        let full = "No space left on device".to_owned();
        let cases = [
            (QemuEvent::GuestPanicked, Some(Death::Panicked)),
            (QemuEvent::GuestPoweredOff, Some(Death::PoweredOff)),
            (
                QemuEvent::DiskStopped { reason: full.clone() },
                Some(Death::DiskError { reason: full }),
            ),
            (QemuEvent::GuestReset, None),
            (
                QemuEvent::Other {
                    name: "RTC_CHANGE".to_owned(),
                },
                None,
            ),
        ];
        for (event, death) in cases {
            assert_eq!(Death::of_event(&event), death, "{event:?}");
        }
    }

    #[tokio::test]
    async fn the_first_death_told_is_the_one_seen() {
        let (notice, watch) = death_watch();
        assert_eq!(watch.seen(), None);
        notice.tell(Death::Panicked);
        notice.tell(Death::Exited {
            how: guard::Death::Exited(0),
        });
        assert_eq!(watch.died().await, Death::Panicked);
        assert_eq!(watch.seen(), Some(Death::Panicked));
    }

    #[tokio::test]
    async fn a_death_ends_a_wait_that_would_never_end() {
        let (notice, watch) = death_watch();
        let waiting = tokio::spawn({
            let watch = watch.clone();
            async move { watch.race(std::future::pending::<()>()).await }
        });
        tokio::task::yield_now().await;
        notice.tell(Death::PoweredOff);
        assert_eq!(waiting.await.unwrap(), Err(Death::PoweredOff));
    }

    #[tokio::test]
    async fn what_is_done_after_a_death_does_not_count() {
        let (notice, watch) = death_watch();
        notice.tell(Death::Panicked);
        assert_eq!(watch.race(async { "done" }).await, Err(Death::Panicked));
    }

    #[tokio::test]
    async fn a_lost_watcher_is_a_death() {
        let (notice, watch) = death_watch();
        drop(notice);
        assert_eq!(watch.died().await, Death::Stopped);
    }

    #[test]
    fn evidence_quotes_both_outputs_and_ends_in_the_artifacts_path() {
        let evidence = Evidence {
            machine: "app".to_owned(),
            console: "one\ntwo".to_owned(),
            stderr: String::new(),
            artifacts: "/t/vm-artifacts/guests/a_test".into(),
        };
        assert_eq!(
            evidence.to_string(),
            "\nthe last lines of the console of `app`:\n  | one\n  | two\nQEMU said: nothing\nartifacts: /t/vm-artifacts/guests/a_test"
        );
    }

    #[test]
    fn the_emulator_s_warnings_are_no_evidence() {
        let folder = tempfile::tempdir().unwrap();
        let (console, stderr) = (folder.path().join("console"), folder.path().join("stderr"));
        std::fs::write(&console, "booting\r\n").unwrap();
        let warning = "qemu: warning: TCG doesn't support requested feature: CPUID.01H:ECX.f16c [bit 29]";
        std::fs::write(&stderr, format!("{warning}\nqemu: out of memory\n")).unwrap();

        let evidence = Evidence::gather("app", &Console::new(&console), &stderr, folder.path());
        assert_eq!(
            (evidence.console.as_str(), evidence.stderr.as_str()),
            ("booting", "qemu: out of memory")
        );
    }
}
