//! What a file may say. Each mistake with its place and what to do.

mod syntax;
mod tables;

use super::*;
use crate::testing::{assert_lines, two_of_everything};

#[test]
fn a_fleet_with_three_mistakes_shows_all_three_with_their_places() {
    let fleet = two_of_everything()
        .edit("fleet.toml", "port = 22\n", "prot = 22\n")
        .edit(
            "fleet.toml",
            "[\"website\", \"webmail\"]",
            "[\"webiste\", \"webmail\"]",
        )
        .edit(
            "components/webmail.toml",
            "\"mail.example.test\"\n\n",
            "\"Mail.example.test\"\n\n",
        );
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::invalid-value]: `Mail.example.test` is not a domain
          components/webmail.toml:4:10 "\"Mail.example.test\"": here
          help: write a DNS name in lower case, such as `app.example.test`: letters, digits and `-` between dots, without a dot at the end and without `*`
        error[model::unknown-field]: a node has no key `prot`
          fleet.toml:44:1 "prot": unknown key
          help: write `port`, if that is what you mean
        error[model::unknown-component]: the node `app` has the component `webiste`, which has no file
          fleet.toml:49:15 "\"webiste\"": unknown component
          help: write `website`, if that is what you mean
        "#,
    );
}

#[test]
fn a_generic_engine_is_refused_where_it_is_provided_and_where_it_is_required() {
    let fleet = two_of_everything()
        .with(
            "components/a.toml",
            "provides = [\"db\", { name = \"sql\", scope = \"mesh\" }]\n",
        )
        .with(
            "components/b.toml",
            "requires = [\"database\", \"sql-database\"]\n",
        );
    let errors = fleet.load_errors();
    for (place, name) in [
        ("a.toml:1:13", "db"),
        ("a.toml:1:28", "sql"),
        ("b.toml:1:13", "database"),
        ("b.toml:1:25", "sql-database"),
    ] {
        let expected = format!(
            "error[model::generic-engine]: the provision `{name}` does not say which engine it is\n  components/{place} "
        );
        assert!(errors.contains(&expected), "{errors}");
    }
    assert_eq!(errors.matches("error[").count(), 4, "{errors}");
    assert!(
        errors.contains("help: name the engine, such as `postgresql`"),
        "{errors}"
    );
}

#[test]
fn what_is_listed_twice_shows_both_places() {
    let fleet = two_of_everything()
        .edit("fleet.toml", "[\"proxy\"]", "[\"proxy\", \"proxy\"]")
        .with(
            "components/bash.toml",
            "requires = [\"php\", \"php\"]\nprovides = [\"shell\", { name = \"shell\" }]\n",
        );
    let errors = fleet.load_errors();
    for line in [
        "error[model::listed-twice]: `php` is listed twice",
        "components/bash.toml:1:20 \"\\\"php\\\"\": again here",
        "components/bash.toml:1:13 \"\\\"php\\\"\": first here",
        "error[model::listed-twice]: `shell` is listed twice",
        "error[model::listed-twice]: `proxy` is listed twice",
    ] {
        assert!(errors.contains(line), "{line}\n{errors}");
    }
}

#[test]
fn a_state_backend_is_provided_over_the_mesh_with_its_port() {
    for wrong in [
        "\"state-backend\"",
        "{ name = \"state-backend\", scope = \"mesh\" }",
        "{ name = \"state-backend\", scope = \"host\", serves = { port = 1 } }",
        "{ name = \"state-backend\", scope = \"mesh\", serves = { prot = 1 } }",
    ] {
        let file = format!("provides = [{wrong}]\n");
        let errors = two_of_everything()
            .with("components/state-backend.toml", &file)
            .load_errors();
        let message =
            "error[model::invalid-value]: `state-backend` is provided in the scope mesh, with the port";
        assert!(errors.starts_with(message), "{errors}");
    }
}

/// Every kind of table in the fleet files, but those of resources.
const TABLES: [&spot::Keys; 10] = [
    &fleet::FLEET,
    &fleet::SSH,
    &fleet::NETWORK,
    &fleet::ENVIRONMENT,
    &fleet::GROUP,
    &fleet::NODE,
    &component::COMPONENT,
    &component::PROVISION,
    &pins::PIN,
    &routing::ROW,
];

#[test]
fn every_key_of_every_table_is_documented() {
    let documentation = include_str!("../../../docs/fleet.md");
    let of_resources = crate::resources::registry::Resource::ALL
        .into_iter()
        .flat_map(|resource| resource.keys());
    for keys in TABLES.into_iter().chain(of_resources) {
        for key in keys.all {
            assert!(
                documentation.contains(&format!("| `{key}` |")),
                "the key `{key}` of {}",
                keys.of
            );
        }
    }
}

#[test]
fn the_documented_fleet_resolves() {
    let documentation = include_str!("../../../docs/fleet.md");
    let mut fleet = FleetFiles::default();
    for block in documentation.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        let file = text.lines().next().unwrap().strip_prefix("# ").unwrap();
        fleet = fleet.with(file, text);
    }
    let plans = fleet.resolution().plans(&BTreeMap::new());
    assert_eq!(plans.keys().collect::<Vec<_>>(), ["app", "backend"]);
    assert!(plans["backend"].state_backend.is_some());
}
