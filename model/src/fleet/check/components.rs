//! Components, and the names they provide and require.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Report, code};
use crate::fleet::component::{Component, Scope};
use crate::names::ComponentName;
use crate::near::did_you_mean;
use crate::raw::fleet::RawFleet;

/// A requirement is a name, so that one name has one scope.
pub(super) fn scopes(components: &BTreeMap<ComponentName, Component>, report: &mut Report) {
    let mut first = BTreeMap::new();
    for component in components.values() {
        for (name, provision) in &component.provides {
            let (other, other_provision) = *first.entry(name).or_insert((&component.name, provision));
            if other_provision.scope == provision.scope {
                continue;
            }
            let message = format!(
                "`{}` provides `{name}` in the scope {}, and `{other}` in the scope {}",
                component.name, provision.scope, other_provision.scope
            );
            let help = "give both the same scope, or one of them another name";
            report.add(
                Diagnostic::error(code::SCOPE_CONFLICT, message, help)
                    .at(&provision.place, format!("scope {}", provision.scope))
                    .at(&other_provision.place, format!("scope {}", other_provision.scope)),
            );
        }
    }
}

pub(super) fn required_provisions(components: &BTreeMap<ComponentName, Component>, report: &mut Report) {
    let provided: BTreeSet<_> = components
        .values()
        .flat_map(|component| component.provides.keys())
        .collect();
    for component in components.values() {
        for (name, place) in &component.requires {
            if provided.contains(name) {
                continue;
            }
            let message = format!(
                "`{}` requires `{name}`, which no component provides",
                component.name
            );
            let known = provided.iter().map(|name| name.as_str());
            let help = did_you_mean(
                name.as_str(),
                known,
                "add `provides` to a component, or remove the requirement",
            );
            report.add(Diagnostic::error(code::UNKNOWN_PROVISION, message, help).at(place, "not provided"));
        }
    }
}

/// A component that provides something on its host may be added by the resolver, so that it is not called unused.
pub(super) fn unused(components: &BTreeMap<ComponentName, Component>, fleet: &RawFleet, report: &mut Report) {
    let nodes = fleet.groups.values().flat_map(|group| group.nodes.values());
    let assigned: BTreeSet<_> = nodes
        .flat_map(|node| &node.components)
        .map(|sited| &sited.value)
        .collect();
    for component in components.values() {
        let on_host = component
            .provides
            .values()
            .any(|provision| provision.scope == Scope::Host);
        if assigned.contains(&component.name) || on_host {
            continue;
        }
        let message = format!("no node has the component `{}`", component.name);
        let help = "assign it in the `components` of a node, or remove its file";
        report.add(Diagnostic::warning(code::UNUSED_COMPONENT, message, help).at(&component.place, "unused"));
    }
}
