//! What keeps a failed lab running when the test that made it is gone.
//!
//! A keeper holds what the test held: one end of the socket by which a guard knows that somebody still wants its program. A hub
//! does for a network what the test's switch did. Both end when the marker file is removed, and whoever removed it sees the
//! guests end. The lock of the lab's folder is their standard output: it is free when the last of them has ended.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The largest frame of a guest.
const LARGEST_FRAME: usize = 65_536 + 64;

const PAUSE: Duration = Duration::from_millis(200);

/// Holds standard input, a guard's socket, until `marker` is gone or the guard has ended.
pub(crate) fn keep(marker: &str) -> Result<(), String> {
    let guard = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let mut guard = guard.map_err(|error| format!("cannot use standard input: {error}"))?;
    let reader = thread::spawn(move || until_closed(&mut guard));
    while Path::new(marker).exists() && !reader.is_finished() {
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Reads what nobody wants to know. The test left the socket such that a read does not wait.
fn until_closed(guard: &mut impl Read) {
    loop {
        match guard.read(&mut [0; 64]) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                thread::sleep(PAUSE);
            }
            Err(_) => return,
        }
    }
}

/// Hands what each of `cards` sends to `socket` to all the others, until `marker` is gone.
pub(crate) fn hub(marker: &str, socket: &str, cards: &[String]) -> Result<(), String> {
    // The test's own switch is gone, and left its socket's path.
    let _ = std::fs::remove_file(socket);
    let hub = UnixDatagram::bind(socket).map_err(|error| format!("cannot bind {socket}: {error}"))?;
    hub.set_read_timeout(Some(PAUSE))
        .map_err(|error| format!("cannot wait at {socket}: {error}"))?;
    let cards: Vec<PathBuf> = cards.iter().map(PathBuf::from).collect();
    let mut frame = vec![0; LARGEST_FRAME];
    while Path::new(marker).exists() {
        let Ok((length, sender)) = hub.recv_from(&mut frame) else {
            continue;
        };
        let from = sender.as_pathname();
        for card in cards.iter().filter(|card| Some(card.as_path()) != from) {
            // One that is gone, or reads nothing, loses its frames.
            let _ = hub.send_to(&frame[..length], card);
        }
    }
    Ok(())
}
