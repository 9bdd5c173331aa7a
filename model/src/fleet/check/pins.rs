//! Pins: all that they name must be there.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Report, code};
use crate::fleet::component::Component;
use crate::names::{ComponentName, NodeName, ProvisionName};
use crate::near::nearest;
use crate::pins::Pin;
use crate::raw::fleet::RawFleet;
use crate::raw::pins::RawPin;
use crate::raw::spot::Sited;

/// What pins may name.
pub(super) struct Known<'a> {
    pub(super) fleet: &'a RawFleet,
    pub(super) components: &'a BTreeSet<ComponentName>,
    /// `None` where not all that is provided could be read.
    pub(super) provisions: Option<BTreeSet<&'a str>>,
}

/// Every provision that some component provides.
pub(super) fn provisions(components: &BTreeMap<ComponentName, Component>) -> BTreeSet<&str> {
    components
        .values()
        .flat_map(|component| component.provides.keys())
        .map(ProvisionName::as_str)
        .collect()
}

/// The pins by node and provision; those that dangle go to the report.
pub(super) fn pins(
    raw: Vec<RawPin>,
    known: &Known<'_>,
    report: &mut Report,
) -> BTreeMap<NodeName, BTreeMap<ProvisionName, Pin>> {
    let nodes: BTreeSet<&str> = known
        .fleet
        .groups
        .values()
        .flat_map(|group| group.nodes.keys())
        .map(NodeName::as_str)
        .collect();
    let components: BTreeSet<&str> = known.components.iter().map(ComponentName::as_str).collect();
    let mut pins: BTreeMap<NodeName, BTreeMap<_, _>> = BTreeMap::new();
    for pin in raw {
        let RawPin {
            consumer,
            provision,
            from,
            component,
        } = pin;
        let what = (consumer.value.as_str(), provision.value.as_str());
        named(what, ("node", &consumer), &nodes, report);
        named(what, ("node", &from), &nodes, report);
        if let Some(component) = &component {
            named(what, ("component", component), &components, report);
        }
        if let Some(provisions) = &known.provisions {
            named(what, ("provision", &provision), provisions, report);
        }
        let pin = Pin {
            consumer: consumer.value.clone(),
            provision: provision.value.clone(),
            from: from.value,
            component: component.map(|component| component.value),
            place: provision.place,
        };
        pins.entry(consumer.value)
            .or_default()
            .insert(provision.value, pin);
    }
    pins
}

fn named<T: AsRef<str>>(
    (node, provision): (&str, &str),
    (kind, sited): (&str, &Sited<T>),
    known: &BTreeSet<&str>,
    report: &mut Report,
) {
    let name = sited.value.as_ref();
    if known.contains(name) {
        return;
    }
    let message = format!(
        "the pin of `{provision}` on `{node}` names the {kind} `{name}`, which the fleet does not have"
    );
    let remove = "run `provisor pins --prune` to remove every pin that names what is gone";
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => format!("write `{near}`, if that is what you mean; or {remove}"),
        None => remove.to_owned(),
    };
    report.add(
        Diagnostic::error(code::DANGLING_PIN, message, help).at(&sited.place, format!("no such {kind}")),
    );
}
