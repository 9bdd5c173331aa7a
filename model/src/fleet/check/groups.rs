//! Environments, the groups that have them, and the group that holds its own state backend.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Report, code};
use crate::fleet::component::{Component, STATE_BACKEND, Serves};
use crate::fleet::{Environment, Group, LabelledPolicy};
use crate::names::{ComponentName, EnvironmentName, GroupName, NodeName};
use crate::near::did_you_mean;
use crate::raw::fleet::{RawEnvironment, RawFleet, RawGroup, RawNode};
use crate::raw::spot::Sited;

pub(super) fn environments(fleet: &RawFleet, report: &mut Report) -> BTreeMap<EnvironmentName, Environment> {
    fleet
        .environments
        .iter()
        .map(|(name, raw)| (name.clone(), environment(name, raw, report)))
        .collect()
}

fn environment(name: &EnvironmentName, raw: &RawEnvironment, report: &mut Report) -> Environment {
    let mut policies: BTreeMap<_, LabelledPolicy> = BTreeMap::new();
    for raw in &raw.policies {
        let (resource, place) = (raw.located.resource, &raw.located.place);
        if let Some(first) = policies.get(&resource) {
            let message = format!(
                "the environment `{name}` has two policies for `{resource}`: under `{}` and `{}`",
                first.label, raw.label
            );
            let help = "keep one of the two, or give one of the groups an environment of its own";
            report.add(
                Diagnostic::error(code::TWO_POLICIES, message, help)
                    .at(place, format!("under `{}`", raw.label))
                    .at(&first.place, format!("under `{}`", first.label)),
            );
            continue;
        }
        let labelled = |policy| LabelledPolicy {
            label: raw.label.clone(),
            policy,
            place: place.clone(),
        };
        policies.extend(
            raw.located
                .value
                .clone()
                .map(|policy| (resource, labelled(policy))),
        );
    }
    Environment {
        policies,
        routing: raw.routing.clone(),
    }
}

pub(super) fn groups(fleet: &RawFleet, report: &mut Report) -> BTreeMap<GroupName, Group> {
    let mut groups = BTreeMap::new();
    for (name, raw) in &fleet.groups {
        let Some(environment) = &raw.environment else {
            continue;
        };
        if !fleet.environments.contains_key(&environment.value) {
            report.add(unknown_environment(fleet, name, environment));
        }
        let nodes = raw.nodes.keys().cloned().collect();
        groups.insert(
            name.clone(),
            Group {
                name: name.clone(),
                environment: environment.value.clone(),
                hosting_provider: raw.hosting_provider.as_ref().map(|host| host.value.clone()),
                routing: raw.routing.clone(),
                nodes,
            },
        );
    }
    groups
}

fn unknown_environment(
    fleet: &RawFleet,
    group: &GroupName,
    environment: &Sited<EnvironmentName>,
) -> Diagnostic {
    let Sited { value, place } = environment;
    let known = fleet.environments.keys().map(EnvironmentName::as_str);
    let help = did_you_mean(
        value.as_str(),
        known,
        &format!("declare it: `[environments.{value}]`"),
    );
    let message = format!("the group `{group}` has the environment `{value}`, which is not declared");
    Diagnostic::error(code::UNKNOWN_ENVIRONMENT, message, help).at(place, "unknown environment")
}

/// The components that could be read, and whether all that they provide could be.
pub(super) struct Offers<'a> {
    pub(super) components: &'a BTreeMap<ComponentName, Component>,
    pub(super) all_known: bool,
}

/// The node that holds the state, and its port.
pub(super) fn backend(fleet: &RawFleet, offers: &Offers<'_>, report: &mut Report) -> Option<(NodeName, u16)> {
    let declared = fleet
        .groups
        .iter()
        .filter_map(|(name, raw)| Some((name, raw, raw.backend.as_ref()?)));
    let mut first: Option<(&GroupName, &Sited<NodeName>)> = None;
    let mut backend = None;
    for (group, raw, node) in declared {
        if let Some((other, first)) = first {
            report.add(
                Diagnostic::error(
                    code::SECOND_BACKEND,
                    format!("two groups name a state backend, `{other}` and `{group}`: a fleet's state is in one place"),
                    "keep the `backend` of one group",
                )
                .at(&node.place, format!("of the group `{group}`"))
                .at(&first.place, format!("of the group `{other}`")),
            );
        }
        let port = backend_port(group, raw, node, offers, report);
        first = first.or(Some((group, node)));
        backend = backend.or(port.map(|port| (node.value.clone(), port)));
    }
    backend
}

fn backend_port(
    group: &GroupName,
    raw: &RawGroup,
    node: &Sited<NodeName>,
    offers: &Offers<'_>,
    report: &mut Report,
) -> Option<u16> {
    let Sited { value: name, place } = node;
    let Some(raw_node) = raw.nodes.get(name) else {
        let message = format!("the group `{group}` has no node `{name}` to hold its state");
        let known = raw.nodes.keys().map(NodeName::as_str);
        let help = did_you_mean(name.as_str(), known, "add the node to this group");
        report.add(Diagnostic::error(code::UNKNOWN_NODE, message, help).at(place, "unknown node"));
        return None;
    };
    let components = offers.components;
    let port = assigned(raw_node, components).into_iter().find_map(served_port);
    if port.is_none()
        && offers.all_known
        && raw_node
            .components
            .iter()
            .all(|sited| components.contains_key(&sited.value))
    {
        let message = format!("no component of the node `{name}` provides `{STATE_BACKEND}`");
        let providers: Vec<_> = components
            .values()
            .filter(|it| served_port(it).is_some())
            .map(|it| format!("`{}`", it.name))
            .collect();
        let help = match providers.is_empty() {
            true => format!(
                "write a component with `provides = [{{ name = \"{STATE_BACKEND}\", scope = \"mesh\", serves = {{ \
                 port = 8080 }} }}]`, and assign it to the node"
            ),
            false => format!("assign one that does to the node: {}", providers.join(", ")),
        };
        report.add(Diagnostic::error(code::NOT_A_BACKEND, message, help).at(place, "not a state backend"));
    }
    port
}

fn assigned<'a>(node: &RawNode, components: &'a BTreeMap<ComponentName, Component>) -> Vec<&'a Component> {
    node.components
        .iter()
        .filter_map(|sited| components.get(&sited.value))
        .collect()
}

fn served_port(component: &Component) -> Option<u16> {
    component
        .provides
        .get(STATE_BACKEND)?
        .serves
        .as_ref()
        .and_then(Serves::port)
}
