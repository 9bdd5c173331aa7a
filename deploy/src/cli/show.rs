//! `provisor show NODE`: the plan of one node.

use std::collections::BTreeMap;

use super::{Exit, Format, diagnostics, fleet, output};
use crate::setup::Setup;

pub(super) fn run(setup: &Setup, format: Format, node: &str) -> Exit {
    let fleet = match fleet::open(&setup.fleet) {
        Ok(fleet) => fleet,
        Err(error) => return diagnostics::refuse(&error, &setup.fleet, format),
    };
    let plans = fleet.resolution.plans(&BTreeMap::new());
    match plans.get(node) {
        Some(plan) => {
            output::json(plan);
            Exit::Done
        }
        None => {
            let names: Vec<&str> = plans.keys().map(String::as_str).collect();
            output::error(&format!(
                "the fleet has no node `{node}`; its nodes are {}",
                names.join(", ")
            ));
            Exit::Refused
        }
    }
}
