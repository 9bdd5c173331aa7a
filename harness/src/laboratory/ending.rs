//! The end of a lab: what is looked at before anything is killed, and what is left behind.

use std::fs;
use std::future::IntoFuture;
use std::io::Write;
use std::time::Duration;

use tokio::task::JoinSet;

use super::{Inner, keeping};
use crate::artifacts::Outcome;
use crate::checks::{self, Finding, Trouble};
use crate::death::Death;
use crate::exec::{Command, Execute};
use crate::machine::Machine;
use crate::report::Report;
use crate::running::{self, KEEP_VARIABLE, PAUSE_VARIABLE};
use crate::wait::Deadline;

/// What all guests together have to tell of themselves after a failure.
const STATE_PATIENCE: Duration = Duration::from_secs(30);

/// How long a guest's journald may take to pass on what it has: a few hundredths of a second, most often.
const JOURNAL_PATIENCE: Duration = Duration::from_secs(5);

/// What a guest is asked after a failure; each part may fail. The journal needs no asking.
const STATE_SCRIPT: &str = r#"
part() { printf '\n== %s\n' "$*"; "$@" 2>&1; }
part systemctl --no-pager --plain --failed
part systemctl --no-pager --plain list-jobs
part ps -eo pid,ppid,stat,rss,etime,args
part ss -tuanp
part ip -brief address
part ip route
part cat /proc/meminfo
part df -h
part mount
"#;

impl Inner {
    /// What the guests did that no guest may do, unless the test means it.
    fn findings(&self, machines: &[Machine]) -> Vec<Finding> {
        self.recorder.look();
        let found = machines
            .iter()
            .flat_map(|machine| {
                let console = machine.console();
                let console = console.since(console.start()).unwrap_or_default();
                let journal = fs::read(machine.journal()).unwrap_or_default();
                checks::findings(machine.name(), &console, &String::from_utf8_lossy(&journal))
            })
            .collect();
        checks::not_allowed(found, &self.state().allowed)
    }

    /// Before an orderly end: what the guests did, and what is to become of them.
    pub(super) fn look_back(&self) -> (Vec<Finding>, Afterwards) {
        let machines = self.state().machines.clone();
        let died = |machine: &Machine| machine.death().seen().filter(|death| *death != Death::Stopped);
        let dead: Vec<_> = machines
            .iter()
            .filter(|machine| died(machine).is_some())
            .collect();
        // A panic that ended a guest is told as its death.
        let told = |finding: &Finding| {
            finding.trouble == Trouble::Panic && dead.iter().any(|machine| machine.name() == finding.machine)
        };
        self.pass_on_journals(&machines);
        let mut findings = self.findings(&machines);
        findings.retain(|finding| !told(finding));
        if findings.is_empty() && dead.is_empty() {
            return (findings, Afterwards::End);
        }
        for finding in &findings {
            self.timeline.note(
                &finding.machine,
                format_args!("had trouble: {}: {}", finding.trouble, finding.line),
            );
        }
        let afterwards = self.after_failure(&machines);
        (findings, afterwards)
    }

    /// After a failure, with all guests as they are: asks each for its state, then waits for a person or leaves the guests to one, as
    /// the environment says. Answers whether the guests are to live on.
    pub(super) fn after_failure(&self, machines: &[Machine]) -> Afterwards {
        let alive: Vec<Machine> = machines
            .iter()
            .filter(|machine| machine.death().seen().is_none())
            .cloned()
            .collect();
        self.collect_state(&alive);
        if alive.is_empty() {
            return Afterwards::End;
        }
        if running::asked_for(PAUSE_VARIABLE) {
            self.say(&format!(
                "paused: {} is set; go on with `lab resume`\n{}",
                PAUSE_VARIABLE,
                self.ways_in()
            ));
            self.timeline.note("lab", "is paused");
            if let Err(error) = self.folder().pause() {
                self.say(&format!("cannot pause: {error}"));
            }
        }
        if !running::asked_for(KEEP_VARIABLE) {
            return Afterwards::End;
        }
        match keeping::keep(self, &alive) {
            Ok(()) => {
                self.timeline.note("lab", "is kept");
                self.say(&format!(
                    "the machines are kept, as {KEEP_VARIABLE} says; `lab sweep` ends them\n{}",
                    self.ways_in()
                ));
                Afterwards::Live
            }
            Err(error) => {
                self.say(&format!("cannot keep the machines: {error}"));
                Afterwards::End
            }
        }
    }

    /// Has the guests' journals written to the end, where they still can be.
    fn pass_on_journals(&self, machines: &[Machine]) {
        let alive = machines.iter().filter(|machine| machine.death().seen().is_none());
        self.all_in_time(JOURNAL_PATIENCE, alive.cloned(), |machine, deadline| async move {
            let sync = Execute::run(&machine, Command::new("journalctl").arg("--sync"));
            let _ = machine.death().race(deadline.limit(sync.into_future())).await;
        });
    }

    /// Writes what each guest tells of itself. Those that do not answer in time are passed over, with a word in their file.
    fn collect_state(&self, machines: &[Machine]) {
        let folder = self.artifacts.folder().to_owned();
        self.all_in_time(STATE_PATIENCE, machines.iter().cloned(), |machine, deadline| {
            let file = folder.join(machine.name()).join("state");
            async move {
                let mut told = Vec::new();
                let asked = Execute::run(&machine, Command::from(STATE_SCRIPT))
                    .on_output(|_, bytes| told.extend_from_slice(bytes));
                let why = match deadline.limit(asked.into_future()).await {
                    Some(Ok(_)) => String::new(),
                    Some(Err(error)) => format!("the guest cannot be asked: {error}\n"),
                    None => "the guest did not tell more in time\n".to_owned(),
                };
                told.extend_from_slice(why.as_bytes());
                let _ = fs::write(file, told);
            }
        });
    }

    /// Does something with all guests side by side, and waits for it no longer than `patience`.
    fn all_in_time<F>(
        &self,
        patience: Duration,
        machines: impl Iterator<Item = Machine>,
        act: impl Fn(Machine, Deadline) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, receiver) = std::sync::mpsc::channel();
        let deadline = Deadline::after(patience);
        let acts: Vec<F> = machines.map(|machine| act(machine, deadline)).collect();
        self.background.spawn(async move {
            acts.into_iter().collect::<JoinSet<()>>().join_all().await;
            let _ = sender.send(());
        });
        // The background has a thread of its own: this one may block, in a destructor of an asynchronous test too.
        let _ = receiver.recv_timeout(crate::wait::scaled(patience) + Duration::from_secs(1));
    }

    /// Leaves the marker and the timeline for people, and names them where a test's output is read.
    pub(super) fn leave_evidence(&self, outcome: Outcome, note: &str) {
        self.recorder.look();
        self.artifacts.mark(outcome, note);
        let folder = self.artifacts.folder();
        let written = Report::read(folder).and_then(|report| report.write(folder));
        if let Err(error) = written {
            tracing::warn!(%error, "cannot write the timeline's page");
        }
        if outcome == Outcome::Passed {
            return;
        }
        for attachment in self.artifacts.attachments() {
            self.say(&format!("[[ATTACHMENT|{}]]", attachment.display()));
        }
    }

    /// To the standard error of the test, which is where its message goes; the test runner's capture is passed by.
    pub(super) fn say(&self, text: &str) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    fn ways_in(&self) -> String {
        let folder = self.folder();
        let machines = self.record().machines;
        machines
            .iter()
            .flat_map(|machine| {
                let ways = folder.ways_in(machine).into_iter();
                ways.map(|(what, command)| format!("  {}, {what}: {command}\n", machine.name))
            })
            .collect()
    }
}

/// What becomes of the guests of a failed test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Afterwards {
    /// They end with it.
    End,
    /// They live on.
    Live,
}
