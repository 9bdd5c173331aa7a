//! Pins: what a person chose is what happens, or nothing.

use super::*;
use crate::diagnostic::code;

/// The fleet with this pin of `postgresql` on `forge`.
fn pinned(provider: &str) -> FleetFiles {
    two_providers().edit(
        "pins.toml",
        "postgresql = { node = \"db-a\", component = \"postgres-a\" } # close by",
        &format!("postgresql = {provider}"),
    )
}

fn warnings(fleet: &FleetFiles) -> String {
    fleet.render(fleet.resolution().warnings())
}

#[test]
fn a_pin_is_for_every_component_of_its_node_and_for_no_other_node() {
    let answers = pinned("{ node = \"db-b\", component = \"postgres-b\" }").answers();
    for line in [
        "forge/gitea postgresql db-b/postgres-b",
        "forge/keycloak postgresql db-b/postgres-b",
        "forge/wiki postgresql db-b/postgres-b",
        "desk/gitea postgresql db-b/postgres-b",
    ] {
        assert!(answers.contains(&line.to_owned()), "{answers:?}");
    }
}

#[test]
fn without_a_pin_two_providers_are_refused_with_the_command_that_chooses_each() {
    let fleet = two_providers().edit(
        "pins.toml",
        "route = { node = \"edge-b\", component = \"traefik\" }\n",
        "",
    );
    assert_lines(
        &fleet.resolve_errors(),
        r#"
        error[model::ambiguous-provider]: `desk/gitea` requires `route`, and both `edge-a/caddy` and `edge-b/traefik` provide it
          components/gitea.toml:1:37 "\"route\"": required here
          fleet.toml:28:15 "\"caddy\"": `edge-a/caddy` is assigned here
          fleet.toml:33:15 "\"traefik\"": `edge-b/traefik` is assigned here
          help: choose one: `provisor pin desk route edge-a caddy` or `provisor pin desk route edge-b traefik`
        error[model::ambiguous-provider]: `desk/keycloak` requires `route`, and both `edge-a/caddy` and `edge-b/traefik` provide it
          components/keycloak.toml:1:27 "\"route\"": required here
          fleet.toml:28:15 "\"caddy\"": `edge-a/caddy` is assigned here
          fleet.toml:33:15 "\"traefik\"": `edge-b/traefik` is assigned here
          help: choose one: `provisor pin desk route edge-a caddy` or `provisor pin desk route edge-b traefik`
        "#,
    );
}

#[test]
fn two_providers_beside_the_consumer_are_a_choice_like_two_elsewhere() {
    let beside = two_providers()
        .edit(
            "fleet.toml",
            "\"wiki\", \"bash\", \"zsh\"]",
            "\"wiki\", \"bash\", \"zsh\", \"caddy\", \"traefik\"]",
        )
        .edit(
            "pins.toml",
            "route = { node = \"edge-a\", component = \"caddy\" }\n",
            "",
        );
    let errors = beside.resolve_errors();
    let all = "all of `edge-a/caddy`, `edge-b/traefik`, `forge/caddy`, `forge/traefik` provide it";
    assert!(errors.contains(all), "{errors}");
    assert!(
        errors.contains("`provisor pin forge route forge traefik`"),
        "{errors}"
    );
    let chosen = beside.edit(
        "pins.toml",
        "[forge]\n",
        "[forge]\nroute = { node = \"forge\", component = \"traefik\" }\n",
    );
    assert!(
        chosen
            .answers()
            .contains(&"forge/gitea route forge/traefik".to_owned())
    );
}

#[test]
fn a_pin_at_what_does_not_provide_is_refused_whatever_else_does() {
    for (provider, help) in [
        // The node provides, by another component: a near name, and a far one.
        (
            "{ node = \"db-a\", component = \"postgres-b\" }",
            "if `db-a/postgres-a` is meant: `provisor pin forge postgresql db-a postgres-a`",
        ),
        (
            "{ node = \"db-a\", component = \"garage-a\" }",
            "pin what provides it: `provisor pin forge postgresql db-a postgres-a` or `provisor pin forge postgresql db-b postgres-b`",
        ),
        // The node does not.
        (
            "{ node = \"edge-a\", component = \"caddy\" }",
            "or run `provisor unpin forge postgresql`",
        ),
        (
            "{ node = \"edge-a\" }",
            "or run `provisor unpin forge postgresql`",
        ),
    ] {
        let fleet = pinned(provider);
        let errors = resolve(&fleet.model()).unwrap_err();
        let text = fleet.render(&errors);
        assert!(
            errors.iter().all(|error| error.code == code::PIN_NOT_A_PROVIDER),
            "{text}"
        );
        assert_eq!(errors.len(), 3, "for each component that needs it: {text}");
        assert!(
            text.contains("pins.toml:3:1 \"postgresql\": pinned here"),
            "{text}"
        );
        assert!(text.contains(help), "{text}");
    }
    // With one other provider left in the fleet, too: it does not overrule the pin.
    let lone = pinned("{ node = \"edge-a\", component = \"caddy\" }").edit(
        "fleet.toml",
        "[\"postgres-a\", \"garage-a\"]",
        "[\"garage-a\"]",
    );
    assert_eq!(
        resolve(&lone.model()).unwrap_err()[0].code,
        code::PIN_NOT_A_PROVIDER
    );
}

#[test]
fn a_pin_without_its_component_is_taken_where_the_node_answers_once_and_left_where_it_answers_twice() {
    let once = pinned("{ node = \"db-b\" }");
    assert!(
        once.answers()
            .contains(&"forge/wiki postgresql db-b/postgres-b".to_owned())
    );
    assert_lines(
        &warnings(&once),
        r#"
        warning[model::incomplete-pin]: the pin of `postgresql` on `forge` names the node `db-b` and no component; `postgres-b` is the one that provides it there
          pins.toml:3:1 "postgresql": incomplete
          help: run `provisor pins --complete`, so that a second provider there is no question
        "#,
    );
    let twice = once.edit(
        "fleet.toml",
        "[\"postgres-b\", \"garage-b\"]",
        "[\"postgres-a\", \"postgres-b\", \"garage-b\"]",
    );
    let errors = twice.resolve_errors();
    assert!(
        errors.contains(
            "`forge/wiki` requires `postgresql`, and both `db-b/postgres-a` and `db-b/postgres-b` provide it"
        ),
        "{errors}"
    );
    assert!(
        !errors.contains("provisor pin forge postgresql db-a"),
        "only of the node that was chosen: {errors}"
    );
}

#[test]
fn a_pin_at_the_consumer_itself_is_refused_for_it_alone() {
    let fleet = two_providers()
        .with(
            "components/traefik.toml",
            "requires = [\"route\"]\nprovides = [{ name = \"route\", scope = \"mesh\" }]\n",
        )
        .edit("fleet.toml", "[\"traefik\"]", "[\"traefik\", \"wiki\"]")
        .with("components/wiki.toml", "requires = [\"route\"]\n")
        .edit("components/gitea.toml", "contributes.route", "#")
        .edit("components/keycloak.toml", "contributes.route", "#")
        .edit(
            "pins.toml",
            "[desk]\n",
            "[edge-b]\nroute = { node = \"edge-b\", component = \"traefik\" }\n[desk]\n",
        )
        .edit("pins.toml", "[forge]\n", "[forge] # wiki takes a route, too\n");
    let errors = fleet.resolve_errors();
    assert_eq!(errors.matches("error[").count(), 1, "{errors}");
    assert!(
        errors.contains("`edge-b/traefik` requires `route`, which is pinned to `edge-b/traefik`: the pin is for every component of the node"),
        "{errors}"
    );
}

#[test]
fn a_pin_of_what_a_host_answers_is_at_the_host() {
    let pin = |node: &str, component: &str| {
        two_providers().edit(
            "pins.toml",
            "[forge]\n",
            &format!("[forge]\nshell = {{ node = \"{node}\", component = \"{component}\" }}\n"),
        )
    };
    assert!(
        pin("forge", "zsh")
            .answers()
            .contains(&"forge/gitea shell forge/zsh".to_owned())
    );
    let errors = pin("desk", "zsh").resolve_errors();
    assert!(
        errors.contains("`forge/gitea` requires `shell` on its host, and it is pinned to `desk/zsh`"),
        "{errors}"
    );
}

#[test]
fn a_pin_that_decides_nothing_is_a_warning_that_says_why() {
    let route = "route = { node = \"edge-a\", component = \"caddy\" }\n";
    let fleet = two_providers()
        .edit("pins.toml", "[desk]\n", &format!("[db-a]\n{route}[desk]\n"))
        .edit("components/wiki.toml", ", \"garage\"]", "]")
        .edit("components/gitea.toml", "\"garage\", ", "")
        .edit(
            "components/gitea.toml",
            "binds.garage = \"/etc/gitea/store.json\"\n",
            "",
        );
    let warnings = warnings(&fleet);
    for line in [
        "the pin of `garage` on `forge` decides nothing: no component requires `garage`",
        "the pin of `route` on `db-a` decides nothing: none of those that require it is on the node: `gitea`, `keycloak`",
        "help: run `provisor unpin db-a route`",
    ] {
        assert!(warnings.contains(line), "{line}\n{warnings}");
    }
}

#[test]
fn a_pin_that_names_what_is_not_there_is_an_error_with_the_near_name() {
    for (from, to, message) in [
        (
            "[forge]",
            "[frge]",
            "names the node `frge`, which the fleet does not have",
        ),
        (
            "node = \"db-a\", component = \"postgres-a\"",
            "node = \"db-x\", component = \"postgres-a\"",
            "names the node `db-x`",
        ),
        (
            "component = \"caddy\"",
            "component = \"cady\"",
            "names the component `cady`",
        ),
        (
            "route = { node = \"edge-a\"",
            "routes = { node = \"edge-a\"",
            "names the provision `routes`",
        ),
    ] {
        let errors = two_providers().edit("pins.toml", from, to).load_errors();
        assert!(errors.starts_with("error[model::dangling-pin]: "), "{errors}");
        assert!(errors.contains(message), "{errors}");
        assert!(errors.contains("help: write `"), "{errors}");
        assert!(errors.contains("`provisor pins --prune`"), "{errors}");
    }
}

#[test]
fn a_provider_on_a_node_that_shares_no_network_is_refused_though_it_is_pinned() {
    let fleet = two_providers().edit("fleet.toml", "networks.mesh = \"10.90.0.1\"\n", "");
    let errors = resolve(&fleet.model()).unwrap_err();
    assert!(errors.iter().all(|error| error.code == code::NO_SHARED_NETWORK));
    assert_eq!(errors.len(), 5, "three databases and two stores");
}
