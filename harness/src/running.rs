//! The labs that run on this machine, of whatever process, and how to enter their machines.
//!
//! Each lab describes itself in its folder. Whether it runs is told by the lock that its process holds, never by age or number.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::machine::pss_mib;
use crate::run_dir;

/// Set to anything but `0`, it leaves the machines of a failed test running.
pub const KEEP_VARIABLE: &str = "PROVISOR_KEEP";

/// Set to anything but `0`, it stops a failed test before its machines end, until `lab resume`.
pub const PAUSE_VARIABLE: &str = "PROVISOR_PAUSE";

/// Names in the folder of a lab.
const RECORD: &str = "lab.json";
const KEY: &str = "key";
const KNOWN_HOSTS: &str = "known_hosts";
const KEPT: &str = "kept";
const PAUSED: &str = "paused";

/// A lab that runs.
#[derive(Clone, Debug)]
pub struct RunningLab {
    /// Its folder.
    pub folder: PathBuf,
    /// What it says of itself.
    pub record: Record,
    /// Why it runs.
    pub phase: Phase,
}

/// Why a lab runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its test does.
    Testing,
    /// Its test failed, and waits for a person.
    Paused,
    /// Its test failed and is gone.
    Kept,
}

/// What a lab says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// `BINARY/TEST`.
    pub test: String,
    /// The folder with its evidence.
    pub artifacts: PathBuf,
    /// The process of the test.
    pub pid: u32,
    /// Its machines, in the order in which they started.
    pub machines: Vec<MachineRecord>,
}

/// What a lab says of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Its name.
    pub name: String,
    /// QEMU's process.
    pub pid: u32,
    /// The port of 127.0.0.1 that leads to its SSH.
    pub ssh_port: u16,
    /// The public half of its host key.
    pub host_key: String,
    /// The file with its console.
    pub console: PathBuf,
    /// The socket of a QEMU monitor that nobody else uses.
    pub monitor: PathBuf,
}

/// Where a lab says of itself what others may know.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl RunningLab {
    /// All that run, by the cache that they use, in order.
    ///
    /// # Errors
    /// The cache cannot be read. A lab that is just being made, or unmade, is passed over.
    pub fn all(cache: &Cache) -> io::Result<Vec<Self>> {
        let held = run_dir::held(&cache.root().join("run"))?;
        let lab = |folder: PathBuf| {
            let record = serde_json::from_slice(&fs::read(folder.join(RECORD)).ok()?).ok()?;
            let phase = if folder.join(KEPT).exists() {
                Phase::Kept
            } else if folder.join(PAUSED).exists() {
                Phase::Paused
            } else {
                Phase::Testing
            };
            Some(Self {
                folder,
                record,
                phase,
            })
        };
        Ok(held.into_iter().filter_map(lab).collect())
    }

    /// The commands by which a person enters `machine`, each with what it is for.
    pub fn ways_in(&self, machine: &MachineRecord) -> Vec<(&'static str, String)> {
        let folder = Folder {
            path: self.folder.clone(),
        };
        folder.ways_in(machine)
    }

    /// The arguments with which `ssh` enters `machine`.
    pub fn ssh_args(&self, machine: &MachineRecord) -> Vec<String> {
        ssh_args(&self.folder, machine)
    }

    /// Lets a paused lab go on, and so end.
    ///
    /// # Errors
    /// Its folder cannot be written.
    pub fn resume(&self) -> io::Result<()> {
        remove(&self.folder.join(PAUSED))
    }

    /// Ends a kept lab, and returns when its guests are gone or `patience` is over.
    ///
    /// # Errors
    /// Its folder cannot be written, or something of it is still there.
    pub fn end(&self, patience: Duration) -> io::Result<()> {
        remove(&self.folder.join(KEPT))?;
        let began = std::time::Instant::now();
        while run_dir::held(self.folder.parent().unwrap_or(Path::new("/")))?.contains(&self.folder) {
            if began.elapsed() > patience {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("{} is still held", self.folder.display()),
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl MachineRecord {
    /// What it costs the host now, in MiB.
    ///
    /// # Errors
    /// It is gone, or belongs to somebody else.
    pub fn pss_mib(&self) -> io::Result<f64> {
        pss_mib(self.pid)
    }

    /// The processor time it has used so far.
    ///
    /// # Errors
    /// It is gone.
    pub fn cpu_time(&self) -> io::Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        cpu_time(&stat).ok_or_else(|| io::Error::other("the kernel's answer is not understood"))
    }
}

/// Removes what killed labs left.
///
/// # Errors
/// The cache cannot be read.
pub fn sweep(cache: &Cache) -> io::Result<()> {
    run_dir::sweep_all(&cache.root().join("run"))
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Writes what is so now. The key is for nobody else's eyes.
    pub(crate) fn write(&self, record: &Record, private_key: &str) -> io::Result<()> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let key = self.path.join(KEY);
        if !key.exists() {
            let mut file = fs::File::options()
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(&key)?;
            file.write_all(private_key.as_bytes())?;
        }
        let hosts: String = record
            .machines
            .iter()
            .map(|machine| format!("[127.0.0.1]:{} {}\n", machine.ssh_port, machine.host_key))
            .collect();
        fs::write(self.path.join(KNOWN_HOSTS), hosts)?;
        let beside = self.path.join("lab.json.new");
        fs::write(&beside, serde_json::to_vec_pretty(record)?)?;
        fs::rename(beside, self.path.join(RECORD))
    }

    pub(crate) fn ways_in(&self, machine: &MachineRecord) -> Vec<(&'static str, String)> {
        let ssh: Vec<_> = ssh_args(&self.path, machine)
            .into_iter()
            .map(|arg| quoted(&arg))
            .collect();
        vec![
            ("a shell", format!("ssh {}", ssh.join(" "))),
            (
                "its console",
                format!("tail -f {}", quoted(&machine.console.display().to_string())),
            ),
            (
                "QEMU's monitor",
                format!(
                    "socat - unix-connect:{}",
                    quoted(&machine.monitor.display().to_string())
                ),
            ),
        ]
    }

    /// The file that keepers watch: what it marks ends when it is removed.
    pub(crate) fn kept(&self) -> PathBuf {
        self.path.join(KEPT)
    }

    /// Waits until somebody removes the marker, which it sets.
    pub(crate) fn pause(&self) -> io::Result<()> {
        let marker = self.path.join(PAUSED);
        fs::write(&marker, "")?;
        while marker.exists() {
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }
}

/// Whether the variable is set, and not to `0`.
pub(crate) fn asked_for(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0")
}

fn ssh_args(folder: &Path, machine: &MachineRecord) -> Vec<String> {
    let option = |text: String| ["-o".to_owned(), text];
    let plain = ["-F", "none", "-p"].map(str::to_owned);
    plain
        .into_iter()
        .chain([
            machine.ssh_port.to_string(),
            "-i".to_owned(),
            folder.join(KEY).display().to_string(),
        ])
        .chain(option("IdentitiesOnly=yes".to_owned()))
        .chain(option(format!(
            "UserKnownHostsFile={}",
            folder.join(KNOWN_HOSTS).display()
        )))
        .chain(["root@127.0.0.1".to_owned()])
        .collect()
}

/// An argument as a shell reads it.
fn quoted(text: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-=@:+,".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// User and system time of `/proc/PID/stat`, in hundredths of a second there.
fn cpu_time(stat: &str) -> Option<Duration> {
    let (_name, rest) = stat.rsplit_once(')')?;
    let mut ticks = rest
        .split_whitespace()
        .skip(11)
        .map(|field| field.parse::<u64>().ok());
    Some(Duration::from_millis((ticks.next()?? + ticks.next()??) * 10))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::run_dir::RunDir;

    fn record(folder: &Path) -> Record {
        Record {
            test: "guests/a_test".to_owned(),
            artifacts: "/t/vm-artifacts/guests/a_test".into(),
            pid: std::process::id(),
            machines: vec![MachineRecord {
                name: "app".to_owned(),
                pid: std::process::id(),
                ssh_port: 2201,
                host_key: "ssh-ed25519 AAAA".to_owned(),
                console: folder.join("a console"),
                monitor: folder.join("m0.m"),
            }],
        }
    }

    fn cache() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        (folder, cache)
    }

    #[test]
    fn a_lab_that_runs_is_found_with_what_it_says_of_itself() {
        let (_root, cache) = cache();
        let run = RunDir::create(&cache.root().join("run")).unwrap();
        assert!(
            RunningLab::all(&cache).unwrap().is_empty(),
            "it says nothing of itself yet"
        );
        let record = record(run.path());
        Folder::new(run.path()).write(&record, "secret").unwrap();

        let all = RunningLab::all(&cache).unwrap();
        assert_eq!((all.len(), &all[0].record), (1, &record));
        assert_eq!(all[0].phase, Phase::Testing);
        let key = run.path().join("key");
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);

        drop(run);
        assert!(RunningLab::all(&cache).unwrap().is_empty());
    }

    #[test]
    fn the_ways_into_a_machine_can_be_pasted_into_a_shell() {
        let record = record(Path::new("/run/r1"));
        let ways = Folder::new(Path::new("/run/r1")).ways_in(&record.machines[0]);
        let commands: Vec<_> = ways.iter().map(|(_, command)| command.as_str()).collect();
        assert_eq!(
            commands,
            [
                "ssh -F none -p 2201 -i /run/r1/key -o IdentitiesOnly=yes -o UserKnownHostsFile=/run/r1/known_hosts root@127.0.0.1",
                "tail -f '/run/r1/a console'",
                "socat - unix-connect:/run/r1/m0.m",
            ]
        );
    }

    #[test]
    fn a_kept_lab_lives_until_its_marker_is_removed_and_its_lock_is_free() {
        let (_root, cache) = cache();
        let run = RunDir::create(&cache.root().join("run")).unwrap();
        let folder = Folder::new(run.path());
        folder.write(&record(run.path()), "secret").unwrap();
        fs::write(folder.kept(), "").unwrap();
        let lock = run.keep().unwrap();
        drop(run);

        let kept = RunningLab::all(&cache).unwrap().remove(0);
        assert_eq!(kept.phase, Phase::Kept);
        assert!(kept.end(Duration::ZERO).is_err(), "somebody still holds it");
        drop(lock);
        kept.end(Duration::ZERO).unwrap();
        sweep(&cache).unwrap();
        assert!(!kept.folder.exists());
    }

    #[test]
    fn a_paused_lab_goes_on_when_somebody_says_so() {
        let (_root, cache) = cache();
        let run = RunDir::create(&cache.root().join("run")).unwrap();
        let folder = Folder::new(run.path());
        folder.write(&record(run.path()), "secret").unwrap();
        std::thread::scope(|scope| {
            let pausing = scope.spawn(|| folder.pause().unwrap());
            let paused = || {
                RunningLab::all(&cache)
                    .unwrap()
                    .pop()
                    .filter(|lab| lab.phase == Phase::Paused)
            };
            let lab = std::iter::repeat_with(paused).find_map(|lab| lab).unwrap();
            lab.resume().unwrap();
            pausing.join().unwrap();
        });
    }

    #[test]
    fn processor_time_is_read_whatever_the_program_is_called() {
        let stat = "1 (a ) b) S 0 1 1 0 -1 4194560 1 2 3 4 250 50 9 9 20 0 1 0 5";
        assert_eq!(cpu_time(stat), Some(Duration::from_secs(3)));
        assert_eq!(cpu_time("1 (x) S 0"), None);
    }
}
