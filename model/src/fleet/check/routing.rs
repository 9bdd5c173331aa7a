//! Hosting providers of groups, and overrides of routing rows.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Report, code};
use crate::fleet::component::Component;
use crate::names::{ComponentName, GroupName};
use crate::near::{did_you_mean, enumerate};
use crate::raw::fleet::RawFleet;
use crate::resources::registry::Resource;
use crate::routing::Override;

/// A group's hosting provider is another group.
pub(super) fn hosting_providers(fleet: &RawFleet, report: &mut Report) {
    for (name, raw) in &fleet.groups {
        let Some(host) = &raw.hosting_provider else {
            continue;
        };
        let others = fleet.groups.keys().filter(|group| *group != name);
        if &host.value != name && fleet.groups.contains_key(&host.value) {
            continue;
        }
        let message = match &host.value == name {
            true => format!("the group `{name}` names itself as its hosting provider"),
            false => format!(
                "the group `{name}` has the hosting provider `{}`, which is not declared",
                host.value
            ),
        };
        let none = "declare the hosting provider's group, or remove the line";
        let help = did_you_mean(host.value.as_str(), others.map(GroupName::as_str), none);
        report.add(Diagnostic::error(code::UNKNOWN_GROUP, message, help).at(&host.place, "no such group"));
    }
}

/// A row is overridden in one place, by a component that provides the resource.
pub(super) fn overrides(
    fleet: &RawFleet,
    components: Option<&BTreeMap<ComponentName, Component>>,
    report: &mut Report,
) {
    for (group, raw) in &fleet.groups {
        let environment = raw
            .environment
            .as_ref()
            .and_then(|environment| Some((&environment.value, fleet.environments.get(&environment.value)?)));
        for (resource, row) in &raw.routing {
            let other = environment.and_then(|(name, raw)| Some((name, raw.routing.get(resource)?)));
            if let Some((name, other)) = other {
                let message = format!(
                    "the row `{resource}` is overridden twice for the group `{group}`: by itself, and by its environment `{name}`"
                );
                let help = "keep one of the two: neither is stronger than the other";
                report.add(
                    Diagnostic::error(code::TWO_ROWS, message, help)
                        .at(&row.place, format!("for the group `{group}`"))
                        .at(&other.place, format!("for the environment `{name}`")),
                );
            }
        }
    }
    let of_groups = fleet.groups.values().flat_map(|group| &group.routing);
    let of_environments = fleet
        .environments
        .values()
        .flat_map(|environment| &environment.routing);
    for (resource, row) in of_groups.chain(of_environments) {
        if let Some(components) = components {
            provider(*resource, row, components, report);
        }
    }
}

fn provider(
    resource: Resource,
    row: &Override,
    components: &BTreeMap<ComponentName, Component>,
    report: &mut Report,
) {
    let Some((name, place)) = &row.provider else {
        return;
    };
    let provides = |component: &Component| component.provides.contains_key(resource.name());
    if components.get(name).is_some_and(provides) {
        return;
    }
    let providers: Vec<_> = components
        .values()
        .filter(|component| provides(component))
        .map(|component| component.name.as_str())
        .collect();
    let message = format!("the row `{resource}` names the component `{name}`, which does not provide it");
    let help = match providers.is_empty() {
        true => format!("write a component that provides `{resource}`, or remove the line"),
        false => format!("write one of those that do: {}", enumerate(providers)),
    };
    report.add(Diagnostic::error(code::UNKNOWN_COMPONENT, message, help).at(place, "not a provider"));
}
