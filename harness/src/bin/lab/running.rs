//! Labs that run: who they are, and the way into their machines.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use provisor_harness::cache::Cache;
use provisor_harness::running::{self, MachineRecord, Phase, RunningLab};

use crate::Done;

/// How long the guests of a kept lab may take to end.
const ENDING_PATIENCE: Duration = Duration::from_secs(10);

/// One line a machine.
pub(crate) fn top() -> Done {
    let labs = RunningLab::all(&Cache::open()?)?;
    println!(
        "{:<14} {:>8} {:>8} {:>9}  {:<8} TEST",
        "MACHINE", "PID", "MIB", "CPU", "LAB"
    );
    for (lab, machine) in labs
        .iter()
        .flat_map(|lab| lab.record.machines.iter().map(move |machine| (lab, machine)))
    {
        let mib = machine
            .pss_mib()
            .map_or("-".to_owned(), |mib| format!("{mib:.0}"));
        let cpu = machine
            .cpu_time()
            .map_or("-".to_owned(), |time| format!("{:.1} s", time.as_secs_f64()));
        println!(
            "{:<14} {:>8} {mib:>8} {cpu:>9}  {:<8} {}",
            machine.name,
            machine.pid,
            word(lab.phase),
            lab.record.test
        );
    }
    Ok(())
}

/// Becomes `ssh`, in a machine that runs.
pub(crate) fn shell(name: &str, test: Option<&str>, command: &[String]) -> Done {
    let (lab, machine) = find(name, test)?;
    let mut ssh = Command::new("ssh");
    ssh.args(lab.ssh_args(&machine)).args(command);
    Err(format!("cannot run ssh: {}; install openssh-client", ssh.exec()).into())
}

/// Becomes `tail -f`, on a machine's console.
pub(crate) fn console(name: &str, test: Option<&str>) -> Done {
    let (_, machine) = find(name, test)?;
    let mut tail = Command::new("tail");
    tail.args(["-n", "+1", "-f"]).arg(machine.console);
    Err(format!("cannot run tail: {}", tail.exec()).into())
}

/// Lets all paused tests go on.
pub(crate) fn resume() -> Done {
    for lab in RunningLab::all(&Cache::open()?)? {
        if lab.phase == Phase::Paused {
            lab.resume()?;
            println!("goes on: {}", lab.record.test);
        }
    }
    Ok(())
}

/// Ends kept labs, and removes what killed ones left. Tests that run are left alone.
pub(crate) fn sweep() -> Done {
    let cache = Cache::open()?;
    for lab in RunningLab::all(&cache)? {
        if lab.phase == Phase::Kept {
            lab.end(ENDING_PATIENCE)?;
            println!("ended: {}", lab.record.test);
        }
    }
    Ok(running::sweep(&cache)?)
}

/// The one machine of that name, or of that name in that test.
fn find(name: &str, test: Option<&str>) -> Result<(RunningLab, MachineRecord), String> {
    let labs = Cache::open()
        .map_err(|error| error.to_string())
        .and_then(|cache| RunningLab::all(&cache).map_err(|error| error.to_string()))?;
    let wanted = |lab: &&RunningLab| test.is_none_or(|test| lab.record.test.contains(test));
    let mut found: Vec<_> = labs
        .iter()
        .filter(wanted)
        .flat_map(|lab| lab.record.machines.iter().map(move |machine| (lab, machine)))
        .filter(|(_, machine)| machine.name == name)
        .collect();
    match found.len() {
        0 => Err(format!(
            "no machine `{name}` runs: see `lab top`, or keep a failed test by {}=1",
            running::KEEP_VARIABLE
        )),
        1 => {
            let (lab, machine) = found.remove(0);
            Ok((lab.clone(), machine.clone()))
        }
        several => Err(format!(
            "{several} machines are called `{name}`: name the test too, by --test, as `lab top` shows it"
        )),
    }
}

fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Testing => "testing",
        Phase::Paused => "paused",
        Phase::Kept => "kept",
    }
}
