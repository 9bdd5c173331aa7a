//! What is a fleet: references, what must be unique, and what a node comes to.

use super::*;
use crate::testing::{assert_lines, files, two_of_everything};

#[test]
fn a_node_is_what_it_says_over_what_the_fleet_says() {
    let model = two_of_everything().model();
    let app = model.node("app").unwrap();
    assert_eq!(
        (app.address.as_str(), app.port, app.user.as_str()),
        ("app.example.test", 22, "root")
    );
    assert_eq!(app.identity.as_deref(), Some("/keys/alice"));
    assert_eq!(
        app.ssh_options,
        ["ConnectTimeout=30", "ConnectTimeout=10", "Compression=yes"]
    );

    let site = model.node("site").unwrap();
    assert_eq!(
        (site.address.as_str(), site.port, site.user.as_str()),
        ("2001:db8::21", 2222, "deploy")
    );
    assert_eq!(site.identity.as_deref(), Some("/keys/shared"));
    assert_eq!(site.ssh_options, ["ConnectTimeout=10", "Compression=yes"]);
    assert_eq!(site.host_key, None);
}

#[test]
fn without_any_ssh_settings_a_node_is_root_on_port_22() {
    let fleet = files([(
        "fleet.toml",
        "name = \"a\"\nenvironments.e = {}\n[groups.g]\nenvironment = \"e\"\nnodes.n.address = \"a.test\"\n",
    )]);
    let model = fleet.model();
    let node = model.node("n").unwrap();
    assert_eq!((node.port, node.user.as_str()), (22, "root"));
    assert_eq!((&node.identity, &node.host_key), (&None, &None));
    assert!(node.ssh_options.is_empty() && node.networks.is_empty() && node.components.is_empty());
}

#[test]
fn a_host_key_loses_its_comment() {
    let model = two_of_everything().model();
    assert_eq!(
        model.node("backend").unwrap().host_key.as_deref(),
        Some("ssh-ed25519 AAAAC3NzaBackend")
    );
}

#[test]
fn nodes_groups_and_components_are_in_the_order_of_their_names() {
    let model = two_of_everything().model();
    let nodes: Vec<_> = model
        .nodes()
        .map(|node| format!("{}/{}", node.group, node.name))
        .collect();
    assert_eq!(
        nodes,
        [
            "alice/app",
            "hosting-provider/backend",
            "hosting-provider/proxy",
            "bob/site"
        ]
    );
    let groups: Vec<_> = model.groups().map(|group| group.name.as_str()).collect();
    assert_eq!(groups, ["alice", "bob", "hosting-provider"]);
    let components: Vec<_> = model
        .components()
        .map(|component| component.name.as_str())
        .collect();
    assert_eq!(
        components,
        [
            "bash",
            "php",
            "proxy",
            "resolver",
            "state-backend",
            "webmail",
            "website"
        ]
    );
}

#[test]
fn the_state_backend_is_the_node_that_its_group_names() {
    let model = two_of_everything().model();
    let (node, port) = model.state_backend().unwrap();
    assert_eq!((node.name.as_str(), port), ("backend", 8080));
    let without = two_of_everything().edit("fleet.toml", "backend = \"backend\"\n", "");
    assert!(without.model().state_backend().is_none());
}

#[test]
fn references_that_lead_nowhere_are_all_reported_with_near_names() {
    let fleet = two_of_everything()
        .edit(
            "fleet.toml",
            "environment = \"production\"",
            "environment = \"productoin\"",
        )
        .edit("fleet.toml", "backend = \"backend\"", "backend = \"backand\"")
        .edit(
            "fleet.toml",
            "networks.mesh = \"10.90.0.11\"",
            "networks.mseh = \"10.90.0.11\"",
        )
        .edit("fleet.toml", "[\"proxy\"]", "[\"proxi\"]")
        .edit(
            "components/php.toml",
            "requires = [\"shell\"]",
            "requires = [\"shel\"]",
        );
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::unknown-provision]: `php` requires `shel`, which no component provides
          components/php.toml:1:13 "\"shel\"": not provided
          help: write `shell`, if that is what you mean
        error[model::unknown-environment]: the group `hosting-provider` has the environment `productoin`, which is not declared
          fleet.toml:24:15 "\"productoin\"": unknown environment
          help: write `production`, if that is what you mean
        error[model::unknown-node]: the group `hosting-provider` has no node `backand` to hold its state
          fleet.toml:25:11 "\"backand\"": unknown node
          help: write `backend`, if that is what you mean
        error[model::unknown-network]: the node `proxy` is in the network `mseh`, which is not declared
          fleet.toml:36:10 "mseh": unknown network
          help: write `mesh`, if that is what you mean
        error[model::unknown-component]: the node `proxy` has the component `proxi`, which has no file
          fleet.toml:37:15 "\"proxi\"": unknown component
          help: write `proxy`, if that is what you mean
        "#,
    );
}

#[test]
fn with_nothing_near_the_help_says_what_there_is_or_what_to_write() {
    let errors = two_of_everything()
        .edit("fleet.toml", "[\"proxy\"]", "[\"zzz\"]")
        .load_errors();
    let all = "`bash`, `php`, `proxy`, `resolver`, `state-backend`, `webmail`, `website`";
    assert!(
        errors.contains(&format!("help: write one of those there are: {all}")),
        "{errors}"
    );

    let errors = files([(
        "fleet.toml",
        "name = \"a\"\n[groups.g]\nenvironment = \"e\"\nnodes.n = { address = \"a\", networks.m = \"10.0.0.1\", components = [\"c\"] }\n",
    )])
    .load_errors();
    for help in [
        "declare it: `[environments.e]`",
        "declare it: `[networks.m]`",
        "write `components/c.toml`",
    ] {
        assert!(errors.contains(&format!("help: {help}")), "{errors}");
    }
}

#[test]
fn an_unknown_resource_lists_those_there_are() {
    let fleet = two_of_everything()
        .edit("components/proxy.toml", "\"main\".ssl]", "\"main\".sll]")
        .edit("fleet.toml", "\"modules\".nixos-module]", "\"modules\".widget]");
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::unknown-resource]: there is no resource `sll`
          components/proxy.toml:4:19 "sll": unknown resource
          help: write `ssl`, if that is what you mean; there are: `nixos-module`, `ssl`
        error[model::unknown-resource]: there is no resource `widget`
          fleet.toml:21:40 "widget": unknown resource
          help: write one of those there are: `nixos-module`, `ssl`
        "#,
    );
}

#[test]
fn a_resource_without_a_policy_is_refused_as_such_where_it_is_asked_for_and_where_a_policy_is_written() {
    let fleet = two_of_everything()
        .edit("components/proxy.toml", "\"main\".ssl]", "\"main\".postgresql]")
        .edit("fleet.toml", "\"modules\".nixos-module]", "\"modules\".firewall]");
    let errors = fleet.load_errors();
    for resource in ["postgresql", "firewall"] {
        let error = format!("error[model::not-available]: `{resource}` has no policy in this version");
        assert!(errors.contains(&error), "{errors}");
        let help = format!("help: write `{resource}` in `requires`, which needs no policy, or");
        assert!(errors.contains(&help), "{errors}");
    }
}

#[test]
fn one_deployment_name_in_two_groups_is_refused() {
    let fleet = two_of_everything().edit("fleet.toml", "[groups.bob.nodes.site]", "[groups.bob.nodes.app]");
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::node-named-twice]: two groups have a node `app`
          fleet.toml:54:19 "app": in the group `bob`
          fleet.toml:42:21 "app": in the group `alice`
          help: rename one of the two: a host is known by its deployment name in the whole fleet
        "#,
    );
}

#[test]
fn one_host_or_one_address_in_a_network_for_two_nodes_is_refused() {
    let fleet = two_of_everything()
        .edit(
            "fleet.toml",
            "address = \"192.0.2.11\"",
            "address = \"192.0.2.10\"",
        )
        .edit("fleet.toml", "\"10.90.0.21\"", "\"10.90.0.20\"");
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::address-taken]: two nodes have the address `192.0.2.10` and the port 2222: `backend` and `proxy`
          fleet.toml:35:11 "\"192.0.2.10\"": of `proxy`
          fleet.toml:28:11 "\"192.0.2.10\"": of `backend`
          help: give each node its own
        error[model::address-taken]: two nodes have `10.90.0.20` in the network `mesh`: `app` and `site`
          fleet.toml:56:17 "\"10.90.0.20\"": of `site`
          fleet.toml:47:17 "\"10.90.0.20\"": of `app`
          help: give each node its own
        "#,
    );
    let other_port = two_of_everything().edit("fleet.toml", "\"192.0.2.11\"", "\"192.0.2.10\"\nport = 2223");
    assert_eq!(other_port.model().node("proxy").unwrap().port, 2223);
}

#[test]
fn an_address_outside_its_network_is_refused_with_the_range() {
    let fleet = two_of_everything().edit("fleet.toml", "\"fd00:90::10\"", "\"fd00:91::10\"");
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::outside-network]: the network `storage` does not hold `fd00:91::10`
          fleet.toml:30:20 "\"fd00:91::10\"": outside the network
          fleet.toml:13:8 "\"fd00:90::/64\"": the network's range
          help: write an address of `fd00:90::/64`
        "#,
    );
}

#[test]
fn one_provision_has_one_scope() {
    let fleet = two_of_everything().with(
        "components/busybox.toml",
        "provides = [{ name = \"shell\", scope = \"mesh\" }]\n",
    );
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::scope-conflict]: `busybox` provides `shell` in the scope mesh, and `bash` in the scope host
          components/busybox.toml:1:13 "{ name = \"shell\", scope = \"mesh\" }": scope mesh
          components/bash.toml:1:13 "\"shell\"": scope host
          help: give both the same scope, or one of them another name
        "#,
    );
}

#[test]
fn an_environment_with_two_policies_for_one_resource_is_refused() {
    let more = "[environments.test.resources.\"more\".ssl]\nissuer = \"internal-ca\"\n\n[groups.bob]";
    let fleet = two_of_everything().edit("fleet.toml", "[groups.bob]", more);
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::two-policies]: the environment `test` has two policies for `ssl`: under `more` and `own-certificates`
          fleet.toml:18:49 "ssl": under `own-certificates`
          fleet.toml:51:37 "ssl": under `more`
          help: keep one of the two, or give one of the groups an environment of its own
        "#,
    );
}

#[test]
fn a_backend_node_without_a_state_backend_is_refused_and_told_which_component_it_lacks() {
    let fleet = two_of_everything().edit("fleet.toml", "backend = \"backend\"", "backend = \"proxy\"");
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::not-a-backend]: no component of the node `proxy` provides `state-backend`
          fleet.toml:25:11 "\"proxy\"": not a state backend
          help: assign one that does to the node: `state-backend`
        "#,
    );
}

#[test]
fn a_backend_is_a_node_of_its_own_group_and_a_second_is_refused() {
    let fleet = two_of_everything().edit(
        "fleet.toml",
        "[groups.bob]\n",
        "[groups.bob]\nbackend = \"backend\"\n",
    );
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::second-backend]: two groups name a state backend, `bob` and `hosting-provider`: a fleet's state is in one place
          fleet.toml:25:11 "\"backend\"": of the group `hosting-provider`
          fleet.toml:52:11 "\"backend\"": of the group `bob`
          help: keep the `backend` of one group
        error[model::unknown-node]: the group `bob` has no node `backend` to hold its state
          fleet.toml:52:11 "\"backend\"": unknown node
          help: write one of those there are: `site`
        "#,
    );
}

#[test]
fn a_component_that_no_node_has_is_a_warning_unless_a_host_may_need_it() {
    let fleet = two_of_everything().with(
        "components/unused.toml",
        "provides = [{ name = \"x\", scope = \"mesh\" }]\n",
    );
    let loaded = load(&fleet).unwrap();
    assert_lines(
        &fleet.render(&loaded.warnings),
        r#"
        warning[model::unused-component]: no node has the component `unused`
          components/unused.toml:1:1 "": unused
          help: assign it in the `components` of a node, or remove its file
        "#,
    );
    assert_eq!(load(&two_of_everything()).unwrap().warnings, []);
}

#[test]
fn a_component_keeps_its_requests_with_who_makes_them() {
    let model = two_of_everything().model();
    let website = model.component("website").unwrap();
    let keys: Vec<_> = website.resources.keys().map(|key| key.as_str()).collect();
    assert_eq!(keys, ["main", "other", "server"]);
    let asked = &website.resources["other"][&Resource::Ssl];
    assert_eq!(
        (asked.origin.component.as_str(), asked.origin.instance.as_str()),
        ("website", "other")
    );
    assert_eq!(asked.origin.place.file, "components/website.toml");
}
