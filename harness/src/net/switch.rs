//! A learning switch for one VLAN, on unix datagram sockets.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::UnixDatagram;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::forward::{DropReason, Forward, Port, Table};

/// The largest frame a guest may send: 64 KiB holds jumbo frames and segmentation offload.
const LARGEST_FRAME: usize = 65_536 + 64;

/// Frames that may wait for one guest. A guest that reads none (it is paused, or gone) loses what comes after, and holds up
/// nobody else. A TCP window of 64 KiB is 45 frames.
const QUEUE: usize = 1024;

/// One VLAN. Guests plug in before they start; dropping the switch unplugs them all.
///
/// All guests send to one socket, [`Switch::socket`]; who sent a frame is known by the path that the guest's own socket is
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
}

/// Why a switch could not be set up.
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
}

#[derive(Debug, Default)]
struct Shared {
    ports: Mutex<Ports>,
    received: AtomicU64,
    delivered: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Ports {
    by_path: BTreeMap<PathBuf, Port>,
    queues: Vec<mpsc::Sender<Arc<[u8]>>>,
    tasks: JoinSet<()>,
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
        let shared = Arc::new(Shared::default());
        let ingress = tokio::spawn(receive(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self {
            socket: socket.to_owned(),
            shared,
            ingress,
        })
    }

    /// Plugs in a card whose own socket will be bound at `local`. Frames for it are dropped until it is.
    ///
    /// Must be called within a tokio runtime.
    pub fn plug(&self, local: &Path) -> Plug {
        let (queue, frames) = mpsc::channel(QUEUE);
        let mut ports = self.shared.ports();
        let port = Port(ports.queues.len());
        ports.queues.push(queue);
        ports.by_path.insert(local.to_owned(), port);
        ports
            .tasks
            .spawn(deliver(local.to_owned(), frames, Arc::clone(&self.shared)));
        Plug {
            local: local.to_owned(),
            remote: self.socket.clone(),
        }
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            received: read(&self.shared.received),
            delivered: read(&self.shared.delivered),
            dropped: read(&self.shared.dropped),
        }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.ingress.abort();
        self.shared.ports().tasks.abort_all();
    }
}

impl Shared {
    fn ports(&self) -> std::sync::MutexGuard<'_, Ports> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_dropped(&self, frames: u64) {
        self.dropped.fetch_add(frames, Ordering::Relaxed);
    }
}

/// Reads every frame and queues it where the table says.
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
        shared.received.fetch_add(1, Ordering::Relaxed);
        let frame = &buffer[..length];
        let ports = shared.ports();
        let Some(&from) = sender.as_pathname().and_then(|path| ports.by_path.get(path)) else {
            shared.count_dropped(1);
            continue;
        };
        table.learn(from, frame);
        match table.forward(from, frame) {
            Forward::To(port) => queue(&shared, &ports, port, frame.into()),
            Forward::Flood => {
                let frame: Arc<[u8]> = frame.into();
                let others = (0..ports.queues.len()).map(Port).filter(|port| *port != from);
                others.for_each(|port| queue(&shared, &ports, port, Arc::clone(&frame)));
            }
            Forward::Drop(DropReason::Runt | DropReason::Local) => shared.count_dropped(1),
        }
    }
}

fn queue(shared: &Shared, ports: &Ports, port: Port, frame: Arc<[u8]>) {
    if ports.queues[port.0].try_send(frame).is_err() {
        shared.count_dropped(1);
    }
}

/// Hands one guest its frames. The socket is connected when the guest has bound its own, and again when it was replaced:
/// only a connected datagram socket can be waited for while the reader's queue is full.
async fn deliver(guest: PathBuf, mut frames: mpsc::Receiver<Arc<[u8]>>, shared: Arc<Shared>) {
    let mut connected = None;
    while let Some(frame) = frames.recv().await {
        match send(&mut connected, &guest, &frame).await {
            Ok(()) => shared.delivered.fetch_add(1, Ordering::Relaxed),
            Err(_absent) => shared.dropped.fetch_add(1, Ordering::Relaxed),
        };
    }
}

async fn send(connected: &mut Option<UnixDatagram>, guest: &Path, frame: &[u8]) -> io::Result<()> {
    if let Some(socket) = connected {
        match socket.send(frame).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => *connected = None,
            other => return other.map(drop),
        }
    }
    let socket = UnixDatagram::unbound()?;
    socket.connect(guest)?;
    socket.send(frame).await?;
    *connected = Some(socket);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Mac;
    use super::*;

    const EVERYONE: Mac = Mac([0xff; 6]);

    struct Card {
        mac: Mac,
        socket: UnixDatagram,
        plug: Plug,
    }

    /// A switch with one card per name, in a folder that goes away with it.
    fn switched<const N: usize>(names: [&str; N]) -> (tempfile::TempDir, Switch, [Card; N]) {
        let folder = tempfile::tempdir().unwrap();
        let switch = Switch::start(&folder.path().join("s")).unwrap();
        let cards = names.map(|name| {
            let plug = switch.plug(&folder.path().join(name));
            Card {
                mac: Mac::of(name, "mesh"),
                socket: UnixDatagram::bind(&plug.local).unwrap(),
                plug,
            }
        });
        (folder, switch, cards)
    }

    impl Card {
        async fn send(&self, to: Mac, payload: &[u8]) {
            let frame = [&to.0[..], &self.mac.0[..], &[8, 0], payload].concat();
            self.socket.send_to(&frame, &self.plug.remote).await.unwrap();
        }

        async fn payload(&self) -> Vec<u8> {
            let mut buffer = vec![0; LARGEST_FRAME];
            let length = self.socket.recv(&mut buffer).await.unwrap();
            buffer[14..length].to_vec()
        }

        fn has_nothing(&self) -> bool {
            let nothing = self.socket.try_recv(&mut [0; 16]);
            nothing.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        }
    }

    #[tokio::test]
    async fn a_broadcast_reaches_all_but_its_sender_and_an_answer_only_the_asker() {
        let (_folder, switch, [alice, bob, carol]) = switched(["alice", "bob", "carol"]);
        alice.send(EVERYONE, b"who is bob?").await;
        assert_eq!(bob.payload().await, b"who is bob?");
        assert_eq!(carol.payload().await, b"who is bob?");

        bob.send(alice.mac, b"me").await;
        assert_eq!(alice.payload().await, b"me");
        assert!(carol.has_nothing());
        assert!(bob.has_nothing());
        assert_eq!(
            switch.counters(),
            Counters {
                received: 2,
                delivered: 3,
                dropped: 0
            }
        );
    }

    #[tokio::test]
    async fn a_frame_for_an_absent_guest_is_dropped_and_one_after_it_came_arrives() {
        let (folder, switch, [alice]) = switched(["alice"]);
        let late = switch.plug(&folder.path().join("late"));
        alice.send(EVERYONE, b"too early").await;
        alice.send(alice.mac, b"to itself").await;
        while switch.counters().dropped < 2 {
            tokio::task::yield_now().await;
        }

        let socket = UnixDatagram::bind(&late.local).unwrap();
        alice.send(EVERYONE, b"now").await;
        let late = Card {
            mac: Mac::of("late", "mesh"),
            socket,
            plug: late,
        };
        assert_eq!(late.payload().await, b"now");
    }

    #[tokio::test]
    async fn a_guest_that_started_again_is_reached_at_its_new_socket() {
        let (_folder, _switch, [alice, mut bob]) = switched(["alice", "bob"]);
        alice.send(EVERYONE, b"before").await;
        assert_eq!(bob.payload().await, b"before");

        std::fs::remove_file(&bob.plug.local).unwrap();
        bob.socket = UnixDatagram::bind(&bob.plug.local).unwrap();
        alice.send(EVERYONE, b"after").await;
        assert_eq!(bob.payload().await, b"after");
    }

    #[tokio::test]
    async fn a_guest_that_reads_nothing_holds_up_nobody() {
        let (_folder, switch, [alice, bob, _deaf]) = switched(["alice", "bob", "deaf"]);
        let frames = 4 * QUEUE;
        for _ in 0..frames {
            alice.send(EVERYONE, b"flood").await;
            assert_eq!(bob.payload().await, b"flood");
        }
        assert!(switch.counters().dropped > 0);
    }

    #[tokio::test]
    async fn a_stranger_on_the_socket_is_heard_by_nobody() {
        let (folder, switch, [alice]) = switched(["alice"]);
        let stranger = UnixDatagram::bind(folder.path().join("stranger")).unwrap();
        stranger.send_to(&[0xff; 60], &alice.plug.remote).await.unwrap();
        while switch.counters().dropped == 0 {
            tokio::task::yield_now().await;
        }
        assert!(alice.has_nothing());
    }
}
