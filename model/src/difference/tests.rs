//! What a changed pin changes, and what stops when a node leaves.

use super::*;
use crate::testing::{two_of_everything, two_providers};

fn moved() -> crate::FleetFiles {
    two_providers().edit(
        "pins.toml",
        "postgresql = { node = \"db-a\", component = \"postgres-a\" }",
        "postgresql = { node = \"db-b\", component = \"postgres-b\" }",
    )
}

#[test]
fn nothing_is_other_than_itself() {
    let resolution = two_providers().resolution();
    assert_eq!(difference(&resolution, &resolution), Difference::default());
}

#[test]
fn a_changed_pin_moves_its_consumers_rotates_their_credentials_and_changes_their_files() {
    let difference = difference(&two_providers().resolution(), &moved().resolution());
    let moves: Vec<_> = difference
        .moves
        .iter()
        .map(|it| format!("{} {} {} {}", it.consumer, it.provision, it.from[0], it.to[0]))
        .collect();
    assert_eq!(
        moves,
        ["gitea", "keycloak", "wiki"]
            .map(|component| format!("forge/{component} postgresql db-a/postgres-a db-b/postgres-b"))
    );
    assert_eq!(
        difference.grants,
        ["gitea", "keycloak", "wiki"].map(|component| GrantChange::Rotated {
            from: format!("forge/{component}/postgresql/db-a/postgres-a"),
            to: format!("forge/{component}/postgresql/db-b/postgres-b"),
        })
    );
    let files: Vec<_> = difference
        .files
        .iter()
        .map(|it| (it.path.as_str(), it.change))
        .collect();
    assert_eq!(
        files,
        [
            ("/etc/gitea/database.json", Change::Changed),
            ("/etc/keycloak/database.json", Change::Changed),
            ("/etc/wiki/database.json", Change::Changed),
        ]
    );
    // Both servers, and the node that moved; nobody else.
    assert_eq!(difference.plans, ["db-a", "db-b", "forge"]);
}

#[test]
fn a_component_that_leaves_takes_its_credentials_and_files_along() {
    let without = two_providers().edit("fleet.toml", "\"wiki\", ", "");
    let difference = difference(&two_providers().resolution(), &without.resolution());
    assert_eq!(
        difference.grants,
        ["garage/db-a/garage-a", "postgresql/db-a/postgres-a"].map(|rest| GrantChange::Discarded {
            grant: format!("forge/wiki/{rest}"),
        })
    );
    assert!(difference.moves.iter().all(|it| it.to.is_empty()));
    assert_eq!(difference.files.len(), 1);
    assert_eq!(difference.files[0].change, Change::Removed);
}

#[test]
fn what_takes_from_a_node_that_leaves_stops_and_then_what_takes_from_that() {
    let told = |fleet: &crate::FleetFiles, node: &str| -> Vec<String> {
        let stops = stops(&fleet.resolution(), node).into_iter();
        stops
            .map(|it| format!("{} {} {} {}", it.step, it.consumer, it.provision, it.provider))
            .collect()
    };
    assert_eq!(
        told(&two_of_everything(), "backend"),
        [
            "1 app/website resolver backend/resolver",
            "1 proxy/proxy resolver backend/resolver",
            "2 app/webmail route proxy/proxy",
            "2 app/website route proxy/proxy",
            "2 site/webmail route proxy/proxy",
        ]
    );
    assert!(told(&two_of_everything(), "site").is_empty());
}

#[test]
fn two_that_take_from_each_other_stop_once() {
    let peer = "requires = [\"peer\"]\nprovides = [{ name = \"peer\", scope = \"mesh\" }]\n";
    let fleet = two_of_everything()
        .with("components/peer.toml", peer)
        .edit(
            "fleet.toml",
            "components = [\"proxy\"]",
            "components = [\"proxy\", \"peer\"]",
        )
        .edit(
            "fleet.toml",
            "components = [\"webmail\"]",
            "components = [\"webmail\", \"peer\"]",
        );
    let stops = stops(&fleet.resolution(), "proxy");
    let of_peer: Vec<_> = stops.iter().filter(|stop| stop.provision == "peer").collect();
    assert_eq!(of_peer.len(), 1, "{stops:?}");
}
