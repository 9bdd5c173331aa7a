//! Many labs, each a process of its own, a tenth of them ended badly: nothing of them may be left. And many restores: no two alike.
//!
//! `cargo bench -p provisor-harness --bench soak`; `PROVISOR_SOAK_LABS` (500) and `PROVISOR_SOAK_RESTORES` (100, of four machines each) say how
//! many. It uses the images and templates of the user's cache, but runs in a cache of its own, so that other tests do not disturb its counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use provisor_harness::Lab;
use provisor_harness::artifacts::TestName;
use provisor_harness::cache::Cache;

/// How a lab ends. Of ten, nine end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Stopped,
    Panic,
    Kill,
    Interrupt,
    /// A test runner ends a test that takes too long by SIGTERM.
    Timeout,
}

const BAD: [Ending; 4] = [Ending::Panic, Ending::Kill, Ending::Interrupt, Ending::Timeout];

impl Ending {
    fn of(lab: usize) -> Self {
        if lab % 10 == 9 {
            BAD[lab / 10 % BAD.len()]
        } else {
            Self::Stopped
        }
    }

    fn signal(self) -> Option<Signal> {
        match self {
            Self::Stopped | Self::Panic => None,
            Self::Kill => Some(Signal::SIGKILL),
            Self::Interrupt => Some(Signal::SIGINT),
            Self::Timeout => Some(Signal::SIGTERM),
        }
    }

    fn is(self, status: ExitStatus) -> bool {
        match self {
            Self::Stopped => status.success(),
            Self::Panic => status.code() == Some(101),
            _ => status.signal() == self.signal().map(|signal| signal as i32),
        }
    }
}

fn main() -> Result<()> {
    match std::env::var("PROVISOR_SOAK_CHILD").as_deref() {
        Ok("labs") => child(),
        Ok(restores) => restore_often(restores.parse()?),
        Err(_) => parent(),
    }
}

/// A process with a lab: says `up` and then stops, panics, or waits for its signal.
#[tokio::main]
async fn child() -> Result<()> {
    let lab = Lab::named(&test("lab"))?;
    let machine = lab.machine("app").on_vlan("mesh").start().await?;
    machine.run("true").check_ok().await?;
    writeln!(std::io::stdout(), "up")?;
    match std::env::var("PROVISOR_SOAK_ENDING").as_deref() {
        Ok("Stopped") => Ok(lab.stop().await?),
        Ok("Panic") => std::panic::panic_any("as told"),
        _ => std::future::pending().await,
    }
}

/// Restores four machines again and again, and looks at all that must differ: within a lab, or among all there ever were.
#[tokio::main]
async fn restore_often(restores: usize) -> Result<()> {
    let among_all = [
        "head -c 16 /dev/urandom | od -An -tx1",
        "cat /proc/sys/kernel/random/uuid",
        "cat /etc/machine-id",
        "cut -d' ' -f2 /etc/ssh/ssh_host_ed25519_key.pub",
    ];
    let within_lab = [
        "cat /sys/class/net/eth0/address",
        "cat /sys/class/net/eth1/address",
        "ip -4 -brief address show eth1",
    ];
    let mut ever: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for number in 0..restores {
        let lab = Lab::named(&test("restores"))?;
        let machines = lab.machines(["a", "b", "c", "d"]).on_vlan("mesh").start().await?;
        let mut now: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for machine in &machines {
            for command in among_all {
                let said = machine.run(command).check_ok().await?.stdout_text();
                ensure!(
                    ever.entry(command).or_default().insert(said.clone()),
                    "restore {number}: `{command}` twice: {said}"
                );
            }
            for command in within_lab {
                let said = machine.run(command).check_ok().await?.stdout_text();
                ensure!(
                    now.entry(command).or_default().insert(said.clone()),
                    "restore {number}: `{command}` twice: {said}"
                );
            }
        }
        lab.stop().await?;
    }
    Ok(())
}

fn test(name: &str) -> TestName {
    TestName {
        binary: "soak".to_owned(),
        test: name.to_owned(),
    }
}

fn parent() -> Result<()> {
    let number = |name: &str, or: usize| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(or)
    };
    let (labs, restores) = (
        number("PROVISOR_SOAK_LABS", 500),
        number("PROVISOR_SOAK_RESTORES", 100),
    );
    let place = Place::prepare()?;
    let mut endings = BTreeMap::new();
    for lab in 0..labs {
        let ending = Ending::of(lab);
        let status = place
            .run_lab(ending)
            .with_context(|| format!("lab {lab}, {ending:?}"))?;
        ensure!(
            ending.is(status),
            "lab {lab} was to end by {ending:?}, and ended with {status}"
        );
        *endings.entry(ending).or_insert(0) += 1;
    }
    // What a killed lab left is taken away by the next one.
    place.run_lab(Ending::Stopped)?;
    let left = place.left_over()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{labs} labs: {endings:?}")?;
    for (what, names) in &left {
        writeln!(out, "{what:<20} {} left {names:?}", names.len())?;
    }
    if restores > 0 {
        ensure!(
            place.command(&restores.to_string()).status()?.success(),
            "the restores failed"
        );
        writeln!(out, "{restores} restores of four: all differ where they must")?;
    }
    if left.values().any(|names| !names.is_empty()) {
        bail!("something is left over");
    }
    Ok(())
}

/// A cache and a temporary folder of this run's own.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn prepare() -> Result<Self> {
        let users = Cache::open()?;
        let folder = tempfile::Builder::new().prefix("soak").tempdir_in("/tmp")?;
        fs::create_dir_all(folder.path().join("tmp"))?;
        fs::create_dir_all(folder.path().join("cache"))?;
        for kind in ["accel", "agent", "image", "initrd", "template"] {
            let kept = users.root().join(kind);
            fs::create_dir_all(&kept)?;
            symlink(&kept, folder.path().join("cache").join(kind))?;
        }
        Ok(Self { folder })
    }

    fn command(&self, child: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap_or_default());
        command
            .env("PROVISOR_SOAK_CHILD", child)
            .env("PROVISOR_CACHE", self.folder.path().join("cache"))
            .env("PROVISOR_ARTIFACTS", self.folder.path().join("artifacts"))
            .env("TMPDIR", self.folder.path().join("tmp"))
            .env("RUST_BACKTRACE", "0");
        command
    }

    fn run_lab(&self, ending: Ending) -> Result<ExitStatus> {
        let errors = fs::File::create(self.folder.path().join("stderr"))?;
        let mut child = self
            .command("labs")
            .env("PROVISOR_SOAK_ENDING", format!("{ending:?}"))
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        if line != "up\n" {
            let status = child.wait()?;
            let said = fs::read_to_string(self.folder.path().join("stderr"))?;
            bail!("it did not come up ({status}): {said}");
        }
        if let Some(signal) = ending.signal() {
            kill(Pid::from_raw(child.id() as i32), signal)?;
        }
        Ok(child.wait()?)
    }

    /// What is left of the labs, by what it is.
    fn left_over(&self) -> Result<BTreeMap<&'static str, Vec<String>>> {
        let root = self.folder.path();
        let below = |folder: &str| files_below(&root.join(folder));
        let claims = below("cache/budget")?
            .into_iter()
            .filter(|name| !is_fixture(name));
        let run = below("cache/run")?.into_iter().filter(|name| !is_fixture(name));
        Ok(BTreeMap::from([
            ("QEMU processes", processes_with(&root.display().to_string())?),
            ("budget claims", claims.collect()),
            ("sockets, locks", run.collect()),
            ("temporary files", below("tmp")?),
        ]))
    }
}

/// Made once, and there for all labs: the locks under which the others are made.
fn is_fixture(path: &str) -> bool {
    ["births", "lock", "total", "next"]
        .iter()
        .any(|name| Path::new(path).file_name().is_some_and(|file| file == *name))
}

fn files_below(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let listing = match fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error.into()),
    };
    for entry in listing {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files_below(&entry.path())?);
        } else {
            found.push(entry.path().display().to_string());
        }
    }
    Ok(found)
}

/// Other processes whose command line has `text`.
fn processes_with(text: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc")?.flatten() {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(text) {
            found.push(command);
        }
    }
    Ok(found)
}
