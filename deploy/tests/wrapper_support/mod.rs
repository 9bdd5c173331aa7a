//! A fleet without hosts: OpenTofu or Terraform is real, and each node is deployed by `fake_transport`, a script that
//! notes what it was asked and writes the report its job says.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "several test binaries include it, and each uses its own part"
)]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use provisor_deploy::entry::{HostKey, NodeEntry};
use provisor_deploy::progress::{Event, Phase, Progress};
use provisor_deploy::setup::{Programs, Setup};
use provisor_deploy::verdict::Verdict;
use provisor_deploy::wrapper::{
    self, Asked, BackendNode, Credentials, Error, Graph, Mode, Request, Retries, RunReport, Secret,
    TransportCommand, Verb,
};

/// A password that must turn up nowhere.
pub const CANARY: &str = "canary-5f1d";

const FAKE_TRANSPORT: &str = r#"#!/bin/sh
set -eu
test "$1 $2" = "transport deploy"
. "$3"
echo "$node $system" >> "$asked"
env > "$environment"
echo connecting
before
mkdir -p "$PROVISOR_REPORTS"
printf '{"node":"%s","run":"%s","system":"%s","verdict":%s,"copied_bytes":1,"milliseconds":1}' \
    "$node" "$PROVISOR_RUN" "$system" "$verdict" > "$PROVISOR_REPORTS/$node.json"
echo its outcome
exit "$code"
"#;

/// A fleet of two nodes, `backend` and `forge`, and a deployer's home.
pub struct Fleet {
    pub home: tempfile::TempDir,
    pub entries: Vec<NodeEntry>,
    pub backend_node: Option<BackendNode>,
    pub address: Option<String>,
    pub credentials: Credentials,
    pub programs: Programs,
    jobs: BTreeMap<String, Job>,
}

/// What `fake_transport` does for a node.
#[derive(Clone)]
pub struct Job {
    /// Shell commands to run before the report is written.
    pub before: String,
    /// The verdict of the report.
    pub verdict: Verdict,
    /// Its exit code.
    pub code: i32,
}

/// Keeps all events.
#[derive(Clone, Default)]
pub struct Told(Arc<Mutex<Vec<Event>>>);

impl Fleet {
    /// A fleet whose state is at `address`, on a backend of somebody else.
    pub fn at(address: &str) -> Fleet {
        let mut fleet = Fleet {
            home: tempfile::tempdir().unwrap(),
            entries: Vec::new(),
            backend_node: None,
            address: Some(address.to_owned()),
            credentials: Credentials {
                username: Some("alice".to_owned()),
                password: Some(Secret::new(CANARY)),
                // A fault is to be seen at once.
                retries: Retries {
                    max: 0,
                    wait_min: Duration::ZERO,
                    wait_max: Duration::ZERO,
                },
                ..Credentials::default()
            },
            programs: Programs::default(),
            jobs: BTreeMap::new(),
        };
        fleet.add("backend");
        fleet.add("forge");
        fleet
    }

    /// A fleet that holds its own state, on its node `backend` at this port of loopback.
    pub fn with_own_backend(port: u16) -> Fleet {
        let backend_node = BackendNode {
            node: "backend".into(),
            address: "127.0.0.1".into(),
            port,
        };
        Fleet {
            backend_node: Some(backend_node),
            address: None,
            ..Fleet::at("")
        }
    }

    pub fn add(&mut self, name: &str) {
        self.entries.push(NodeEntry {
            name: name.to_owned(),
            system: format!("/nix/store/0-{name}").into(),
            address: "192.0.2.1".to_owned(),
            port: 22,
            user: "root".to_owned(),
            host_key: HostKey::TrustOnFirstUse,
            ssh_options: vec!["ConnectTimeout=10".to_owned()],
            grants: BTreeMap::new(),
            identity: None,
        });
        self.job(
            name,
            Job {
                before: ":".to_owned(),
                verdict: Verdict::Deployed,
                code: 0,
            },
        );
    }

    pub fn job(&mut self, node: &str, job: Job) {
        self.jobs.insert(node.to_owned(), job);
    }

    pub fn entry(&mut self, node: &str) -> &mut NodeEntry {
        self.entries.iter_mut().find(|entry| entry.name == node).unwrap()
    }

    pub fn bootstrap(&self) -> Result<RunReport, Error> {
        self.run(&Request {
            asked: Asked {
                mode: Mode::Bootstrap,
                ..Asked::default()
            },
            ..Request::default()
        })
    }

    pub fn apply(&self) -> Result<RunReport, Error> {
        self.run(&Request::default())
    }

    pub fn plan(&self) -> Result<RunReport, Error> {
        self.run(&Request {
            asked: Asked {
                verb: Some(Verb::Plan),
                ..Asked::default()
            },
            ..Request::default()
        })
    }

    pub fn run(&self, request: &Request) -> Result<RunReport, Error> {
        self.run_and_tell(request, &Told::default())
    }

    pub fn run_and_tell(&self, request: &Request, told: &Told) -> Result<RunReport, Error> {
        let setup = Setup {
            fleet: self.home.path().join("fleet"),
            programs: self.programs.clone(),
            state_home: self.state_home(),
            backend_address: self.address.clone(),
        };
        let graph = Graph {
            name: "fleet",
            entries: &self.entries,
            backend_node: self.backend_node.clone(),
            transport: TransportCommand {
                program: self.write_transport(),
                args: vec!["transport".to_owned(), "deploy".to_owned()],
            },
            node_jobs: self.write_jobs(),
        };
        wrapper::run(&setup, &graph, request, &self.credentials, told)
    }

    /// `NODE SYSTEM` for each call of the transport so far, sorted.
    pub fn asked(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.home.path().join("asked")).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    pub fn state_home(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// The one working directory.
    pub fn workdir(&self) -> PathBuf {
        let mut folders = std::fs::read_dir(self.state_home()).unwrap();
        folders.next().unwrap().unwrap().path()
    }

    pub fn environment_of(&self, node: &str) -> String {
        std::fs::read_to_string(self.home.path().join(format!("{node}.env"))).unwrap()
    }

    fn write_transport(&self) -> PathBuf {
        let path = self.home.path().join("fake_transport");
        // A file that is open for writing elsewhere cannot be run, so it is written once.
        if !path.exists() {
            std::fs::write(&path, FAKE_TRANSPORT).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        path
    }

    fn write_jobs(&self) -> BTreeMap<String, PathBuf> {
        let home = self.home.path();
        let write = |entry: &NodeEntry| {
            let (name, job) = (&entry.name, &self.jobs[&entry.name]);
            let path = home.join(format!("{name}.job"));
            let text = format!(
                "node='{name}'\nsystem='{}'\nasked='{}'\nenvironment='{}'\nverdict='{}'\ncode='{}'\nbefore() {{ {}; }}\n",
                entry.system.display(),
                home.join("asked").display(),
                home.join(format!("{name}.env")).display(),
                serde_json::to_string(&job.verdict).unwrap(),
                job.code,
                job.before,
            );
            std::fs::write(&path, text).unwrap();
            (name.clone(), path)
        };
        self.entries.iter().map(write).collect()
    }
}

impl Told {
    pub fn phases(&self) -> Vec<Phase> {
        self.collect(|event| match event {
            Event::PhaseStarted { phase, .. } => Some(*phase),
            _ => None,
        })
    }

    /// What was told of a node while it was deployed, and after.
    pub fn of_node(&self, name: &str) -> Vec<String> {
        self.collect(|event| match event {
            Event::NodeStep { node, detail } if node == name => Some(detail.clone()),
            Event::NodeFinished(report) if report.node == name => Some(format!("{:?}", report.verdict)),
            _ => None,
        })
    }

    pub fn warnings(&self) -> Vec<String> {
        self.collect(|event| match event {
            Event::Warning { message } => Some(message.clone()),
            _ => None,
        })
    }

    pub fn finished(&self) -> Vec<(String, Verdict)> {
        let mut finished: Vec<_> = self.collect(|event| match event {
            Event::NodeFinished(report) => Some((report.node.clone(), report.verdict.clone())),
            _ => None,
        });
        finished.sort_by(|one, two| one.0.cmp(&two.0));
        finished
    }

    fn collect<T>(&self, wanted: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        self.0.lock().unwrap().iter().filter_map(wanted).collect()
    }
}

impl Progress for Told {
    fn event(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// Verdicts of a report by node.
pub fn verdicts(report: &RunReport) -> Vec<(&str, &Verdict)> {
    report
        .nodes
        .iter()
        .map(|node| (node.node.as_str(), &node.verdict))
        .collect()
}

/// All files below a folder that contain a text.
pub fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(text) {
            found.push(path);
        }
    }
    found
}
