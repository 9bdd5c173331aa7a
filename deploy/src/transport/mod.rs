//! The way of one node's system to its host, over SSH: connect, copy, verify, deliver, check, profile, activate.
//!
//! [`deploy`] carries out a [`job::Job`] and answers with a [`NodeReport`]. It returns a verdict in every case, and
//! writes it to the order's report file when it ends, however that is.

pub mod activate;
pub mod copy;
pub mod deliver;
pub mod host;
pub mod job;
pub mod outcome;
pub mod ssh_config;

use std::time::Instant;

use self::activate::{Activation, Found, Nix};
use self::copy::{CopyError, Sent};
use self::deliver::{DeliverError, Delivered};
use self::host::{Answer, Host, HostError};
use self::job::{Job, Order};
use crate::process;
use crate::verdict::{NodeReport, Step, Verdict};

/// Deploys one node. `say` gets one line for each step, for a person.
pub fn deploy(job: &Job, order: &Order, say: &mut dyn FnMut(&str)) -> std::io::Result<NodeReport> {
    let start = Instant::now();
    let mut report = NodeReport {
        node: job.entry.name.clone(),
        run: order.run.clone(),
        system: job.entry.system.clone(),
        verdict: Verdict::Unknown {
            message: "the deployment of this node was stopped before it ended; apply again".into(),
        },
        copied_bytes: 0,
        milliseconds: 0,
    };
    // Written first: OpenTofu kills its children when it is interrupted, and this is then what is known.
    report.write(&order.report)?;
    let mut copied = Sent { paths: 0, bytes: 0 };
    report.verdict = steps(job, &order.run, &mut copied, say).unwrap_or_else(|verdict| verdict);
    report.copied_bytes = copied.bytes;
    report.milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    report.write(&order.report)?;
    Ok(report)
}

/// The steps in order; a step that fails ends them with its verdict.
fn steps(job: &Job, run: &str, copied: &mut Sent, say: &mut dyn FnMut(&str)) -> Result<Verdict, Verdict> {
    let system = job.entry.system.to_string_lossy();
    say(&format!("connecting to {}", job.entry.address));
    let host = Host::new(job).map_err(|error| host_failed(Step::Connect, &error))?;
    let found = connect(&host, job)?;
    *copied = copy_closure(&host, job, say)?;
    let delivered = deliver_grants(&host, job, say)?;
    say("checking the system");
    step(
        &host,
        job,
        Step::Check,
        include_str!("remote/check.sh"),
        &[&system],
    )?;
    step(
        &host,
        job,
        Step::Profile,
        include_str!("remote/profile.sh"),
        &[&system],
    )?;
    say("activating");
    let activation = activate::activate(&host, job, run, &found, say).map_err(|error| Verdict::Unknown {
        message: error.to_string(),
    })?;
    finish(&host, job, activation, &delivered)
}

fn connect(host: &Host, job: &Job) -> Result<Found, Verdict> {
    let found = activate::find(host, job).map_err(|error| host_failed(Step::Connect, &error))?;
    match found.nix {
        Nix::Present => Ok(found),
        Nix::Absent => Err(failed(
            Step::Connect,
            None,
            "the host has no `nix-store` on its PATH; install Nix there, then apply again",
        )),
    }
}

fn copy_closure(host: &Host, job: &Job, say: &mut dyn FnMut(&str)) -> Result<Sent, Verdict> {
    let copy = |error: CopyError| match &error {
        CopyError::Copy { code, .. } => failed(Step::Copy, *code, &error.to_string()),
        _ => failed(Step::Copy, None, &error.to_string()),
    };
    let closure = copy::closure(job).map_err(copy)?;
    let missing = copy::missing(host, job, &closure).map_err(copy)?;
    if missing.is_empty() {
        // The question was the proof.
        say("the closure is there already");
        return Ok(Sent { paths: 0, bytes: 0 });
    }
    say(&format!(
        "copying {} of {} store paths",
        missing.len(),
        closure.len()
    ));
    let sent = copy::send(host, job, &missing).map_err(copy)?;
    copy::verify(host, job, &closure).map_err(|error| failed(Step::VerifyCopy, None, &error.to_string()))?;
    Ok(sent)
}

fn deliver_grants(host: &Host, job: &Job, say: &mut dyn FnMut(&str)) -> Result<Delivered, Verdict> {
    let delivered = deliver::deliver(host, job).map_err(|error| match &error {
        DeliverError::Refused { code, .. } => failed(Step::Deliver, Some(*code), &error.to_string()),
        _ => failed(Step::Deliver, None, &error.to_string()),
    })?;
    if !delivered.changed.is_empty() {
        say(&format!("delivered {} grant files", delivered.changed.len()));
    }
    Ok(delivered)
}

/// One command of the host that either succeeds or ends the deployment.
fn step(host: &Host, job: &Job, step: Step, script: &str, words: &[&str]) -> Result<Answer, Verdict> {
    let answer = host
        .run(script, words, b"", job.deadlines.step())
        .map_err(|error| host_failed(step, &error))?;
    match answer.code {
        0 => Ok(answer),
        code => {
            let lines = process::last_lines(&answer.stderr, 12);
            let message = format!("exit {code}:\n{lines}\ncorrect it, then apply again");
            Err(failed(step, Some(code), &message))
        }
    }
}

/// Owners, units with older grants, and the removal of what was read; then the verdict.
fn finish(
    host: &Host,
    job: &Job,
    mut activation: Activation,
    delivered: &Delivered,
) -> Result<Verdict, Verdict> {
    let activated = outcome::verdict(&activation.conclusion, &activation.circumstances);
    let units = activation.read_units.join(" ");
    let mut words = vec![units.as_str()];
    if !matches!(activated, Verdict::Failed { .. } | Verdict::Unknown { .. }) {
        deliver::own(host, job, delivered)
            .map_err(|error| failed(Step::Deliver, None, &error.to_string()))?;
        words.extend(deliver::unit_files(&job.deliveries));
    }
    let answer = patiently(job, || {
        host.run(
            include_str!("remote/finish.sh"),
            &words,
            b"",
            job.deadlines.step(),
        )
    });
    match answer {
        Ok(answer) => {
            activation.circumstances.not_restarted = answer.all("failed").map(str::to_owned).collect();
            activation.circumstances.not_restarted.sort();
            Ok(outcome::verdict(
                &activation.conclusion,
                &activation.circumstances,
            ))
        }
        // With no grants there was nothing left to do but to tidy, which the next job does.
        Err(_) if words.len() == 1 => Ok(activated),
        Err(error) => Err(Verdict::Unknown {
            message: format!("activated, but it is not known whether units took their new grants: {error}"),
        }),
    }
}

/// Asks again while the host cannot be reached: what is asked may be done twice.
fn patiently<T>(job: &Job, mut ask: impl FnMut() -> Result<T, HostError>) -> Result<T, HostError> {
    let start = Instant::now();
    loop {
        match ask() {
            Err(_) if start.elapsed() < job.deadlines.reconnect() => std::thread::sleep(activate::PAUSE),
            answer => return answer,
        }
    }
}

fn host_failed(step: Step, error: &HostError) -> Verdict {
    failed(step, None, &error.to_string())
}

fn failed(step: Step, code: Option<i32>, message: &str) -> Verdict {
    Verdict::Failed {
        step,
        code,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
