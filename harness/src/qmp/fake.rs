//! `FakeMonitor`: the other end of a monitor, played by the test, to make failures happen.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{QemuEvent, Qmp, QmpError};

pub(crate) const GREETING: &str = r#"{"QMP":{"version":{"qemu":{"micro":22,"minor":2,"major":7},"package":"fake"},"capabilities":["oob"]}}"#;
pub(crate) const OK: &str = r#"{"return":{}}"#;

pub(crate) struct FakeMonitor {
    stream: BufReader<UnixStream>,
}

type Opening = JoinHandle<Result<Qmp, QmpError>>;
type Events = mpsc::UnboundedReceiver<QemuEvent>;

impl FakeMonitor {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// A fake that has said nothing, and the harness waiting for its greeting.
    pub(crate) fn dial() -> (Self, Opening, Events) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (sender, events) = mpsc::unbounded_channel();
        let opening = tokio::spawn(Qmp::open(theirs, tempfile::tempfile().unwrap(), sender));
        (Self::new(ours), opening, events)
    }

    /// A fake that has spoken the greeting with the harness.
    pub(crate) async fn open() -> (Self, Qmp, Events) {
        let (mut fake, opening, events) = Self::dial();
        fake.greet().await;
        (fake, opening.await.unwrap().unwrap(), events)
    }

    pub(crate) async fn greet(&mut self) {
        self.say(GREETING).await;
        assert_eq!(self.heard().await, "qmp_capabilities");
        self.say(OK).await;
    }

    pub(crate) async fn say(&mut self, line: &str) {
        self.say_raw(&format!("{line}\r\n")).await;
    }

    pub(crate) async fn say_raw(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// The name of the next command.
    pub(crate) async fn heard(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        let command: serde_json::Value = serde_json::from_str(&line).unwrap();
        command["execute"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn hang_up_after_a_command(mut self) {
        self.heard().await;
    }
}
