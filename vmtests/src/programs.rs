//! The programs that go into the guests: static builds of ours, and the OpenTofu or Terraform found on this machine.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use provisor_deploy::runner::{Places, Program};

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Name in the cargo target folder, and name in the guests.
const OURS: [(&str, &str); 2] = [
    ("provisor-vmtest", "provisor"),
    ("provisor-backend", "provisor-backend"),
];

/// A folder with `bin/provisor`, `bin/provisor-backend` and `bin/tofu`, removed when dropped.
pub struct Programs {
    folder: tempfile::TempDir,
    /// The runner that was found, and where.
    pub tofu: PathBuf,
}

impl Programs {
    /// The folder to share with a guest at [`provisor_vmtests_program::MOUNT`].
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Size of what a backend host gets to run, in bytes.
    pub fn backend_bytes(&self) -> Result<u64> {
        Ok(self.folder().join("bin/provisor-backend").metadata()?.len())
    }
}

/// Builds what is missing, once however many tests start together; `say` tells a person what is going on.
pub fn build(say: &dyn Fn(&str)) -> Result<Programs> {
    // Both are static, so the guests get the one of this machine.
    let tofu = Program::find(
        &provisor_deploy::setup::Programs::default(),
        &Places::of_this_process(),
    )?
    .path;
    let target = target_folder()?.join("guest-programs");
    std::fs::create_dir_all(&target)?;
    // Cargo has a lock of its own; this one also covers the copies below, so that none is of half a binary.
    let lock = File::create(target.join("lock"))?;
    lock.lock()?;
    if !target.join(TARGET).join("guest").join(OURS[0].0).exists() {
        say("building the static programs for the guests, once (some minutes)");
    }
    cargo_build(&target)?;
    let folder = tempfile::Builder::new().prefix("programs-").tempdir_in(&target)?;
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin)?;
    for (built, name) in OURS {
        std::fs::copy(target.join(TARGET).join("guest").join(built), bin.join(name))?;
    }
    std::fs::copy(&tofu, bin.join("tofu")).with_context(|| format!("cannot copy {}", tofu.display()))?;
    Ok(Programs { folder, tofu })
}

fn cargo_build(target: &Path) -> Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([
        "build",
        "--quiet",
        "--locked",
        "--profile",
        "guest",
        "--target",
        TARGET,
    ]);
    cargo.args([
        "--package",
        "provisor-vmtests-program",
        "--package",
        "provisor-backend",
    ]);
    cargo.args(OURS.iter().flat_map(|(built, _)| ["--bin", built]));
    cargo.arg("--target-dir").arg(target);
    cargo.current_dir(workspace());
    // What cargo set for this test would make the inner build differ from one test to the next.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("NEXTEST") || text == "CARGO_MANIFEST_DIR" {
            cargo.env_remove(&name);
        }
    }
    cargo
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    let output = cargo
        .output()
        .context("cargo cannot be started: install Rust, or set CARGO")?;
    if !output.status.success() {
        bail!(
            "the guest programs do not build:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The folder cargo builds this program into: the one above it with cargo's own files. The tag is missing where the
/// folder was there before cargo, as a mounted cache is.
fn target_folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let of_cargo = |folder: &&Path| {
        [".rustc_info.json", "CACHEDIR.TAG"]
            .iter()
            .any(|file| folder.join(file).is_file())
    };
    program
        .ancestors()
        .find(of_cargo)
        .map(Path::to_path_buf)
        .with_context(|| format!("{} is not below a cargo target folder", program.display()))
}
