//! `provisor show NODE`: what one node runs, writes, is granted, and takes from elsewhere.

use std::collections::BTreeMap;

use provisor_model::NodePlan;
use provisor_model::node_plan::FileKind;

use super::{Exit, Format, diagnostics, fleet, output};
use crate::setup::Setup;

pub(super) fn run(setup: &Setup, format: Format, node: &str) -> Exit {
    let fleet = match fleet::open(&setup.fleet) {
        Ok(fleet) => fleet,
        Err(error) => return diagnostics::refuse(&error, &setup.fleet, format),
    };
    let plans = fleet.resolution.plans(&BTreeMap::new());
    let Some(plan) = plans.get(node) else {
        return fleet.no_node(node);
    };
    match format {
        Format::Json => output::json(plan),
        Format::Text => output::data(&text(plan)),
    }
    Exit::Done
}

fn text(plan: &NodePlan) -> String {
    let networks = plan
        .networks
        .iter()
        .map(|(name, address)| format!("{name} {address}"));
    let files = plan.files.iter().map(|file| {
        let what = match file.kind {
            FileKind::Binding => "where",
            FileKind::Contributions => "what is contributed to",
        };
        format!(
            "{} ({what} {}, for {})",
            file.path, file.provision, file.component
        )
    });
    let grants = plan.grants.iter().map(|grant| {
        let paths: Vec<_> = grant.files.iter().map(|file| file.path.as_str()).collect();
        format!("{}: {}", grant.name, paths.join(", "))
    });
    let takes = plan.takes.iter().map(|take| {
        format!(
            "{} for {}, from {} at {}",
            take.provision, take.component, take.from, take.host
        )
    });
    let sections = [
        ("networks", networks.collect::<Vec<_>>()),
        ("runs", plan.components.clone()),
        ("writes", files.collect()),
        ("is granted", grants.collect()),
        ("takes", takes.collect()),
    ];
    let mut lines = vec![format!("{} (group {})", plan.name, plan.group)];
    for (title, items) in sections {
        if !items.is_empty() {
            lines.push(format!("{title}:"));
            lines.extend(items.into_iter().map(|item| format!("  {item}")));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::testing::two_providers;
    use super::*;

    #[test]
    fn a_node_is_told_with_what_it_runs_writes_is_granted_and_takes() {
        let fleet = fleet::open(&two_providers().setup().fleet).unwrap();
        let plans = fleet.resolution.plans(&BTreeMap::new());
        insta::assert_snapshot!(text(&plans["desk"]), @"
        desk (group alice)
        networks:
          mesh 10.90.0.6
        runs:
          bash
          gitea
          keycloak
          zsh
        writes:
          /etc/gitea/database.json (where postgresql, for gitea)
          /etc/gitea/store.json (where garage, for gitea)
          /etc/keycloak/database.json (where postgresql, for keycloak)
        is granted:
          desk/gitea/garage/db-b/garage-b: /var/lib/provisor/credentials/taken/garage/desk/gitea/access-key-id, /var/lib/provisor/credentials/taken/garage/desk/gitea/secret-access-key
          desk/gitea/postgresql/db-b/postgres-b: /var/lib/provisor/credentials/taken/postgresql/desk/gitea/password
          desk/keycloak/postgresql/db-b/postgres-b: /var/lib/provisor/credentials/taken/postgresql/desk/keycloak/password
        takes:
          garage for gitea, from db-b/garage-b at db-b.mesh
          postgresql for gitea, from db-b/postgres-b at db-b.mesh
          route for gitea, from edge-b/traefik at edge-b.mesh
          postgresql for keycloak, from db-b/postgres-b at db-b.mesh
          route for keycloak, from edge-b/traefik at edge-b.mesh
        ");
    }
}
