//! Nodes: their names, addresses, memberships and components.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::diagnostic::{Diagnostic, Place, Report, code};
use crate::fleet::Node;
use crate::names::{ComponentName, GroupName, NetworkName, NodeName};
use crate::near::did_you_mean;
use crate::raw::fleet::{RawFleet, RawNode, RawSsh};
use crate::raw::once;
use crate::raw::spot::Sited;

pub(super) fn nodes(
    fleet: &RawFleet,
    components: &BTreeSet<ComponentName>,
    report: &mut Report,
) -> BTreeMap<NodeName, Node> {
    let mut nodes = BTreeMap::new();
    let mut unique = Unique::default();
    for (group, raw_group) in &fleet.groups {
        for (name, raw) in &raw_group.nodes {
            unique.name(name, (group, &raw.place), report);
            unique.host(name, raw, port(fleet, raw), report);
            for (network, address) in &raw.networks {
                unique.member(name, network, address, report);
                membership(fleet, name, network, address, report);
            }
            for component in &raw.components {
                assignment(components, name, component, report);
            }
            let node = node(fleet, group, name, raw, report);
            nodes.extend(node.map(|node| (name.clone(), node)));
        }
    }
    nodes
}

/// What is written of the node, over what is written for all.
fn node(
    fleet: &RawFleet,
    group: &GroupName,
    name: &NodeName,
    raw: &RawNode,
    report: &mut Report,
) -> Option<Node> {
    let RawSsh {
        user,
        identity,
        options,
        port: _,
    } = &fleet.ssh;
    let assigned = once(raw.components.clone(), |diagnostic| report.add(diagnostic));
    Some(Node {
        name: name.clone(),
        group: group.clone(),
        address: raw.address.clone()?.value,
        port: port(fleet, raw),
        user: raw
            .user
            .as_ref()
            .or(user.as_ref())
            .map_or("root", String::as_str)
            .to_owned(),
        identity: raw.identity.as_ref().or(identity.as_ref()).cloned(),
        host_key: raw.host_key.clone(),
        ssh_options: raw.ssh_options.iter().chain(options).cloned().collect(),
        networks: raw
            .networks
            .iter()
            .map(|(name, address)| (name.value.clone(), address.value))
            .collect(),
        components: assigned.keys().cloned().collect(),
        place: raw.place.clone(),
        assigned,
    })
}

fn port(fleet: &RawFleet, raw: &RawNode) -> u16 {
    raw.port.or(fleet.ssh.port).unwrap_or(22)
}

fn membership(
    fleet: &RawFleet,
    node: &NodeName,
    network: &Sited<NetworkName>,
    address: &Sited<IpAddr>,
    report: &mut Report,
) {
    let name = &network.value;
    match fleet.networks.get(name) {
        None => {
            let message = format!("the node `{node}` is in the network `{name}`, which is not declared");
            let known = fleet.networks.keys().map(NetworkName::as_str);
            let help = did_you_mean(name.as_str(), known, &format!("declare it: `[networks.{name}]`"));
            report.add(
                Diagnostic::error(code::UNKNOWN_NETWORK, message, help).at(&network.place, "unknown network"),
            );
        }
        Some(Some(declared)) if !declared.cidr.contains(address.value) => {
            let message = format!("the network `{name}` does not hold `{}`", address.value);
            let help = format!("write an address of `{}`", declared.cidr);
            report.add(
                Diagnostic::error(code::OUTSIDE_NETWORK, message, help)
                    .at(&address.place, "outside the network")
                    .at(&declared.place, "the network's range"),
            );
        }
        // Declared and well, or declared and reported.
        Some(Some(_) | None) => {}
    }
}

fn assignment(
    components: &BTreeSet<ComponentName>,
    node: &NodeName,
    component: &Sited<ComponentName>,
    report: &mut Report,
) {
    let Sited { value: name, place } = component;
    if components.contains(name) {
        return;
    }
    let message = format!("the node `{node}` has the component `{name}`, which has no file");
    let help = did_you_mean(
        name.as_str(),
        components.iter().map(ComponentName::as_str),
        &format!("write `components/{name}.toml`"),
    );
    report.add(Diagnostic::error(code::UNKNOWN_COMPONENT, message, help).at(place, "unknown component"));
}

/// Who was first, for what only one node may have.
#[derive(Default)]
struct Unique<'a> {
    names: BTreeMap<&'a NodeName, (&'a GroupName, &'a Place)>,
    hosts: BTreeMap<(String, u16), (&'a NodeName, &'a Place)>,
    members: BTreeMap<(&'a NetworkName, IpAddr), (&'a NodeName, &'a Place)>,
}

impl<'a> Unique<'a> {
    fn name(&mut self, name: &'a NodeName, (group, place): (&'a GroupName, &'a Place), report: &mut Report) {
        if let Some((other, first)) = first(&mut self.names, name, (group, place)) {
            let message = format!("two groups have a node `{name}`");
            let help = "rename one of the two: a host is known by its deployment name in the whole fleet";
            report.add(
                Diagnostic::error(code::NODE_NAMED_TWICE, message, help)
                    .at(place, format!("in the group `{group}`"))
                    .at(first, format!("in the group `{other}`")),
            );
        }
    }

    fn host(&mut self, node: &'a NodeName, raw: &'a RawNode, port: u16, report: &mut Report) {
        let Some(Sited { value, place }) = &raw.address else {
            return;
        };
        if let Some(other) = first(&mut self.hosts, (value.to_ascii_lowercase(), port), (node, place)) {
            let what = format!("the address `{value}` and the port {port}");
            report.add(taken(&what, (node, place), other));
        }
    }

    fn member(
        &mut self,
        node: &'a NodeName,
        network: &'a Sited<NetworkName>,
        address: &'a Sited<IpAddr>,
        report: &mut Report,
    ) {
        let key = (&network.value, address.value);
        if let Some(other) = first(&mut self.members, key, (node, &address.place)) {
            let what = format!("`{}` in the network `{}`", address.value, network.value);
            report.add(taken(&what, (node, &address.place), other));
        }
    }
}

/// The first value of the key, unless this is it.
fn first<K: Ord, V: Copy>(seen: &mut BTreeMap<K, V>, key: K, value: V) -> Option<V> {
    match seen.entry(key) {
        Entry::Occupied(first) => Some(*first.get()),
        Entry::Vacant(free) => {
            free.insert(value);
            None
        }
    }
}

fn taken(what: &str, (node, place): (&NodeName, &Place), (other, first): (&NodeName, &Place)) -> Diagnostic {
    let message = format!("two nodes have {what}: `{other}` and `{node}`");
    Diagnostic::error(code::ADDRESS_TAKEN, message, "give each node its own")
        .at(place, format!("of `{node}`"))
        .at(first, format!("of `{other}`"))
}
