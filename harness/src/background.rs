//! A lab's own runtime: switches, monitors and watches go on while a test blocks its thread, and whatever runtime it uses.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::AbortHandle;

/// One worker thread for all that a lab does in the background. It ends with the value.
#[derive(Debug)]
pub(crate) struct Background {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Background {
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("provisor-lab")
            .enable_all()
            .build()?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    /// Runs `work` in the background and waits for it. If the caller gives up, the work is dropped.
    ///
    /// A panic in it becomes the caller's.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let task = self.handle.spawn(work);
        let _dropped_with_caller = AbortOnDrop(task.abort_handle());
        unwound(task.await)
    }

    /// Runs `work` in the background; nobody waits for it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// Runs what blocks, apart from all else, and waits for it.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        unwound(self.handle.spawn_blocking(work).await)
    }

    /// What is made while the guard lives belongs to this runtime.
    pub(crate) fn enter(&self) -> tokio::runtime::EnterGuard<'_> {
        self.handle.enter()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // A runtime dropped in a test's async function would panic.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn unwound<T>(joined: Result<T, tokio::task::JoinError>) -> T {
    match joined {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(cancelled) => {
                std::panic::panic_any(format!("the lab was dropped while it was in use: {cancelled}"))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn background_work_goes_on_while_the_test_blocks_its_only_thread() {
        let background = Background::start().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let work = async move {
            drop(tokio::spawn(async move { sender.send("done") }));
        };
        background.run(work).await;
        assert_eq!(receiver.recv().unwrap(), "done");
    }

    #[tokio::test]
    async fn work_is_dropped_with_the_caller_that_gave_up() {
        let background = Background::start().unwrap();
        let (held_by_work, work_is_gone) = tokio::sync::oneshot::channel::<()>();
        let work = background.run(async move {
            std::future::pending::<()>().await;
            drop(held_by_work);
        });
        assert!(
            tokio::time::timeout(std::time::Duration::ZERO, work)
                .await
                .is_err()
        );
        assert!(work_is_gone.await.is_err());
    }

    #[tokio::test]
    async fn a_lab_can_be_dropped_in_an_async_test() {
        let background = Background::start().unwrap();
        assert_eq!(background.run(async { 1 }).await, 1);
        drop(background);
    }
}
