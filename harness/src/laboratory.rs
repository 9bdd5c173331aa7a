//! A lab: the machines and VLANs of one test, and the evidence of what they did.

pub(crate) mod addresses;
pub(crate) mod brought;
mod error;
mod faults;
mod fixture;
mod reserve;
pub(crate) mod start;
mod vlan;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

pub use addresses::AddressError;
pub use error::LabError;
pub use faults::{Fault, Links};
pub use fixture::lab;
pub use vlan::{CAPTURE_VARIABLE, Vlan};

use crate::artifacts::{Artifacts, Outcome, TestName};
use crate::background::Background;
use crate::cache::Cache;
use crate::machine::{Brought, BroughtBuilder, Machine, MachineBuilder, Machines};
use crate::names::Name;
use crate::net::Switch;
use crate::run_dir::RunDir;
use crate::ssh::{KeyPair, Login};
use crate::timeline::Timeline;
use addresses::Book;

/// The machines and VLANs of one test.
///
/// Stop it with [`Lab::stop`], which tells of machines that had died unnoticed. A lab that is dropped instead kills its machines;
/// and should the whole process be killed, no QEMU of it stays.
#[derive(Debug)]
pub struct Lab {
    inner: Arc<Inner>,
    stopped: bool,
}

#[derive(Debug)]
pub(crate) struct Inner {
    test: TestName,
    artifacts: Artifacts,
    timeline: Timeline,
    cache: Cache,
    /// With this one the harness logs in everywhere.
    key: KeyPair,
    book: Arc<Mutex<Book>>,
    state: Mutex<State>,
    background: Arc<Background>,
    // Last: what runs in it is gone by then.
    run: RunDir,
}

#[derive(Debug, Default)]
struct State {
    switches: BTreeMap<Name, Switch>,
    machines: Vec<Machine>,
    /// Those in force, by number.
    faults: BTreeMap<u64, String>,
    numbered_faults: u64,
    /// How many machines there were ever: their files are told apart by number, since paths of sockets must be short.
    numbered: usize,
}

impl Lab {
    /// A lab for the test that runs now. Nothing runs in it yet.
    ///
    /// # Errors
    /// [`LabError`]: no folder for its evidence, or none to run in.
    pub fn new() -> Result<Self, LabError> {
        Self::named(&TestName::current()?)
    }

    /// A lab for something that is no test, or for a test that does not know its name.
    ///
    /// # Errors
    /// As [`Lab::new`].
    pub fn named(test: &TestName) -> Result<Self, LabError> {
        let artifacts = Artifacts::open(test)?;
        let timeline = Timeline::create(&artifacts.timeline()).map_err(|source| LabError::Timeline {
            path: artifacts.timeline(),
            source,
        })?;
        let cache = Cache::open()?;
        let run = RunDir::create(&cache.root().join("run"))?;
        let background = Background::start().map_err(|source| LabError::Background { source })?;
        timeline.note("lab", format_args!("{} of {}", test.test, test.binary));
        let inner = Inner {
            test: test.clone(),
            artifacts,
            timeline,
            cache,
            key: KeyPair::generate(),
            book: Arc::default(),
            state: Mutex::default(),
            background: Arc::new(background),
            run,
        };
        Ok(Self {
            inner: Arc::new(inner),
            stopped: false,
        })
    }

    /// One machine more. It does not run before it is started.
    pub fn machine(&self, name: &str) -> MachineBuilder {
        MachineBuilder::new(Arc::clone(&self.inner), name)
    }

    /// One machine more, that others built. It is reached by SSH, as `login` says; nothing of this library is in it.
    pub fn brought(&self, name: &str, brought: Brought, login: Login) -> BroughtBuilder {
        BroughtBuilder::new(Arc::clone(&self.inner), name, brought, login)
    }

    /// Several machines more, to be started side by side.
    pub fn machines<const N: usize>(&self, names: [&str; N]) -> Machines<N> {
        Machines::new(names.map(|name| self.machine(name)))
    }

    /// Several machines that were described one by one, to be started side by side.
    pub fn together<const N: usize>(&self, machines: [MachineBuilder; N]) -> Machines<N> {
        Machines::new(machines)
    }

    /// A VLAN of this lab. It comes to be when it is first named.
    pub fn vlan(&self, name: &str) -> Vlan<'_> {
        Vlan::new(&self.inner, name)
    }

    /// The folder with the test's evidence.
    pub fn artifacts(&self) -> &Path {
        self.inner.artifacts.folder()
    }

    /// The test's timeline, for what the test itself has to say.
    pub fn timeline(&self) -> &Timeline {
        &self.inner.timeline
    }

    /// Stops all machines side by side, and tells of those that had died without the test's doing. Nothing of the lab is left then but
    /// its evidence.
    ///
    /// # Errors
    /// [`LabError::Died`] for each machine that had died; every other step is done all the same.
    pub async fn stop(mut self) -> Result<(), LabError> {
        self.stopped = true;
        let machines = std::mem::take(&mut self.inner.state().machines);
        let mut stopping = JoinSet::new();
        for machine in machines {
            stopping.spawn(async move {
                let evidence = machine.evidence();
                machine.stop().await.map_err(|death| LabError::Died {
                    death,
                    evidence: Box::new(evidence),
                })
            });
        }
        let ended = stopping.join_all().await;
        self.inner.tell_of_faults();
        self.inner.state().switches.clear();
        let result = LabError::gather(ended.into_iter().filter_map(Result::err).collect());
        match &result {
            Ok(()) => self.inner.artifacts.mark(Outcome::Passed, ""),
            Err(error) => self.inner.artifacts.mark(Outcome::Failed, &error.to_string()),
        }
        self.inner.timeline.note("lab", "stopped");
        result
    }
}

/// The safety net: whatever happened to the test, its machines are killed.
impl Drop for Lab {
    fn drop(&mut self) {
        if self.stopped {
            return;
        }
        self.inner.tell_of_faults();
        let mut state = self.inner.state();
        state.machines.drain(..).for_each(|machine| machine.give_up());
        state.switches.clear();
        if std::thread::panicking() {
            self.inner.artifacts.mark(Outcome::Failed, "the test panicked");
            self.say_where_the_evidence_is();
        } else {
            self.inner
                .artifacts
                .mark(Outcome::Ended, "the lab was dropped without being stopped");
        }
    }
}

impl Lab {
    /// A failed assertion does not know of the artifacts: they are named right after its message.
    fn say_where_the_evidence_is(&self) {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "artifacts: {}", self.artifacts().display());
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
