//! A lab: the machines and VLANs of one test, and the evidence of what they did.

pub(crate) mod addresses;
pub(crate) mod brought;
mod ending;
mod error;
mod faults;
mod fixture;
mod keeping;
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
use crate::checks::{Allowance, Trouble};
use crate::machine::{Brought, BroughtBuilder, Machine, MachineBuilder, Machines};
use crate::names::Name;
use crate::net::Switch;
use crate::recorder::Recorder;
use crate::run_dir::RunDir;
use crate::ssh::{KeyPair, Login};
use crate::timeline::Timeline;
use addresses::Book;
use ending::Afterwards;

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
    recorder: Recorder,
    background: Arc<Background>,
    // Last: what runs in it is gone by then.
    run: RunDir,
}

#[derive(Debug, Default)]
struct State {
    switches: BTreeMap<Name, Switch>,
    machines: Vec<Machine>,
    /// The trouble that the test means to happen.
    allowed: Vec<Allowance>,
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
        let recorder = {
            let _background = background.enter();
            Recorder::start(&artifacts, timeline.clone())
        };
        let inner = Inner {
            test: test.clone(),
            artifacts,
            timeline,
            recorder,
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

    /// Says that this trouble is meant to happen, and why: without it, [`Lab::stop`] fails for it.
    ///
    /// `text` is what its line has in it, such as the name of a unit or a program.
    pub fn allow(&self, trouble: Trouble, text: &str, reason: &str) -> &Self {
        self.inner
            .timeline
            .note("lab", format_args!("allows {trouble} of {text:?}: {reason}"));
        self.inner.state().allowed.push(Allowance {
            trouble,
            text: text.to_owned(),
            reason: reason.to_owned(),
        });
        self
    }

    /// The folder with the test's evidence.
    pub fn artifacts(&self) -> &Path {
        self.inner.artifacts.folder()
    }

    /// The test's timeline, for what the test itself has to say.
    pub fn timeline(&self) -> &Timeline {
        &self.inner.timeline
    }

    /// Stops all machines side by side, and tells of those that had died without the test's doing, and of trouble that it had not
    /// allowed. Nothing of the lab is left then but its evidence.
    ///
    /// # Errors
    /// [`LabError::Trouble`], and [`LabError::Died`] for each machine that had died; every other step is done all the same.
    pub async fn stop(mut self) -> Result<(), LabError> {
        self.stopped = true;
        // This may take its time: guests are asked for their state, and a person may look around.
        let inner = Arc::clone(&self.inner);
        let (findings, afterwards) = self
            .inner
            .background
            .run_blocking(move || inner.look_back())
            .await;
        let machines = std::mem::take(&mut self.inner.state().machines);
        let mut errors = match afterwards {
            Afterwards::End => stop_all(machines).await,
            Afterwards::Live => Vec::new(),
        };
        self.inner.tell_of_faults();
        self.inner.state().switches.clear();
        if !findings.is_empty() {
            errors.push(LabError::Trouble {
                findings,
                artifacts: self.artifacts().to_owned(),
            });
        }
        let result = LabError::gather(errors);
        self.inner.timeline.note("lab", "stopped");
        match &result {
            Ok(()) => self.inner.leave_evidence(Outcome::Passed, ""),
            Err(error) => self.inner.leave_evidence(Outcome::Failed, &error.to_string()),
        }
        result
    }
}

/// Those that had died before, as errors.
async fn stop_all(machines: Vec<Machine>) -> Vec<LabError> {
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
    ended.into_iter().filter_map(Result::err).collect()
}

/// The safety net: whatever happened to the test, its machines are killed, unless a person wants them. A test that ends without stopping
/// its lab has failed, most often: its guests are asked for their state first.
impl Drop for Lab {
    fn drop(&mut self) {
        if self.stopped {
            return;
        }
        let (outcome, note) = if std::thread::panicking() {
            (Outcome::Failed, "the test panicked")
        } else {
            (Outcome::Ended, "the lab was dropped without being stopped")
        };
        self.inner.timeline.note("lab", note);
        let machines = self.inner.state().machines.clone();
        if self.inner.after_failure(&machines) == Afterwards::End {
            machines.iter().for_each(Machine::give_up);
        }
        self.inner.tell_of_faults();
        self.inner.state().machines.clear();
        self.inner.state().switches.clear();
        self.inner.leave_evidence(outcome, note);
        // A failed assertion does not know of the artifacts: they are named right after its message.
        self.inner
            .say(&format!("artifacts: {}", self.artifacts().display()));
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
