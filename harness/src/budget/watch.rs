//! Seeing the end of a lock's holder at once, without asking again and again.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedSender;

/// Tells `ended` when nobody holds the file `path` any more.
///
/// It waits for the lock in a thread, and shares it, so that any number may wait for the same holder and none of them looks like one.
/// A thread that nobody listens to any more ends with the holder it waits for.
pub(super) fn watch(path: PathBuf, ended: UnboundedSender<io::Result<()>>) -> io::Result<()> {
    let wait = move || {
        // It does not matter who no longer listens.
        let _ = ended.send(until_free(path));
    };
    std::thread::Builder::new()
        .name("provisor-budget".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(wait)
        .map(drop)
}

/// A thread that only waits needs little.
const STACK_BYTES: usize = 64 << 10;

fn until_free(path: PathBuf) -> io::Result<()> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    loop {
        match file.lock_shared() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            locked => return locked,
        }
    }
}
