//! What a fleet is: the second stage. A [`Model`] has no dangling reference; who answers whom is not decided yet.

mod check;
pub mod component;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::diagnostic::{Diagnostic, Place, Report};
use crate::fleet::component::Component;
use crate::names::{
    ComponentName, EnvironmentName, FleetName, GroupName, NetworkName, NodeName, PolicyLabel, ProvisionName,
};
use crate::networks::Network;
use crate::pins::Pin;
use crate::raw::{self, FleetFiles};
use crate::resources::registry::{AnyPolicy, Resource};
use crate::routing::Override;

/// A fleet whose files are all well, and what to look at all the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The fleet.
    pub model: Model,
    /// Sorted by file and place.
    pub warnings: Vec<Diagnostic>,
}

/// Everything one inventory describes.
#[derive(Clone, Debug)]
pub struct Model {
    name: FleetName,
    networks: BTreeMap<NetworkName, Network>,
    environments: BTreeMap<EnvironmentName, Environment>,
    groups: BTreeMap<GroupName, Group>,
    nodes: BTreeMap<NodeName, Node>,
    components: BTreeMap<ComponentName, Component>,
    pins: BTreeMap<NodeName, BTreeMap<ProvisionName, Pin>>,
    backend: Option<(NodeName, u16)>,
}

/// A hosting provider or one operator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Group {
    /// Its name.
    pub name: GroupName,
    /// Whose policies answer its components' requests.
    pub environment: EnvironmentName,
    /// The group whose nodes answer what its own do not, by the cross-group route.
    pub hosting_provider: Option<GroupName>,
    /// Routing rows that it overrides.
    pub routing: BTreeMap<Resource, Override>,
    /// Its roster.
    pub nodes: BTreeSet<NodeName>,
}

/// One host.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Node {
    /// Deployment name, unique in the fleet.
    pub name: NodeName,
    /// The group whose roster lists it.
    pub group: GroupName,
    /// Bare address: a name, IPv4, or IPv6 without brackets.
    pub address: String,
    /// SSH port.
    pub port: u16,
    /// SSH user.
    pub user: String,
    /// Path of the private key on the machine that deploys.
    pub identity: Option<String>,
    /// `<type> <base64>`; absent where the first key seen is trusted.
    pub host_key: Option<String>,
    /// `Key=Value`, the node's before the fleet's: `ssh` takes the first.
    pub ssh_options: Vec<String>,
    /// Address in each network it is a member of.
    pub networks: BTreeMap<NetworkName, IpAddr>,
    /// Components assigned to it.
    pub components: BTreeSet<ComponentName>,
    /// Where its name is written.
    pub place: Place,
    assigned: BTreeMap<ComponentName, Place>,
}

/// Policies, at most one a resource.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Environment {
    /// By the resource they answer for.
    pub policies: BTreeMap<Resource, LabelledPolicy>,
    /// Routing rows that it overrides for its groups.
    pub routing: BTreeMap<Resource, Override>,
}

/// A policy under a label.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LabelledPolicy {
    /// The label.
    pub label: PolicyLabel,
    /// The policy.
    pub policy: AnyPolicy,
    /// Where it is written.
    pub place: Place,
}

/// Reads and checks the files of a fleet.
///
/// # Errors
///
/// Everything that is wrong in any of them, sorted by file and place: syntax, keys, values, and references.
pub fn load(files: &FleetFiles) -> Result<Loaded, Vec<Diagnostic>> {
    let report = RefCell::new(Report::default());
    let raw = raw::read(files, &report);
    let mut report = report.into_inner();
    let model = check::check(raw, &mut report);
    let (errors, warnings) = report.sorted();
    match model {
        Some(model) if errors.is_empty() => Ok(Loaded { model, warnings }),
        Some(_) | None => Err(errors),
    }
}

impl Model {
    /// Names the fleet's state.
    pub fn name(&self) -> &FleetName {
        &self.name
    }

    /// Every node, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// The node of that name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }

    /// Every group, by name.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.get(name)
    }

    /// Every component that has a file, by name, assigned or not.
    pub fn components(&self) -> impl Iterator<Item = &Component> {
        self.components.values()
    }

    /// The component of that name.
    pub fn component(&self, name: &str) -> Option<&Component> {
        self.components.get(name)
    }

    /// The environment of that name.
    pub fn environment(&self, name: &str) -> Option<&Environment> {
        self.environments.get(name)
    }

    /// Every network, by name.
    pub fn networks(&self) -> impl Iterator<Item = (&NetworkName, &Network)> {
        self.networks.iter()
    }

    /// Every pin, by the consumer's node, then by provision.
    pub fn pins(&self) -> impl Iterator<Item = &Pin> {
        self.pins.values().flat_map(BTreeMap::values)
    }

    /// The pin of a provision on a node, if there is one.
    pub fn pin(&self, node: &NodeName, provision: &ProvisionName) -> Option<&Pin> {
        self.pins.get(node)?.get(provision)
    }

    /// What the fleet's files say over the default row of `resource`: the group, or its environment.
    pub fn row<'a>(&'a self, group: &'a Group, resource: Resource) -> Option<&'a Override> {
        let of_environment = || self.environments.get(&group.environment)?.routing.get(&resource);
        group.routing.get(&resource).or_else(of_environment)
    }

    /// The node that holds the fleet's state, and the port that it serves it on, where the fleet holds its own.
    pub fn state_backend(&self) -> Option<(&Node, u16)> {
        let (node, port) = self.backend.as_ref()?;
        Some((self.nodes.get(node)?, *port))
    }
}

impl Node {
    /// Where `component` is assigned to the node, if it is.
    pub fn assigned_at(&self, component: &ComponentName) -> Option<&Place> {
        self.assigned.get(component)
    }
}

#[cfg(test)]
mod tests;
