//! From what a host says about an activation to the next move and the verdict: pure functions.
//!
//! The exit codes are those of `switch-to-configuration`. A code is only ever the activation's own: what `ssh` returns
//! is never taken for one.

use std::path::PathBuf;

use crate::verdict::{Step, Verdict};

/// What systemd says about one activation unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// There is no such unit: it was never started, or the host has been started since.
    Absent,
    /// It is at work.
    Running,
    /// It ended.
    Ended(Ended),
}

/// How an activation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// systemd could not run it; its word for why (`Result`).
    NotRun(String),
}

/// Properties of a unit as `systemctl show` prints them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitProperties {
    /// `Id`.
    pub id: String,
    /// `LoadState`.
    pub load: String,
    /// `ActiveState`.
    pub active: String,
    /// `Result`.
    pub result: String,
    /// `ExecMainCode`: 1 exited, 2 killed, 3 dumped core, 0 none yet.
    pub main_code: String,
    /// `ExecMainStatus`: exit code or signal.
    pub main_status: String,
}

impl UnitProperties {
    /// Takes one `Key=value`; other keys are of no interest.
    pub fn set(&mut self, key: &str, value: &str) {
        let field = match key {
            "Id" => &mut self.id,
            "LoadState" => &mut self.load,
            "ActiveState" => &mut self.active,
            "Result" => &mut self.result,
            "ExecMainCode" => &mut self.main_code,
            "ExecMainStatus" => &mut self.main_status,
            _ => return,
        };
        *field = value.to_owned();
    }

    /// What they mean.
    pub fn state(&self) -> UnitState {
        if self.load.is_empty() || self.load == "not-found" {
            return UnitState::Absent;
        }
        if matches!(self.active.as_str(), "activating" | "deactivating" | "reloading") {
            return UnitState::Running;
        }
        let status = self.main_status.parse::<i32>();
        match (self.main_code.as_str(), status) {
            ("1", Ok(code)) => UnitState::Ended(Ended::Exited(code)),
            ("2" | "3", Ok(signal)) => UnitState::Ended(Ended::Killed(signal)),
            _ if self.active == "failed" => UnitState::Ended(Ended::NotRun(self.result.clone())),
            _ => UnitState::Absent,
        }
    }
}

/// All that one question to the host brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Whether this is the answer of the script that started the activation, or of one that asks later.
    pub asked: Asked,
    /// The unit.
    pub unit: UnitState,
    /// Exit code in the host's own record of this run and system, which survives a reboot.
    pub record: Option<i32>,
    /// Whether the host was started anew since the transport first reached it.
    pub boot: Boot,
}

/// When the host was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// By the script that started the activation; what `systemd-run` complained of, if it did.
    OnStart {
        /// Its stderr.
        complaint: String,
    },
    /// Later: the connection had been lost, or the unit was found at work.
    Later,
}

/// Whether the host was started anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    /// The same boot.
    Same,
    /// Another boot.
    Other,
}

/// What to do with an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing runs and nothing ran: start the unit.
    Start,
    /// It is at work: wait for it.
    Wait,
    /// It is over.
    Done(Conclusion),
}

/// What is known at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The activation ended.
    Ended(Ended),
    /// It was under way when the host was started anew, and left no record.
    Rebooted,
}

/// The next move. The unit's own word comes first, then the record; only a host that knows of neither is told to start.
pub fn next(observation: &Observation) -> Next {
    match (&observation.unit, observation.record) {
        (UnitState::Running, _) => Next::Wait,
        (UnitState::Ended(ended), _) => Next::Done(Conclusion::Ended(ended.clone())),
        (UnitState::Absent, Some(code)) => Next::Done(Conclusion::Ended(Ended::Exited(code))),
        (UnitState::Absent, None) => match (observation.boot, &observation.asked) {
            (Boot::Other, _) => Next::Done(Conclusion::Rebooted),
            (Boot::Same, Asked::OnStart { complaint }) => {
                Next::Done(Conclusion::Ended(Ended::NotRun(complaint.clone())))
            }
            (Boot::Same, Asked::Later) => Next::Start,
        },
    }
}

/// What earlier runs left on the host, seen from a job that wants one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approach {
    /// Nothing is in the way.
    Start,
    /// A unit activates the very same system, or did and nobody has read its result: its result is ours.
    Attach {
        /// The unit.
        unit: String,
    },
    /// A unit activates another system: two at once would fight for the host's lock.
    WaitFor {
        /// The unit.
        unit: String,
    },
}

/// Decides how to go about an activation of the system whose store hash is `hash`, given units found on the host.
///
/// A result that was read is removed, so a unit that is still there has one that nobody was told.
pub fn approach(units: &[UnitProperties], hash: &str, current: Current) -> Approach {
    let same = |unit: &&UnitProperties| unit.id.ends_with(&format!("-{hash}.service"));
    let running = units.iter().find(|unit| unit.state() == UnitState::Running);
    if let Some(unit) = running {
        let unit_name = unit.id.clone();
        return if same(&unit) {
            Approach::Attach { unit: unit_name }
        } else {
            Approach::WaitFor { unit: unit_name }
        };
    }
    let unread = units.iter().filter(same).find(|unit| match unit.state() {
        UnitState::Ended(Ended::Exited(_)) => current == Current::Wanted,
        UnitState::Ended(_) | UnitState::Absent | UnitState::Running => false,
    });
    match unread {
        Some(unit) => Approach::Attach {
            unit: unit.id.clone(),
        },
        None => Approach::Start,
    }
}

/// What `/run/current-system` points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Current {
    /// The system that is wanted.
    Wanted,
    /// Another one.
    Other(PathBuf),
    /// There is no such link.
    Absent,
}

/// What a person wants to know beside the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// Failed units of the host, ours left out, sorted.
    pub failed_units: Vec<String>,
    /// Units that could not be restarted with their new grants, sorted.
    pub not_restarted: Vec<String>,
    /// What the host runs.
    pub current: Current,
    /// Last lines of the activation's log.
    pub log: String,
}

/// The verdict. Total: every code has one, and none is guessed.
pub fn verdict(conclusion: &Conclusion, circumstances: &Circumstances) -> Verdict {
    match conclusion {
        Conclusion::Ended(Ended::Exited(0)) => succeeded(circumstances),
        Conclusion::Ended(Ended::Exited(4)) => Verdict::Degraded {
            units: degraded_units(circumstances),
        },
        Conclusion::Ended(Ended::Exited(100)) => Verdict::Reboot,
        Conclusion::Ended(Ended::Exited(code)) => {
            failed(Some(*code), &with_log(explain(*code), &circumstances.log))
        }
        Conclusion::Ended(Ended::Killed(signal)) => failed(
            None,
            &with_log(
                &format!(
                    "the activation was killed by signal {signal}; look at the host's journal, then apply again"
                ),
                &circumstances.log,
            ),
        ),
        Conclusion::Ended(Ended::NotRun(reason)) => failed(
            None,
            &format!(
                "systemd could not run the activation: {reason}; look at `journalctl -u 'provisor-switch-*'`"
            ),
        ),
        Conclusion::Rebooted => Verdict::Unknown {
            message: format!(
                "the host was restarted during the activation, which left no record; {}; apply again",
                circumstances.current.describe()
            ),
        },
    }
}

fn succeeded(circumstances: &Circumstances) -> Verdict {
    match &circumstances.current {
        Current::Other(_) => failed(
            Some(0),
            &format!(
                "the activation reported success, but {}; something else activates on this host: find it, then apply again",
                circumstances.current.describe()
            ),
        ),
        Current::Wanted | Current::Absent if circumstances.not_restarted.is_empty() => Verdict::Deployed,
        Current::Wanted | Current::Absent => Verdict::Degraded {
            units: circumstances.not_restarted.clone(),
        },
    }
}

fn degraded_units(circumstances: &Circumstances) -> Vec<String> {
    let mut units = circumstances.failed_units.clone();
    units.extend(circumstances.not_restarted.iter().cloned());
    units.sort();
    units.dedup();
    units
}

fn explain(code: i32) -> &'static str {
    match code {
        1 => {
            "the pre-switch check or the boot loader failed (exit 1); read the lines below, correct it, then apply again"
        }
        2 => "the activation script failed (exit 2); read the lines below, correct it, then apply again",
        11 => "another activation holds the host's lock (exit 11); wait until it ends, then apply again",
        _ => "the activation ended with a code it does not document; read the lines below",
    }
}

fn with_log(message: &str, log: &str) -> String {
    if log.is_empty() {
        message.to_owned()
    } else {
        format!("{message}\n{log}")
    }
}

fn failed(code: Option<i32>, message: &str) -> Verdict {
    Verdict::Failed {
        step: Step::Activate,
        code,
        message: message.to_owned(),
    }
}

impl Current {
    /// For a person.
    pub fn describe(&self) -> String {
        match self {
            Current::Wanted => "the host runs the wanted system".into(),
            Current::Other(path) => format!("the host runs {}", path.display()),
            Current::Absent => "the host does not say what it runs".into(),
        }
    }
}

#[cfg(test)]
mod tests;
