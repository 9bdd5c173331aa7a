//! Components, and the names they provide and require.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Report, code};
use crate::fleet::component::{Component, Provision, Scope};
use crate::names::{ComponentName, ProvisionName};
use crate::near::{did_you_mean, nearest};
use crate::raw::fleet::RawFleet;
use crate::resources::registry::Resource;

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
            // What no component of the fleet provides may come by another route.
            if provided.contains(name) || Resource::contract_named(name.as_str()).is_some() {
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

/// A component binds and contributes to what it requires, and receives for what it provides.
pub(super) fn own(components: &BTreeMap<ComponentName, Component>, report: &mut Report) {
    for component in components.values() {
        let needs: BTreeSet<_> = component.needs.keys().collect();
        let provides: BTreeSet<_> = component.provides.keys().collect();
        let binds = component.binds.iter().map(|(name, file)| (name, &file.place));
        let contributes = component.contributes.iter().map(|(name, it)| (name, &it.place));
        let receives = component.receives.iter().map(|(name, file)| (name, &file.place));
        for (does, list, own, items) in [
            ("binds", "requires", &needs, binds.collect::<Vec<_>>()),
            ("contributes to", "requires", &needs, contributes.collect()),
            ("receives for", "provides", &provides, receives.collect()),
        ] {
            for (name, place) in items {
                if own.contains(name) {
                    continue;
                }
                let message = format!(
                    "`{}` {does} `{name}`, which is not among what it {list}",
                    component.name
                );
                let known = own.iter().map(|name| name.as_str());
                let help = match nearest(name.as_str(), known) {
                    Some(near) => format!("write `{near}`, if that is what you mean"),
                    None => format!("add it to `{list}`, or remove it here"),
                };
                report.add(Diagnostic::error(code::NOT_ITS_OWN, message, help).at(place, "not its own"));
            }
        }
    }
}

/// A role is named after its consumer, so that a component grants by one of its provisions only.
pub(super) fn grants(components: &BTreeMap<ComponentName, Component>, report: &mut Report) {
    for component in components.values() {
        let granting = |(_, provision): &(&ProvisionName, &Provision)| provision.grants.is_some();
        let mut granting = component.provides.iter().filter(granting);
        let Some((first, one)) = granting.next() else {
            continue;
        };
        for (name, other) in granting {
            let message = format!(
                "`{}` grants by `{first}` and by `{name}`, and a consumer of both would have one name at it twice",
                component.name
            );
            let help = "let one of the two grant, or provide the other by a component of its own";
            report.add(
                Diagnostic::error(code::GRANTS_TWICE, message, help)
                    .at(&other.place, format!("`{name}` grants"))
                    .at(&one.place, format!("`{first}` grants")),
            );
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
