//! One session with an agent: a task that writes frames, a task that reads them and gives each to whom it concerns.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::AgentError;
use super::wire::{self, Decoded, Decoder, Exec, Frame, Nonce, Setup, WINDOW};
use crate::exec::{Event, ExitStatus, Stream};

/// The open session. Dropping it closes the stream.
#[derive(Debug)]
pub(super) struct Session {
    boot_id: String,
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Debug)]
struct Shared {
    outgoing: mpsc::UnboundedSender<Frame>,
    waiting: Mutex<Waiting>,
    closed: watch::Sender<bool>,
}

/// Who waits for what.
#[derive(Debug, Default)]
struct Waiting {
    last_id: u32,
    commands: BTreeMap<u32, CommandSide>,
    /// In the order in which they were sent.
    setups: VecDeque<oneshot::Sender<Result<(), AgentError>>>,
}

/// The reader's end of a command.
#[derive(Debug)]
struct CommandSide {
    events: mpsc::UnboundedSender<Event>,
    /// How many bytes of input may be sent.
    credit: Arc<Semaphore>,
}

/// The caller's end of a command.
pub(super) struct Started {
    pub(super) id: u32,
    /// Ends without a last event when the session does.
    pub(super) events: mpsc::UnboundedReceiver<Event>,
    /// Closed when the command has ended.
    pub(super) credit: Arc<Semaphore>,
}

impl Session {
    pub(super) async fn open<S>(stream: S) -> Result<Self, AgentError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let nonce: Nonce = rand::random();
        let (reader, mut writer) = tokio::io::split(stream);
        // Nothing may follow until it is answered: that is how the agent recognises it.
        writer
            .write_all(&wire::preamble(&nonce))
            .await
            .map_err(|_| AgentError::Closed)?;
        let mut incoming = Incoming {
            reader,
            decoder: Decoder::for_session(nonce),
            decoded: VecDeque::new(),
        };
        let boot_id = loop {
            match incoming.next().await {
                Some(Decoded::Opened {
                    version: wire::VERSION,
                    ..
                }) => {}
                Some(Decoded::Opened { version: theirs, .. }) => {
                    return Err(AgentError::Version {
                        theirs,
                        ours: wire::VERSION,
                    });
                }
                Some(Decoded::Frame(Frame::Welcome { boot_id })) => break boot_id,
                Some(Decoded::Frame(_) | Decoded::OutOfStep) | None => return Err(AgentError::Closed),
            }
        };
        let (outgoing, frames) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            outgoing,
            waiting: Mutex::default(),
            closed: watch::Sender::new(false),
        });
        let tasks = [
            tokio::spawn(read(incoming, Arc::clone(&shared))),
            tokio::spawn(write(writer, frames, nonce, Arc::clone(&shared))),
        ];
        Ok(Self {
            boot_id,
            shared,
            tasks,
        })
    }

    pub(super) fn boot_id(&self) -> &str {
        &self.boot_id
    }

    pub(super) fn close(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.shared.close();
    }

    pub(super) async fn closed(&self) {
        // The sender lives as long as `self`, so this ends only when the value is true.
        let _ = self.shared.closed.subscribe().wait_for(|closed| *closed).await;
    }

    pub(super) async fn setup(&self, setup: Setup) -> Result<(), AgentError> {
        let (answer, answered) = oneshot::channel();
        {
            // Sent under the lock: answers come in the order of the requests.
            let mut waiting = self.shared.open()?;
            waiting.setups.push_back(answer);
            self.send(Frame::Setup(Box::new(setup)));
        }
        answered.await.unwrap_or(Err(AgentError::Closed))
    }

    pub(super) fn start(&self, exec: Exec) -> Result<Started, AgentError> {
        let (sender, events) = mpsc::unbounded_channel();
        let credit = Arc::new(Semaphore::new(WINDOW));
        let mut waiting = self.shared.open()?;
        waiting.last_id = waiting.last_id.wrapping_add(1);
        let id = waiting.last_id;
        waiting.commands.insert(
            id,
            CommandSide {
                events: sender,
                credit: Arc::clone(&credit),
            },
        );
        drop(waiting);
        self.send(Frame::Exec { id, exec });
        Ok(Started { id, events, credit })
    }

    /// Kills a command that nobody waits for any more.
    pub(super) fn abandon(&self, id: u32) {
        if self.shared.waiting().remove(id) {
            self.send(Frame::Kill { id });
        }
    }

    pub(super) fn send(&self, frame: Frame) {
        self.shared.send(frame);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody may begin to wait when the reader has already told everybody that it is over.
    fn open(&self) -> Result<MutexGuard<'_, Waiting>, AgentError> {
        let waiting = self.waiting();
        if *self.closed.borrow() {
            Err(AgentError::Closed)
        } else {
            Ok(waiting)
        }
    }

    fn close(&self) {
        let mut waiting = self.waiting();
        self.closed.send_replace(true);
        waiting.setups.clear();
        // Dropping its sender tells the caller that the command is lost.
        std::mem::take(&mut waiting.commands)
            .values()
            .for_each(|command| command.credit.close());
    }

    fn send(&self, frame: Frame) {
        // The writer is gone when the stream is closed: then everybody is told by the reader.
        let _ = self.outgoing.send(frame);
    }

    fn deliver(&self, frame: Frame) {
        let mut waiting = self.waiting();
        match frame {
            Frame::Stdout { id, bytes } => self.output(&waiting, id, Stream::Stdout, bytes.0),
            Frame::Stderr { id, bytes } => self.output(&waiting, id, Stream::Stderr, bytes.0),
            Frame::Credit { id, bytes } => {
                if let Some(command) = waiting.commands.get(&id) {
                    command.credit.add_permits(bytes as usize);
                }
            }
            Frame::Exit { id, ending } => {
                if let Some(command) = waiting.commands.get(&id) {
                    let _ = command.events.send(match ending {
                        wire::Ending::Code(code) => Event::Ended(ExitStatus::Code(code)),
                        wire::Ending::Signal(signal) => Event::Ended(ExitStatus::Signal(signal)),
                        wire::Ending::Deadline => Event::DeadlinePassed,
                    });
                }
                waiting.remove(id);
            }
            Frame::Ready => waiting.answer_setup(Ok(())),
            Frame::SetupFailed { step, error } => {
                waiting.answer_setup(Err(AgentError::Setup { step, error }))
            }
            // What only the host says, and what was said already.
            Frame::Welcome { .. }
            | Frame::Setup(_)
            | Frame::Exec { .. }
            | Frame::Stdin { .. }
            | Frame::StdinEnd { .. }
            | Frame::Kill { .. } => {}
        }
    }

    fn output(&self, waiting: &Waiting, id: u32, stream: Stream, bytes: Vec<u8>) {
        match waiting.commands.get(&id) {
            Some(command) => drop(command.events.send(Event::Output(stream, bytes))),
            // Abandoned: its last words must not wait for credit.
            None => self.send(Frame::Credit {
                id,
                bytes: bytes.len() as u32,
            }),
        }
    }
}

impl Waiting {
    /// True if the command was there.
    fn remove(&mut self, id: u32) -> bool {
        self.commands
            .remove(&id)
            .map(|command| command.credit.close())
            .is_some()
    }

    fn answer_setup(&mut self, answer: Result<(), AgentError>) {
        if let Some(setup) = self.setups.pop_front() {
            let _ = setup.send(answer);
        }
    }
}

struct Incoming<S> {
    reader: ReadHalf<S>,
    decoder: Decoder,
    decoded: VecDeque<Decoded>,
}

impl<S: AsyncRead> Incoming<S> {
    /// Nothing when the stream is closed.
    async fn next(&mut self) -> Option<Decoded> {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            if let Some(decoded) = self.decoded.pop_front() {
                return Some(decoded);
            }
            let read = self.reader.read(&mut bytes).await.ok().filter(|read| *read > 0)?;
            let mut decoded = Vec::new();
            self.decoder.push(&bytes[..read], &mut decoded);
            self.decoded.extend(decoded);
        }
    }
}

async fn read<S: AsyncRead>(mut incoming: Incoming<S>, shared: Arc<Shared>) {
    while let Some(Decoded::Frame(frame)) = incoming.next().await {
        shared.deliver(frame);
    }
    shared.close();
}

async fn write<S: AsyncWrite>(
    mut writer: WriteHalf<S>,
    mut frames: mpsc::UnboundedReceiver<Frame>,
    nonce: Nonce,
    shared: Arc<Shared>,
) {
    while let Some(frame) = frames.recv().await {
        let mut bytes = Vec::new();
        wire::encode(&frame, &nonce, &mut bytes);
        if writer.write_all(&bytes).await.is_err() {
            break;
        }
    }
    shared.close();
}
