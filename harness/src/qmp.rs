//! QEMU's monitor, by the crate `qapi`.
//!
//! Three habits of the protocol and of the crate are kept away from the callers: events come at any time, before the greeting's
//! answer and between replies, and those of a newer QEMU are unknown, so they are taken out of the stream first; a cancelled
//! command would leave its reply to the next one, so each runs to its end in a task; and a lost connection fails what is pending.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use qapi::futures::{QapiService, QmpStreamTokio};
use qapi::qmp::{self, QmpCommand};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

/// What QEMU tells of itself, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QemuEvent {
    /// The guest's kernel panicked.
    GuestPanicked,
    /// The guest switched itself off.
    GuestPoweredOff,
    /// The guest rebooted, or was reset.
    GuestReset,
    /// QEMU stopped the guest since a disk failed.
    DiskStopped {
        /// What the host's system said.
        reason: String,
    },
    /// Anything else.
    Other {
        /// QEMU's name for it.
        name: String,
    },
}

/// An open monitor. Clones share the connection.
#[derive(Clone)]
pub struct Qmp {
    service: Arc<QapiService<QmpStreamTokio<OwnedWriteHalf>>>,
    log: Log,
}

/// Why the monitor did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum QmpError {
    /// QEMU hung up, or never spoke the protocol.
    #[error("QEMU's monitor hung up: QEMU has ended or is ending, see its own output")]
    Closed {
        /// What reading or writing said.
        #[source]
        source: io::Error,
    },
    /// QEMU refused a command.
    #[error("QEMU refused `{command}`: {reason}; see the log of its monitor")]
    Refused {
        /// The command.
        command: &'static str,
        /// QEMU's reason.
        reason: String,
    },
    /// The answer is not what this harness understands.
    #[error(
        "QEMU answered `{command}` with what this harness does not understand: {answer:?}; report it with QEMU's version"
    )]
    Unexpected {
        /// The command.
        command: &'static str,
        /// The answer.
        answer: String,
    },
}

impl Qmp {
    /// Speaks the greeting on `stream`. Each line said by either side is written to `log`; events go to `events`, in order, those
    /// before the greeting's answer too. The reader runs on the current tokio runtime until QEMU hangs up; then `events` closes.
    ///
    /// Sets no deadline: a mute QEMU is waited for.
    ///
    /// # Errors
    /// [`QmpError::Closed`] if QEMU hangs up or does not speak the protocol, [`QmpError::Refused`].
    pub async fn open(
        stream: UnixStream,
        log: File,
        events: mpsc::UnboundedSender<QemuEvent>,
    ) -> Result<Self, QmpError> {
        let log = Log(Arc::new(Mutex::new(log)));
        let (reader, writer) = stream.into_split();
        let (sorted, replies) = tokio::io::duplex(64 * 1024);
        tokio::spawn(sort(reader, sorted, events, log.clone()));

        let opening = QmpStreamTokio::open_split(replies, writer)
            .await
            .map_err(closed)?;
        let (service, answers) = opening.stream.into_parts();
        answers.spawn_tokio();
        let monitor = Self {
            service: Arc::new(service),
            log,
        };
        monitor.execute(qmp::qmp_capabilities { enable: None }).await?;
        Ok(monitor)
    }

    /// Executes a command. The command runs to its end even if the caller gives up waiting.
    ///
    /// # Errors
    /// [`QmpError::Closed`], [`QmpError::Refused`].
    pub async fn execute<C>(&self, command: C) -> Result<C::Ok, QmpError>
    where
        C: QmpCommand + Send + Sync + 'static,
        C::Ok: Send,
    {
        self.log.line(
            "->",
            &format!(
                "{} {}",
                C::NAME,
                serde_json::to_string(&command).unwrap_or_default()
            ),
        );
        match tokio::spawn(self.service.execute(command)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(qapi::ExecuteError::Io(source))) => Err(closed(source)),
            Ok(Err(qapi::ExecuteError::Qapi(error))) => Err(QmpError::Refused {
                command: C::NAME,
                reason: error.to_string(),
            }),
            // The crate panics when a command follows one that could not be written.
            Err(broken) => Err(closed(io::Error::other(broken))),
        }
    }

    /// Asks the human monitor, for the few things that the machine's protocol does not have.
    ///
    /// # Errors
    /// [`QmpError::Closed`], [`QmpError::Refused`].
    pub async fn human(&self, command_line: &str) -> Result<String, QmpError> {
        let command_line = command_line.to_owned();
        self.execute(qmp::human_monitor_command {
            command_line,
            cpu_index: None,
        })
        .await
    }

    /// Tells the human monitor to do what it does in silence, if nothing is wrong.
    ///
    /// # Errors
    /// As [`Qmp::human`]; [`QmpError::Refused`] with what it says.
    pub async fn human_act(&self, command_line: &str) -> Result<(), QmpError> {
        let said = self.human(command_line).await?;
        match said.trim() {
            "" => Ok(()),
            said => Err(QmpError::Refused {
                command: "human-monitor-command",
                reason: said.to_owned(),
            }),
        }
    }

    /// The port of 127.0.0.1 that QEMU chose for the guest's SSH.
    ///
    /// # Errors
    /// [`QmpError`]; [`QmpError::Unexpected`] if there is none.
    pub async fn ssh_port(&self) -> Result<u16, QmpError> {
        self.forwarded_port(22).await
    }

    /// Has QEMU choose a port of 127.0.0.1 that leads to the guest's TCP port `guest_port`, and answers with it.
    ///
    /// # Errors
    /// As [`Qmp::ssh_port`].
    pub async fn forward(&self, guest_port: u16) -> Result<u16, QmpError> {
        self.human_act(&format!("hostfwd_add management tcp:127.0.0.1:0-:{guest_port}"))
            .await?;
        self.forwarded_port(guest_port).await
    }

    async fn forwarded_port(&self, guest_port: u16) -> Result<u16, QmpError> {
        let answer = self.human("info usernet").await?;
        forwarded_port(&answer, guest_port).ok_or(QmpError::Unexpected {
            command: "info usernet",
            answer,
        })
    }
}

impl std::fmt::Debug for Qmp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Qmp")
    }
}

fn closed(source: io::Error) -> QmpError {
    QmpError::Closed { source }
}

#[derive(Clone, Debug)]
struct Log(Arc<Mutex<File>>);

impl Log {
    fn line(&self, direction: &str, line: &str) {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writeln!(file, "{direction} {}", line.trim_end()) {
            tracing::warn!(%error, "cannot write the log of QEMU's monitor");
        }
    }
}

/// Reads lines until the end: events go one way, all else the other. Half a line at the end is nobody's.
async fn sort(
    reader: OwnedReadHalf,
    mut replies: DuplexStream,
    events: mpsc::UnboundedSender<QemuEvent>,
    log: Log,
) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader
        .read_until(b'\n', &mut line)
        .await
        .is_ok_and(|length| length > 0)
    {
        log.line("<-", &String::from_utf8_lossy(&line));
        if let Ok(event) = serde_json::from_slice::<RawEvent>(&line) {
            // Nobody may be listening any more.
            let _ = events.send(event.into());
        } else if !line.ends_with(b"\n") || replies.write_all(&line).await.is_err() {
            return;
        }
        line.clear();
    }
}

#[derive(Deserialize)]
struct RawEvent {
    event: String,
    #[serde(default)]
    data: serde_json::Value,
}

impl From<RawEvent> for QemuEvent {
    fn from(RawEvent { event, data }: RawEvent) -> Self {
        let text = |key: &str| {
            data.get(key)
                .and_then(serde_json::Value::as_str)
                .unwrap_or_default()
        };
        match (event.as_str(), text("reason"), text("action")) {
            ("GUEST_PANICKED", _, _) | ("SHUTDOWN", "guest-panic", _) => Self::GuestPanicked,
            ("SHUTDOWN", "guest-shutdown", _) => Self::GuestPoweredOff,
            ("RESET", "guest-reset" | "host-qmp-system-reset", _) => Self::GuestReset,
            ("BLOCK_IO_ERROR", reason, "stop") => Self::DiskStopped {
                reason: reason.to_owned(),
            },
            _ => Self::Other { name: event },
        }
    }
}

/// The host's port in the table that `info usernet` prints:
///
/// ```text
///   Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ
///   TCP[HOST_FORWARD]  12       127.0.0.1 40123       10.0.2.15    22     0     0
/// ```
fn forwarded_port(table: &str, guest_port: u16) -> Option<u16> {
    table.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        match fields[..] {
            ["TCP[HOST_FORWARD]", _, _, host, _, guest, ..] if guest.parse() == Ok(guest_port) => {
                host.parse().ok()
            }
            _ => None,
        }
    })
}

#[cfg(test)]
pub(crate) mod fake;

#[cfg(test)]
mod tests {
    use super::fake::{FakeMonitor, GREETING, OK};
    use super::*;

    fn event(line: &str) -> QemuEvent {
        serde_json::from_str::<RawEvent>(line).unwrap().into()
    }

    #[test]
    fn events_are_told_apart_by_what_they_mean_for_the_guest() {
        let full = r#"{"event":"BLOCK_IO_ERROR","data":{"device":"","operation":"write","action":"stop","nospace":true,"reason":"No space left on device"}}"#;
        let reported =
            r#"{"event":"BLOCK_IO_ERROR","data":{"action":"report","reason":"Input/output error"}}"#;
        let other = |name: &str| QemuEvent::Other {
            name: name.to_owned(),
        };
        let cases = [
            (
                r#"{"event":"GUEST_PANICKED","data":{"action":"poweroff"}}"#,
                QemuEvent::GuestPanicked,
            ),
            (
                r#"{"event":"SHUTDOWN","data":{"guest":true,"reason":"guest-panic"}}"#,
                QemuEvent::GuestPanicked,
            ),
            (
                r#"{"event":"SHUTDOWN","data":{"guest":true,"reason":"guest-shutdown"}}"#,
                QemuEvent::GuestPoweredOff,
            ),
            (
                r#"{"event":"SHUTDOWN","data":{"guest":false,"reason":"host-qmp-quit"}}"#,
                other("SHUTDOWN"),
            ),
            (
                r#"{"event":"RESET","data":{"guest":true,"reason":"guest-reset"}}"#,
                QemuEvent::GuestReset,
            ),
            (
                r#"{"event":"RESET","data":{"guest":false,"reason":"host-qmp-system-reset"}}"#,
                QemuEvent::GuestReset,
            ),
            (
                full,
                QemuEvent::DiskStopped {
                    reason: "No space left on device".to_owned(),
                },
            ),
            (reported, other("BLOCK_IO_ERROR")),
            (r#"{"event":"STOP"}"#, other("STOP")),
            (
                r#"{"event":"FROM_A_NEWER_QEMU","data":[1]}"#,
                other("FROM_A_NEWER_QEMU"),
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(event(line), expected, "{line}");
        }
    }

    #[test]
    fn the_forwarded_port_is_the_one_for_the_guest_s_port() {
        let table = "Hub -1 (management):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n  \
                     TCP[HOST_FORWARD]  14       127.0.0.1 40999       10.0.2.15    80     0     0\r\n  \
                     TCP[HOST_FORWARD]  13       127.0.0.1 40123       10.0.2.15    22     0     0\r\n";
        assert_eq!(forwarded_port(table, 22), Some(40123));
        assert_eq!(forwarded_port(table, 443), None);
        assert_eq!(forwarded_port("", 22), None);
    }

    #[tokio::test]
    async fn events_come_through_in_order_whenever_they_were_sent() {
        let (mut fake, opening, mut events) = FakeMonitor::dial();
        fake.say(r#"{"event":"STOP"}"#).await;
        fake.say(GREETING).await;
        fake.say(r#"{"event":"FROM_A_NEWER_QEMU","data":{}}"#).await;
        assert_eq!(fake.heard().await, "qmp_capabilities");
        fake.say(r#"{"event":"GUEST_PANICKED","data":{"action":"pause"}}"#)
            .await;
        fake.say(OK).await;

        let _monitor = opening.await.unwrap().unwrap();
        let other = |name: &str| QemuEvent::Other {
            name: name.to_owned(),
        };
        let expected = [
            other("STOP"),
            other("FROM_A_NEWER_QEMU"),
            QemuEvent::GuestPanicked,
        ];
        for event in expected {
            assert_eq!(events.recv().await, Some(event));
        }
    }

    #[tokio::test]
    async fn a_lost_connection_fails_the_command_that_waits() {
        let (fake, monitor, mut events) = FakeMonitor::open().await;
        let waiting = tokio::spawn(async move { monitor.human("info usernet").await });
        fake.hang_up_after_a_command().await;
        assert!(matches!(waiting.await.unwrap(), Err(QmpError::Closed { .. })));
        assert_eq!(events.recv().await, None);
    }

    #[tokio::test]
    async fn half_a_line_and_then_nothing_is_a_lost_connection() {
        let (mut fake, opening, _events) = FakeMonitor::dial();
        fake.say_raw(&GREETING[..20]).await;
        drop(fake);
        assert!(matches!(opening.await.unwrap(), Err(QmpError::Closed { .. })));
    }

    #[tokio::test]
    async fn what_is_no_protocol_at_all_is_a_lost_connection() {
        let (mut fake, opening, _events) = FakeMonitor::dial();
        fake.say("SSH-2.0-OpenSSH_9.2").await;
        assert!(matches!(opening.await.unwrap(), Err(QmpError::Closed { .. })));
    }

    #[tokio::test]
    async fn a_refusal_names_the_command_and_the_reason() {
        let (mut fake, monitor, _events) = FakeMonitor::open().await;
        let waiting = tokio::spawn(async move { monitor.human("info nonsense").await });
        fake.heard().await;
        fake.say(r#"{"error":{"class":"GenericError","desc":"unknown command"}}"#)
            .await;
        let message = waiting.await.unwrap().unwrap_err().to_string();
        assert!(
            message.starts_with("QEMU refused `human-monitor-command`"),
            "{message}"
        );
        assert!(message.contains("unknown command"), "{message}");
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_does_not_leave_its_answer_to_the_next() {
        let (mut fake, monitor, _events) = FakeMonitor::open().await;
        let given_up = tokio::spawn({
            let monitor = monitor.clone();
            async move { monitor.human("first").await }
        });
        fake.heard().await;
        given_up.abort();
        assert!(given_up.await.is_err());

        let next = tokio::spawn(async move { monitor.human("second").await });
        fake.say(r#"{"return":"answer to the first"}"#).await;
        fake.heard().await;
        fake.say(r#"{"return":"answer to the second"}"#).await;
        assert_eq!(next.await.unwrap().unwrap(), "answer to the second");
    }
}
