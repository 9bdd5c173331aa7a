//! Links become plans: what each node runs, writes, is granted, and takes from others.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Link;
use super::mesh::Mesh;
use crate::contributions::Contributions;
use crate::diagnostic::Report;
use crate::fleet::Node;
use crate::grants::login;
use crate::names::NodeName;
use crate::node_plan::{End, Grant, NodePlan, Take, WrittenFile};
use crate::setup::Setup;
use crate::{bindings, networks, provisioners};

/// What the links put on one node.
#[derive(Default)]
struct Share {
    files: Vec<WrittenFile>,
    takes: Vec<Take>,
    grants: Vec<Grant>,
}

/// The plan of every node; what cannot be done goes to the report.
pub(super) fn plans<'a>(
    mesh: &Mesh<'a>,
    links: &[Link<'a>],
    report: &mut Report,
) -> BTreeMap<NodeName, NodePlan> {
    let mut shares: BTreeMap<&NodeName, Share> = BTreeMap::new();
    let mut contributions = Contributions::default();
    for link in links {
        let share = shares.entry(&link.need.node.name).or_default();
        share.takes.extend(take(link));
        share.files.extend(bindings::of_link(link));
        match login::of_link(link) {
            Ok(grants) => {
                for (node, grant) in grants {
                    shares.entry(node).or_default().grants.push(grant);
                }
            }
            Err(refusal) => report.add(refusal),
        }
        if let Err(refusal) = contributions.add(link) {
            report.add(refusal);
        }
    }
    let mut setup = Setup::new(mesh.model, report);
    let plan = |node: &'a Node| {
        let share = shares.remove(&node.name).unwrap_or_default();
        (
            node.name.clone(),
            plan(mesh, node, share, &contributions, &mut setup),
        )
    };
    mesh.model.nodes().map(plan).collect()
}

fn plan<'a>(
    mesh: &Mesh<'a>,
    node: &'a Node,
    share: Share,
    contributions: &Contributions<'a>,
    setup: &mut Setup<'a>,
) -> NodePlan {
    let Share {
        mut files,
        mut takes,
        mut grants,
    } = share;
    let components: Vec<_> = mesh.components(&node.name).collect();
    grants.sort();
    for component in &components {
        files.extend(contributions.files(node, component));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    takes.sort();
    let mut made = setup.node(node, &components);
    made.modules
        .extend(provisioners::modules(mesh.model, node, &components, &grants));
    made.modules.extend(hosts(&takes));
    made.modules.extend(files.iter().map(etc));
    grants.extend(made.claims.iter().map(|claim| claim.on(&node.name)));
    grants.sort();
    NodePlan {
        name: node.name.to_string(),
        group: node.group.to_string(),
        components: components
            .iter()
            .map(|component| component.name.to_string())
            .collect(),
        networks: node
            .networks
            .iter()
            .map(|(name, address)| (name.to_string(), address.to_string()))
            .collect(),
        modules: made.modules,
        files,
        takes,
        grants,
        state_backend: made.state_backend,
    }
}

fn take(link: &Link<'_>) -> Option<Take> {
    let offer = link.answer_from_elsewhere()?;
    let member = networks::shared(link.need.node, offer.node)?;
    Some(Take {
        component: link.need.component.name.to_string(),
        provision: link.need.provision.to_string(),
        from: End::new(&offer.node.name, &offer.component.name),
        network: member.network.to_string(),
        host: member.host_name(),
        address: member.address.to_string(),
    })
}

/// The names of the machines that are taken from.
fn hosts(takes: &[Take]) -> Option<Value> {
    let mut hosts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for take in takes {
        let names = hosts.entry(&take.address).or_default();
        if !names.contains(&take.host.as_str()) {
            names.push(&take.host);
        }
    }
    (!hosts.is_empty()).then(|| json!({ "networking": { "hosts": hosts } }))
}

/// `environment.etc` takes the path below `/etc`.
fn etc(file: &WrittenFile) -> Value {
    let name = file.path.strip_prefix("/etc/").unwrap_or(&file.path);
    json!({ "environment": { "etc": { name: { "text": format!("{:#}\n", file.content) } } } })
}
