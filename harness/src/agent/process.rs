//! A command that an agent runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout_at};

use super::session::{Session, Started};
use super::wire::{Bytes, CHUNK, Exec, Frame, WINDOW};
use crate::exec::{
    AfterStdin, BoxFuture, Command, Event, ExecError, ExitStatus, InputSender, RunningCommand,
};
use crate::wait::scaled;

/// The agent keeps the deadline itself. If it has not even told of it after this long, the guest stands still.
const GRACE: Duration = Duration::from_secs(20);

pub(super) struct AgentProcess {
    session: Arc<Session>,
    id: u32,
    events: mpsc::UnboundedReceiver<Event>,
    input: Option<InputSender>,
    given_up: Instant,
    /// Taken by the caller and not yet told to the agent.
    uncredited: usize,
}

impl AgentProcess {
    pub(super) fn start(session: Arc<Session>, command: Command) -> Result<Self, ExecError> {
        let shown = command.to_string();
        let deadline = scaled(command.deadline.min(Duration::from_secs(86_400 * 365)));
        let given_up = Instant::now() + deadline + GRACE;
        let exec = Exec {
            argv: command.argv,
            env: command.env.into_iter().collect(),
            cwd: command.cwd,
            stdin: command.stdin.is_some(),
            deadline: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
        };
        let started = session.start(exec);
        let Started { id, events, credit } =
            started.map_err(|_| ExecError::Disconnected { command: shown })?;
        let mut input = None;
        if let Some(stdin) = command.stdin {
            let (sender, pieces) = mpsc::unbounded_channel();
            tokio::spawn(feed(Arc::downgrade(&session), id, stdin, pieces, credit));
            input = (command.after_stdin == AfterStdin::More).then_some(sender);
        }
        Ok(Self {
            session,
            id,
            events,
            input,
            given_up,
            uncredited: 0,
        })
    }

    fn taken(&mut self, bytes: usize) {
        self.uncredited += bytes;
        // Not for each piece: the agent needs to hear of it only before its window is used up.
        if self.uncredited >= WINDOW / 4 {
            self.session.send(Frame::Credit {
                id: self.id,
                bytes: self.uncredited as u32,
            });
            self.uncredited = 0;
        }
    }
}

/// Sends input as far as the agent has room for it: what there is beforehand, and then what comes, until nobody can send more.
async fn feed(
    session: std::sync::Weak<Session>,
    id: u32,
    stdin: Vec<u8>,
    mut pieces: mpsc::UnboundedReceiver<Vec<u8>>,
    credit: Arc<Semaphore>,
) {
    let mut next = Some(stdin);
    while let Some(piece) = next {
        for chunk in piece.chunks(CHUNK) {
            // Closed when the command has ended.
            let Ok(permits) = credit.acquire_many(chunk.len() as u32).await else {
                return;
            };
            permits.forget();
            let Some(session) = session.upgrade() else { return };
            session.send(Frame::Stdin {
                id,
                bytes: Bytes(chunk.to_vec()),
            });
        }
        next = pieces.recv().await;
    }
    if let Some(session) = session.upgrade() {
        session.send(Frame::StdinEnd { id });
    }
}

impl RunningCommand for AgentProcess {
    fn take_input(&mut self) -> Option<InputSender> {
        self.input.take()
    }

    fn next(&mut self) -> BoxFuture<'_, Event> {
        Box::pin(async move {
            match timeout_at(self.given_up, self.events.recv()).await {
                Ok(Some(event)) => {
                    if let Event::Output(_, bytes) = &event {
                        self.taken(bytes.len());
                    }
                    event
                }
                Ok(None) | Err(_) => Event::Ended(ExitStatus::Lost),
            }
        })
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.session.abandon(self.id);
    }
}
