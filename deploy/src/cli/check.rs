//! `provisor check`: all that is wrong with a fleet, in one run.

use super::diagnostics::count;
use super::{Exit, Format, diagnostics, fleet, output};
use crate::setup::Setup;

pub(super) fn run(setup: &Setup, format: Format) -> Exit {
    let fleet = match fleet::open(&setup.fleet) {
        Ok(fleet) => fleet,
        Err(error) => return diagnostics::refuse(&error, &setup.fleet, format),
    };
    let warnings = fleet.warnings();
    diagnostics::show(&warnings, &fleet.files, &setup.fleet, format);
    let nodes = fleet.loaded.model.nodes().count();
    output::note(&format!(
        "the fleet is well: {}, {}, {}",
        count(nodes, "node"),
        count(fleet.resolution.grants().len(), "grant"),
        count(warnings.len(), "warning"),
    ));
    Exit::Done
}
