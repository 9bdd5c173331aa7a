//! QEMU's process: any number may wait for its end, and anyone may kill it.

use std::io;
use std::os::fd::OwnedFd;

use tokio::sync::{mpsc, oneshot, watch};

use crate::guard::{Death, Guarded};

/// A guarded process. Clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pid: u32,
    orders: mpsc::UnboundedSender<Order>,
    ended: watch::Receiver<Option<Death>>,
}

#[derive(Debug)]
enum Order {
    Kill,
    Keep(oneshot::Sender<io::Result<OwnedFd>>),
}

impl Process {
    /// Keeps `guarded` in a task of the current tokio runtime. It is killed when that task is dropped.
    pub(super) fn keep(guarded: Guarded) -> Self {
        let pid = guarded.pid();
        let (orders, received) = mpsc::unbounded_channel();
        let (sender, ended) = watch::channel(None);
        tokio::spawn(async move {
            let death = attend(guarded, received).await;
            sender.send_replace(Some(death));
        });
        Self { pid, orders, ended }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Has it killed. It is gone when [`Process::ended`] says so.
    pub(super) fn kill(&self) {
        // Nobody attends to one that has ended.
        let _ = self.orders.send(Order::Kill);
    }

    /// From now on it lives for as long as the answer is open somewhere, and nothing here kills it.
    pub(super) async fn give_away(&self) -> io::Result<OwnedFd> {
        let (sender, receiver) = oneshot::channel();
        let _ = self.orders.send(Order::Keep(sender));
        receiver
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::NotConnected.into()))
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

async fn attend(mut guarded: Guarded, mut orders: mpsc::UnboundedReceiver<Order>) -> Death {
    loop {
        let order = tokio::select! {
            death = guarded.wait() => return death,
            Some(order) = orders.recv() => order,
        };
        match order {
            Order::Kill => return guarded.kill().await,
            Order::Keep(sender) => {
                let kept = guarded.keep();
                let given = kept.is_ok();
                let _ = sender.send(kept);
                if given {
                    return guarded.wait().await;
                }
            }
        }
    }
}
