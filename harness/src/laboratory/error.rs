//! What can go wrong with a lab.

use std::io;
use std::path::PathBuf;

use super::AddressError;
use crate::accel::AccelError;
use crate::artifacts::ArtifactsError;
use crate::budget::BudgetError;
use crate::cache::CacheError;
use crate::checks::Finding;
use crate::death::{Death, Evidence};
use crate::image::ImageError;
use crate::machine::{BootError, ControlError, RunError, ShareError};
use crate::names::NameError;
use crate::net::{SubnetError, SwitchError};
use crate::qemu::LaunchError;
use crate::qmp::QmpError;
use crate::run_dir::RunDirError;
use crate::ssh::KeyError;

/// Why a lab, or a machine in it, is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No folder for the evidence.
    #[error(transparent)]
    Artifacts(#[from] ArtifactsError),
    /// The timeline cannot be written.
    #[error("cannot write {}: check permissions and free space", .path.display())]
    Timeline {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No cache.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// No folder to run in.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// No thread for the lab's own work.
    #[error("cannot start the lab's thread: is the limit of processes reached?")]
    Background {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No accelerator runs guests.
    #[error(transparent)]
    Accelerator(#[from] AccelError),
    /// No memory for its machines.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// No image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A subnet that is none.
    #[error(transparent)]
    Subnet(#[from] SubnetError),
    /// Addresses that cannot be given.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A VLAN's switch cannot be made.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// A fault is wanted where a machine is not.
    #[error(
        "`{machine}` is not on VLAN `{vlan}`: plug it in with `on_vlan` before it starts, or name another VLAN"
    )]
    NotOnVlan {
        /// The machine.
        machine: String,
        /// The VLAN.
        vlan: String,
    },
    /// A disk cannot be given to a machine.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A folder cannot be shared.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// QEMU does not run.
    #[error("machine `{machine}`: {error}")]
    Launch {
        /// The machine.
        machine: String,
        /// Why.
        error: LaunchError,
    },
    /// The monitor of a machine that starts failed.
    #[error("machine `{machine}`: {error}{evidence}")]
    Monitor {
        /// The machine.
        machine: String,
        /// Why.
        error: QmpError,
        /// Console, QEMU's output, artifacts.
        evidence: Box<Evidence>,
    },
    /// A guest did not come up.
    #[error(transparent)]
    Boot(Box<BootError>),
    /// A guest does not do what every guest does.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The keys for SSH cannot be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A machine had died when the lab was stopped.
    #[error("`{}` had died before the lab was stopped: {death}{evidence}", .evidence.machine)]
    Died {
        /// How.
        death: Death,
        /// Console, QEMU's output, artifacts.
        evidence: Box<Evidence>,
    },
    /// Guests did what no guest may do.
    #[error(
        "the test's guests had trouble that it did not allow:{}\nif the test means it, say so: lab.allow(…)\nartifacts: {}",
        .findings.iter().map(|finding| format!("\n- {finding}")).collect::<String>(), .artifacts.display()
    )]
    Trouble {
        /// What they did.
        findings: Vec<Finding>,
        /// The folder of the test's artifacts.
        artifacts: PathBuf,
    },
    /// Nothing was to be started.
    #[error("there is no machine to start: name at least one")]
    NoMachines,
    /// Several things at once.
    #[error("{} errors:{}", .0.len(), listed(.0))]
    Several(Vec<LabError>),
}

impl LabError {
    /// All of `errors` as one.
    pub(crate) fn gather(mut errors: Vec<Self>) -> Result<(), Self> {
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(Self::Several(errors)),
        }
    }
}

fn listed(errors: &[LabError]) -> String {
    errors
        .iter()
        .map(|error| format!("\n- {}", error.to_string().replace('\n', "\n  ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_errors_are_all_told() {
        assert!(LabError::gather(Vec::new()).is_ok());
        assert_eq!(
            LabError::gather(vec![LabError::NoMachines])
                .unwrap_err()
                .to_string(),
            LabError::NoMachines.to_string()
        );
        let two = LabError::gather(vec![LabError::NoMachines, LabError::NoMachines])
            .unwrap_err()
            .to_string();
        assert_eq!(two, format!("2 errors:\n- {0}\n- {0}", LabError::NoMachines));
    }
}
