//! What leaves a switch for one guest.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::UnixDatagram;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::Shared;

/// Frames that faults may hold back for one guest: 24 MB of full ones. Those beyond are dropped.
const HELD_BACK: usize = 16 * 1024;

/// A frame on its way to a guest.
#[derive(Debug)]
pub(super) struct Parcel {
    /// Not before this time.
    pub(super) due: Instant,
    pub(super) frame: Arc<[u8]>,
}

/// Hands one guest its frames, each when it is due. The socket is connected when the guest has bound its own, and again when it was
/// replaced: only a connected datagram socket can be waited for while the reader's queue is full.
pub(super) async fn deliver(guest: PathBuf, mut parcels: mpsc::Receiver<Parcel>, shared: Arc<Shared>) {
    let mut connected = None;
    // By time; and by number, so that frames that are due together keep their order.
    let mut held_back = BTreeMap::<(Instant, u64), Arc<[u8]>>::new();
    let mut number = 0;
    loop {
        let first = held_back.first_key_value().map(|((due, _), _)| *due);
        let frame = tokio::select! {
            biased;
            () = at(first) => held_back.pop_first().map(|(_, frame)| frame),
            parcel = parcels.recv() => match parcel {
                None => return,
                Some(Parcel { due, frame }) if due <= Instant::now() => Some(frame),
                Some(_) if held_back.len() >= HELD_BACK => {
                    Shared::count(&shared.dropped);
                    None
                }
                Some(Parcel { due, frame }) => {
                    number += 1;
                    held_back.insert((due, number), frame);
                    None
                }
            },
        };
        if let Some(frame) = frame {
            match send(&mut connected, &guest, &frame).await {
                Ok(()) => Shared::count(&shared.delivered),
                Err(_absent) => Shared::count(&shared.dropped),
            }
        }
    }
}

/// Never, if there is no such time.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
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
