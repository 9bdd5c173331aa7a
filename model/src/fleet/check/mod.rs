//! What is written becomes a fleet: references are followed, and what must be unique is.
//!
//! Checks go on after a mistake, over what could be read. What was reported already is not reported as missing.

mod components;
mod groups;
mod nodes;
mod pins;
mod routing;

use std::collections::BTreeMap;

use self::groups::Offers;
use super::Model;
use crate::diagnostic::Report;
use crate::names::NetworkName;
use crate::networks::Network;
use crate::raw::Raw;

/// The fleet, as far as it is one; mistakes go to the report.
pub(super) fn check(raw: Raw, report: &mut Report) -> Option<Model> {
    let Raw {
        fleet,
        components,
        pins: raw_pins,
        known_components,
        all_provisions_known,
    } = raw;
    let components: BTreeMap<_, _> = components
        .into_iter()
        .map(|(name, raw)| (name, raw.component))
        .collect();
    components::scopes(&components, report);
    components::own(&components, report);
    components::grants(&components, report);
    if all_provisions_known {
        components::required_provisions(&components, report);
    }
    let fleet = fleet?;
    components::unused(&components, &fleet, report);
    let readable = all_provisions_known.then_some(&components);
    routing::hosting_providers(&fleet, report);
    routing::overrides(&fleet, readable, report);
    let known = pins::Known {
        fleet: &fleet,
        components: &known_components,
        provisions: readable.map(pins::provisions),
    };
    let pins = pins::pins(raw_pins, &known, report);
    let environments = groups::environments(&fleet, report);
    let groups = groups::groups(&fleet, report);
    let nodes = nodes::nodes(&fleet, &known_components, report);
    let backend = groups::backend(
        &fleet,
        &Offers {
            components: &components,
            all_known: all_provisions_known,
        },
        report,
    );
    let network = |(name, network): (&NetworkName, &Option<Network>)| Some((name.clone(), network.clone()?));
    let networks = fleet.networks.iter().filter_map(network).collect();
    Some(Model {
        name: fleet.name?,
        networks,
        environments,
        groups,
        nodes,
        components,
        pins,
        backend,
    })
}
