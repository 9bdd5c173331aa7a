//! One command in one channel.

use std::sync::Arc;
use std::time::Duration;

use russh::client::{Handle, Msg};
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::{PinnedHost, script};
use crate::exec::{
    AfterStdin, BoxFuture, Command, Event, ExecError, ExitStatus, InputSender, RunningCommand, Stream,
};
use crate::wait::scaled;

/// How long killing may take, and how long the end of what was killed may be waited for.
const KILL_LIMIT: Duration = Duration::from_secs(20);

type Connection = Arc<Handle<PinnedHost>>;

/// A command over SSH. A task of its own drives it and kills it when this is dropped.
///
/// The task always reads. The client library opens a channel's window again whether its data were taken or not, and
/// then stops the whole connection: one caller that does not read would stop all the others, and even the killing.
pub(super) struct SshProcess {
    events: mpsc::UnboundedReceiver<Event>,
    input: Option<InputSender>,
}

impl RunningCommand for SshProcess {
    fn take_input(&mut self) -> Option<InputSender> {
        self.input.take()
    }

    fn next(&mut self) -> BoxFuture<'_, Event> {
        Box::pin(async move { self.events.recv().await.unwrap_or(Event::Ended(ExitStatus::Lost)) })
    }
}

pub(super) async fn start(connection: Connection, command: Command) -> Result<SshProcess, ExecError> {
    if connection.is_closed() {
        return Err(ExecError::Disconnected {
            command: command.to_string(),
        });
    }
    let marker = format!("{:032x}", rand::random::<u128>());
    let (reader, writer) = open(&connection).await.map_err(|error| match error {
        russh::Error::ChannelOpenFailure(reason) => ExecError::Refused {
            command: command.to_string(),
            reason: format!("{reason:?}"),
        },
        _ => ExecError::Disconnected {
            command: command.to_string(),
        },
    })?;
    let deadline = Instant::now() + scaled(command.deadline.min(Duration::from_secs(86_400 * 365)));
    let line = script::start(&command, &marker);
    let (input, pieces) = mpsc::unbounded_channel();
    tokio::spawn(feed(writer, line, command.stdin.unwrap_or_default(), pieces));
    let input = (command.after_stdin == AfterStdin::More).then_some(input);
    let (sender, events) = mpsc::unbounded_channel();
    tokio::spawn(drive(connection, reader, marker, deadline, sender));
    Ok(SshProcess { events, input })
}

async fn open(connection: &Connection) -> Result<(ChannelReadHalf, ChannelWriteHalf<Msg>), russh::Error> {
    let channel = connection.channel_open_session().await?;
    // Without asking for a reply: a refusal closes the channel, and then the command is lost.
    channel.exec(false, script::RUN_FROM_STDIN).await?;
    Ok(channel.split())
}

/// An error means that the other side reads no more; what became of the command is told to the reader.
async fn feed(
    writer: ChannelWriteHalf<Msg>,
    line: Vec<u8>,
    stdin: Vec<u8>,
    mut pieces: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    if writer.data_bytes(line).await.is_err() {
        return;
    }
    let mut next = Some(stdin);
    while let Some(piece) = next {
        if writer.data_bytes(piece).await.is_err() {
            return;
        }
        next = pieces.recv().await;
    }
    let _ = writer.eof().await;
}

async fn drive(
    connection: Connection,
    mut reader: ChannelReadHalf,
    marker: String,
    deadline: Instant,
    events: mpsc::UnboundedSender<Event>,
) {
    let last = {
        let output = forward(&connection, &mut reader, &events);
        tokio::pin!(output);
        tokio::select! {
            status = &mut output => Event::Ended(status),
            () = events.closed() => {
                let _ = tokio::join!(kill(&connection, &marker), timeout(KILL_LIMIT, &mut output));
                Event::Ended(ExitStatus::Lost)
            }
            () = sleep_until(deadline) => {
                let _ = tokio::join!(kill(&connection, &marker), timeout(KILL_LIMIT, &mut output));
                Event::DeadlinePassed
            }
        }
    };
    let _ = events.send(last);
    // Background children still hold the channel: they must be able to write.
    while reader.wait().await.is_some() {}
}

/// Hands on the output up to the end of the command.
///
/// Status, end of output and end of the channel come in any order, or not at all. If background children hold the
/// output open, its end does not come. Then a ping tells: the server reads the pipes of its commands in the same
/// turn in which it reads its connection, so a ping that comes back with no output before it means that there was
/// none left.
async fn forward(
    connection: &Connection,
    reader: &mut ChannelReadHalf,
    events: &mpsc::UnboundedSender<Event>,
) -> ExitStatus {
    let mut status = None;
    let mut output_ended = false;
    while status.is_none() || !output_ended {
        let Some(message) = reader.wait().await else { break };
        match message {
            ChannelMsg::ExitStatus { exit_status } => status = Some(code(exit_status)),
            ChannelMsg::ExitSignal { signal_name, .. } => {
                status = Some(ExitStatus::Signal(number(&signal_name)))
            }
            ChannelMsg::Eof => output_ended = true,
            message => hand_on(message, events),
        }
        if status.is_some() && !output_ended {
            output_ended = until_quiet(connection, reader, events).await;
        }
    }
    status.unwrap_or(ExitStatus::Lost)
}

/// Hands on what still comes, until a ping comes back alone. Always true: the output has ended.
async fn until_quiet(
    connection: &Connection,
    reader: &mut ChannelReadHalf,
    events: &mpsc::UnboundedSender<Event>,
) -> bool {
    loop {
        let mut quiet = true;
        let ping = connection.send_ping();
        tokio::pin!(ping);
        loop {
            tokio::select! {
                biased;
                message = reader.wait() => match message {
                    None | Some(ChannelMsg::Eof | ChannelMsg::Close) => return true,
                    Some(message) => {
                        quiet &= !matches!(message, ChannelMsg::Data { .. } | ChannelMsg::ExtendedData { .. });
                        hand_on(message, events);
                    }
                },
                _ = &mut ping => break,
            }
        }
        if quiet {
            return true;
        }
    }
}

fn hand_on(message: ChannelMsg, events: &mpsc::UnboundedSender<Event>) {
    /// The only kind of extended data that SSH defines.
    const STDERR: u32 = 1;
    let event = match message {
        ChannelMsg::Data { data } => Event::Output(Stream::Stdout, data.to_vec()),
        ChannelMsg::ExtendedData { data, ext: STDERR } => Event::Output(Stream::Stderr, data.to_vec()),
        _ => return,
    };
    // Nobody listens: then the command is about to be killed.
    let _ = events.send(event);
}

async fn kill(connection: &Connection, marker: &str) {
    let killed = async {
        let (mut reader, writer) = open(connection).await?;
        writer.data_bytes(script::kill(marker)).await?;
        writer.eof().await?;
        while reader.wait().await.is_some() {}
        Ok::<(), russh::Error>(())
    };
    // A connection that is gone, or a guest that stands still: there is nobody to kill it.
    let _ = timeout(KILL_LIMIT, killed).await;
}

fn code(status: u32) -> ExitStatus {
    u8::try_from(status).map_or(ExitStatus::Lost, ExitStatus::Code)
}

/// The numbers of Linux. SSH has names for these only; a server says all others in a way of its own.
fn number(signal: &Sig) -> i32 {
    match signal {
        Sig::HUP => 1,
        Sig::INT => 2,
        Sig::QUIT => 3,
        Sig::ILL => 4,
        Sig::ABRT => 6,
        Sig::FPE => 8,
        Sig::KILL => 9,
        Sig::USR1 => 10,
        Sig::SEGV => 11,
        Sig::Custom(name) if name == "USR2" => 12,
        Sig::PIPE => 13,
        Sig::ALRM => 14,
        Sig::TERM => 15,
        Sig::Custom(_) => 0,
    }
}
