//! What calls the methods: an argument, never a global.

use std::path::PathBuf;

/// Everything a run is told by its caller.
///
/// The shipped `provisor` fills it from flags, the environment and `PATH`; a program with fleets of its own (the VM
/// tests, a provider's wrapper) fills it by hand.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Folder with `fleet.toml`, `components/` and `system.nix`.
    pub fleet: PathBuf,
    /// Programs by absolute path, or how to find them.
    pub programs: Programs,
    /// Where working directories are kept: `$XDG_STATE_HOME/provisor` for the shipped program.
    pub state_home: PathBuf,
    /// The state backend's address, if the operator gave one (TF FR-005).
    pub backend_address: Option<String>,
}

/// The programs a run starts. `None` means: look on `PATH`, and say which one was found.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// OpenTofu or Terraform; `PATH` is searched for `tofu`, then `terraform`.
    pub tofu: Option<PathBuf>,
    /// The shell of the graph's `local-exec`.
    pub shell: Option<PathBuf>,
    /// Folder with `nix-build`, `nix-store` and `nix`.
    pub nix: Option<PathBuf>,
    /// OpenSSH's client.
    pub ssh: Option<PathBuf>,
    /// The static `provisor-backend` that a backend node runs; beside the running program by default.
    pub backend: Option<PathBuf>,
}
