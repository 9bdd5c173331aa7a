//! `provisor transport deploy JOB`: what the graph calls for each node that changed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{Exit, output};
use crate::transport;
use crate::transport::job::{Job, Order};
use crate::verdict::{NodeReport, Verdict};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Deploy one node.
    Deploy {
        /// The job's file.
        job: PathBuf,
        /// The run that asks.
        #[arg(long, env = "PROVISOR_RUN", value_hint = ValueHint::Other)]
        run: String,
        /// Folder for the node's report.
        #[arg(long, env = "PROVISOR_REPORTS")]
        reports: PathBuf,
    },
}

pub(super) fn run(arguments: &Arguments) -> Exit {
    let Verb::Deploy { job, run, reports } = &arguments.verb;
    let job = match Job::read(job) {
        Ok(job) => job,
        Err(error) => {
            output::error(&error);
            return Exit::Failed;
        }
    };
    let report = reports.join(format!("{}.json", job.entry.name));
    let order = Order {
        run: run.clone(),
        report,
    };
    match transport::deploy(&job, &order, &mut |line| output::note(line)) {
        Ok(report) => {
            output::note(&last_line(&report));
            exit(&report.verdict)
        }
        Err(error) => {
            output::error(&format!(
                "cannot write {}: {error}; make the state folder writable, then apply again",
                order.report.display()
            ));
            Exit::Failed
        }
    }
}

/// What OpenTofu is to make of a verdict: a node that failed is tainted and tried again by the next run.
fn exit(verdict: &Verdict) -> Exit {
    match verdict {
        Verdict::Deployed | Verdict::Reboot | Verdict::Unchanged | Verdict::Off => Exit::Done,
        Verdict::Degraded { .. } | Verdict::Failed { .. } | Verdict::Unknown { .. } => Exit::Failed,
    }
}

fn last_line(report: &NodeReport) -> String {
    match &report.verdict {
        Verdict::Deployed | Verdict::Unchanged | Verdict::Off => "deployed".into(),
        Verdict::Reboot => "deployed; the host needs a reboot to finish".into(),
        Verdict::Degraded { units } => format!("degraded: failed units are {}", units.join(", ")),
        Verdict::Failed { message, .. } => format!("failed: {message}"),
        Verdict::Unknown { message } => format!("unknown: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Step;

    #[test]
    fn only_a_deployed_node_leaves_its_resource_untainted() {
        let failed = Verdict::Failed {
            step: Step::Copy,
            code: None,
            message: String::new(),
        };
        let unknown = Verdict::Unknown {
            message: String::new(),
        };
        let degraded = Verdict::Degraded { units: vec![] };
        let table = [
            (Verdict::Deployed, Exit::Done),
            (Verdict::Reboot, Exit::Done),
            (degraded, Exit::Failed),
            (failed, Exit::Failed),
            (unknown, Exit::Failed),
        ];
        for (verdict, wanted) in table {
            assert_eq!(exit(&verdict), wanted, "{verdict:?}");
        }
    }
}
