//! Who answers whom.

mod faults;
mod order;
mod pins;
mod properties;

use super::*;
use crate::FleetFiles;
use crate::testing::{assert_lines, two_of_everything, two_providers};

fn answers(fleet: &FleetFiles) -> Vec<String> {
    fleet.answers()
}

#[test]
fn every_requirement_of_every_component_on_every_node_has_its_own_answer() {
    assert_eq!(
        answers(&two_of_everything()),
        [
            "app/php shell app/bash",
            "app/webmail route proxy/proxy",
            "app/webmail shell app/bash",
            "app/website php app/php",
            "app/website resolver backend/resolver",
            "app/website route proxy/proxy",
            "proxy/proxy resolver backend/resolver",
            "site/webmail route proxy/proxy",
            "site/webmail shell site/bash",
        ]
    );
}

#[test]
fn a_host_requirement_adds_the_one_component_that_provides_it_and_what_that_requires() {
    let plans = two_of_everything().resolution().plans(&BTreeMap::new());
    assert_eq!(plans["app"].components, ["bash", "php", "webmail", "website"]);
    assert_eq!(plans["site"].components, ["bash", "webmail"]);
}

#[test]
fn a_mesh_requirement_adds_nothing() {
    let plans = two_of_everything().resolution().plans(&BTreeMap::new());
    let with_proxy: Vec<_> = plans
        .values()
        .filter(|plan| plan.components.contains(&"proxy".to_owned()))
        .map(|plan| &plan.name)
        .collect();
    assert_eq!(with_proxy, ["proxy"]);
}

#[test]
fn a_host_requirement_is_answered_by_what_is_assigned_whatever_else_there_is() {
    let fleet = two_of_everything()
        .with("components/zsh.toml", "provides = [\"shell\"]\n")
        .edit(
            "fleet.toml",
            "[\"website\", \"webmail\"]",
            "[\"website\", \"webmail\", \"zsh\"]",
        )
        .edit(
            "fleet.toml",
            "components = [\"webmail\"]",
            "components = [\"webmail\", \"bash\"]",
        );
    let answers = answers(&fleet);
    assert!(
        answers.contains(&"app/webmail shell app/zsh".to_owned()),
        "{answers:?}"
    );
    assert!(
        answers.contains(&"site/webmail shell site/bash".to_owned()),
        "{answers:?}"
    );
}

#[test]
fn several_components_that_could_be_added_are_refused_with_all_of_them() {
    let fleet = two_of_everything()
        .with("components/zsh.toml", "provides = [\"shell\"]\n")
        .edit("components/website.toml", ", \"php\"", "");
    assert_lines(
        &fleet.resolve_errors(),
        r#"
        error[model::no-provider]: `app/webmail` requires `shell`, and no component of the node provides it
          components/webmail.toml:1:22 "\"shell\"": required here
          help: assign one of `bash`, `zsh` to the node `app`
        error[model::no-provider]: `site/webmail` requires `shell`, and no component of the node provides it
          components/webmail.toml:1:22 "\"shell\"": required here
          help: assign one of `bash`, `zsh` to the node `site`
        "#,
    );
}

#[test]
fn what_the_walk_adds_for_one_requirement_answers_another_that_several_could() {
    // `tools` is added because only it provides `pager`; then it is what provides `shell`, whoever was walked first.
    let fleet = two_of_everything()
        .with("components/tools.toml", "provides = [\"shell\", \"pager\"]\n")
        .edit("components/webmail.toml", "\"shell\"]", "\"shell\", \"pager\"]");
    let answers = answers(&fleet);
    assert!(
        answers.contains(&"site/webmail shell site/tools".to_owned()),
        "{answers:?}"
    );
    assert!(
        answers.contains(&"app/php shell app/tools".to_owned()),
        "{answers:?}"
    );
}

#[test]
fn several_plain_capabilities_of_a_host_are_no_choice() {
    let fleet = two_of_everything()
        .with("components/zsh.toml", "provides = [\"shell\"]\n")
        .edit(
            "fleet.toml",
            "components = [\"webmail\"]",
            "components = [\"webmail\", \"zsh\", \"bash\"]",
        )
        .edit(
            "fleet.toml",
            "[\"website\", \"webmail\"]",
            "[\"website\", \"webmail\", \"zsh\"]",
        );
    let answers = answers(&fleet);
    assert!(
        answers.contains(&"site/webmail shell site/bash,site/zsh".to_owned()),
        "{answers:?}"
    );
}

#[test]
fn several_of_a_host_that_serve_something_are_refused_with_all_of_them() {
    let second = "provides = [{ name = \"php\", serves = { socket = \"/run/other.sock\" } }]\n";
    let fleet = two_of_everything().with("components/php-2.toml", second).edit(
        "fleet.toml",
        "[\"website\", \"webmail\"]",
        "[\"website\", \"webmail\", \"php\", \"php-2\"]",
    );
    assert_lines(
        &fleet.resolve_errors(),
        r#"
        error[model::ambiguous-provider]: `app/website` requires `php`, and both `app/php` and `app/php-2` provide it
          components/website.toml:1:34 "\"php\"": required here
          fleet.toml:49:37 "\"php\"": `app/php` is assigned here
          fleet.toml:49:44 "\"php-2\"": `app/php-2` is assigned here
          help: choose one: `provisor pin app php app php` or `provisor pin app php app php-2`
        "#,
    );
}

#[test]
fn two_providers_in_the_fleet_are_refused_with_both_and_three_with_all() {
    let two = two_of_everything().edit(
        "fleet.toml",
        "[\"state-backend\", \"resolver\"]",
        "[\"state-backend\", \"resolver\", \"proxy\"]",
    );
    assert_lines(
        &two.resolve_errors(),
        r#"
        error[model::ambiguous-provider]: `app/webmail` requires `route`, and both `backend/proxy` and `proxy/proxy` provide it
          components/webmail.toml:1:13 "\"route\"": required here
          fleet.toml:32:44 "\"proxy\"": `backend/proxy` is assigned here
          fleet.toml:37:15 "\"proxy\"": `proxy/proxy` is assigned here
          help: choose one: `provisor pin app route backend proxy` or `provisor pin app route proxy proxy`
        error[model::ambiguous-provider]: `site/webmail` requires `route`, and both `backend/proxy` and `proxy/proxy` provide it
          components/webmail.toml:1:13 "\"route\"": required here
          fleet.toml:32:44 "\"proxy\"": `backend/proxy` is assigned here
          fleet.toml:37:15 "\"proxy\"": `proxy/proxy` is assigned here
          help: choose one: `provisor pin site route backend proxy` or `provisor pin site route proxy proxy`
        error[model::ambiguous-provider]: `app/website` requires `route`, and both `backend/proxy` and `proxy/proxy` provide it
          components/website.toml:1:13 "\"route\"": required here
          fleet.toml:32:44 "\"proxy\"": `backend/proxy` is assigned here
          fleet.toml:37:15 "\"proxy\"": `proxy/proxy` is assigned here
          help: choose one: `provisor pin app route backend proxy` or `provisor pin app route proxy proxy`
        "#,
    );
    let second = "provides = [{ name = \"route\", scope = \"mesh\" }]\n";
    let three = two.with("components/caddy.toml", second).edit(
        "fleet.toml",
        "components = [\"webmail\"]",
        "components = [\"webmail\", \"caddy\"]",
    );
    let errors = three.resolve_errors();
    let all = "and all of `backend/proxy`, `proxy/proxy`, `site/caddy` provide it";
    assert!(errors.contains(all), "{errors}");
}

#[test]
fn a_mesh_requirement_that_nothing_answers_says_which_component_to_assign() {
    let fleet = two_of_everything()
        .edit("fleet.toml", "components = [\"proxy\"]", "components = []")
        .with(
            "components/caddy.toml",
            "provides = [{ name = \"route\", scope = \"mesh\" }]\n",
        );
    let errors = fleet.resolve_errors();
    assert!(
        errors.contains("`app/website` requires `route`, and no node has a component that provides it"),
        "{errors}"
    );
    assert!(
        errors.contains("help: assign one of `caddy`, `proxy` to the node where it is to run"),
        "{errors}"
    );
}

#[test]
fn a_component_does_not_answer_its_own_requirement_unless_it_is_plain() {
    let own = |provision: &str| {
        let file = format!("requires = [\"x\"]\nprovides = [{provision}]\n");
        two_of_everything().with("components/own.toml", &file).edit(
            "fleet.toml",
            "components = [\"proxy\"]",
            "components = [\"proxy\", \"own\"]",
        )
    };
    assert!(answers(&own("\"x\"")).contains(&"proxy/own x proxy/own".to_owned()));
    for provision in [
        "{ name = \"x\", serves = { port = 1 } }",
        "{ name = \"x\", scope = \"mesh\" }",
    ] {
        let errors = own(provision).resolve_errors();
        assert!(
            errors.starts_with("error[model::no-provider]: `proxy/own` requires `x`"),
            "{errors}"
        );
        assert!(errors.contains("a component does not answer itself"), "{errors}");
    }
}

#[test]
fn where_a_component_may_not_answer_itself_the_one_other_is_added() {
    let file = |serves: &str| {
        format!("requires = [\"x\"]\nprovides = [{{ name = \"x\", serves = {{ {serves} }} }}]\n")
    };
    let fleet = two_of_everything()
        .with("components/own.toml", &file("port = 1"))
        .with("components/other.toml", "provides = [\"x\"]\n")
        .edit(
            "fleet.toml",
            "components = [\"proxy\"]",
            "components = [\"proxy\", \"own\"]",
        );
    let answers = answers(&fleet);
    assert!(
        answers.contains(&"proxy/own x proxy/other".to_owned()),
        "{answers:?}"
    );
}

#[test]
fn two_components_may_answer_each_other() {
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
    let answers = answers(&fleet);
    for line in ["proxy/peer peer site/peer", "site/peer peer proxy/peer"] {
        assert!(answers.contains(&line.to_owned()), "{answers:?}");
    }
}

#[test]
fn host_requirements_in_a_circle_end() {
    let fleet = two_of_everything()
        .with("components/a.toml", "requires = [\"b\"]\nprovides = [\"a\"]\n")
        .with("components/b.toml", "requires = [\"a\"]\nprovides = [\"b\"]\n")
        .edit(
            "fleet.toml",
            "components = [\"proxy\"]",
            "components = [\"proxy\", \"a\"]",
        );
    let answers = answers(&fleet);
    assert!(answers.contains(&"proxy/b a proxy/a".to_owned()), "{answers:?}");
}

#[test]
fn a_provider_that_shares_no_network_is_refused() {
    let fleet = two_of_everything().edit(
        "fleet.toml",
        "networks.mesh = \"10.90.0.11\"",
        "networks.storage = \"fd00:90::11\"",
    );
    assert_lines(
        &fleet.resolve_errors(),
        r#"
        error[model::no-shared-network]: `app/webmail` requires `route`, which `proxy/proxy` provides, and the two nodes share no network
          components/webmail.toml:1:13 "\"route\"": required here
          components/proxy.toml:2:13 "{ name = \"route\", scope = \"mesh\", serves = { port = 443 } }": provided by `proxy/proxy`
          help: give `app` and `proxy` an address in one network, in the `networks` of both
        error[model::no-shared-network]: `site/webmail` requires `route`, which `proxy/proxy` provides, and the two nodes share no network
          components/webmail.toml:1:13 "\"route\"": required here
          components/proxy.toml:2:13 "{ name = \"route\", scope = \"mesh\", serves = { port = 443 } }": provided by `proxy/proxy`
          help: give `site` and `proxy` an address in one network, in the `networks` of both
        error[model::no-shared-network]: `app/website` requires `route`, which `proxy/proxy` provides, and the two nodes share no network
          components/website.toml:1:13 "\"route\"": required here
          components/proxy.toml:2:13 "{ name = \"route\", scope = \"mesh\", serves = { port = 443 } }": provided by `proxy/proxy`
          help: give `app` and `proxy` an address in one network, in the `networks` of both
        "#,
    );
}

#[test]
fn a_provider_on_the_same_node_needs_no_network() {
    let fleet = two_of_everything()
        .edit("fleet.toml", "networks.mesh = \"10.90.0.11\"\n", "")
        .edit("fleet.toml", "components = [\"proxy\"]", "components = []")
        .edit(
            "fleet.toml",
            "[\"state-backend\", \"resolver\"]",
            "[\"state-backend\", \"resolver\", \"proxy\"]",
        );
    assert!(answers(&fleet).contains(&"backend/proxy resolver backend/resolver".to_owned()));
}

#[test]
fn a_grant_has_generation_0_until_it_is_made_and_a_rotation_changes_one_plan() {
    let resolution = two_of_everything().resolution();
    assert!(resolution.grants().iter().all(|grant| grant.generation == 0));
    let before = resolution.plans(&BTreeMap::new());
    let rotated = BTreeMap::from([
        ("app/website/ssl/other".to_owned(), 2),
        ("gone/x/ssl/main".to_owned(), 9),
    ]);
    let after = resolution.plans(&rotated);
    let changed: Vec<_> = before
        .keys()
        .filter(|name| before[*name] != after[*name])
        .collect();
    assert_eq!(changed, ["app"]);
    let generations: Vec<_> = after["app"]
        .grants
        .iter()
        .map(|grant| (grant.name.as_str(), grant.generation))
        .collect();
    assert_eq!(
        generations,
        [
            ("app/webmail/ssl/main", 0),
            ("app/website/ssl/main", 0),
            ("app/website/ssl/other", 2)
        ]
    );
}

#[test]
fn a_plan_says_where_the_node_is_and_what_it_has() {
    let plan = &two_of_everything().resolution().plans(&BTreeMap::new())["backend"];
    assert_eq!(
        (plan.name.as_str(), plan.group.as_str()),
        ("backend", "hosting-provider")
    );
    assert_eq!(plan.components, ["resolver", "state-backend"]);
    let networks: Vec<_> = plan
        .networks
        .iter()
        .map(|(name, address)| format!("{name} {address}"))
        .collect();
    assert_eq!(networks, ["mesh 10.90.0.10", "storage fd00:90::10"]);
}

#[test]
fn a_credential_makes_a_host_s_capability_a_choice() {
    let fleet = two_providers();
    assert!(
        fleet
            .answers()
            .contains(&"forge/gitea shell forge/bash,forge/zsh".to_owned())
    );
    for shell in ["serves = { path = \"/bin/zsh\" }", "grants = \"role\""] {
        let zsh = format!("provides = [{{ name = \"shell\", {shell} }}]\n");
        let errors = fleet.clone().with("components/zsh.toml", &zsh).resolve_errors();
        assert!(
            errors
                .contains("`forge/gitea` requires `shell`, and both `forge/bash` and `forge/zsh` provide it"),
            "{errors}"
        );
        assert!(
            errors.contains("`provisor pin forge shell forge zsh`"),
            "{errors}"
        );
    }
}

#[test]
fn a_contract_resource_without_an_answer_fails_the_evaluation() {
    let model = two_providers().model();
    let mesh = Mesh::of(&model);
    let need = mesh.needs().next().unwrap();
    let refusal = refusal::Refusal::Unprovided {
        resource: crate::resources::registry::Resource::Otel,
        group: mesh.group(need.node).unwrap(),
        provided: crate::routing::Provided::NoAnswer,
        assignable: Vec::new(),
    };
    let diagnostic = refusal.diagnostic(&mesh, &need);
    assert_eq!(diagnostic.code, crate::diagnostic::code::UNPROVIDED);
    assert!(
        diagnostic
            .message
            .contains("contract resource `otel`, and the provider table has no answer"),
        "{}",
        diagnostic.message
    );
}

#[test]
fn what_is_assigned_answers_whatever_the_walk_reached_first() {
    // `aaa` is walked before the provider beside it, `zzz`, which another node has, too.
    let fleet = two_providers()
        .with(
            "components/aaa.toml",
            "requires = [\"cache\"]\nbinds.cache = \"/etc/aaa.json\"\n",
        )
        .with(
            "components/zzz.toml",
            "provides = [{ name = \"cache\", scope = \"mesh\", serves = { port = 1 } }]\n",
        )
        .edit("fleet.toml", "[\"caddy\"]", "[\"aaa\", \"caddy\", \"zzz\"]");
    assert!(
        fleet
            .answers()
            .contains(&"edge-a/aaa cache edge-a/zzz".to_owned())
    );
    // On the host, too, where the walk would add what is not assigned.
    let fleet = fleet.with(
        "components/zzz.toml",
        "provides = [{ name = \"cache\", serves = { port = 1 } }]\n",
    );
    assert!(
        fleet
            .answers()
            .contains(&"edge-a/aaa cache edge-a/zzz".to_owned())
    );
}

#[test]
fn a_consumer_of_one_engine_is_never_matched_to_another() {
    let mysql = "provides = [{ name = \"mysql\", scope = \"mesh\", serves = { port = 3306 } }]\n";
    let fleet = two_providers()
        .with("components/postgres-a.toml", mysql)
        .with("components/postgres-b.toml", mysql)
        .with(
            "pins.toml",
            "[forge]\ngarage = { node = \"db-a\", component = \"garage-a\" }\n",
        );
    let errors = fleet.resolve_errors();
    assert!(
        errors.contains("error[model::unprovided]: `forge/gitea` requires `postgresql`")
            || errors.contains("error[model::no-provider]: `forge/gitea` requires `postgresql`"),
        "{errors}"
    );
    assert!(!errors.contains("mysql"), "{errors}");
}

#[test]
fn a_scope_is_host_for_a_string_and_what_it_says_for_a_table() {
    let model = two_providers().model();
    let scope = |component: &str, provision: &str| {
        let component = model.component(component).unwrap();
        component.provides[&provision.parse::<ProvisionName>().unwrap()].scope
    };
    use crate::fleet::component::Scope;
    assert_eq!(
        (scope("bash", "shell"), scope("caddy", "route")),
        (Scope::Host, Scope::Mesh)
    );
    let table = two_providers()
        .with("components/bash.toml", "provides = [{ name = \"shell\" }]\n")
        .model();
    let component = table.component("bash").unwrap();
    assert_eq!(
        component.provides[&"shell".parse::<ProvisionName>().unwrap()].scope,
        Scope::Host
    );
}

#[test]
fn a_plan_says_what_its_node_takes_from_elsewhere_and_nothing_else() {
    let takes: Vec<_> = two_providers()
        .plan("desk")
        .takes
        .iter()
        .map(|take| {
            format!(
                "{} {} {} {} {}",
                take.component, take.provision, take.from, take.host, take.address
            )
        })
        .collect();
    assert_eq!(
        takes,
        [
            "gitea garage db-b/garage-b db-b.mesh 10.90.0.2",
            "gitea postgresql db-b/postgres-b db-b.mesh 10.90.0.2",
            "gitea route edge-b/traefik edge-b.mesh 10.90.0.4",
            "keycloak postgresql db-b/postgres-b db-b.mesh 10.90.0.2",
            "keycloak route edge-b/traefik edge-b.mesh 10.90.0.4",
        ]
    );
    assert!(two_providers().plan("db-a").takes.is_empty());
}
