//! Who receives what from whom.

use serde_json::json;

use crate::testing::two_providers;

#[test]
fn a_receiver_gets_every_contribution_with_where_it_came_from_and_how_to_reach_it() {
    let fleet = two_providers().edit(
        "pins.toml",
        "route = { node = \"edge-b\", component = \"traefik\" }",
        "route = { node = \"edge-a\", component = \"caddy\" }",
    );
    let plan = fleet.plan("edge-a");
    let [file] = plan.files.as_slice() else {
        panic!("{:?}", plan.files);
    };
    assert_eq!(file.path, "/etc/caddy/routes.json");
    let entry = |node: &str, address: &str, component: &str, domain: &str, port: u16| {
        json!({
            "from": { "node": node, "component": component },
            "host": format!("{node}.mesh"),
            "address": address,
            "value": { "domain": domain, "port": port },
        })
    };
    assert_eq!(
        file.content,
        json!({ "provision": "route", "contributions": [
            entry("desk", "10.90.0.6", "gitea", "git.example.test", 3000),
            entry("desk", "10.90.0.6", "keycloak", "login.example.test", 8080),
            entry("forge", "10.90.0.5", "gitea", "git.example.test", 3000),
            entry("forge", "10.90.0.5", "keycloak", "login.example.test", 8080),
        ] })
    );
    // The other receiver's file is there, with nothing in it.
    assert_eq!(
        fleet.plan("edge-b").files[0].content,
        json!({ "provision": "route", "contributions": [] })
    );
}

#[test]
fn a_contribution_from_the_same_machine_is_received_too() {
    let fleet = two_providers()
        .edit("fleet.toml", "\"wiki\", \"bash\"", "\"wiki\", \"caddy\", \"bash\"")
        .edit("pins.toml", "[forge]\n", "[forge]\n#")
        .edit(
            "pins.toml",
            "route = { node = \"edge-a\", component = \"caddy\" }",
            "route = { node = \"forge\", component = \"caddy\" }\npostgresql = { node = \"db-a\", component = \"postgres-a\" }",
        );
    let plan = fleet.plan("forge");
    let file = plan
        .files
        .iter()
        .find(|file| file.path == "/etc/caddy/routes.json")
        .unwrap();
    let first = &file.content["contributions"][0];
    assert_eq!(
        (&first["host"], &first["from"]["component"]),
        (&json!("localhost"), &json!("gitea"))
    );
    assert_eq!(file.content["contributions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_contribution_to_a_provider_that_receives_none_is_refused() {
    let fleet = two_providers().edit("components/caddy.toml", "receives.route", "#");
    let errors = fleet.resolve_errors();
    assert!(
        errors.contains("error[model::nobody-receives]: `forge/gitea` contributes to `route`, and `edge-a/caddy`, which answers it, receives nothing"),
        "{errors}"
    );
    assert!(!errors.contains("traefik"), "{errors}");
}

#[test]
fn what_is_contributed_to_is_required_and_what_is_received_for_is_provided() {
    let errors = two_providers()
        .edit("components/gitea.toml", "contributes.route", "contributes.rout")
        .edit("components/caddy.toml", "receives.route", "receives.postgresql")
        .load_errors();
    for line in [
        "`gitea` contributes to `rout`, which is not among what it requires",
        "`caddy` receives for `postgresql`, which is not among what it provides",
    ] {
        assert!(errors.contains(line), "{line}\n{errors}");
    }
}
