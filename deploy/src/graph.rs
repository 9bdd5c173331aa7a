//! Node entries become `main.tf.json`: one literal resource per node, whose triggers are literals and whose provisioner is
//! the SSH transport.
//!
//! Not `for_each`, which is quadratic in the expression it evaluates: 300 s to apply 1,000 nodes, against 4.3 s for literal
//! resources on the same machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::entry::{HostKey, NodeEntry};
use crate::workdir::{Cycle, STATE_FILE};

/// The graph of one group of nodes: what is deployed, and by which program.
#[derive(Clone, Debug)]
pub struct Graph<'a> {
    /// Name of the fleet or group; the last part of a derived state address.
    pub name: &'a str,
    /// The nodes, each name once.
    pub entries: &'a [NodeEntry],
    /// The node that serves this graph's own state, if one does (TF FR-007).
    pub backend_node: Option<BackendNode>,
    /// The program that deploys one node.
    pub transport: TransportCommand,
    /// The job file of each node, given to the transport.
    pub node_jobs: BTreeMap<String, PathBuf>,
}

/// The node of a graph that serves the graph's own state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendNode {
    /// Deployment name.
    pub node: String,
    /// Bare address at which deployers reach it.
    pub address: String,
    /// Port of the state backend.
    pub port: u16,
}

/// How the transport of one node is started: `PROGRAM ARGS… JOB`.
///
/// It gets `PROVISOR_RUN` (the run's id) and `PROVISOR_REPORTS` (a folder) from its environment, and writes
/// `<PROVISOR_REPORTS>/<node>.json`, a [`NodeReport`](crate::verdict::NodeReport).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportCommand {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// What stands before the job, such as `transport deploy`.
    pub args: Vec<String>,
}

/// Why there is no graph.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GraphError {
    /// Two entries of one name.
    #[error("two nodes are named {node}; give each a deployment name of its own")]
    Twice {
        /// The name.
        node: String,
    },
    /// A node without a job.
    #[error("node {node} has no transport job; build the fleet before its graph")]
    NoJob {
        /// The name.
        node: String,
    },
    /// The backend node is none of the nodes.
    #[error("the state backend's node {node} is not in the graph; name one of its nodes")]
    NoBackendNode {
        /// The name.
        node: String,
    },
}

/// The name of the output that maps each node to its deployed system.
pub const SYSTEMS_OUTPUT: &str = "systems";

/// Renders `main.tf.json` for one of the two folders; equal graphs give equal bytes.
pub fn render(graph: &Graph<'_>, shell: &Path, cycle: Cycle) -> Result<Vec<u8>, GraphError> {
    if let Some(BackendNode { node, .. }) = &graph.backend_node
        && graph.entries.iter().all(|entry| entry.name != *node)
    {
        return Err(GraphError::NoBackendNode { node: node.clone() });
    }
    let mut resources = BTreeMap::new();
    let mut systems = BTreeMap::new();
    for entry in graph.entries {
        let job = graph
            .node_jobs
            .get(&entry.name)
            .ok_or_else(|| GraphError::NoJob {
                node: entry.name.clone(),
            })?;
        let name = resource_name(&entry.name);
        systems.insert(
            literal(&entry.name),
            format!("${{terraform_data.{name}.triggers_replace.system}}"),
        );
        let resource = json!({
            "triggers_replace": triggers(entry),
            "provisioner": [{ "local-exec": provisioner(graph, shell, job) }],
        });
        if resources.insert(name, resource).is_some() {
            return Err(GraphError::Twice {
                node: entry.name.clone(),
            });
        }
    }
    let backend = match cycle {
        Cycle::Local => json!({ "local": { "path": format!("../{STATE_FILE}") } }),
        // Empty: what stands here would be written to disk, so address and credentials come by the environment.
        Cycle::Remote => json!({ "http": {} }),
    };
    let mut root = json!({
        "terraform": { "backend": backend },
        "output": { SYSTEMS_OUTPUT: { "value": systems } },
    });
    if !resources.is_empty() {
        root["resource"] = json!({ "terraform_data": resources });
    }
    Ok(format!("{root:#}\n").into_bytes())
}

/// The address of a node's resource, as OpenTofu's output names it.
pub fn resource_address(node: &str) -> String {
    format!("terraform_data.{}", resource_name(node))
}

/// An identifier for any name, and another one for another name: letters, digits and `-` stand for themselves (a letter
/// comes first), and every other byte is `_` and two hex digits.
fn resource_name(node: &str) -> String {
    let mut name = String::new();
    for (position, byte) in node.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => name.push(byte as char),
            b'0'..=b'9' | b'-' if position > 0 => name.push(byte as char),
            _ => name.push_str(&format!("_{byte:02X}")),
        }
    }
    name
}

/// Literals only, and nothing of this deployer: a second deployer replaces nothing.
fn triggers(entry: &NodeEntry) -> Value {
    let NodeEntry {
        name: _,
        system,
        address,
        port,
        user,
        host_key,
        ssh_options,
        grants,
        identity: _,
    } = entry;
    let host_key = match host_key {
        HostKey::Pinned(key) => literal(key),
        HostKey::TrustOnFirstUse => String::new(),
    };
    json!({
        "system": literal(&system.to_string_lossy()),
        "address": literal(address),
        "port": port,
        "user": literal(user),
        "host_key": host_key,
        "ssh_options": ssh_options.iter().map(|option| literal(option)).collect::<Vec<_>>(),
        "grants": grants.iter().map(|(grant, generation)| (literal(grant), *generation)).collect::<BTreeMap<_, _>>(),
    })
}

fn provisioner(graph: &Graph<'_>, shell: &Path, job: &Path) -> Value {
    let args: String = graph
        .transport
        .args
        .iter()
        .map(|arg| format!(" {}", quoted(arg)))
        .collect();
    json!({
        "interpreter": [literal(&shell.to_string_lossy()), "-c"],
        "command": literal(&format!("exec \"$PROVISOR_PROGRAM\"{args} \"$PROVISOR_JOB\"")),
        "environment": {
            "PROVISOR_PROGRAM": literal(&graph.transport.program.to_string_lossy()),
            "PROVISOR_JOB": literal(&job.to_string_lossy()),
            // A provisioner inherits OpenTofu's environment; the transport has no business with the backend.
            "TF_HTTP_USERNAME": "",
            "TF_HTTP_PASSWORD": "",
        },
        "quiet": true,
    })
}

/// Strings of a JSON configuration are templates.
fn literal(text: &str) -> String {
    text.replace("${", "$${").replace("%{", "%%{")
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> NodeEntry {
        NodeEntry {
            name: name.into(),
            system: format!("/nix/store/aaaa-{name}").into(),
            address: "192.0.2.1".into(),
            port: 22,
            user: "root".into(),
            host_key: HostKey::Pinned("ssh-ed25519 AAAA".into()),
            ssh_options: vec!["ConnectTimeout=10".into(), "Compression=yes".into()],
            grants: BTreeMap::from([("database".into(), 3)]),
            identity: Some("/home/alice/.ssh/id".into()),
        }
    }

    fn graph(entries: &[NodeEntry]) -> Graph<'_> {
        Graph {
            name: "prod",
            entries,
            backend_node: None,
            transport: TransportCommand {
                program: "/opt/provisor".into(),
                args: vec!["transport".into(), "deploy".into()],
            },
            node_jobs: entries
                .iter()
                .map(|entry| (entry.name.clone(), format!("/jobs/{}", entry.name).into()))
                .collect(),
        }
    }

    fn rendered(graph: &Graph<'_>, cycle: Cycle) -> Value {
        serde_json::from_slice(&render(graph, Path::new("/bin/sh"), cycle).unwrap()).unwrap()
    }

    #[test]
    fn a_node_is_one_literal_resource_with_literal_triggers() {
        let entries = [entry("forge")];
        let root = rendered(&graph(&entries), Cycle::Remote);
        assert_eq!(
            root["resource"]["terraform_data"]["forge"]["triggers_replace"],
            json!({
                "system": "/nix/store/aaaa-forge", "address": "192.0.2.1", "port": 22, "user": "root",
                "host_key": "ssh-ed25519 AAAA", "ssh_options": ["ConnectTimeout=10", "Compression=yes"],
                "grants": {"database": 3},
            })
        );
        assert_eq!(
            root["resource"]["terraform_data"]["forge"]["provisioner"][0]["local-exec"],
            json!({
                "interpreter": ["/bin/sh", "-c"],
                "command": "exec \"$PROVISOR_PROGRAM\" transport deploy \"$PROVISOR_JOB\"",
                "environment": {
                    "PROVISOR_PROGRAM": "/opt/provisor", "PROVISOR_JOB": "/jobs/forge",
                    "TF_HTTP_USERNAME": "", "TF_HTTP_PASSWORD": "",
                },
                "quiet": true,
            })
        );
    }

    #[test]
    fn the_deployers_own_paths_are_no_triggers() {
        let (one, mut two) = ([entry("forge")], [entry("forge")]);
        two[0].identity = Some("/elsewhere/key".into());
        let mut elsewhere = graph(&two);
        elsewhere.transport.program = "/elsewhere/provisor".into();
        elsewhere.node_jobs = BTreeMap::from([("forge".into(), "/elsewhere/job".into())]);
        let triggers = |graph: &Graph<'_>| {
            rendered(graph, Cycle::Remote)["resource"]["terraform_data"]["forge"]["triggers_replace"].clone()
        };
        assert_eq!(triggers(&graph(&one)), triggers(&elsewhere));
    }

    #[test]
    fn each_folder_has_its_backend_and_nothing_else_differs() {
        let entries = [entry("forge")];
        let (mut local, mut remote) = (
            rendered(&graph(&entries), Cycle::Local),
            rendered(&graph(&entries), Cycle::Remote),
        );
        assert_eq!(
            local["terraform"]["backend"].take(),
            json!({"local": {"path": "../terraform.tfstate"}})
        );
        assert_eq!(remote["terraform"]["backend"].take(), json!({"http": {}}));
        assert_eq!(local, remote);
    }

    #[test]
    fn templates_in_values_stay_text() {
        let mut entries = [entry("forge")];
        entries[0].ssh_options = vec!["ProxyCommand=${x} %{y}".into()];
        let root = rendered(&graph(&entries), Cycle::Remote);
        let option = &root["resource"]["terraform_data"]["forge"]["triggers_replace"]["ssh_options"][0];
        assert_eq!(option, "ProxyCommand=$${x} %%{y}");
    }

    #[test]
    fn arguments_are_quoted_for_the_shell() {
        assert_eq!(quoted("--state-home=/a/b"), "--state-home=/a/b");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn equal_graphs_give_equal_bytes() {
        let entries = [entry("b"), entry("a")];
        let bytes = || render(&graph(&entries), Path::new("/bin/sh"), Cycle::Local).unwrap();
        assert_eq!(bytes(), bytes());
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let entries = [entry("a"), entry("a")];
        let render = |graph: &Graph<'_>| render(graph, Path::new("/bin/sh"), Cycle::Local);
        assert_eq!(
            render(&graph(&entries)),
            Err(GraphError::Twice { node: "a".into() })
        );
        let entries = [entry("a")];
        let mut graph = graph(&entries);
        graph.node_jobs.clear();
        assert_eq!(render(&graph), Err(GraphError::NoJob { node: "a".into() }));
        graph.backend_node = Some(BackendNode {
            node: "b".into(),
            address: "192.0.2.1".into(),
            port: 80,
        });
        assert_eq!(
            render(&graph),
            Err(GraphError::NoBackendNode { node: "b".into() })
        );
    }

    proptest::proptest! {
        #[test]
        fn a_resource_name_is_an_identifier_and_injective(one in "[a-z0-9._-]{1,12}", two in "[a-z0-9._-]{1,12}") {
            let name = resource_name(&one);
            proptest::prop_assert!(name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'));
            proptest::prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
            proptest::prop_assert_eq!(one == two, name == resource_name(&two));
        }
    }
}
