//! The activation: it runs in a unit of its own on the host, so a lost connection only means asking again.

use std::path::Path;
use std::time::{Duration, Instant};

use super::host::{Answer, Host, HostError};
use super::job::Job;
use super::outcome::{
    self, Approach, Asked, Boot, Circumstances, Conclusion, Current, Next, Observation, UnitProperties,
};
use crate::process;

/// What the host said when it was first reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The boot it was in.
    pub boot: String,
    /// Whether it has Nix.
    pub nix: Nix,
    /// What it runs.
    pub current: Current,
    /// Activation units of earlier runs.
    pub units: Vec<UnitProperties>,
}

/// Whether a host has Nix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nix {
    /// `nix-store` is on its `PATH`.
    Present,
    /// It is not.
    Absent,
}

/// How an activation ended, with what a person wants to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The end.
    pub conclusion: Conclusion,
    /// The rest.
    pub circumstances: Circumstances,
    /// Units whose results have been read, to be removed from the host.
    pub read_units: Vec<String>,
}

/// Why it is not known how an activation ended.
#[derive(Debug, thiserror::Error)]
pub enum ActivateError {
    /// The host did not answer again in time.
    #[error(
        "the connection was lost during the activation and the host did not answer for {seconds} s ({last}); the activation may go on there as {unit}: when the host is back, apply again"
    )]
    HostGone {
        /// How long it was tried.
        seconds: u64,
        /// The last error.
        last: String,
        /// The unit.
        unit: String,
    },
    /// The activation is still at work.
    #[error(
        "the activation did not end within {seconds} s; it goes on there as {unit}: look at it with `systemctl status {unit}`, then apply again"
    )]
    TooLong {
        /// The deadline.
        seconds: u64,
        /// The unit.
        unit: String,
    },
}

/// Asks the host what it is, and what earlier runs left there.
pub fn find(host: &Host, job: &Job) -> Result<Found, HostError> {
    let answer = host.run(include_str!("remote/connect.sh"), &[], b"", job.deadlines.step())?;
    Ok(Found {
        boot: answer.value("boot").unwrap_or_default().to_owned(),
        nix: if answer.value("nix").is_some() {
            Nix::Present
        } else {
            Nix::Absent
        },
        current: current(&answer, &job.entry.system),
        units: units(&answer),
    })
}

/// Activates the job's system, or joins the unit that already does.
pub fn activate(
    host: &Host,
    job: &Job,
    run: &str,
    found: &Found,
    say: &mut dyn FnMut(&str),
) -> Result<Activation, ActivateError> {
    let ours = unit_name(run, &job.entry.system);
    let mut read_units: Vec<String> = found.units.iter().map(|unit| unit.id.clone()).collect();
    let (unit, ask) =
        match outcome::approach(&found.units, store_hash(&job.entry.system), found.current.clone()) {
            Approach::Start => (ours, Ask::Start),
            Approach::Attach { unit } => {
                say(&format!("joining {unit}, which an earlier run started"));
                (unit, Ask::Watch)
            }
            Approach::WaitFor { unit } => {
                say(&format!("waiting for {unit}, which activates another system"));
                Talk {
                    host,
                    job,
                    found,
                    unit: &unit,
                }
                .conclude(Ask::Watch, say)?;
                (ours, Ask::Start)
            }
        };
    let (conclusion, answer) = Talk {
        host,
        job,
        found,
        unit: &unit,
    }
    .conclude(ask, say)?;
    let circumstances = circumstances(&answer, &job.entry.system);
    read_units.push(unit);
    read_units.dedup();
    Ok(Activation {
        conclusion,
        circumstances,
        read_units,
    })
}

/// The unit of an activation: bound to the run and the system.
pub fn unit_name(run: &str, system: &Path) -> String {
    format!("{PREFIX}{run}-{}{SUFFIX}", store_hash(system))
}

const PREFIX: &str = "provisor-switch-";
const SUFFIX: &str = ".service";

/// How long to wait between two attempts to reach a lost host.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// The run in a unit's name, which is what the host's record is kept under.
fn run_of<'a>(unit: &'a str, system: &Path) -> &'a str {
    let name = unit.strip_prefix(PREFIX).unwrap_or(unit);
    name.strip_suffix(&format!("-{}{SUFFIX}", store_hash(system)))
        .unwrap_or(name)
}

/// The hash part of a store path; the whole name where it has none.
fn store_hash(system: &Path) -> &str {
    let name = system
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    name.split_once('-').map_or(name, |(hash, _)| hash)
}

#[derive(Clone, Copy)]
enum Ask {
    Start,
    Watch,
}

/// The conversation about one unit.
struct Talk<'a> {
    host: &'a Host,
    job: &'a Job,
    found: &'a Found,
    unit: &'a str,
}

impl Talk<'_> {
    fn conclude(
        &self,
        mut ask: Ask,
        say: &mut dyn FnMut(&str),
    ) -> Result<(Conclusion, Answer), ActivateError> {
        let end = Instant::now() + self.job.deadlines.activate();
        let mut lost_since: Option<Instant> = None;
        loop {
            match self.ask(ask, end) {
                Ok(answer) => {
                    lost_since = None;
                    ask = match outcome::next(&self.observe(ask, &answer)) {
                        Next::Done(conclusion) => return Ok((conclusion, answer)),
                        Next::Start => Ask::Start,
                        Next::Wait => Ask::Watch,
                    };
                }
                Err(error) => {
                    let since = *lost_since.get_or_insert_with(|| {
                        say("the connection was lost; the activation goes on, asking the host again");
                        Instant::now()
                    });
                    if since.elapsed() >= self.job.deadlines.reconnect() {
                        return Err(self.gone(&error));
                    }
                    ask = Ask::Watch;
                    std::thread::sleep(PAUSE.min(self.job.deadlines.reconnect()));
                }
            }
            if Instant::now() >= end {
                return Err(self.too_long());
            }
        }
    }

    fn ask(&self, ask: Ask, end: Instant) -> Result<Answer, HostError> {
        let observe = include_str!("remote/observe.sh");
        let script = match ask {
            Ask::Start => concat!(
                include_str!("remote/start.sh"),
                "\n",
                include_str!("remote/observe.sh")
            ),
            Ask::Watch => observe,
        };
        let system = self.job.entry.system.to_string_lossy();
        let words = [self.unit, &system, run_of(self.unit, &self.job.entry.system)];
        self.host
            .run(script, &words, b"", end.saturating_duration_since(Instant::now()))
    }

    fn observe(&self, ask: Ask, answer: &Answer) -> Observation {
        let asked = match ask {
            Ask::Start => Asked::OnStart {
                complaint: answer.value("complaint").unwrap_or_default().to_owned(),
            },
            Ask::Watch => Asked::Later,
        };
        let same = answer.value("boot") == Some(self.found.boot.as_str());
        Observation {
            asked,
            unit: units(answer)
                .first()
                .map_or(outcome::UnitState::Absent, UnitProperties::state),
            record: answer.value("record").and_then(|code| code.parse().ok()),
            boot: if same { Boot::Same } else { Boot::Other },
        }
    }

    fn gone(&self, last: &HostError) -> ActivateError {
        ActivateError::HostGone {
            seconds: self.job.deadlines.reconnect,
            last: process::last_lines(&last.to_string(), 1),
            unit: self.unit.to_owned(),
        }
    }

    fn too_long(&self) -> ActivateError {
        ActivateError::TooLong {
            seconds: self.job.deadlines.activate,
            unit: self.unit.to_owned(),
        }
    }
}

/// Units of an answer; each begins with its `Id` or ends at an empty line.
fn units(answer: &Answer) -> Vec<UnitProperties> {
    let mut units: Vec<UnitProperties> = Vec::new();
    for (key, value) in &answer.values {
        let Some(key) = key.strip_prefix("unit:") else {
            continue;
        };
        match (key, units.last_mut()) {
            ("Id", _) | (_, None) => {
                units.push(UnitProperties::default());
                if let Some(unit) = units.last_mut() {
                    unit.set(key, value);
                }
            }
            (_, Some(unit)) => unit.set(key, value),
        }
    }
    units
}

fn current(answer: &Answer, system: &Path) -> Current {
    match answer.value("current") {
        None | Some("") => Current::Absent,
        Some(path) if Path::new(path) == system => Current::Wanted,
        // `readlink -f` names the link itself where it does not exist.
        Some("/run/current-system") => Current::Absent,
        Some(path) => Current::Other(path.into()),
    }
}

fn circumstances(answer: &Answer, system: &Path) -> Circumstances {
    let mut failed_units: Vec<String> = answer
        .all("failed")
        .filter(|unit| !unit.starts_with(PREFIX))
        .map(str::to_owned)
        .collect();
    failed_units.sort();
    Circumstances {
        failed_units,
        not_restarted: Vec::new(),
        current: current(answer, system),
        log: answer.all("log").collect::<Vec<_>>().join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "/nix/store/00000000000000000000000000000000-system-forge";

    #[test]
    fn a_unit_is_named_after_its_run_and_its_system() {
        let unit = unit_name("run-1", Path::new(SYSTEM));
        assert_eq!(
            unit,
            "provisor-switch-run-1-00000000000000000000000000000000.service"
        );
        assert_eq!(run_of(&unit, Path::new(SYSTEM)), "run-1");
    }

    fn answer(lines: &[(&str, &str)]) -> Answer {
        let values = lines.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        Answer {
            values,
            code: 0,
            stderr: String::new(),
        }
    }

    #[test]
    fn several_units_are_told_apart_by_their_ids() {
        let units = units(&answer(&[
            ("unit:Id", "a.service"),
            ("unit:LoadState", "loaded"),
            ("current", SYSTEM),
            ("unit:Id", "b.service"),
            ("unit:LoadState", "not-found"),
        ]));
        assert_eq!(
            units.iter().map(|unit| unit.id.as_str()).collect::<Vec<_>>(),
            ["a.service", "b.service"]
        );
        assert_eq!(units[1].load, "not-found");
    }

    #[test]
    fn our_own_unit_is_not_counted_among_the_failed() {
        let answer = answer(&[
            ("failed", "nginx.service"),
            ("failed", "provisor-switch-run-1-x.service"),
            ("failed", "gitea.service"),
        ]);
        let found = circumstances(&answer, Path::new(SYSTEM));
        assert_eq!(found.failed_units, ["gitea.service", "nginx.service"]);
    }

    #[test]
    fn what_the_host_runs_is_compared_with_the_wanted_system() {
        for (said, wanted) in [
            (SYSTEM, Current::Wanted),
            ("", Current::Absent),
            ("/run/current-system", Current::Absent),
            ("/nix/store/x", Current::Other("/nix/store/x".into())),
        ] {
            assert_eq!(current(&answer(&[("current", said)]), Path::new(SYSTEM)), wanted);
        }
    }
}
