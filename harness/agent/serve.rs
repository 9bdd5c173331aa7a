//! The agent in a guest: one thread, one loop, one port.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::command::{Room, Running, parse_token};
use crate::setup;
use crate::sys::{self, Epoll, Interest};
use crate::tree::Cgroups;
use crate::wire::{self, Bytes, Decoded, Decoder, Ending, Frame, Nonce};

/// With so much unsent, commands are not read any further; they block in their own writes.
const ENOUGH_UNSENT: usize = 256 * 1024;

/// Serves until a unix socket is closed; a serial port is served for ever.
pub(crate) fn serve(port: &str, cgroups: Cgroups) -> Result<(), String> {
    let port = Port::open(port).map_err(|error| format!("cannot open the port {port}: {error}"))?;
    let mut server = Server::new(port, cgroups).map_err(|error| format!("cannot watch the port: {error}"))?;
    loop {
        match server.turn() {
            Ok(Flow::Continue) => {}
            Ok(Flow::Stop) => return Ok(()),
            Err(error) => return Err(format!("the port failed: {error}")),
        }
    }
}

/// What the end of the stream means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtEnd {
    /// The host has closed its side; it or another one opens it again.
    WaitForHost,
    Stop,
}

struct Port {
    stream: File,
    at_end: AtEnd,
}

impl Port {
    fn open(name: &str) -> io::Result<Self> {
        if let Some(path) = name.strip_prefix("unix:") {
            let stream = OwnedFd::from(UnixStream::connect(path)?);
            sys::set_nonblocking(stream.as_fd())?;
            return Ok(Self {
                stream: stream.into(),
                at_end: AtEnd::Stop,
            });
        }
        let path = device(Path::new(name)).unwrap_or_else(|| name.into());
        let stream = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(sys::O_NONBLOCK)
            .open(path)?;
        Ok(Self {
            stream,
            at_end: AtEnd::WaitForHost,
        })
    }
}

/// The device behind `/dev/virtio-ports/NAME`. That link is made by udev, which starts late or never.
fn device(link: &Path) -> Option<PathBuf> {
    let wanted = link.file_name().filter(|_| !link.exists())?;
    fs::read_dir("/sys/class/virtio-ports")
        .ok()?
        .flatten()
        .find_map(|port| {
            let name = fs::read_to_string(port.path().join("name")).ok()?;
            (wanted == name.trim_end()).then(|| Path::new("/dev").join(port.file_name()))
        })
}

enum Flow {
    Continue,
    Stop,
}

struct Server {
    port: Port,
    epoll: Epoll,
    cgroups: Cgroups,
    decoder: Decoder,
    received: Vec<u8>,
    session: Option<Nonce>,
    commands: BTreeMap<u64, Running>,
    last_serial: u64,
    unsent: Vec<u8>,
    sent: usize,
}

const PORT_TOKEN: u64 = 0;

impl Server {
    fn new(port: Port, cgroups: Cgroups) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(port.stream.as_fd(), Interest::Changes, PORT_TOKEN)?;
        Ok(Self {
            port,
            epoll,
            cgroups,
            decoder: Decoder::for_any_session(),
            received: vec![0; 64 * 1024],
            session: None,
            commands: BTreeMap::new(),
            last_serial: 0,
            unsent: Vec::new(),
            sent: 0,
        })
    }

    /// Waits, then does all there is to do.
    fn turn(&mut self) -> io::Result<Flow> {
        let next = self.commands.values().filter_map(Running::deadline).min();
        let tokens = self
            .epoll
            .wait(next.map(|deadline| deadline.saturating_duration_since(Instant::now())))?;
        for token in tokens {
            if token == PORT_TOKEN {
                if let Flow::Stop = self.receive()? {
                    self.end_session();
                    self.settle();
                    return Ok(Flow::Stop);
                }
                continue;
            }
            let (serial, part) = parse_token(token);
            let (room, mut frames) = (self.room(), Vec::new());
            if let Some(command) = self.commands.get_mut(&serial) {
                command.advance(part, room, &mut frames);
            }
            self.send(&frames);
        }
        self.keep_deadlines();
        self.settle();
        self.flush()
    }

    fn room(&self) -> Room {
        if self.unsent.len() - self.sent < ENOUGH_UNSENT {
            Room::Some
        } else {
            Room::None
        }
    }

    /// Reads until the port is empty: it tells of changes only.
    fn receive(&mut self) -> io::Result<Flow> {
        loop {
            let mut decoded = Vec::new();
            match self.port.stream.read(&mut self.received) {
                Ok(0) if self.port.at_end == AtEnd::Stop => return Ok(Flow::Stop),
                // No host, as far as this kernel knows: it learns of a new one in a queue of its own, often after the first
                // bytes of it. So this says nothing about the session; the next preamble does.
                Ok(0) => return Ok(Flow::Continue),
                Ok(read) => self.decoder.push(&self.received[..read], &mut decoded),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flow::Continue),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if self.port.at_end == AtEnd::Stop => return Ok(Flow::Stop),
                Err(error) => return Err(error),
            }
            for item in decoded {
                match item {
                    Decoded::Opened { nonce, .. } => self.open_session(nonce),
                    Decoded::Frame(frame) => self.obey(frame),
                    Decoded::OutOfStep => self.end_session(),
                }
            }
        }
    }

    fn open_session(&mut self, nonce: Nonce) {
        self.end_session();
        self.session = Some(nonce);
        self.unsent = wire::preamble(&nonce);
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        self.send(&[Frame::Welcome {
            boot_id: boot_id.trim_end().to_owned(),
        }]);
    }

    /// Nobody is left to hear of the running commands.
    fn end_session(&mut self) {
        self.commands.values_mut().for_each(Running::abandon);
        self.session = None;
        self.unsent.clear();
        self.sent = 0;
    }

    fn obey(&mut self, frame: Frame) {
        let mut frames = Vec::new();
        match frame {
            Frame::Setup(setup) => frames.push(match setup::apply(&setup) {
                Ok(()) => Frame::Ready,
                Err(failure) => Frame::SetupFailed {
                    step: failure.step,
                    error: failure.error,
                },
            }),
            Frame::Exec { id, exec } => self.start(id, &exec, &mut frames),
            Frame::Stdin { id, bytes } => match self.command(id) {
                Some(command) => command.feed(&bytes.0, &mut frames),
                // It has ended; the host may not know yet and must not wait for credit.
                None => frames.push(Frame::Credit {
                    id,
                    bytes: bytes.0.len() as u32,
                }),
            },
            Frame::StdinEnd { id } => {
                if let Some(command) = self.command(id) {
                    command.end_stdin(&mut frames);
                }
            }
            Frame::Kill { id } => {
                if let Some(command) = self.command(id) {
                    command.kill();
                }
            }
            Frame::Credit { id, bytes } => {
                if let Some(command) = self.command(id) {
                    command.credit(bytes);
                }
            }
            // What only the guest says.
            Frame::Welcome { .. }
            | Frame::Ready
            | Frame::SetupFailed { .. }
            | Frame::Stdout { .. }
            | Frame::Stderr { .. }
            | Frame::Exit { .. } => {}
        }
        self.send(&frames);
    }

    fn command(&mut self, id: u32) -> Option<&mut Running> {
        self.commands.values_mut().find(|command| command.is(id))
    }

    fn start(&mut self, id: u32, exec: &wire::Exec, frames: &mut Vec<Frame>) {
        self.last_serial += 1;
        let serial = self.last_serial;
        let session: String = self
            .session
            .iter()
            .flatten()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        match Running::start(id, serial, exec, format!("{session}-{serial}"), &self.cgroups) {
            Ok(command) => {
                self.commands.insert(serial, command);
            }
            Err((message, code)) => {
                let bytes = Bytes(format!("{message}\n").into_bytes());
                frames.push(Frame::Stderr { id, bytes });
                frames.push(Frame::Exit {
                    id,
                    ending: Ending::Code(code),
                });
            }
        }
    }

    fn keep_deadlines(&mut self) {
        let now = Instant::now();
        let late = |command: &&mut Running| command.deadline().is_some_and(|deadline| deadline <= now);
        self.commands
            .values_mut()
            .filter(late)
            .for_each(Running::kill_at_deadline);
    }

    fn settle(&mut self) {
        let (room, epoll, mut frames) = (self.room(), &self.epoll, Vec::new());
        self.commands
            .retain(|_, command| command.settle(epoll, room, &mut frames));
        self.send(&frames);
    }

    fn send(&mut self, frames: &[Frame]) {
        // Without a session nobody would understand them.
        if let Some(nonce) = &self.session {
            frames
                .iter()
                .for_each(|frame| wire::encode(frame, nonce, &mut self.unsent));
        }
    }

    /// Writes until the port is full: it tells of changes only.
    fn flush(&mut self) -> io::Result<Flow> {
        while self.sent < self.unsent.len() {
            match self.port.stream.write(&self.unsent[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flow::Continue),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if self.port.at_end == AtEnd::Stop => {
                    self.end_session();
                    return Ok(Flow::Stop);
                }
                Err(error) => return Err(error),
            }
        }
        self.unsent.clear();
        self.sent = 0;
        Ok(Flow::Continue)
    }
}
