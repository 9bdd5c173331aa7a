//! From a resolved fleet to a graph's input: grants, systems, entries and job files.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::Date;
use provisor_model::Model;
use provisor_model::fleet::Node;
use provisor_model::node_plan::{NodePlan, StateBackend};

use super::homes;
use crate::address::{AddressError, StateAddress};
use crate::build::{self, BuildError, Builder};
use crate::entry::{HostKey, NodeEntry};
use crate::grants::at_rest::Shelf;
use crate::progress::{Event, Progress};
use crate::setup::Setup;
use crate::transport::job::{Deadlines, Delivery, Job, JobError};

/// A system that does not build in this time is stuck.
const BUILD_DEADLINE: Duration = Duration::from_secs(2 * 3600);

/// The folders of one fleet on this deployer: all of them below the working directory of its state key.
#[derive(Clone, Debug)]
pub(super) struct Place {
    root: PathBuf,
    /// The state's address.
    pub(super) address: StateAddress,
}

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum PreparationError {
    #[error(
        "no state backend is known: give its address in TF_HTTP_ADDRESS, or set `backend` on the group whose node runs it"
    )]
    NoAddress,
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Job(#[from] JobError),
    #[error(
        "node {node} serves the state backend and {path} is not there to run on it; build it with `cargo build --profile guest -p provisor-backend`, or name it in the setup"
    )]
    NoBackendProgram { node: String, path: PathBuf },
    #[error("cannot use {path}: {source}; make it accessible and run again")]
    File { path: PathBuf, source: std::io::Error },
}

impl Place {
    /// The place of a fleet: by the operator's address, or by the one at which its own backend node serves.
    pub(super) fn of(setup: &Setup, model: &Model) -> Result<Place, PreparationError> {
        let address = match (&setup.backend_address, model.state_backend()) {
            (Some(address), _) => StateAddress::parse(address)?,
            (None, Some((node, port))) => StateAddress::derived(&node.address, port, model.name().as_ref())?,
            (None, None) => return Err(PreparationError::NoAddress),
        };
        let root = absolute(&setup.state_home)?.join(address.key());
        Ok(Place { root, address })
    }

    /// Makes the folder, for this user alone.
    pub(super) fn make(&self) -> Result<(), PreparationError> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root)
            .map_err(|source| PreparationError::File {
                path: self.root.clone(),
                source,
            })
    }

    /// Secrets at rest.
    pub(super) fn grants(&self) -> PathBuf {
        self.root.join("grants")
    }

    /// The CA's certificate, for clients.
    pub(super) fn certificate(&self) -> PathBuf {
        self.root.join("ca.pem")
    }

    fn build(&self) -> PathBuf {
        self.root.join("build")
    }

    fn job(&self, node: &str) -> PathBuf {
        self.root.join("jobs").join(format!("{node}.json"))
    }

    fn known_hosts(&self) -> PathBuf {
        self.root.join("known_hosts")
    }
}

/// Every node's system, built one after another.
pub(super) fn build(
    setup: &Setup,
    place: &Place,
    plans: &mut BTreeMap<String, NodePlan>,
    progress: &dyn Progress,
) -> Result<BTreeMap<String, PathBuf>, PreparationError> {
    let builder = Builder {
        fleet: absolute(&setup.fleet)?,
        folder: place.build(),
        nix: setup.programs.nix.clone(),
        deadline: BUILD_DEADLINE,
    };
    let mut systems = BTreeMap::new();
    for (node, plan) in plans {
        let step = |detail: &str| {
            progress.event(Event::NodeStep {
                node: node.clone(),
                detail: detail.to_owned(),
            });
        };
        step("building its system");
        let mut store_paths = Vec::new();
        if let Some(backend) = plan.state_backend.clone() {
            store_paths.push(add_backend(setup, &builder, plan, &backend)?);
        }
        let mut say = |line: &str| {
            if line.starts_with("building ") || line.starts_with("copying ") {
                step(line);
            }
        };
        systems.insert(node.clone(), builder.build(plan, &store_paths, &mut say)?);
    }
    Ok(systems)
}

/// Adds the backend's program to the store and its service to the plan.
fn add_backend(
    setup: &Setup,
    builder: &Builder,
    plan: &mut NodePlan,
    backend: &StateBackend,
) -> Result<PathBuf, PreparationError> {
    let program = setup.programs.backend.clone().unwrap_or_else(beside_this_program);
    if !program.is_file() {
        return Err(PreparationError::NoBackendProgram {
            node: plan.name.clone(),
            path: program,
        });
    }
    let path = builder.add_program(&program, BACKEND)?;
    plan.modules.push(build::backend_module(&path, backend));
    Ok(path)
}

const BACKEND: &str = "provisor-backend";

fn beside_this_program() -> PathBuf {
    let folder = std::env::current_exe()
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned));
    folder.unwrap_or_default().join(BACKEND)
}

/// A node as the graph sees it.
pub(super) fn entry(
    setup: &Setup,
    node: &Node,
    plan: &NodePlan,
    system: &Path,
) -> Result<NodeEntry, PreparationError> {
    let fleet = absolute(&setup.fleet)?;
    Ok(NodeEntry {
        name: node.name.to_string(),
        system: system.to_owned(),
        address: node.address.clone(),
        port: node.port,
        user: node.user.clone(),
        host_key: node
            .host_key
            .clone()
            .map_or(HostKey::TrustOnFirstUse, HostKey::Pinned),
        ssh_options: node.ssh_options.clone(),
        grants: plan
            .grants
            .iter()
            .map(|grant| (grant.name.clone(), grant.generation))
            .collect(),
        identity: node.identity.as_deref().map(|path| homes::expand(path, &fleet)),
    })
}

/// Writes a node's job file and returns its path.
pub(super) fn write_job(
    setup: &Setup,
    place: &Place,
    entry: &NodeEntry,
    plan: &NodePlan,
) -> Result<PathBuf, PreparationError> {
    let shelf = Shelf::at(&place.grants());
    let delivery = |grant: &provisor_model::Grant| Delivery {
        grant: grant.name.clone(),
        at_rest: shelf.path(&grant.name),
        files: grant.files.clone(),
        units: grant.units.clone(),
    };
    let job = Job {
        entry: entry.clone(),
        deliveries: plan.grants.iter().map(delivery).collect(),
        known_hosts: place.known_hosts(),
        ssh: setup.programs.ssh.clone().unwrap_or_else(|| "ssh".into()),
        nix: setup.programs.nix.clone(),
        deadlines: Deadlines::default(),
    };
    let path = place.job(&entry.name);
    job.write(&path)?;
    Ok(path)
}

/// Today's date by the clock, in UTC.
pub(super) fn today() -> Date {
    jiff::tz::Offset::UTC.to_datetime(jiff::Timestamp::now()).date()
}

/// The path from the root, wherever it was given from.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, PreparationError> {
    std::path::absolute(path).map_err(|source| PreparationError::File {
        path: path.to_owned(),
        source,
    })
}
