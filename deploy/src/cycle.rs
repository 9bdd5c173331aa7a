//! One `init` and one `apply` or `plan` of the program in one of the two folders, and what became of each node.

mod watch;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use self::watch::{Said, Watch};
use crate::address::StateAddress;
use crate::entry::NodeEntry;
use crate::graph::{Graph, GraphError, render, resource_address};
use crate::lock::{self, Holder};
use crate::progress::{Event, Progress};
use crate::report::PlannedChanges;
use crate::runner::{
    Action, ChildError, Diagnostic, Exit, Interrupts, Invocation, Program, Status, Transcript, UiError,
};
use crate::store::{Credentials, Secret};
use crate::verdict::{NodeReport, Verdict};
use crate::workdir::{Cycle, WorkDir, WorkDirError, write_whole};

/// Seconds between two writes of the state in an apply. OpenTofu's 20 would stop the apply whenever the graph restarts its
/// own backend at that moment.
const PERSIST_INTERVAL: &str = "600";

/// The program of a run with all it is started with.
pub(crate) struct Tofu<'a> {
    pub(crate) program: &'a Program,
    pub(crate) shell: &'a Path,
    pub(crate) workdir: &'a WorkDir,
    pub(crate) graph: &'a Graph<'a>,
    pub(crate) run: &'a str,
    /// The run's folder.
    pub(crate) logs: &'a Path,
    pub(crate) address: &'a StateAddress,
    pub(crate) credentials: &'a Credentials,
    /// Nodes that are deployed at once; OpenTofu's 10 when not given.
    pub(crate) parallelism: Option<NonZeroU32>,
    pub(crate) interrupts: &'a Interrupts,
    pub(crate) progress: &'a dyn Progress,
}

/// What an apply did.
pub(crate) struct Applied {
    /// Each node that has an outcome.
    pub(crate) nodes: BTreeMap<String, NodeReport>,
    /// Errors that no node's verdict tells, for a person.
    pub(crate) trouble: Vec<String>,
    /// Whether OpenTofu could not give its lock back.
    pub(crate) lock_is_stuck: bool,
    /// When OpenTofu took its lock, from and to.
    window: (Timestamp, Timestamp),
    /// The log.
    pub(crate) log: PathBuf,
}

/// Why the program could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CycleError {
    /// The graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The working directory.
    #[error(transparent)]
    WorkDir(#[from] WorkDirError),
    /// The program does not start.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// Its output is of another age.
    #[error(transparent)]
    Ui(#[from] UiError),
    /// `init` or `plan` failed.
    #[error("{program} {verb} failed: {text}\nthe whole output is in {log}; nothing was deployed")]
    Failed {
        /// The program.
        program: String,
        /// What it was to do.
        verb: &'static str,
        /// What it said.
        text: String,
        /// Its log.
        log: PathBuf,
    },
    /// A signal came before anything was deployed.
    #[error("interrupted; nothing was deployed in this step, run again to resume")]
    Interrupted,
}

impl Tofu<'_> {
    /// Writes the graph into the folder and initialises it.
    pub(crate) fn prepare(&self, cycle: Cycle) -> Result<(), CycleError> {
        let main = self.workdir.folder(cycle).join("main.tf.json");
        write_whole(&main, &render(self.graph, self.shell, cycle)?)?;
        let args = ["init", "-input=false", "-no-color"].map(str::to_owned).to_vec();
        let log = self.logs.join(format!("{}-init.log", name(cycle)));
        let mut said = Said;
        let (exit, stderr) = self
            .invocation(cycle, args, &log, &[])?
            .run(self.interrupts, &mut said)?;
        match exit {
            Exit::Code(0) => Ok(()),
            _ if self.interrupts.seen() > 0 => Err(CycleError::Interrupted),
            _ => Err(self.failed("init", &stderr.join("\n"), &log)),
        }
    }

    /// Applies the graph; `attempt` names its log and its reports.
    pub(crate) fn apply(&self, cycle: Cycle, attempt: &str) -> Result<Applied, CycleError> {
        let mut args = ["apply", "-auto-approve", "-input=false", "-json"]
            .map(str::to_owned)
            .to_vec();
        args.extend(self.parallelism.map(|nodes| format!("-parallelism={nodes}")));
        let (log, reports) = (
            self.logs.join(format!("{attempt}.log")),
            self.logs.join(format!("{attempt}-reports")),
        );
        let start = Timestamp::now();
        let mut stdout = Watch::new(self, &reports);
        let environment = [("PROVISOR_REPORTS", reports.clone().into_os_string())];
        let (exit, stderr) = self
            .invocation(cycle, args, &log, &environment)?
            .run(self.interrupts, &mut stdout)?;
        let Watch {
            transcript,
            refused,
            planned_at,
            told,
            ..
        } = stdout;
        if let Some(error) = refused {
            return Err(error.into());
        }
        let nodes = self.verdicts(&transcript, &reports);
        for report in nodes.values().filter(|report| !told.contains(&report.node)) {
            self.progress.event(Event::NodeFinished(report.clone()));
        }
        let lock_is_stuck = transcript.errors().any(is_lock_release);
        let mut trouble: Vec<String> = transcript
            .errors()
            .filter(|error| !is_lock_release(error) && !is_provisioner(error))
            .map(Diagnostic::to_string)
            .collect();
        let node_failed = transcript
            .reached
            .values()
            .any(|status| *status == Status::Errored);
        if exit != Exit::Code(0) && trouble.is_empty() && !node_failed && !lock_is_stuck {
            trouble.push(format!(
                "{} ended with {exit}: {}",
                self.program,
                stderr.join("\n")
            ));
        }
        let window = (start, planned_at.unwrap_or_else(Timestamp::now));
        Ok(Applied {
            nodes,
            trouble,
            lock_is_stuck,
            window,
            log,
        })
    }

    /// Plans against the backend.
    pub(crate) fn plan(&self) -> Result<PlannedChanges, CycleError> {
        let args = ["plan", "-input=false", "-json", "-detailed-exitcode"]
            .map(str::to_owned)
            .to_vec();
        let log = self.logs.join("plan.log");
        let mut stdout = Watch::new(self, self.logs);
        let (exit, stderr) = self
            .invocation(Cycle::Remote, args, &log, &[])?
            .run(self.interrupts, &mut stdout)?;
        let Watch {
            transcript, refused, ..
        } = stdout;
        if let Some(error) = refused {
            return Err(error.into());
        }
        let any = match exit {
            Exit::Code(0) => false,
            Exit::Code(2) => true,
            _ if self.interrupts.seen() > 0 => return Err(CycleError::Interrupted),
            _ => {
                let errors: Vec<String> = transcript
                    .errors()
                    .map(Diagnostic::to_string)
                    .chain(stderr)
                    .collect();
                return Err(self.failed("plan", &errors.join("\n"), &log));
            }
        };
        let names: BTreeMap<String, &str> = self
            .graph
            .entries
            .iter()
            .map(|entry| (resource_address(&entry.name), entry.name.as_str()))
            .collect();
        let named = |address: String| {
            names
                .get(&address)
                .map_or(address.clone(), |name| (*name).to_owned())
        };
        let nodes = transcript
            .planned
            .into_iter()
            .map(|(address, action)| (named(address), action))
            .collect();
        Ok(PlannedChanges {
            any,
            counts: transcript.counts.unwrap_or_default(),
            nodes,
        })
    }

    fn invocation(
        &self,
        cycle: Cycle,
        args: Vec<String>,
        log: &Path,
        environment: &[(&'static str, OsString)],
    ) -> Result<Invocation<'_>, WorkDirError> {
        let mut all = vec![
            ("PROVISOR_RUN", self.run.into()),
            ("TF_STATE_PERSIST_INTERVAL", PERSIST_INTERVAL.into()),
        ];
        if cycle == Cycle::Remote {
            all.extend(self.backend());
        }
        all.extend_from_slice(environment);
        Ok(Invocation {
            program: self.program,
            folder: self.workdir.folder(cycle),
            args,
            environment: all,
            input: self.workdir.shared_lock()?,
            log: log.to_owned(),
        })
    }

    /// Address and credentials, by the environment only: what stands in a configuration is written to disk.
    fn backend(&self) -> Vec<(&'static str, OsString)> {
        let Credentials {
            username,
            password,
            ca_certificates,
            retries,
        } = self.credentials;
        let url = self.address.url();
        let mut variables: Vec<(&'static str, OsString)> = vec![
            ("TF_HTTP_ADDRESS", url.clone().into()),
            ("TF_HTTP_LOCK_ADDRESS", url.clone().into()),
            ("TF_HTTP_UNLOCK_ADDRESS", url.into()),
            ("TF_HTTP_UPDATE_METHOD", "POST".into()),
            ("TF_HTTP_LOCK_METHOD", "LOCK".into()),
            ("TF_HTTP_UNLOCK_METHOD", "UNLOCK".into()),
            ("TF_HTTP_RETRY_MAX", retries.max.to_string().into()),
            (
                "TF_HTTP_RETRY_WAIT_MIN",
                retries.wait_min.as_secs().to_string().into(),
            ),
            (
                "TF_HTTP_RETRY_WAIT_MAX",
                retries.wait_max.as_secs().to_string().into(),
            ),
        ];
        variables.extend(username.as_ref().map(|name| ("TF_HTTP_USERNAME", name.into())));
        variables.extend(
            password
                .as_ref()
                .map(|password| ("TF_HTTP_PASSWORD", Secret::reveal(password).into())),
        );
        variables.extend(
            ca_certificates
                .as_ref()
                .map(|pem| ("TF_HTTP_CLIENT_CA_CERTIFICATE_PEM", pem.into())),
        );
        variables
    }

    fn verdicts(&self, transcript: &Transcript, reports: &Path) -> BTreeMap<String, NodeReport> {
        let mut nodes = BTreeMap::new();
        for entry in self.graph.entries {
            let address = resource_address(&entry.name);
            let verdict = match (transcript.reached.get(&address), transcript.planned.get(&address)) {
                (Some(status), _) => {
                    if let Some(report) = self.read_report(entry, reports) {
                        nodes.insert(entry.name.clone(), report);
                        continue;
                    }
                    Verdict::Unknown {
                        message: without_report(*status),
                    }
                }
                (None, Some(_)) => Verdict::Unknown {
                    message: "its turn did not come; run again".to_owned(),
                },
                (None, None) if transcript.is_planned() => Verdict::Unchanged,
                (None, None) => continue,
            };
            nodes.insert(entry.name.clone(), self.report(entry, verdict));
        }
        nodes
    }

    /// What the transport says about this run and system; a report that cannot be read is none.
    fn read_report(&self, entry: &NodeEntry, reports: &Path) -> Option<NodeReport> {
        let path = reports.join(format!("{}.json", entry.name));
        NodeReport::read(&path, self.run, &entry.system).ok().flatten()
    }

    fn report(&self, entry: &NodeEntry, verdict: Verdict) -> NodeReport {
        NodeReport {
            node: entry.name.clone(),
            run: self.run.to_owned(),
            system: entry.system.clone(),
            verdict,
            copied_bytes: 0,
            milliseconds: 0,
        }
    }

    fn failed(&self, verb: &'static str, text: &str, log: &Path) -> CycleError {
        CycleError::Failed {
            program: self.program.to_string(),
            verb,
            text: text.trim().to_owned(),
            log: log.to_owned(),
        }
    }
}

impl Applied {
    /// Whether `holder` is the lock that this apply's OpenTofu took. It has ended, and does not tell its lock's id: but only
    /// one can have the lock, and ours was taken by this user on this host between its start and its plan.
    pub(crate) fn left(&self, holder: &Holder) -> bool {
        holder.info.as_ref().is_some_and(|info| {
            let created = info.created.parse::<Timestamp>();
            info.who == lock::who()
                && created.is_ok_and(|created| self.window.0 <= created && created <= self.window.1)
        })
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Code(code) => write!(formatter, "code {code}"),
            Exit::Signal(signal) => write!(formatter, "signal {signal}"),
        }
    }
}

fn name(cycle: Cycle) -> &'static str {
    match cycle {
        Cycle::Local => "local",
        Cycle::Remote => "remote",
    }
}

fn without_report(status: Status) -> String {
    let seen = match status {
        Status::Started => "the run ended while it was deployed",
        Status::Done => "the transport ended well and left no report",
        Status::Errored => "the transport failed and left no report",
    };
    format!("{seen}; look at the host, then run again")
}

fn is_lock_release(error: &Diagnostic) -> bool {
    error.summary == "Error releasing the state lock"
}

/// The node's verdict tells more than this.
fn is_provisioner(error: &Diagnostic) -> bool {
    error.summary == "local-exec provisioner error"
}

/// What an action does to a node, for a person.
impl std::fmt::Display for Action {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Action::Create => "deploy",
            Action::Replace | Action::Update => "deploy again",
            Action::Delete => "remove from the state",
            Action::Other => "read",
        })
    }
}
