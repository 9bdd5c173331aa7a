//! Trees of reasons, for answers and for refusals.

use super::*;
use crate::testing::{assert_lines, two_providers};

fn told(fleet: &crate::FleetFiles, node: &str, provision: &str) -> String {
    let trees = why(&fleet.model(), node, provision).unwrap();
    trees.iter().map(|tree| format!("{tree}\n")).collect()
}

#[test]
fn an_answer_is_told_with_its_ground_its_way_and_why_the_others_are_none() {
    assert_lines(
        &told(&two_providers(), "desk", "route"),
        r#"
        `desk/gitea` requires `route`: `edge-b/traefik` answers
          - a pin names it: `desk.route` in pins.toml
          - `edge-b/traefik` is assigned here: fleet.toml
          - `desk` reaches it as `edge-b.mesh` (10.90.0.4), by the network `mesh`
          - `edge-a/caddy` is no candidate: the pin names `edge-b/traefik`
        `desk/keycloak` requires `route`: `edge-b/traefik` answers
          - a pin names it: `desk.route` in pins.toml
          - `edge-b/traefik` is assigned here: fleet.toml
          - `desk` reaches it as `edge-b.mesh` (10.90.0.4), by the network `mesh`
          - `edge-a/caddy` is no candidate: the pin names `edge-b/traefik`
        "#,
    );
}

#[test]
fn a_refusal_is_told_by_the_same_tree_with_what_to_do() {
    let fleet = two_providers().with("pins.toml", "");
    assert_lines(
        &told(&fleet, "forge", "garage"),
        r#"
        `forge/gitea` requires `garage`, and both `db-a/garage-a` and `db-b/garage-b` provide it
          - `db-a/garage-a` is assigned here: fleet.toml
          - `db-b/garage-b` is assigned here: fleet.toml
          - to do: choose one: `provisor pin forge garage db-a garage-a` or `provisor pin forge garage db-b garage-b`
        `forge/wiki` requires `garage`, and both `db-a/garage-a` and `db-b/garage-b` provide it
          - `db-a/garage-a` is assigned here: fleet.toml
          - `db-b/garage-b` is assigned here: fleet.toml
          - to do: choose one: `provisor pin forge garage db-a garage-a` or `provisor pin forge garage db-b garage-b`
        "#,
    );
}

#[test]
fn what_was_added_is_told_back_to_what_is_assigned() {
    let fleet = two_providers()
        .edit(
            "fleet.toml",
            "components = [\"caddy\"]",
            "components = [\"caddy\", \"a\"]",
        )
        .with("components/a.toml", "requires = [\"b\"]\n")
        .with("components/b.toml", "requires = [\"c\"]\nprovides = [\"b\"]\n")
        .with("components/c.toml", "provides = [\"c\"]\n");
    assert_lines(
        &told(&fleet, "edge-a", "c"),
        r#"
        `edge-a/b` requires `c`: `edge-a/c` answers
          - it is on the node itself
          - `edge-a/b` is there because `a` requires this: components/a.toml
            - `edge-a/a` is assigned here: fleet.toml
          - `edge-a/c` is there because `b` requires this: components/b.toml
            - `edge-a/b` is there because `a` requires this: components/a.toml
            - `edge-a/a` is assigned here: fleet.toml
        "#,
    );
}

#[test]
fn what_nobody_asks_for_is_refused_with_the_near_name() {
    let model = two_providers().model();
    let error = why(&model, "frge", "route").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the fleet has no node `frge`; write `forge`, if that is what you mean"
    );
    let error = why(&model, "forge", "rout").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no component of `forge` requires `rout`; write `route`, if that is what you mean"
    );
}
