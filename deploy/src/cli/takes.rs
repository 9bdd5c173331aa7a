//! `provisor takes --from NODE`: who stops working when the node leaves.

use provisor_model::difference::{Stop, stops};

use super::{Exit, Format, diagnostics, fleet, output};
use crate::setup::Setup;

pub(super) fn run(setup: &Setup, format: Format, node: &str) -> Exit {
    let fleet = match fleet::open(&setup.fleet) {
        Ok(fleet) => fleet,
        Err(error) => return diagnostics::refuse(&error, &setup.fleet, format),
    };
    if fleet.loaded.model.node(node).is_none() {
        return fleet.no_node(node);
    }
    let stops = stops(&fleet.resolution, node);
    match format {
        Format::Json => output::json(&stops),
        Format::Text => output::data(&text(node, &stops)),
    }
    Exit::Done
}

fn text(node: &str, stops: &[Stop]) -> String {
    if stops.is_empty() {
        return format!("nobody takes anything from `{node}`");
    }
    let line = |stop: &Stop| {
        let Stop {
            step,
            consumer,
            provision,
            provider,
        } = stop;
        let lead = "  ".repeat(step.saturating_sub(1));
        format!("{lead}{consumer} loses {provision} of {provider}")
    };
    stops.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::testing::two_providers;
    use super::*;

    #[test]
    fn each_that_stops_is_a_line_with_what_it_loses() {
        let fleet = fleet::open(&two_providers().setup().fleet).unwrap();
        insta::assert_snapshot!(text("db-b", &stops(&fleet.resolution, "db-b")), @"
        desk/gitea loses garage of db-b/garage-b
        desk/gitea loses postgresql of db-b/postgres-b
        desk/keycloak loses postgresql of db-b/postgres-b
        ");
        assert_eq!(
            text("desk", &stops(&fleet.resolution, "desk")),
            "nobody takes anything from `desk`"
        );
    }
}
