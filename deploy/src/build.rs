//! A node's plan becomes its system: `system.nix` is called with the plan, and Nix builds what it returns.
//!
//! The same plan gives the same store path on every deployer: what Nix gets to see is the plan's data and the fleet's
//! `system.nix`, and never a path, a user or a time of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use provisor_model::node_plan::{NodePlan, StateBackend};
use serde::Serialize;

use crate::process::{self, ProcessError};

/// What `system.nix` gets as `node`: the plan, and store paths that belong to the system.
#[derive(Clone, Debug, Serialize)]
pub struct SystemInput<'a> {
    /// The plan.
    #[serde(flatten)]
    plan: &'a NodePlan,
    /// Paths that are in the store already; the system refers to them (`system.extraDependencies`).
    store_paths: Vec<PathBuf>,
}

/// Builds the systems of one fleet.
#[derive(Clone, Debug)]
pub struct Builder {
    /// Folder with `system.nix`.
    pub fleet: PathBuf,
    /// Folder for plans and garbage-collector roots; it outlives the run.
    pub folder: PathBuf,
    /// Folder with `nix-build` and `nix-store`; `None` means `PATH`.
    pub nix: Option<PathBuf>,
    /// How long one build may take.
    pub deadline: Duration,
}

/// Why there is no system.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A file could not be written or read.
    #[error("cannot {action} {path}: {source}; make it accessible and run again")]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The fleet has no `system.nix`.
    #[error(
        "{path} is missing; write a function from `{{ node }}` to a derivation there (see docs/system-nix.md)"
    )]
    NoSystemNix {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Nix could not be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The build failed.
    #[error(
        "building {node} failed; Nix's last lines:\n{reason}\ncorrect system.nix or the node's components; the plan is {plan}"
    )]
    Nix {
        /// Deployment name.
        node: String,
        /// Nix's last lines.
        reason: String,
        /// The plan that was given to `system.nix`.
        plan: PathBuf,
    },
    /// `system.nix` returned several outputs, or none.
    #[error(
        "system.nix built {count} paths for {node}, and a system is one; return a single derivation with one output"
    )]
    NotOne {
        /// Deployment name.
        node: String,
        /// How many.
        count: usize,
    },
    /// A program could not be added to the store.
    #[error(
        "cannot add {path} to the Nix store:\n{reason}\nmake the store writable for you, or run the Nix daemon"
    )]
    Add {
        /// What was to be added.
        path: PathBuf,
        /// Nix's last lines.
        reason: String,
    },
}

/// Strings are handed over as arguments, never written into the expression.
const EXPRESSION: &str =
    r#"{ plan, system }: import system { node = builtins.fromJSON (builtins.readFile plan); }"#;

impl Builder {
    /// Builds one node's system; each line Nix says goes to `say`. The result is kept from garbage collection.
    pub fn build(
        &self,
        plan: &NodePlan,
        store_paths: &[PathBuf],
        say: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, BuildError> {
        let system = self.fleet.join("system.nix");
        if !system.is_file() {
            return Err(BuildError::NoSystemNix { path: system });
        }
        let folder = self.folder.join(&plan.name);
        let file = folder.join("plan.json");
        write_plan(
            &file,
            &SystemInput {
                plan,
                store_paths: store_paths.to_vec(),
            },
        )?;
        let mut command = self.tool("nix-build");
        command
            .arg("--out-link")
            .arg(folder.join("system"))
            .args(["--expr", EXPRESSION, "--argstr", "plan"])
            .arg(&file)
            .args(["--argstr", "system"])
            .arg(&system);
        let finished = process::run(&mut command, b"", self.deadline, say)?;
        if !finished.status.success() {
            return Err(BuildError::Nix {
                node: plan.name.clone(),
                reason: finished.last_lines(),
                plan: file,
            });
        }
        let stdout = String::from_utf8_lossy(&finished.stdout);
        let paths: Vec<&str> = stdout.lines().collect();
        match paths[..] {
            [path] => Ok(path.into()),
            _ => Err(BuildError::NotOne {
                node: plan.name.clone(),
                count: paths.len(),
            }),
        }
    }

    /// Adds a static program to the store as `<hash>-<name>/bin/<name>`; its bytes alone decide the path.
    pub fn add_program(&self, program: &Path, name: &str) -> Result<PathBuf, BuildError> {
        let failed = |action, path: &Path, source| BuildError::File {
            action,
            path: path.to_owned(),
            source,
        };
        std::fs::create_dir_all(&self.folder).map_err(|source| failed("write", &self.folder, source))?;
        let staging =
            tempfile::tempdir_in(&self.folder).map_err(|source| failed("write", &self.folder, source))?;
        let tree = staging.path().join(name);
        let copy = tree.join("bin").join(name);
        std::fs::create_dir_all(tree.join("bin")).map_err(|source| failed("write", &tree, source))?;
        // The mode comes along, and with it the executable bit, which is all of a mode that Nix keeps.
        std::fs::copy(program, &copy).map_err(|source| failed("read", program, source))?;
        let mut add = self.tool("nix-store");
        add.arg("--add").arg(&tree);
        let path = self.store(add, program)?;
        let mut root = self.tool("nix-store");
        root.arg("--realise")
            .arg(&path)
            .arg("--indirect")
            .arg("--add-root")
            .arg(self.folder.join(name));
        self.store(root, program)?;
        Ok(path)
    }

    fn store(&self, mut command: Command, path: &Path) -> Result<PathBuf, BuildError> {
        let finished = process::run(&mut command, b"", self.deadline, &mut |_| {})?;
        if !finished.status.success() {
            return Err(BuildError::Add {
                path: path.to_owned(),
                reason: finished.last_lines(),
            });
        }
        Ok(String::from_utf8_lossy(&finished.stdout).trim().into())
    }

    fn tool(&self, name: &str) -> Command {
        let program = self
            .nix
            .as_deref()
            .map_or_else(|| Path::new(name).to_owned(), |nix| nix.join(name));
        Command::new(program)
    }
}

/// Where the backend's data and its users are on the node.
const BACKEND_USERS: &str = "/var/lib/provisor/grants/state-backend/users";

/// The host module of a node that serves the state backend, in NixOS options.
///
/// The service is a dynamic user with a state folder; systemd hands it the users file, which only root can read.
pub fn backend_module(program: &Path, backend: &StateBackend) -> serde_json::Value {
    let command = format!(
        "{}/bin/provisor-backend serve --listen [::]:{} --database %S/provisor-backend/state.sqlite --users %d/users",
        program.display(),
        backend.port,
    );
    serde_json::json!({
        "systemd": { "services": { "provisor-backend": {
            "description": "State backend of the fleet",
            "wantedBy": ["multi-user.target"],
            "after": ["network.target"],
            "serviceConfig": {
                // Whatever waits for the unit finds it serving.
                "Type": "notify",
                "ExecStart": command,
                "LoadCredential": format!("users:{BACKEND_USERS}"),
                "DynamicUser": true,
                "StateDirectory": "provisor-backend",
                "StateDirectoryMode": "0700",
                "Restart": "on-failure",
                "RestartSec": "1s",
                "CapabilityBoundingSet": "",
                "LockPersonality": true,
                "MemoryDenyWriteExecute": true,
                "NoNewPrivileges": true,
                "PrivateDevices": true,
                "ProtectHome": true,
                "ProtectKernelTunables": true,
                "ProtectSystem": "strict",
                "RestrictAddressFamilies": ["AF_INET", "AF_INET6", "AF_UNIX"],
                "UMask": "0077",
            },
        } } },
    })
}

fn write_plan(path: &Path, input: &SystemInput<'_>) -> Result<(), BuildError> {
    let failed = |source| BuildError::File {
        action: "write",
        path: path.to_owned(),
        source,
    };
    let parent = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(failed)?;
    let text = serde_json::to_vec_pretty(input).map_err(|error| failed(error.into()))?;
    std::fs::write(path, text).map_err(failed)
}

#[cfg(test)]
mod tests;
