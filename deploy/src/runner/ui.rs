//! What the program says with `-json`: one object a line, folded into what became of each resource.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The highest major version of the machine-readable output that is understood.
const MAJOR: u32 = 1;

/// Everything one run of the program said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// What is planned for each resource address; resources without a change are absent.
    pub planned: BTreeMap<String, Action>,
    /// How far each resource came; those never begun are absent.
    pub reached: BTreeMap<String, Status>,
    /// Counts of the plan, once it is made.
    pub counts: Option<Counts>,
    /// Errors and warnings in their order.
    pub diagnostics: Vec<Diagnostic>,
}

/// What is planned for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is new.
    Create,
    /// It is changed in place.
    Update,
    /// It is destroyed and created.
    Replace,
    /// It leaves the graph.
    Delete,
    /// Anything else, such as reading or moving.
    #[serde(other)]
    Other,
}

/// How far a resource came. The destruction that begins a replacement does not count: nothing is done to a host by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Its provisioner may run.
    Started,
    /// Created.
    Done,
    /// Failed.
    Errored,
}

/// Counts of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Resources to create, each replacement among them.
    pub add: u64,
    /// Resources to change in place.
    pub change: u64,
    /// Resources to destroy, each replacement among them.
    pub remove: u64,
}

/// An error or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Diagnostic {
    /// Which.
    pub severity: Severity,
    /// Its first line.
    pub summary: String,
    /// The rest.
    #[serde(default)]
    pub detail: String,
}

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It fails the run.
    Error,
    /// It does not.
    #[serde(other)]
    Warning,
}

/// What a line means to somebody who watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A resource's provisioner begins.
    Started(String),
    /// A resource's provisioner printed a line.
    Output(String, String),
    /// A resource is done, well or not.
    Ended(String),
    /// A warning.
    Warning(String),
    /// The plan is made.
    Planned(Counts),
}

/// Why the output cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the program's machine-readable output has version {version}, and only {MAJOR}.x is understood; use an older OpenTofu, or a newer Provisor"
)]
pub struct UiError {
    /// The version it says.
    pub version: String,
}

impl Transcript {
    /// Folds in a line. Lines that are not JSON (a dump of a state that could not be stored, a panic) and types that are
    /// not known are passed over: the log has them.
    pub fn fold(&mut self, line: &str) -> Result<Option<Notice>, UiError> {
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            return Ok(None);
        };
        Ok(match line {
            Line::Version { ui } => {
                let major = ui.split('.').next().and_then(|major| major.parse::<u32>().ok());
                if major.is_none_or(|major| major > MAJOR) {
                    return Err(UiError { version: ui });
                }
                None
            }
            Line::PlannedChange { change } => {
                self.planned.insert(change.resource.addr, change.action);
                None
            }
            Line::ChangeSummary { changes } if changes.operation == "plan" => {
                self.counts = Some(changes.counts);
                Some(Notice::Planned(changes.counts))
            }
            Line::ApplyStart { hook } if hook.action != Some(Action::Delete) => {
                self.reached.insert(hook.resource.addr.clone(), Status::Started);
                Some(Notice::Started(hook.resource.addr))
            }
            Line::ApplyComplete { hook } if hook.action != Some(Action::Delete) => {
                self.reached.insert(hook.resource.addr.clone(), Status::Done);
                Some(Notice::Ended(hook.resource.addr))
            }
            Line::ApplyErrored { hook } if hook.action != Some(Action::Delete) => {
                self.reached.insert(hook.resource.addr.clone(), Status::Errored);
                Some(Notice::Ended(hook.resource.addr))
            }
            Line::ProvisionErrored { hook } => {
                self.reached.insert(hook.resource.addr.clone(), Status::Errored);
                None
            }
            Line::ProvisionProgress { hook } => Some(Notice::Output(hook.resource.addr, hook.output)),
            Line::Diagnostic { diagnostic } => {
                let warning = (diagnostic.severity == Severity::Warning).then(|| diagnostic.to_string());
                self.diagnostics.push(diagnostic);
                warning.map(Notice::Warning)
            }
            Line::ChangeSummary { .. }
            | Line::ApplyStart { .. }
            | Line::ApplyComplete { .. }
            | Line::ApplyErrored { .. }
            | Line::Other => None,
        })
    }

    /// The errors.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Whether the plan was made, so that a resource without a planned change is known to be unchanged.
    pub fn is_planned(&self) -> bool {
        self.counts.is_some()
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let detail = self.detail.trim();
        if detail.is_empty() {
            formatter.write_str(&self.summary)
        } else {
            write!(formatter, "{}: {detail}", self.summary)
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Version {
        ui: String,
    },
    PlannedChange {
        change: Change,
    },
    ChangeSummary {
        changes: Changes,
    },
    ApplyStart {
        hook: Hook,
    },
    ApplyComplete {
        hook: Hook,
    },
    ApplyErrored {
        hook: Hook,
    },
    ProvisionErrored {
        hook: Hook,
    },
    ProvisionProgress {
        hook: Hook,
    },
    Diagnostic {
        diagnostic: Diagnostic,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Change {
    resource: Resource,
    action: Action,
}

#[derive(Deserialize)]
struct Changes {
    #[serde(flatten)]
    counts: Counts,
    #[serde(default)]
    operation: String,
}

#[derive(Deserialize)]
struct Hook {
    resource: Resource,
    action: Option<Action>,
    #[serde(default)]
    output: String,
}

#[derive(Deserialize)]
struct Resource {
    addr: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Terraform 1.11.4 printed for a graph of two nodes, of which one was replaced and one failed; times left out.
    const APPLY: &str = r#"
{"@level":"info","@message":"Terraform 1.11.4","@module":"terraform.ui","terraform":"1.11.4","type":"version","ui":"1.2"}
{"@level":"info","type":"planned_change","change":{"resource":{"addr":"terraform_data.a","module":"","resource":"terraform_data.a","implied_provider":"terraform","resource_type":"terraform_data","resource_name":"a","resource_key":null},"action":"replace","reason":"cannot_update"}}
{"@level":"info","type":"planned_change","change":{"resource":{"addr":"terraform_data.b","resource_key":null},"action":"create"}}
{"@level":"info","type":"change_summary","changes":{"add":2,"import":0,"change":0,"remove":1,"operation":"plan"}}
{"@level":"info","type":"outputs","outputs":{"systems":{"sensitive":false,"action":"update"}}}
{"@level":"info","type":"apply_start","hook":{"resource":{"addr":"terraform_data.a"},"action":"delete","id_key":"id","id_value":"1"}}
{"@level":"info","type":"apply_complete","hook":{"resource":{"addr":"terraform_data.a"},"action":"delete","elapsed_seconds":0}}
{"@level":"info","type":"apply_start","hook":{"resource":{"addr":"terraform_data.a"},"action":"create"}}
{"@level":"info","type":"provision_start","hook":{"resource":{"addr":"terraform_data.a"},"provisioner":"local-exec"}}
{"@level":"info","type":"provision_progress","hook":{"resource":{"addr":"terraform_data.a"},"provisioner":"local-exec","output":"copying"}}
{"@level":"info","type":"provision_complete","hook":{"resource":{"addr":"terraform_data.a"},"provisioner":"local-exec"}}
{"@level":"info","type":"apply_complete","hook":{"resource":{"addr":"terraform_data.a"},"action":"create","elapsed_seconds":0}}
{"@level":"info","type":"apply_start","hook":{"resource":{"addr":"terraform_data.b"},"action":"create"}}
{"@level":"info","type":"provision_errored","hook":{"resource":{"addr":"terraform_data.b"},"provisioner":"local-exec"}}
{"@level":"info","type":"apply_errored","hook":{"resource":{"addr":"terraform_data.b"},"action":"create","elapsed_seconds":0}}
{"@level":"error","type":"diagnostic","diagnostic":{"severity":"error","summary":"local-exec provisioner error","detail":"exit status 4","address":"terraform_data.b"}}
not json
{"type":"something_new","hook":{"unknown":1}}
"#;

    fn fold(text: &str) -> (Transcript, Vec<Notice>) {
        let mut transcript = Transcript::default();
        let notices = text
            .lines()
            .filter_map(|line| transcript.fold(line).unwrap())
            .collect();
        (transcript, notices)
    }

    #[test]
    fn an_apply_is_folded_into_what_became_of_each_resource() {
        let (transcript, notices) = fold(APPLY);
        let (a, b) = ("terraform_data.a".to_owned(), "terraform_data.b".to_owned());
        assert_eq!(
            transcript.planned,
            BTreeMap::from([(a.clone(), Action::Replace), (b.clone(), Action::Create)])
        );
        assert_eq!(
            transcript.reached,
            BTreeMap::from([(a.clone(), Status::Done), (b.clone(), Status::Errored)])
        );
        let counts = Counts {
            add: 2,
            change: 0,
            remove: 1,
        };
        assert_eq!(transcript.counts, Some(counts));
        assert_eq!(transcript.errors().count(), 1);
        assert_eq!(
            notices,
            [
                Notice::Planned(counts),
                Notice::Started(a.clone()),
                Notice::Output(a.clone(), "copying".into()),
                Notice::Ended(a),
                Notice::Started(b.clone()),
                Notice::Ended(b),
            ]
        );
    }

    #[test]
    fn a_higher_major_version_is_refused_and_a_higher_minor_one_is_not() {
        let fold = |line: &str| Transcript::default().fold(line);
        assert_eq!(fold(r#"{"type":"version","ui":"1.9"}"#), Ok(None));
        assert_eq!(
            fold(r#"{"type":"version","ui":"2.0"}"#),
            Err(UiError {
                version: "2.0".into()
            })
        );
    }
}
