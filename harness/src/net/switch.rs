//! A learning switch for one VLAN, on unix datagram sockets.

mod egress;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::UnixDatagram;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::capture::Capture;
use super::forward::{DropReason, Forward, Port, Table};
use super::impair::{Effect, Fate, FaultId, Impairments, Links, Way};
use egress::Parcel;

/// The largest frame a guest may send: 64 KiB holds jumbo frames and segmentation offload.
const LARGEST_FRAME: usize = 65_536 + 64;

/// Frames that may wait for one guest. A guest that reads none (it is paused, or gone) loses what comes after, and holds up
/// nobody else. A TCP window of 64 KiB is 45 frames.
const QUEUE: usize = 1024;

/// One VLAN. Guests plug in before they start; dropping the switch unplugs them all.
///
/// All guests send to one socket, [`Switch::start`]'s; who sent a frame is known by the path that the guest's own socket is
/// bound to. Each guest has a queue of its own, so that a slow reader holds up nobody.
#[derive(Debug)]
pub struct Switch {
    socket: PathBuf,
    shared: Arc<Shared>,
    ingress: AbortHandle,
}

/// The two ends of one plugged card, as QEMU's `-netdev dgram` names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plug {
    /// Where the guest's own socket is bound, by QEMU.
    pub local: PathBuf,
    /// Where the guest sends its frames: the switch.
    pub remote: PathBuf,
}

/// What a switch has done so far, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that came in.
    pub received: u64,
    /// Frames that were delivered to a guest: a flooded one counts once for each.
    pub delivered: u64,
    /// Frames that no guest got: runts, strays, a guest that is absent or does not read.
    pub dropped: u64,
    /// Frames that a fault took.
    pub lost: u64,
}

/// Why a switch could not be set up, or does not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The socket could not be made.
    #[error("cannot bind the switch's socket at {}: check that the folder exists and is writable", .path.display())]
    Bind {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The capture's file could not be made.
    #[error("cannot write a capture to {}: check that the folder exists and is writable", .path.display())]
    Capture {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

#[derive(Debug)]
struct Shared {
    began: Instant,
    board: Mutex<Board>,
    received: AtomicU64,
    delivered: AtomicU64,
    dropped: AtomicU64,
    lost: AtomicU64,
}

/// What is plugged in, and what happens to frames between.
#[derive(Debug, Default)]
struct Board {
    by_path: BTreeMap<PathBuf, Port>,
    names: Vec<String>,
    queues: Vec<mpsc::Sender<Parcel>>,
    tasks: JoinSet<()>,
    impairments: Impairments,
    capture: Option<Capture>,
}

impl Switch {
    /// Starts a switch whose socket is `socket`. Its tasks run on the current tokio runtime.
    ///
    /// # Errors
    /// [`SwitchError::Bind`].
    pub fn start(socket: &Path) -> Result<Self, SwitchError> {
        let listener = UnixDatagram::bind(socket).map_err(|source| SwitchError::Bind {
            path: socket.to_owned(),
            source,
        })?;
        let shared = Arc::new(Shared {
            began: Instant::now(),
            board: Mutex::default(),
            received: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let ingress = tokio::spawn(receive(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self {
            socket: socket.to_owned(),
            shared,
            ingress,
        })
    }

    /// Plugs in the card of `machine`, whose own socket will be bound at `local`. Frames for it are dropped until it is.
    ///
    /// Must be called within a tokio runtime.
    pub fn plug(&self, machine: &str, local: &Path) -> Plug {
        let (queue, parcels) = mpsc::channel(QUEUE);
        let mut board = self.shared.board();
        let port = Port(board.queues.len());
        board.queues.push(queue);
        board.names.push(machine.to_owned());
        board.by_path.insert(local.to_owned(), port);
        board.tasks.spawn(egress::deliver(
            local.to_owned(),
            parcels,
            Arc::clone(&self.shared),
        ));
        Plug {
            local: local.to_owned(),
            remote: self.socket.clone(),
        }
    }

    /// Its socket, and those of all that is plugged in.
    pub(crate) fn cables(&self) -> (PathBuf, Vec<PathBuf>) {
        let cards = self.shared.board().by_path.keys().cloned().collect();
        (self.socket.clone(), cards)
    }

    /// Where `machine` is plugged in.
    pub fn port(&self, machine: &str) -> Option<Port> {
        let board = self.shared.board();
        board.names.iter().position(|name| name == machine).map(Port)
    }

    /// Puts a fault on `links`, from the next frame on. What it leaves to chance is drawn from `seed`.
    pub fn impair(&self, links: Links, effect: Effect, seed: u64) -> FaultId {
        self.shared.board().impairments.add(links, effect, seed)
    }

    /// Ends a fault; answers with how many frames it has lost or held back, if it was in force.
    pub fn heal(&self, fault: FaultId) -> Option<u64> {
        self.shared.board().impairments.remove(fault)
    }

    /// How many frames a fault in force has lost or held back so far.
    pub fn touched(&self, fault: FaultId) -> Option<u64> {
        self.shared.board().impairments.touched(fault)
    }

    /// Writes every frame that comes in from now on to a new file at `path`, in the format pcapng. A capture that runs already goes on
    /// where it is; the answer is where.
    ///
    /// # Errors
    /// [`SwitchError::Capture`].
    pub fn capture(&self, path: &Path) -> Result<PathBuf, SwitchError> {
        let mut board = self.shared.board();
        if let Some(capture) = &board.capture {
            return Ok(capture.path().to_owned());
        }
        let capture = Capture::create(path, self.shared.now()).map_err(|source| SwitchError::Capture {
            path: path.to_owned(),
            source,
        })?;
        board.capture = Some(capture);
        Ok(path.to_owned())
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            received: read(&self.shared.received),
            delivered: read(&self.shared.delivered),
            dropped: read(&self.shared.dropped),
            lost: read(&self.shared.lost),
        }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.ingress.abort();
        self.shared.board().tasks.abort_all();
    }
}

impl Shared {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads every frame and passes it on where the table says.
async fn receive(socket: UnixDatagram, shared: Arc<Shared>) {
    let mut table = Table::default();
    let mut buffer = vec![0; LARGEST_FRAME];
    loop {
        let (length, sender) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                tracing::warn!(%error, "the switch cannot receive");
                return;
            }
        };
        Shared::count(&shared.received);
        let frame = &buffer[..length];
        let now = shared.now();
        let mut board = shared.board();
        let Some(&from) = sender.as_pathname().and_then(|path| board.by_path.get(path)) else {
            Shared::count(&shared.dropped);
            continue;
        };
        table.learn(from, frame);
        let receivers = match table.forward(from, frame) {
            Forward::To(port) => vec![port],
            Forward::Flood => (0..board.queues.len())
                .map(Port)
                .filter(|port| *port != from)
                .collect(),
            Forward::Drop(DropReason::Runt | DropReason::Local) => {
                Shared::count(&shared.dropped);
                Vec::new()
            }
        };
        let taken = board.pass(&shared, from, &receivers, now, frame);
        board.record(from, now, frame, &taken);
    }
}

impl Board {
    /// Queues a frame for its receivers, as the faults allow. Answers with those that do not get it, and why.
    fn pass(
        &mut self,
        shared: &Shared,
        from: Port,
        receivers: &[Port],
        now: Duration,
        frame: &[u8],
    ) -> Vec<(Port, Effect)> {
        let mut taken = Vec::new();
        let shared_frame: Arc<[u8]> = frame.into();
        for &to in receivers {
            match self.impairments.fate(Way { from, to }, frame.len(), now) {
                Fate::Deliver { at } => {
                    let parcel = Parcel {
                        due: shared.began + at,
                        frame: Arc::clone(&shared_frame),
                    };
                    if self.queues[to.0].try_send(parcel).is_err() {
                        Shared::count(&shared.dropped);
                    }
                }
                Fate::Lost(effect) => {
                    Shared::count(&shared.lost);
                    taken.push((to, effect));
                }
            }
        }
        taken
    }

    /// A capture that cannot be written ends; it does not fail the test.
    fn record(&mut self, from: Port, now: Duration, frame: &[u8], taken: &[(Port, Effect)]) {
        let Some(capture) = &mut self.capture else { return };
        let lost: Vec<_> = taken
            .iter()
            .map(|(to, effect)| format!("lost on its way to {}: {effect}", self.names[to.0]))
            .collect();
        if let Err(error) = capture.frame(&self.names, from, now, frame, &lost.join("; ")) {
            tracing::warn!(%error, "the capture at {} ends", capture.path().display());
            self.capture = None;
        }
    }
}

#[cfg(test)]
mod tests;
