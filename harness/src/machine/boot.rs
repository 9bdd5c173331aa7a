//! From a QEMU that runs to a guest that is set up and answers.

use std::future::Future;
use std::time::Duration;

use tokio::net::UnixStream;

use super::setup::now;
use crate::accel::Accelerator;
use crate::agent::{Agent, AgentError, Setup};
use crate::console::Console;
use crate::death::{Death, Evidence};
use crate::qemu::Qemu;
use crate::wait::{Deadline, TIMEOUT_FACTOR_VARIABLE, scaled};

/// A cold boot takes 4 to 5 s under emulation on an idle host. The deadline is for one with other guests on it.
const BOOT_PATIENCE: Duration = Duration::from_secs(180);

/// A kernel prints its first line within a second; a minute is for a host that has much else to do.
const SILENCE_PATIENCE: Duration = Duration::from_secs(60);

/// How a guest comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Its kernel starts, and says so.
    Booted,
    /// It goes on where another one was saved, and need not say anything.
    Restored,
}

/// Why a guest did not come up.
#[derive(Debug)]
pub struct BootError {
    /// The guest.
    pub machine: String,
    /// Time since its QEMU ran.
    pub waited: Duration,
    /// What happened.
    pub end: BootEnd,
    /// Console, QEMU's output, artifacts.
    pub evidence: Evidence,
}

/// How a boot ended that did not end well.
#[derive(Debug)]
pub enum BootEnd {
    /// The guest died.
    Died(Death),
    /// Its agent did not answer in time, though the console shows progress.
    TimedOut,
    /// The console stayed empty: the guest does not run at all.
    Silent(Accelerator),
    /// Its agent answered, and could not do what it was told.
    Agent(AgentError),
    /// The host cannot reach the agent's port.
    Port(std::io::Error),
}

impl std::error::Error for BootError {}

impl std::fmt::Display for BootError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            machine,
            waited,
            end,
            evidence,
        } = self;
        let seconds = waited.as_secs_f64();
        match end {
            BootEnd::Died(death) => write!(
                formatter,
                "`{machine}` died {seconds:.1} s after its start: {death}"
            )?,
            BootEnd::TimedOut => write!(
                formatter,
                "`{machine}` did not answer within {seconds:.0} s: its console shows how far it came; if the host is just slow, set \
                 {TIMEOUT_FACTOR_VARIABLE} above 1"
            )?,
            BootEnd::Silent(accelerator) => write!(
                formatter,
                "`{machine}` printed nothing within {seconds:.0} s: it does not run under {}; {}",
                accelerator,
                match accelerator {
                    Accelerator::Kvm => "set PROVISOR_ACCEL=tcg to emulate it",
                    Accelerator::Tcg => "is the host overloaded?",
                }
            )?,
            BootEnd::Agent(error) => write!(formatter, "`{machine}` cannot be set up: {error}")?,
            BootEnd::Port(error) => write!(
                formatter,
                "`{machine}`: the host cannot reach its agent's port: {error}"
            )?,
        }
        write!(formatter, "{evidence}")
    }
}

/// Waits for the guest's agent, has it set the clock, and apply `setup`.
pub(crate) async fn boot(
    qemu: &Qemu,
    machine: &str,
    accelerator: Accelerator,
    agent_port: &std::path::Path,
    setup: Setup,
    arrival: Arrival,
) -> Result<Agent, BootError> {
    let deadline = Deadline::after(BOOT_PATIENCE);
    let answer = async {
        let stream = UnixStream::connect(agent_port).await.map_err(BootEnd::Port)?;
        let agent = Agent::connect(stream).await.map_err(BootEnd::Agent)?;
        // Read now, and not when the machine was started: a boot takes a while.
        let clock = now();
        let setup = Setup { clock, ..setup };
        agent.setup(&setup).await.map_err(BootEnd::Agent)?;
        Ok(agent)
    };
    let silence = async {
        match arrival {
            Arrival::Booted => silence(qemu.console(), scaled(SILENCE_PATIENCE)).await,
            Arrival::Restored => std::future::pending().await,
        }
    };
    let progress = async {
        tokio::select! {
            answered = answer => answered,
            () = silence => Err(BootEnd::Silent(accelerator)),
        }
    };
    let end = match settled(qemu, deadline, progress).await {
        Ok(agent) => return Ok(agent),
        Err(end) => end,
    };
    Err(BootError {
        machine: machine.to_owned(),
        waited: deadline.waited(),
        end,
        evidence: qemu.evidence(),
    })
}

async fn settled<T>(
    qemu: &Qemu,
    deadline: Deadline,
    work: impl Future<Output = Result<T, BootEnd>>,
) -> Result<T, BootEnd> {
    match qemu.death().race(deadline.limit(work)).await {
        Ok(Some(done)) => done,
        Ok(None) => Err(BootEnd::TimedOut),
        Err(death) => Err(BootEnd::Died(death)),
    }
}

/// Ends when the console is still empty after `patience`, and else never.
async fn silence(console: &Console, patience: Duration) {
    tokio::time::sleep(patience).await;
    if console.cursor() != console.start() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_console_that_stays_empty_ends_the_boot_early() {
        let folder = tempfile::tempdir().unwrap();
        let console = Console::new(&folder.path().join("console"));
        let began = tokio::time::Instant::now();
        silence(&console, PATIENCE).await;
        assert_eq!(began.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_console_that_says_something_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let console = Console::new(&folder.path().join("console"));
        std::fs::write(console.path(), "Linux version").unwrap();
        let patient = tokio::time::timeout(100 * PATIENCE, silence(&console, PATIENCE)).await;
        assert!(patient.is_err());
    }

    #[test]
    fn a_silent_guest_s_error_names_the_accelerator_and_the_way_out() {
        let evidence = Evidence {
            machine: "app".to_owned(),
            console: String::new(),
            stderr: String::new(),
            artifacts: "/artifacts".into(),
        };
        let (machine, end) = ("app".to_owned(), BootEnd::Silent(Accelerator::Kvm));
        let error = BootError {
            machine,
            waited: PATIENCE,
            end,
            evidence,
        };
        let text = "\
`app` printed nothing within 30 s: it does not run under kvm; set PROVISOR_ACCEL=tcg to emulate it
the last lines of the console of `app`: nothing
QEMU said: nothing
artifacts: /artifacts";
        assert_eq!(error.to_string(), text);
    }
}
