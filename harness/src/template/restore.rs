//! Restoring: QEMU reads the state of a template, and its guest goes on where the template stopped.

use std::io;
use std::path::Path;
use std::time::Duration;

use qapi::qmp;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::Template;
use crate::death::Death;
use crate::qemu::Qemu;
use crate::qmp::QmpError;
use crate::wait::Deadline;

/// Reading a state takes 0.05 s; with the memory in it a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at whether QEMU has read it.
const PAUSE: Duration = Duration::from_millis(2);

/// Why a machine could not be restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    #[error(transparent)]
    Monitor(#[from] QmpError),
    #[error("the template's state cannot be given to QEMU: {0}")]
    State(#[from] io::Error),
    #[error("QEMU did not take the template's state: {0}")]
    Died(Death),
    #[error("QEMU did not take the template's state within {:.0} s", .0.as_secs_f64())]
    TimedOut(Duration),
}

/// Has `qemu`, which waits for it, restored from `template`. The guest runs when this returns. `socket` is for the state's way to QEMU.
///
/// # Errors
/// [`RestoreError`]; QEMU is of no use then.
pub(crate) async fn restore(qemu: &Qemu, template: &Template, socket: &Path) -> Result<(), RestoreError> {
    let deadline = Deadline::after(PATIENCE);
    match qemu
        .death()
        .race(deadline.limit(load(qemu, template, socket)))
        .await
    {
        Ok(Some(loaded)) => loaded,
        Ok(None) => Err(RestoreError::TimedOut(deadline.waited())),
        Err(death) => Err(RestoreError::Died(death)),
    }
}

async fn load(qemu: &Qemu, template: &Template, socket: &Path) -> Result<(), RestoreError> {
    let monitor = qemu.monitor();
    template.prepare(monitor).await?;
    let incoming = qmp::migrate_incoming {
        channels: None,
        exit_on_error: None,
        uri: Some(format!("unix:{}", socket.display())),
    };
    monitor.execute(incoming).await?;
    let mut stream = UnixStream::connect(socket).await?;
    let mut state = tokio::fs::File::open(template.state()).await?;
    tokio::io::copy(&mut state, &mut stream).await?;
    stream.shutdown().await?;
    while monitor.execute(qmp::query_status {}).await?.status == qmp::RunState::inmigrate {
        tokio::time::sleep(PAUSE).await;
    }
    monitor.execute(qmp::cont {}).await?;
    Ok(())
}
