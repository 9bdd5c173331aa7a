//! Looks for canaries in a guest: in files, in the journal, in the command line of every program that was started.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use provisor_harness::exec::{Command, ExitStatus};
use provisor_harness::machine::Machine;

use crate::bootstrap::{Hosts, STATE_HOME};
use crate::canary::Canary;

/// Where the evidence that is no file of its own is written before a search.
const EVIDENCE: &str = "/run/evidence";
const TRACING: &str = "/sys/kernel/tracing";
/// Arguments of a command line that are recorded.
const ARGUMENTS: usize = 24;

/// A secret in a place where it must not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leak {
    /// The canary's name.
    pub canary: String,
    /// The guest.
    pub machine: String,
    /// The file that holds it.
    pub path: String,
}

/// Records every command line from now on, from within the kernel: no sampling, so a short-lived program is seen too.
pub async fn record_command_lines(machine: &Machine) -> Result<()> {
    // The probe sits on execve(2): %di points at the registers, whose `si` (offset 104) holds argv.
    let fields: String = (0..ARGUMENTS)
        .map(|n| format!(" a{n}=+0(+u{}(+104(%di))):ustring", n * 8))
        .collect();
    let script = format!(
        "mountpoint -q {TRACING} || mount -t tracefs tracefs {TRACING}
         cd {TRACING}
         echo 8192 > buffer_size_kb
         cat > kprobe_events
         echo 1 > events/kprobes/execs/enable"
    );
    machine
        .run(Command::shell(script).stdin(format!("p:execs __x64_sys_execve{fields}\n")))
        .check_ok()
        .await?;
    Ok(())
}

/// The files of `machine` below `folders`, its journal and its recorded command lines that hold a canary.
pub async fn search(machine: &Machine, folders: &[&str], canaries: &[Canary]) -> Result<Vec<Leak>> {
    collect_evidence(machine).await?;
    let mut leaks = Vec::new();
    for canary in canaries {
        // The needles go by standard input: in an argument they would be the leak that is looked for.
        let needles = canary.needles().join(&b'\n');
        let output = machine
            .run(
                Command::new("grep")
                    .args(["-rlaF", "-f", "-", EVIDENCE])
                    .args(folders.iter().copied())
                    .env("LC_ALL", "C")
                    .stdin(needles),
            )
            .await?;
        ensure!(
            matches!(output.status, ExitStatus::Code(0 | 1)),
            "the search for {} in {} failed: {}",
            canary.name,
            machine.name(),
            String::from_utf8_lossy(&output.stderr)
        );
        leaks.extend(output.stdout_text().lines().map(|path| Leak {
            canary: canary.name.to_owned(),
            machine: machine.name().to_owned(),
            path: path.to_owned(),
        }));
    }
    leaks.sort();
    Ok(leaks)
}

async fn collect_evidence(machine: &Machine) -> Result<()> {
    // A command line ends at the first null pointer, which the kernel shows as a fault. What the probe read behind it is
    // no argument: a program that hands its own `argv` on has its environment there.
    machine
        .run(format!(
            "mkdir -p {EVIDENCE} && journalctl -o export > {EVIDENCE}/journal &&
             LC_ALL=C sed 's/ a[0-9]*=(fault).*//' {TRACING}/trace > {EVIDENCE}/command-lines"
        ))
        .check_ok()
        .await?;
    let stats = machine
        .run(format!("cat {TRACING}/per_cpu/cpu*/stats"))
        .check_ok()
        .await?
        .stdout_text();
    let lost: u64 = stats
        .lines()
        .filter_map(|line| line.strip_prefix("overrun: "))
        .map(|count| {
            count
                .trim()
                .parse::<u64>()
                .context("the kernel's count of lost records")
        })
        .sum::<Result<u64>>()?;
    ensure!(
        lost == 0,
        "{lost} command lines of {} were not recorded: the buffer is too small",
        machine.name()
    );
    Ok(())
}

/// Searches all hosts of the bootstrap fleet, and what the lab wrote down on this side.
///
/// What is left out is where a secret belongs: the deployer's grants at rest, the hosts' delivered grants, SSH keys.
pub async fn search_all(hosts: &Hosts, artifacts: &Path, canaries: &[Canary]) -> Result<Vec<Leak>> {
    let mut leaks = Vec::new();
    for host in hosts.all() {
        leaks.extend(
            search(
                host,
                &["/nix/store", "/nix/var", "/etc", "/var/log", "/tmp", "/var/tmp"],
                canaries,
            )
            .await?,
        );
    }
    let working_folders = hosts
        .deployer
        .run(format!(
            "find {STATE_HOME} -mindepth 2 -maxdepth 2 ! -name grants"
        ))
        .check_ok()
        .await?
        .stdout_text();
    let working_folders: Vec<&str> = working_folders.lines().collect();
    leaks.extend(search(&hosts.deployer, &working_folders, canaries).await?);
    leaks.extend(search(&hosts.backend, &["/var/lib/private"], canaries).await?);
    leaks.extend(search_artifacts(artifacts, canaries)?);
    leaks.sort();
    leaks.dedup();
    Ok(leaks)
}

fn search_artifacts(folder: &Path, canaries: &[Canary]) -> Result<Vec<Leak>> {
    let mut leaks = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            leaks.extend(search_artifacts(&path, canaries)?);
            continue;
        }
        let content = std::fs::read(&path)?;
        leaks.extend(
            canaries
                .iter()
                .filter(|canary| canary.is_in(&content))
                .map(|canary| Leak {
                    canary: canary.name.to_owned(),
                    machine: "this side".to_owned(),
                    path: path.display().to_string(),
                }),
        );
    }
    Ok(leaks)
}
