//! What a binding file says, and where there is none.

use serde_json::json;

use crate::testing::two_providers;

#[test]
fn a_binding_says_what_is_served_by_which_machine_and_what_it_is_called_on_the_network() {
    let plan = two_providers().plan("forge");
    let file = plan
        .files
        .iter()
        .find(|file| file.path == "/etc/gitea/database.json")
        .unwrap();
    let why = "this file carries no credential: it is part of the node's plan and of the Nix store, which everybody on \
               the node can read; the credential is delivered apart, below \
               /var/lib/provisor/credentials/taken/postgresql/forge/gitea";
    assert_eq!(
        file.content,
        json!({
            "provision": "postgresql",
            "provider": { "node": "db-a", "component": "postgres-a" },
            "network": "mesh",
            "host": "db-a.mesh",
            "address": "10.90.0.1",
            "serves": { "port": 5432, "driver": "postgres" },
            "credential": null,
            "why_no_credential": why,
        })
    );
    // The credential is there, and the name leads to the address.
    assert!(plan.grants.iter().any(|grant| {
        grant.files[0].path == "/var/lib/provisor/credentials/taken/postgresql/forge/gitea/password"
    }));
    let hosts = plan
        .modules
        .iter()
        .find_map(|module| module.pointer("/networking/hosts/10.90.0.1"));
    assert_eq!(hosts, Some(&json!(["db-a.mesh"])));
}

#[test]
fn each_binding_of_each_component_is_a_file_of_its_own_and_a_module_writes_it() {
    let plan = two_providers().plan("forge");
    let paths: Vec<_> = plan.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/etc/gitea/database.json",
            "/etc/gitea/store.json",
            "/etc/keycloak/database.json",
            "/etc/wiki/database.json",
        ]
    );
    for file in &plan.files {
        let name = file.path.strip_prefix("/etc/").unwrap();
        let text = plan
            .modules
            .iter()
            .find_map(|module| module["environment"]["etc"][name]["text"].as_str())
            .unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(text).unwrap(),
            file.content
        );
    }
}

#[test]
fn what_the_same_machine_answers_writes_nothing_and_is_no_take() {
    let fleet = two_providers()
        .edit(
            "fleet.toml",
            "\"wiki\", \"bash\"",
            "\"wiki\", \"postgres-a\", \"bash\"",
        )
        .edit(
            "pins.toml",
            "postgresql = { node = \"db-a\", component = \"postgres-a\" }",
            "postgresql = { node = \"forge\", component = \"postgres-a\" }",
        );
    let plan = fleet.plan("forge");
    let paths: Vec<_> = plan.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["/etc/gitea/store.json"]);
    assert!(plan.takes.iter().all(|take| take.provision != "postgresql"));
    // The credential is needed all the same: one grant, with the files of both ends.
    let grant = plan
        .grants
        .iter()
        .find(|grant| grant.name.starts_with("forge/wiki/postgresql/"))
        .unwrap();
    assert_eq!(grant.files.len(), 2, "{grant:?}");
}

#[test]
fn another_provider_is_another_plan() {
    let moved = two_providers().edit(
        "pins.toml",
        "postgresql = { node = \"db-a\", component = \"postgres-a\" }",
        "postgresql = { node = \"db-b\", component = \"postgres-b\" }",
    );
    assert_ne!(two_providers().plan("forge"), moved.plan("forge"));
    assert_eq!(two_providers().plan("edge-a"), moved.plan("edge-a"));
}

#[test]
fn two_that_bind_one_path_on_a_node_are_both_named() {
    let fleet = two_providers().edit("components/wiki.toml", "/etc/wiki/", "/etc/gitea/");
    let errors = fleet.resolve_errors();
    assert!(
        errors.contains("on the node `forge`, `gitea` (its `binds` under `postgresql`) and `wiki` (its `binds` under `postgresql`) both write `/etc/gitea/database.json`"),
        "{errors}"
    );
}

#[test]
fn what_is_bound_is_required_and_below_etc() {
    let errors = two_providers()
        .edit("components/wiki.toml", "binds.postgresql", "binds.postgres")
        .load_errors();
    assert!(
        errors.contains(
            "error[model::not-its-own]: `wiki` binds `postgres`, which is not among what it requires"
        ),
        "{errors}"
    );
    assert!(
        errors.contains("help: write `postgresql`, if that is what you mean"),
        "{errors}"
    );
    let errors = two_providers()
        .edit("components/wiki.toml", "/etc/wiki/", "/etc/../wiki/")
        .load_errors();
    assert!(
        errors.contains("is not the path of a file below `/etc`"),
        "{errors}"
    );
}
