//! Routing in a fleet: two groups with a hosting provider, two operators' own providers.

use super::*;

/// `gitea` on `app` and on `site` requires `provision`, which `one` and `two` provide. The hosting provider has `one` on
/// `backend`.
fn fleet(provision: &str) -> crate::FleetFiles {
    let provider = |port| {
        format!("provides = [{{ name = \"{provision}\", scope = \"mesh\", serves = {{ port = {port} }} }}]\n")
    };
    two_of_everything()
        .with("components/one.toml", &provider(1))
        .with("components/two.toml", &provider(2))
        .with(
            "components/gitea.toml",
            &format!("requires = [\"{provision}\"]\n"),
        )
        .edit("fleet.toml", "\"website\", \"webmail\"]", "\"gitea\"]")
        .edit(
            "fleet.toml",
            "components = [\"webmail\"]",
            "components = [\"gitea\"]",
        )
        .edit("fleet.toml", "\"resolver\"]", "\"resolver\", \"one\"]")
        .edit(
            "fleet.toml",
            "[groups.alice]\n",
            "[groups.alice]\nhosting_provider = \"hosting-provider\"\n",
        )
        .edit(
            "fleet.toml",
            "[groups.bob]\n",
            "[groups.bob]\nhosting_provider = \"hosting-provider\"\n",
        )
}

/// Who answers `gitea` on `app` and on `site`; `-` for nobody of the fleet.
fn answers(fleet: &crate::FleetFiles) -> Vec<String> {
    let resolution = fleet.resolution();
    let of_gitea = resolution
        .answers()
        .iter()
        .filter(|answer| answer.consumer.component.as_str() == "gitea");
    of_gitea
        .map(|answer| {
            let providers: Vec<_> = answer.providers.iter().map(|it| it.to_string()).collect();
            match providers.is_empty() {
                true => "-".to_owned(),
                false => providers.join(","),
            }
        })
        .collect()
}

#[test]
fn a_cross_group_route_leads_to_the_hosting_provider_and_to_no_other_operator() {
    for provision in ["oidc", "postgresql", "redis", "spiffe"] {
        assert_eq!(
            answers(&fleet(provision)),
            ["backend/one", "backend/one"],
            "{provision}"
        );
    }
    // The one provider is another operator's.
    let fleet = with_two_on_site(fleet("postgresql").edit("fleet.toml", ", \"one\"]", "]"));
    let errors = fleet.resolve_errors();
    assert!(
        errors.contains("`app/gitea` requires `postgresql`, and no node of the group `hosting-provider` has"),
        "{errors}"
    );
    assert!(
        errors.contains("`site/two` is no candidate: the route leads to the nodes of `hosting-provider`"),
        "{errors}"
    );
}

fn with_two_on_site(fleet: crate::FleetFiles) -> crate::FleetFiles {
    let text = &fleet.0["fleet.toml"];
    let at = text.rfind("[\"gitea\"]").unwrap();
    let text = format!("{}[\"gitea\", \"two\"]{}", &text[..at], &text[at + 9..]);
    fleet.with("fleet.toml", &text)
}

#[test]
fn a_group_s_own_spire_comes_before_the_hosting_provider_s() {
    let fleet = with_two_on_site(fleet("spiffe"));
    assert_eq!(answers(&fleet), ["backend/one", "site/two"]);
}

#[test]
fn a_database_of_the_group_s_own_beside_the_hosting_provider_s_is_for_a_person_to_choose() {
    let fleet = with_two_on_site(fleet("postgresql"));
    let errors = fleet.resolve_errors();
    assert!(
        errors
            .contains("`site/gitea` requires `postgresql`, and both `backend/one` and `site/two` provide it"),
        "{errors}"
    );
    let route = |route: &str| {
        fleet.clone().edit(
            "fleet.toml",
            "[groups.bob]\n",
            &format!("[groups.bob]\nrouting.postgresql.route = \"{route}\"\n"),
        )
    };
    assert_eq!(answers(&route("roster")), ["backend/one", "site/two"]);
    assert_eq!(answers(&route("cross-group")), ["backend/one", "backend/one"]);
    let pinned = fleet.with(
        "pins.toml",
        "[site]\npostgresql = { node = \"site\", component = \"two\" }\n",
    );
    assert_eq!(answers(&pinned), ["backend/one", "site/two"]);
}

#[test]
fn what_an_external_service_provides_needs_nobody_until_the_roster_has_it() {
    for provision in ["smtp", "dns", "netbox"] {
        let fleet = fleet(provision);
        assert_eq!(answers(&fleet), ["-", "-"], "{provision}");
        assert_eq!(
            answers(&with_two_on_site(fleet)),
            ["-", "site/two"],
            "{provision}"
        );
    }
}

#[test]
fn what_is_always_there_needs_nobody_and_is_answered_by_the_one_that_there_is() {
    for provision in ["garage", "ssl"] {
        let fleet = fleet(provision);
        assert_eq!(answers(&fleet), ["backend/one", "backend/one"], "{provision}");
        assert_eq!(
            answers(&fleet.edit("fleet.toml", ", \"one\"]", "]")),
            ["-", "-"],
            "{provision}"
        );
    }
}

#[test]
fn a_node_that_consumes_what_its_deployment_has_not_is_an_error_with_node_and_resource() {
    let fleet = with_two_on_site(fleet("ldap"));
    assert_lines(
        &fleet.resolve_errors(),
        r#"
        error[model::unprovided]: `app/gitea` requires `ldap`, so that the node `app` consumes the resource `ldap`, which the deployment of the group `alice` does not provide
          components/gitea.toml:1:13 "\"ldap\"": required here
          fleet.toml:32:44 "\"one\"": `backend/one` is no candidate: the route leads to the nodes of `alice`
          fleet.toml:59:24 "\"two\"": `site/two` is no candidate: the route leads to the nodes of `alice`
          help: assign one of `one`, `two` to a node of `alice`
        "#,
    );
}

#[test]
fn what_nobody_consumes_is_missed_by_nobody() {
    let fleet = fleet("ldap").edit("components/gitea.toml", "requires = [\"ldap\"]", "requires = []");
    assert!(answers(&fleet).is_empty());
}

#[test]
fn without_a_hosting_provider_the_error_says_how_to_name_one() {
    let fleet = fleet("redis").edit(
        "fleet.toml",
        "[groups.alice]\nhosting_provider = \"hosting-provider\"\n",
        "[groups.alice]\n",
    );
    let errors = fleet.resolve_errors();
    assert!(
        errors.starts_with("error[model::unprovided]: `app/gitea` requires `redis`"),
        "{errors}"
    );
    assert!(
        errors.contains("or name the group's `hosting_provider`"),
        "{errors}"
    );
}

#[test]
fn a_row_may_name_the_component_that_answers() {
    let two = fleet("postgresql").edit("fleet.toml", ", \"one\"]", ", \"one\", \"two\"]");
    let errors = two.resolve_errors();
    assert!(
        errors.contains("both `backend/one` and `backend/two` provide it"),
        "{errors}"
    );
    let row = "[environments.test.routing.postgresql]\nprovider = \"two\"\n\n[groups.hosting-provider]\n";
    let named = two.edit("fleet.toml", "[groups.hosting-provider]\n", row);
    assert_eq!(answers(&named), ["backend/two", "backend/two"]);
}

#[test]
fn two_overrides_of_one_row_are_refused_with_both_places() {
    let fleet = fleet("redis")
        .edit(
            "fleet.toml",
            "[groups.bob]\n",
            "[groups.bob]\nrouting.redis.route = \"roster\"\n",
        )
        .edit(
            "fleet.toml",
            "[groups.hosting-provider]\n",
            "[environments.test.routing.redis]\nroute = \"cross-group\"\n\n[groups.hosting-provider]\n",
        );
    let errors = fleet.load_errors();
    for line in [
        "error[model::two-rows]: the row `redis` is overridden twice for the group `bob`: by itself, and by its environment `test`",
        "\"redis\": for the group `bob`",
        "for the environment `test`",
    ] {
        assert!(errors.contains(line), "{line}\n{errors}");
    }
}

#[test]
fn a_row_against_a_pin_is_refused_with_both_places() {
    let pin = |node: &str, component: &str| {
        let pins = format!("[site]\npostgresql = {{ node = \"{node}\", component = \"{component}\" }}\n");
        with_two_on_site(fleet("postgresql")).with("pins.toml", &pins)
    };
    let row = |fleet: crate::FleetFiles, row: &str| {
        fleet.edit(
            "fleet.toml",
            "[groups.bob]\n",
            &format!("[groups.bob]\nrouting.postgresql.{row}\n"),
        )
    };
    for (fleet, contradicts) in [
        (row(pin("backend", "one"), "route = \"roster\""), true),
        (row(pin("site", "two"), "route = \"cross-group\""), true),
        (row(pin("backend", "one"), "provider = \"two\""), true),
        (row(pin("backend", "one"), "route = \"cross-group\""), false),
        (row(pin("site", "two"), "provider = \"two\""), false),
    ] {
        match crate::resolve(&fleet.model()) {
            Ok(_) => assert!(!contradicts),
            Err(errors) => {
                let codes: Vec<_> = errors.iter().map(|error| error.code).collect();
                assert!(contradicts, "{}", fleet.render(&errors));
                assert_eq!(codes, [code::ROW_AGAINST_PIN]);
                let files: Vec<_> = errors[0].labels.iter().map(|label| label.file.as_str()).collect();
                assert_eq!(files, ["components/gitea.toml", "pins.toml", "fleet.toml"]);
            }
        }
    }
}

#[test]
fn a_row_names_a_resource_of_the_table_and_one_of_its_routes_and_a_provider_of_it() {
    for (row, error) in [
        (
            "garage.route = \"roster\"",
            "error[model::no-row]: the provider table has no row `garage`",
        ),
        (
            "firewall.route = \"roster\"",
            "error[model::no-row]: the provider table has no row `firewall`",
        ),
        (
            "redis.route = \"external\"",
            "error[model::invalid-value]: `redis` has no route `external`",
        ),
        (
            "redis.route = \"roaster\"",
            "error[model::invalid-value]: `roaster` is not a route",
        ),
        (
            "redis.provider = \"gitea\"",
            "error[model::unknown-component]: the row `redis` names the component `gitea`",
        ),
    ] {
        let fleet = fleet("redis").edit(
            "fleet.toml",
            "[groups.bob]\n",
            &format!("[groups.bob]\nrouting.{row}\n"),
        );
        let errors = fleet.load_errors();
        assert!(errors.starts_with(error), "{errors}");
    }
}

#[test]
fn a_hosting_provider_is_another_group_of_the_fleet() {
    for (host, message) in [
        (
            "hosting-porvider",
            "has the hosting provider `hosting-porvider`, which is not declared",
        ),
        ("bob", "the group `bob` names itself as its hosting provider"),
    ] {
        let fleet = fleet("redis").edit(
            "fleet.toml",
            "[groups.bob]\nhosting_provider = \"hosting-provider\"",
            &format!("[groups.bob]\nhosting_provider = \"{host}\""),
        );
        let errors = fleet.load_errors();
        assert!(errors.contains(message), "{errors}");
    }
}
