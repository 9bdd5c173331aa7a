//! The shared OpenTofu runner: it observes, decides, and carries the course out, step by step.
//!
//! Every step can be interrupted. What a step leaves behind is what the next run's observation finds, so that resuming is
//! deciding again.

mod cycles;
mod session;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use crate::address::{AddressError, StateAddress};
use crate::bootstrap::WaitError;
use crate::decide::{refused_at_sight, refused_by_backend};
use crate::graph::{GraphError, render};
use crate::lease::LeaseError;
use crate::migrate::MigrateError;
use crate::observe::remote;
use crate::obstacle::Obstacle;
use crate::progress::{Event, Progress};
use crate::runner::{Interrupts, Places, Program, ProgramError, find_on_path};
use crate::salvage::SalvageError;
use crate::setup::Setup;
use crate::store::{Client, Patience, StoreError};
use crate::workdir::{Cycle, WorkDir, WorkDirError, marker_in, stamp};

pub use crate::cycle::CycleError;
pub use crate::graph::{BackendNode, Graph, TransportCommand};
pub use crate::observe::{Asked, Flags, Hosting, LostState, Mode, StaleLock, Verb};
pub use crate::report::{Ending, LockRelease, PhaseTime, PlannedChanges, RunReport, StatePlace};
pub use crate::store::{Credentials, Retries, Secret};

/// What a run is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Mode, verb and what is allowed by name.
    pub asked: Asked,
    /// Nodes that are deployed at once; OpenTofu's 10 when not given.
    pub parallelism: Option<NonZeroU32>,
    /// How long a bootstrap waits for the backend it deployed.
    pub backend_wait: Duration,
}

impl Default for Request {
    /// A steady apply that allows nothing; three minutes for a backend to come up.
    fn default() -> Request {
        Request {
            asked: Asked::default(),
            parallelism: None,
            backend_wait: Duration::from_secs(180),
        }
    }
}

/// Runs the graph: the one door to OpenTofu for every method that keeps state.
///
/// The report tells what became of each node, and an error is for what stopped the run as a whole. A graph whose backend
/// address the operator did not give derives it from its backend node; such an address does not count as pinned.
pub fn run(
    setup: &Setup,
    graph: &Graph<'_>,
    request: &Request,
    credentials: &Credentials,
    progress: &dyn Progress,
) -> Result<RunReport, Error> {
    let hosting = if graph.backend_node.is_some() {
        Hosting::OwnNode
    } else {
        Hosting::Elsewhere
    };
    if let Some(obstacle) = refused_at_sight(request.asked, hosting) {
        return Err(Error::Refused(obstacle));
    }
    let places = Places::of_this_process();
    let program = Program::find(&setup.programs, &places)?;
    let shell = match &setup.programs.shell {
        Some(shell) => shell.clone(),
        None => find_on_path("sh", places.path.as_deref()).ok_or(Error::NoShell)?,
    };
    let address = state_address(setup, graph)?;
    // The graph is sound before anything is touched.
    render(graph, &shell, Cycle::Remote)?;
    progress.event(Event::Note {
        message: format!("runs the graph by {program}"),
    });

    let now = Timestamp::now();
    let run = format!("{}-{:.8}", stamp(now), uuid::Uuid::new_v4().simple());
    let workdir = WorkDir::open(&setup.state_home, &address, now)?;
    let logs = workdir.run(&run)?;
    let credentials = credentials.clone().with_userinfo_of(&address);
    let client = |patience| Client::new(address.clone(), &credentials, patience);
    let session = session::Session {
        client: client(Patience::default())?,
        poll: client(Patience::of_a_poll())?,
        interrupts: Interrupts::watch().map_err(Error::Signals)?,
        program: &program,
        shell: &shell,
        workdir: &workdir,
        graph,
        run: &run,
        logs: &logs,
        address: &address,
        credentials: &credentials,
        request,
        hosting,
        progress,
    };
    session.carry_out()
}

/// What the backend at `address` already rules out, asked before anything is made or built. A run asks again.
///
/// # Errors
/// [`Error::Refused`], or that the marker cannot be read.
pub fn look_ahead(
    setup: &Setup,
    address: &StateAddress,
    hosting: Hosting,
    asked: Asked,
    credentials: &Credentials,
) -> Result<(), Error> {
    let marker = marker_in(&setup.state_home.join(address.key()))?;
    let credentials = credentials.clone().with_userinfo_of(address);
    let client = Client::new(address.clone(), &credentials, Patience::default())?;
    match refused_by_backend(asked, hosting, marker.as_ref(), &remote(client.read())) {
        Some(obstacle) => Err(Error::Refused(obstacle)),
        None => Ok(()),
    }
}

/// The operator's address, else the one at which the graph's own backend node will serve (TF FR-005).
pub fn state_address(setup: &Setup, graph: &Graph<'_>) -> Result<StateAddress, Error> {
    match (&setup.backend_address, &graph.backend_node) {
        (Some(address), _) => Ok(StateAddress::parse(address)?),
        (None, Some(BackendNode { address, port, .. })) => {
            Ok(StateAddress::derived(address, *port, graph.name)?)
        }
        (None, None) => Err(Error::NoAddress),
    }
}

/// What stopped a run as a whole.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The decision.
    #[error("{0}")]
    Refused(Obstacle),
    /// The decision, after an errored state was set aside.
    #[error("{obstacle}\nit was kept as {kept}")]
    SetAside {
        /// Why it was not stored.
        obstacle: Obstacle,
        /// Where it is.
        kept: PathBuf,
    },
    /// Nobody named a backend.
    #[error(
        "no state backend is known: give its address in TF_HTTP_ADDRESS, or set `backend` on the group whose node runs it"
    )]
    NoAddress,
    /// The graph's provisioners need one.
    #[error("there is no `sh` on PATH; install a shell, or name one in the setup")]
    NoShell,
    /// A verb that is decided and not carried out.
    #[error("`{verb}` is not offered yet; use apply or plan")]
    NotOffered {
        /// The verb.
        verb: Verb,
    },
    /// OpenTofu says it is done and the backend has no state.
    #[error(
        "the apply ended well and the backend at {address} has no state: it does not keep what it is given\ncheck the address and the backend before anything else is deployed"
    )]
    NotSaved {
        /// Redacted address.
        address: String,
    },
    /// A local cycle ended well and left no state.
    #[error(
        "the local cycle ended well and left no state in {path}; look at its log, then run --bootstrap again"
    )]
    NoLocalState {
        /// The file.
        path: PathBuf,
    },
    /// The lock could not be given back.
    #[error(
        "the lock of the state could not be released: {source}\nit is held by {holder}; ask whoever runs the backend to release it"
    )]
    Unlock {
        /// What the backend says.
        source: StoreError,
        /// By whom.
        holder: String,
    },
    /// Signals cannot be watched.
    #[error("signals cannot be handled ({0}); run on a system that allows it")]
    Signals(std::io::Error),
    /// No OpenTofu.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// No address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// No graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The working directory.
    #[error(transparent)]
    WorkDir(#[from] WorkDirError),
    /// The backend.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock, or its record.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The program.
    #[error(transparent)]
    Cycle(#[from] CycleError),
    /// The wait for the backend.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// The migration.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The salvage.
    #[error(transparent)]
    Salvage(#[from] SalvageError),
}

impl Error {
    /// The program's exit code: 3 refused, 130 interrupted, 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Refused(_) | Error::SetAside { .. } | Error::WorkDir(WorkDirError::Busy { .. }) => 3,
            Error::Cycle(CycleError::Interrupted) | Error::Wait(WaitError::Interrupted) => 130,
            _ => 1,
        }
    }
}
