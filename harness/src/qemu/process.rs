//! QEMU's process: any number may wait for its end, and anyone may kill it.

use std::sync::Arc;

use tokio::sync::{Notify, watch};

use crate::guard::{Death, Guarded};

/// A guarded process. Clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pid: u32,
    kill: Arc<Notify>,
    ended: watch::Receiver<Option<Death>>,
}

impl Process {
    /// Keeps `guarded` in a task of the current tokio runtime. It is killed when that task is dropped.
    pub(super) fn keep(mut guarded: Guarded) -> Self {
        let pid = guarded.pid();
        let kill = Arc::new(Notify::new());
        let (sender, ended) = watch::channel(None);
        let killed = Arc::clone(&kill);
        tokio::spawn(async move {
            let by_itself = tokio::select! {
                death = guarded.wait() => Some(death),
                () = killed.notified() => None,
            };
            let death = match by_itself {
                Some(death) => death,
                None => guarded.kill().await,
            };
            sender.send_replace(Some(death));
        });
        Self { pid, kill, ended }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Has it killed. It is gone when [`Process::ended`] says so.
    pub(super) fn kill(&self) {
        self.kill.notify_one();
    }

    /// Waits until it has ended and is reaped.
    pub(super) async fn ended(&self) -> Death {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(death) => death.unwrap_or(Death::Unknown),
            Err(_) => Death::Unknown,
        }
    }
}
