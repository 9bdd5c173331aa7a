//! The harness by itself: packaged, unpacked elsewhere, and used by a project that knows nothing of this workspace.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use nix::unistd::geteuid;
use provisor_harness::cache::Cache;
use provisor_harness::image::{Image, ImageSpec};

/// Root becomes this user to run guests: one that owns nothing, is in no group, and is in no list of users.
const PLAIN_USER: u32 = 54_321;

#[test]
fn a_project_elsewhere_boots_guests_from_the_packaged_crate_without_privileges() -> Result<()> {
    // In a short path, which sockets need, that any user may enter.
    let base = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir_in("/tmp")?;

    let unpacked = package(base.path())?;
    let project = start_project(base.path(), &unpacked)?;
    let program = build(&project)?;
    // The folder that cargo builds in may be one that only its owner enters.
    let copy = base.path().join("hello");
    fs::copy(program, &copy)?;

    let said = run_without_privileges(&copy, base.path())?;
    assert!(
        said.contains("test two_guests_reach_each_other_by_name ... ok"),
        "{said}"
    );
    let artifacts = base.path().join("user/artifacts");
    let command =
        fs::read_to_string(find(&artifacts, "command").context("no machine left its command line")?)?;
    assert!(command.contains("qemu-system"), "{command}");
    Ok(())
}

/// `cargo package`, unpacked.
fn package(base: &Path) -> Result<PathBuf> {
    let target = base.join("package");
    cargo(Path::new(env!("CARGO_MANIFEST_DIR")))
        .args(["package", "--allow-dirty", "--no-verify", "--target-dir"])
        .arg(&target)
        .checked()?;
    let name = concat!("provisor-harness-", env!("CARGO_PKG_VERSION"));
    Command::new("tar")
        .arg("-xf")
        .arg(target.join("package").join(format!("{name}.crate")))
        .arg("-C")
        .arg(base)
        .checked()?;
    Ok(base.join(name))
}

/// `lab new`, with the versions that the package was made with.
fn start_project(base: &Path, unpacked: &Path) -> Result<PathBuf> {
    let project = base.join("scenarios");
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .arg("new")
        .arg(&project)
        .arg("--harness")
        .arg(unpacked)
        .checked()?;
    fs::copy(unpacked.join("Cargo.lock"), project.join("Cargo.lock"))?;
    Ok(project)
}

/// The program of the project's one test. It is built beside this one, with the same settings: most dependencies are there already.
fn build(project: &Path) -> Result<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .context("there is no target folder")?;
    let listed = cargo(project)
        .args(["nextest", "list", "--message-format=json"])
        .args(["--config", "profile.dev.debug=\"line-tables-only\""])
        .args(["--config", "profile.dev.package.\"*\".debug=false"])
        .arg("--target-dir")
        .arg(target)
        .checked()?;
    let listed: serde_json::Value = serde_json::from_str(&listed)?;
    let path = &listed["rust-suites"]["scenarios::hello"]["binary-path"];
    let path = path.as_str().with_context(|| format!("no such test: {listed}"))?;
    Ok(PathBuf::from(path))
}

/// Runs it as a user without root, and gives what it said.
fn run_without_privileges(program: &Path, base: &Path) -> Result<String> {
    let home = base.join("user");
    fs::create_dir(&home)?;
    let mut run = if geteuid().is_root() {
        lend_image(&home.join("cache"))?;
        chown(&home, Some(PLAIN_USER), Some(PLAIN_USER))?;
        let mut run = Command::new("setpriv");
        run.arg(format!("--reuid={PLAIN_USER}"))
            .arg(format!("--regid={PLAIN_USER}"))
            .args(["--clear-groups", "--no-new-privs", "--inh-caps=-all"])
            .arg(program);
        run.env("PROVISOR_CACHE", home.join("cache"));
        run
    } else {
        Command::new(program)
    };
    run.env("HOME", &home)
        .env("PROVISOR_ARTIFACTS", home.join("artifacts"))
        .env_remove("NEXTEST_TEST_NAME")
        .current_dir(&home)
        .checked()
}

/// A cache of the user's own, with the image in it: this user has no second ids, which making one needs.
fn lend_image(cache: &Path) -> Result<()> {
    let image = Image::obtain(&Cache::open()?, &ImageSpec::debian(), &|_| ())?;
    let root = image.root();
    let (from, shelf) = (
        root.parent().context("an image has a folder")?,
        cache.join("image"),
    );
    fs::create_dir_all(&shelf)?;
    // `cp` keeps the holes of the prepared disk.
    Command::new("cp")
        .args(["--recursive", "--sparse=always"])
        .arg(from)
        .arg(&shelf)
        .checked()?;
    Command::new("chown")
        .arg("--recursive")
        .arg(format!("{PLAIN_USER}:{PLAIN_USER}"))
        .arg(cache)
        .checked()?;
    Ok(())
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    entries.map(|entry| entry.path()).find_map(|path| {
        if path.is_dir() {
            find(&path, name)
        } else {
            path.ends_with(name).then_some(path)
        }
    })
}

/// This cargo, without the network, and without what nextest told this test.
fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    let told = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NEXTEST"));
    told.for_each(|(name, _)| {
        cargo.env_remove(name);
    });
    cargo.env("CARGO_NET_OFFLINE", "true").current_dir(folder);
    cargo
}

/// Runs a program that must succeed.
trait Checked {
    /// What it wrote to its standard output.
    fn checked(&mut self) -> Result<String>;
}

impl Checked for Command {
    fn checked(&mut self) -> Result<String> {
        let Output {
            status,
            stdout,
            stderr,
        } = self.output().with_context(|| format!("{self:?}"))?;
        let stdout = String::from_utf8_lossy(&stdout).into_owned();
        if !status.success() {
            bail!(
                "{self:?}: {status}\n{stdout}\n{}",
                String::from_utf8_lossy(&stderr)
            );
        }
        Ok(stdout)
    }
}
