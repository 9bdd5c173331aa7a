//! The end of a run for a person: phases, nodes, the state, and the program that ran the graph.

use std::fmt::Write as _;
use std::time::Duration;

use crate::progress::Phase;
use crate::runner::{Action, Program};
use crate::verdict::{NodeReport, Step, Verdict};
use crate::wrapper::{Ending, LockRelease, RunReport, StatePlace};

/// What goes to stderr at the end.
pub(super) fn render(report: &RunReport, program: &Program, total: Duration) -> String {
    let mut text = String::from("\n");
    for phase in &report.phases {
        line(&mut text, phase_name(phase.phase), &seconds(phase.milliseconds));
    }
    line(&mut text, "total", &format!("{:.1} s", total.as_secs_f64()));
    text.push('\n');
    for node in &report.nodes {
        line(&mut text, &node.node, &node_outcome(node));
    }
    if let Some(changes) = &report.changes {
        line(
            &mut text,
            "plan",
            if changes.any { "changes" } else { "no changes" },
        );
    }
    line(&mut text, "state", &state(&report.state));
    line(&mut text, "program", &program.to_string());
    line(&mut text, "logs", &report.logs.display().to_string());
    if let LockRelease::NotReleased { holder } = &report.lock {
        line(
            &mut text,
            "lock",
            &format!("not released, held by {holder}; run again with --reclaim-lock"),
        );
    }
    match &report.ending {
        Ending::Done => {}
        Ending::Failed { message } => line(&mut text, "failed", message),
        Ending::Interrupted => line(&mut text, "interrupted", "run again: it resumes where it stopped"),
    }
    text.trim_end().to_owned()
}

/// What goes to stdout: the outputs as JSON, or a plan's changes, one a line.
pub(super) fn data(report: &RunReport) -> String {
    match &report.changes {
        Some(changes) => {
            let lines = changes
                .nodes
                .iter()
                .map(|(node, action)| format!("{node}: {}", action_name(*action)));
            lines.collect::<Vec<_>>().join("\n")
        }
        None => serde_json::to_string_pretty(&report.outputs).unwrap_or_default(),
    }
}

fn action_name(action: Action) -> &'static str {
    match action {
        Action::Create => "deploy for the first time",
        Action::Update => "update",
        Action::Replace => "deploy",
        Action::Delete => "leave the graph; the host keeps its last configuration",
        Action::Other => "look at",
    }
}

/// A phase's name.
pub(super) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Resolve => "resolve",
        Phase::Grants => "grants",
        Phase::Build => "build",
        Phase::Observe => "observe",
        Phase::LocalCycle => "local cycle",
        Phase::WaitForBackend => "wait for backend",
        Phase::Migrate => "migrate",
        Phase::SteadyCycle => "steady cycle",
        Phase::Plan => "plan",
    }
}

/// A verdict in a few words.
pub(super) fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Deployed => "deployed".into(),
        Verdict::Unchanged => "unchanged".into(),
        Verdict::Degraded { units } => format!("degraded: failed units are {}", units.join(", ")),
        Verdict::Reboot => "deployed, a reboot is needed".into(),
        Verdict::Failed {
            step,
            code: Some(code),
            ..
        } => format!("failed {}, exit {code}", step_name(*step)),
        Verdict::Failed { step, code: None, .. } => format!("failed {}", step_name(*step)),
        Verdict::Unknown { .. } => "unknown".into(),
        Verdict::Off => "off".into(),
    }
}

fn step_name(step: Step) -> &'static str {
    match step {
        Step::Connect => "to connect",
        Step::Copy => "to copy the closure",
        Step::VerifyCopy => "to prove the copy",
        Step::Deliver => "to deliver grants",
        Step::Check => "the system's check",
        Step::Profile => "to set the profile",
        Step::Activate => "to activate",
    }
}

fn node_outcome(node: &NodeReport) -> String {
    match node.verdict {
        Verdict::Unchanged | Verdict::Off => verdict(&node.verdict),
        _ => {
            #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
            let megabytes = node.copied_bytes as f64 / 1e6;
            format!(
                "{}, {megabytes:.1} MB sent, {}",
                verdict(&node.verdict),
                seconds(node.milliseconds)
            )
        }
    }
}

fn state(place: &StatePlace) -> String {
    match place {
        StatePlace::Backend { address, serial, .. } => format!("{address}, serial {serial}"),
        StatePlace::WorkingDirectory { path } => format!("still here: {}", path.display()),
        StatePlace::Nowhere => "none yet".into(),
        StatePlace::Unknown { reason } => format!("unknown: {reason}"),
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100)
}

fn line(text: &mut String, name: &str, value: &str) {
    let _infallible = writeln!(text, "{name:<18} {value}");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::decide::Work;
    use crate::runner::{Counts, Flavor, Version};
    use crate::wrapper::{PhaseTime, PlannedChanges, Verb};

    fn node(name: &str, verdict: Verdict) -> NodeReport {
        NodeReport {
            node: name.into(),
            run: "run-1".into(),
            system: "/nix/store/x".into(),
            verdict,
            copied_bytes: 8_123_456,
            milliseconds: 12_345,
        }
    }

    fn report() -> RunReport {
        let failed = Verdict::Failed {
            step: Step::VerifyCopy,
            code: None,
            message: "disk".into(),
        };
        RunReport {
            run: "run-1".into(),
            work: Work::Steady(Verb::Apply),
            nodes: vec![
                node("backend", Verdict::Unchanged),
                node("forge", Verdict::Deployed),
                node("wiki", failed),
            ],
            outputs: BTreeMap::from([(
                "systems".to_owned(),
                serde_json::json!({ "forge": "/nix/store/x" }),
            )]),
            state: StatePlace::Backend {
                address: "http://192.0.2.10:8080/state/demo".into(),
                lineage: "l".into(),
                serial: 3,
            },
            phases: vec![PhaseTime {
                phase: Phase::Build,
                milliseconds: 1_234,
            }],
            lock: LockRelease::Released,
            changes: None,
            ending: Ending::Done,
            logs: "/state/runs/run-1".into(),
        }
    }

    fn program() -> Program {
        Program {
            path: "/usr/bin/tofu".into(),
            flavor: Flavor::OpenTofu,
            version: Version(1, 10, 6),
        }
    }

    #[test]
    fn a_run_ends_with_phases_nodes_state_and_program() {
        insta::assert_snapshot!(render(&report(), &program(), Duration::from_millis(15_900)), @"
        build              1.2 s
        total              15.9 s

        backend            unchanged
        forge              deployed, 8.1 MB sent, 12.3 s
        wiki               failed to prove the copy, 8.1 MB sent, 12.3 s
        state              http://192.0.2.10:8080/state/demo, serial 3
        program            OpenTofu 1.10.6 (/usr/bin/tofu)
        logs               /state/runs/run-1
        ");
    }

    #[test]
    fn an_apply_prints_its_outputs_and_a_plan_its_changes() {
        assert_eq!(
            data(&report()),
            "{\n  \"systems\": {\n    \"forge\": \"/nix/store/x\"\n  }\n}"
        );
        let nodes = BTreeMap::from([("forge".to_owned(), Action::Replace)]);
        let changes = Some(PlannedChanges {
            any: true,
            counts: Counts::default(),
            nodes,
        });
        assert_eq!(data(&RunReport { changes, ..report() }), "forge: deploy");
    }

    #[test]
    fn a_lock_that_was_not_released_says_what_to_do() {
        let lock = LockRelease::NotReleased {
            holder: "alice@desk".into(),
        };
        let text = render(&RunReport { lock, ..report() }, &program(), Duration::ZERO);
        assert!(
            text.contains("held by alice@desk; run again with --reclaim-lock"),
            "{text}"
        );
    }
}
