//! What a file may say: syntax, keys, types, values. Each mistake with its place and what to do.

use super::*;
use crate::testing::{assert_lines, files, two_of_everything};

#[test]
fn a_fleet_with_three_mistakes_shows_all_three_with_their_places() {
    let fleet = two_of_everything()
        .edit("fleet.toml", "port = 22\n", "prot = 22\n")
        .edit("fleet.toml", "[\"website\", \"webmail\"]", "[\"webiste\", \"webmail\"]")
        .edit("components/webmail.toml", "\"mail.example.test\"\n\n", "\"Mail.example.test\"\n\n");
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
fn every_broken_file_is_reported_with_each_broken_line() {
    let fleet = files([
        ("fleet.toml", "name = = \"demo\"\n[groups\n"),
        ("components/a.toml", "requires = [\"shell\"\n"),
        ("components/b.toml", "provides = []\n"),
    ]);
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::syntax]: this is not TOML: unclosed array, expected `]`
          components/a.toml:1:20 "": here
          help: correct the syntax; https://toml.io describes it
        error[model::syntax]: this is not TOML: extra `=`, expected nothing
          fleet.toml:1:8 "=": here
          help: correct the syntax; https://toml.io describes it
        error[model::syntax]: this is not TOML: unclosed table, expected `]`
          fleet.toml:2:8 "": here
          help: correct the syntax; https://toml.io describes it
        "#,
    );
}

#[test]
fn a_broken_component_is_not_called_unknown_and_hides_no_mistake_of_others() {
    let fleet = two_of_everything()
        .with("components/website.toml", "requires = [")
        .edit("fleet.toml", "networks.mesh = \"10.90.0.21\"", "networks.mash = \"10.90.0.21\"");
    let errors = fleet.load_errors();
    assert!(errors.contains("error[model::syntax]"), "{errors}");
    assert!(errors.contains("error[model::unknown-network]: the node `site` is in the network `mash`"), "{errors}");
    assert_eq!(errors.matches("error[").count(), 2, "{errors}");
}

#[test]
fn a_key_or_a_table_that_is_defined_twice_shows_both_places() {
    let fleet = files([("fleet.toml", "name = \"a\"\n\n[networks.mesh]\n  name = 1\n\n[groups.a]\n[groups.a]\nx = 1\nx = 2\n")]);
    assert_lines(
        &fleet.load_errors(),
        r#"
        error[model::syntax]: the key `a` is defined twice
          fleet.toml:7:9 "a": defined again here
          fleet.toml:6:1 "[groups.a]": first defined here
          help: keep one of the two, or give one of them another name
        error[model::syntax]: the key `x` is defined twice
          fleet.toml:9:1 "x": defined again here
          fleet.toml:8:1 "x": first defined here
          help: keep one of the two, or give one of them another name
        "#,
    );
}

#[test]
fn the_first_definition_of_a_key_is_looked_for_in_its_own_table_only() {
    let fleet = files([("fleet.toml", "name = \"a\"\n[networks.a]\ncidr = 1\n[networks.b]\nx.cidr = 1\nx.cidr = 2\n")]);
    let errors = fleet.load_errors();
    assert!(errors.contains("fleet.toml:6:3 \"cidr\": defined again here"), "{errors}");
    assert!(errors.contains("fleet.toml:5:1 \"x.cidr\": first defined here"), "{errors}");
}

#[test]
fn a_number_out_of_range_is_refused() {
    let errors = files([("fleet.toml", "name = 99999999999999999999\n")]).load_errors();
    assert!(errors.contains("error[model::syntax]: this integer is out of range"), "{errors}");
}

#[test]
fn integers_are_read_in_every_base() {
    for (written, port) in [("0x50", 80), ("0o120", 80), ("0b101_0000", 80), ("8_080", 8080), ("+80", 80)] {
        let fleet = two_of_everything().edit("fleet.toml", "port = 2222", &format!("port = {written}"));
        assert_eq!(fleet.model().node("site").unwrap().port, port, "{written}");
    }
}

#[test]
fn a_fleet_needs_its_file_and_has_no_others() {
    let fleet = files([("pins.toml", ""), ("components/a/b.toml", ""), ("components/a.json", ""), ("Fleet.toml", "")]);
    let errors = fleet.load_errors();
    for file in ["pins.toml", "components/a/b.toml", "components/a.json", "Fleet.toml"] {
        assert!(errors.contains(&format!("error[model::unknown-file]: a fleet has no file `{file}`")), "{errors}");
    }
    assert!(errors.contains("error[model::no-fleet-file]"), "{errors}");
}

#[test]
fn a_components_file_name_is_its_name() {
    let errors = two_of_everything().with("components/Web.toml", "").load_errors();
    assert!(errors.contains("error[model::invalid-name]: the component name `Web` has 'W' where it may not"), "{errors}");
}

/// An edit of the fleet, and what is said about it: code, message, the marked text, and what to do.
type Mistake = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

/// Makes each mistake alone, and compares the one error it gives.
fn each_mistake(file: &str, mistakes: &[Mistake]) {
    for (from, to, code, message, marked, help) in mistakes {
        let fleet = two_of_everything().edit(file, from, to);
        let errors = crate::load(&fleet).unwrap_err();
        let [error] = errors.as_slice() else {
            panic!("{from} -> {to}:\n{}", fleet.render(&errors));
        };
        let label = &error.labels[0];
        let found = &fleet.0[&label.file][label.span.clone()];
        assert_eq!((error.code, error.message.as_str(), found), (*code, *message, *marked), "{to}");
        assert_eq!(error.help, *help, "{to}");
    }
}

#[test]
fn a_key_that_its_table_does_not_have_is_refused_with_the_nearest() {
    const CODE: &str = code::UNKNOWN_FIELD;
    let fleet: &[Mistake] = &[
        ("[ssh]", "[shh]", CODE, "a fleet has no key `shh`", "shh", "write `ssh`, if that is what you mean"),
        (
            "user = \"deploy\"",
            "usr = \"deploy\"",
            CODE,
            "the fleet's `ssh` has no key `usr`",
            "usr",
            "write `user`, if that is what you mean",
        ),
        (
            "cidr = \"fd00:90::/64\"",
            "cidr = \"fd00:90::/64\"\nvlan = 1",
            CODE,
            "a network has no key `vlan`",
            "vlan",
            "write one of those there are: `cidr`",
        ),
        (
            "backend = \"backend\"",
            "backends = \"backend\"",
            CODE,
            "a group has no key `backends`",
            "backends",
            "write `backend`, if that is what you mean",
        ),
        (
            "[environments.test.resources.\"modules\".nixos-module]",
            "[environments.test.resource.\"modules\".nixos-module]",
            CODE,
            "an environment has no key `resource`",
            "resource",
            "write `resources`, if that is what you mean",
        ),
        (
            "\"modules\".nixos-module]",
            "\"modules\".nixos-module]\nx = 1",
            CODE,
            "a `nixos-module` policy has no key `x`",
            "x",
            "remove it: a `nixos-module` policy has no keys",
        ),
    ];
    each_mistake("fleet.toml", fleet);
    let component: &[Mistake] = &[
        (
            "requires = [\"resolver\"]",
            "require = [\"resolver\"]",
            CODE,
            "a component has no key `require`",
            "require",
            "write `requires`, if that is what you mean",
        ),
        (
            "scope = \"mesh\", serves",
            "scope = \"mesh\", servs",
            CODE,
            "a provision has no key `servs`",
            "servs",
            "write `serves`, if that is what you mean",
        ),
    ];
    each_mistake("components/proxy.toml", component);
}

#[test]
fn a_key_that_its_table_must_have_is_missed_with_a_line_to_write() {
    const CODE: &str = code::MISSING_FIELD;
    let fleet: &[Mistake] = &[
        ("name = \"two\"", "", CODE, "a fleet has no `name`", "", "add a line such as `name = \"demo\"`"),
        (
            "cidr = \"fd00:90::/64\"",
            "",
            CODE,
            "a network has no `cidr`",
            "[networks.storage]",
            "add a line such as `cidr = \"10.90.0.0/24\"`",
        ),
        (
            "environment = \"production\"",
            "",
            CODE,
            "a group has no `environment`",
            "[groups.hosting-provider]",
            "add a line such as `environment = \"production\"`",
        ),
        (
            "address = \"192.0.2.11\"",
            "",
            CODE,
            "a node has no `address`",
            "[groups.hosting-provider.nodes.proxy]",
            "add a line such as `address = \"192.0.2.10\"`",
        ),
    ];
    each_mistake("fleet.toml", fleet);
    let component: &[Mistake] = &[(
        "name = \"route\", ",
        "",
        CODE,
        "a provision has no `name`",
        "{ scope = \"mesh\", serves = { port = 443 } }",
        "add a line such as `name = \"route\"`",
    )];
    each_mistake("components/proxy.toml", component);
}

#[test]
fn a_value_of_another_type_says_what_belongs_there() {
    const CODE: &str = code::WRONG_TYPE;
    let fleet: &[Mistake] = &[
        (
            "name = \"two\"",
            "name = 2",
            CODE,
            "this is an integer where the fleet's name (a string) belongs",
            "2",
            "write the fleet's name (a string)",
        ),
        (
            "port = 2222",
            "port = \"2222\"",
            CODE,
            "this is a string where a port (an integer from 1 to 65535) belongs",
            "\"2222\"",
            "write a port (an integer from 1 to 65535)",
        ),
        (
            "components = [\"proxy\"]",
            "components = \"proxy\"",
            CODE,
            "this is a string where a list of component names belongs",
            "\"proxy\"",
            "write a list of component names",
        ),
        (
            "networks.storage = \"fd00:90::10\"",
            "networks.storage = true",
            CODE,
            "this is a boolean where the node's address in the network (a string) belongs",
            "true",
            "write the node's address in the network (a string)",
        ),
        (
            "cidr = \"fd00:90::/64\"",
            "cidr = 1979-05-27",
            CODE,
            "this is a date where a range of addresses (a string) belongs",
            "1979-05-27",
            "write a range of addresses (a string)",
        ),
    ];
    each_mistake("fleet.toml", fleet);
    let component: &[Mistake] = &[
        (
            "scope = \"mesh\"",
            "scope = [\"mesh\"]",
            CODE,
            "this is a list where a scope (\"host\" or \"mesh\") belongs",
            "[\"mesh\"]",
            "write a scope (\"host\" or \"mesh\")",
        ),
        (
            "serves = { port = 443 }",
            "serves = 443",
            CODE,
            "this is an integer where a table of what a consumer needs to know, such as { port = 3000 } belongs",
            "443",
            "write a table of what a consumer needs to know, such as { port = 3000 }",
        ),
    ];
    each_mistake("components/proxy.toml", component);
}

#[test]
fn a_value_that_its_key_does_not_take_says_what_it_takes() {
    let fleet: &[Mistake] = &[
        (
            "port = 2222",
            "port = 65536",
            code::INVALID_VALUE,
            "65536 is not a port",
            "65536",
            "write a port (an integer from 1 to 65535)",
        ),
        (
            "name = \"two\"",
            "name = \"Two\"",
            code::INVALID_NAME,
            "the fleet name `Two` has 'T' where it may not",
            "\"Two\"",
            "use lower-case letters, digits and `-`, with a letter or digit first and last",
        ),
        (
            "[groups.bob.nodes.site]",
            "[groups.bob.nodes.\"site.example\"]",
            code::INVALID_NAME,
            "the node name `site.example` has '.' where it may not",
            "\"site.example\"",
            "use lower-case letters, digits and `-`, with a letter or digit first and last",
        ),
        (
            "cidr = \"10.90.0.0/24\"",
            "cidr = \"10.90.0.1/24\"",
            code::INVALID_VALUE,
            "`10.90.0.1/24` has bits set below its prefix",
            "\"10.90.0.1/24\"",
            "write `10.90.0.0/24`, if that is the range you mean",
        ),
        (
            "address = \"192.0.2.11\"",
            "address = \"root@192.0.2.11\"",
            code::INVALID_VALUE,
            "`root@192.0.2.11` is not a bare address",
            "\"root@192.0.2.11\"",
            "write a DNS name, an IPv4 address, or an IPv6 address without brackets; the port and the user have keys \
             of their own",
        ),
        (
            "options = [\"ConnectTimeout=10\", \"Compression=yes\"]",
            "options = [\"ConnectTimeout=10\", \"User=me\"]",
            code::INVALID_VALUE,
            "the SSH option `User` is not the operator's to set",
            "\"User=me\"",
            "remove it; the key `user` says it",
        ),
        (
            "production.resources.\"certificates\".ssl]\nissuer = \"internal-ca\"",
            "production.resources.\"certificates\".ssl]\nissuer = \"internal-cs\"",
            code::INVALID_VALUE,
            "`ssl` has no issuer `internal-cs`",
            "\"internal-cs\"",
            "write `internal-ca`, if that is what you mean",
        ),
    ];
    each_mistake("fleet.toml", fleet);
    let component: &[Mistake] = &[
        (
            "scope = \"mesh\"",
            "scope = \"mash\"",
            code::INVALID_VALUE,
            "`mash` is not a scope",
            "\"mash\"",
            "write `mesh`, if that is what you mean",
        ),
        (
            "port = 443",
            "port = 0",
            code::INVALID_VALUE,
            "0 is not a port",
            "0",
            "write a port (an integer from 1 to 65535)",
        ),
    ];
    each_mistake("components/proxy.toml", component);
}

#[test]
fn a_generic_engine_is_refused_where_it_is_provided_and_where_it_is_required() {
    let fleet = two_of_everything()
        .with("components/a.toml", "provides = [\"db\", { name = \"sql\", scope = \"mesh\" }]\n")
        .with("components/b.toml", "requires = [\"database\", \"sql-database\"]\n");
    let errors = fleet.load_errors();
    for (place, name) in [("a.toml:1:13", "db"), ("a.toml:1:28", "sql"), ("b.toml:1:13", "database"), ("b.toml:1:25", "sql-database")] {
        let expected = format!(
            "error[model::generic-engine]: the provision `{name}` does not say which engine it is\n  components/{place} "
        );
        assert!(errors.contains(&expected), "{errors}");
    }
    assert_eq!(errors.matches("error[").count(), 4, "{errors}");
    assert!(errors.contains("help: name the engine, such as `postgresql`"), "{errors}");
}

#[test]
fn what_is_listed_twice_shows_both_places() {
    let fleet = two_of_everything()
        .edit("fleet.toml", "[\"proxy\"]", "[\"proxy\", \"proxy\"]")
        .with("components/bash.toml", "requires = [\"php\", \"php\"]\nprovides = [\"shell\", { name = \"shell\" }]\n");
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
        let errors = two_of_everything().with("components/state-backend.toml", &file).load_errors();
        let message = "error[model::invalid-value]: `state-backend` is provided in the scope mesh, with the port";
        assert!(errors.starts_with(message), "{errors}");
    }
}

#[test]
fn every_key_of_every_table_is_documented() {
    let documentation = include_str!("../../docs/fleet.md");
    let of_resources = crate::resources::registry::Resource::ALL.into_iter().flat_map(|resource| resource.keys());
    for keys in TABLES.into_iter().chain(of_resources) {
        for key in keys.all {
            assert!(documentation.contains(&format!("| `{key}` |")), "the key `{key}` of {}", keys.of);
        }
    }
}

#[test]
fn the_documented_fleet_resolves() {
    let documentation = include_str!("../../docs/fleet.md");
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
