//! Ctrl-C and SIGTERM while a run works: forwarded to OpenTofu once (a second one once more), and never a reason to leave
//! before it ended. A wrapper that dies first, or that sends more, leaves the state locked.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

/// How many signals reach a child: the first asks it to end, the second to end now.
const FORWARDED: usize = 2;

/// Whether signals have their default effect; the disposition of a signal belongs to the process.
static IDLE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Watches for signals until it is dropped.
#[derive(Debug)]
pub struct Interrupts {
    shared: Arc<Shared>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    seen: AtomicUsize,
    child: Mutex<Option<Pid>>,
}

impl Interrupts {
    /// Begins to watch.
    pub fn watch() -> io::Result<Interrupts> {
        idle()?.store(false, Ordering::SeqCst);
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let (handle, shared) = (signals.handle(), Arc::new(Shared::default()));
        let in_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for _ in signals.forever() {
                in_thread.arrived();
            }
        });
        Ok(Interrupts {
            shared,
            handle,
            thread: Some(thread),
        })
    }

    /// How many signals came so far.
    pub fn seen(&self) -> usize {
        self.shared.seen.load(Ordering::SeqCst)
    }

    /// From now on signals are forwarded to this child; one that came before is sent at once.
    pub(super) fn attach(&self, child: Pid) {
        *self.shared.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        if self.seen() > 0 {
            self.interrupt_child();
        }
    }

    /// The child is about to be reaped: its id may belong to another process soon.
    pub(super) fn detach(&self) {
        *self.shared.child.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Sends the child what Ctrl-C would.
    pub(super) fn interrupt_child(&self) {
        self.shared.interrupt_child();
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It does nothing that panics, and there is nobody to tell.
            let _ = thread.join();
        }
        if let Some(idle) = IDLE.get() {
            idle.store(true, Ordering::SeqCst);
        }
    }
}

impl Shared {
    fn arrived(&self) {
        if self.seen.fetch_add(1, Ordering::SeqCst) < FORWARDED {
            self.interrupt_child();
        }
    }

    fn interrupt_child(&self) {
        if let Some(child) = *self.child.lock().unwrap_or_else(PoisonError::into_inner) {
            // A child that is gone needs no signal.
            let _ = kill(child, Signal::SIGINT);
        }
    }
}

/// The flag that gives signals their default effect back between runs; registered once.
fn idle() -> io::Result<&'static AtomicBool> {
    if IDLE.get().is_none() {
        let flag = Arc::new(AtomicBool::new(false));
        if IDLE.set(Arc::clone(&flag)).is_ok() {
            for signal in [SIGINT, SIGTERM] {
                signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag))?;
            }
        }
    }
    IDLE.get()
        .map(AsRef::as_ref)
        .ok_or_else(|| io::Error::other("the signal flag was not set"))
}
