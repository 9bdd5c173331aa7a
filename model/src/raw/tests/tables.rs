//! Tables: their keys, and the types and values that these take.

use crate::diagnostic::code;
use crate::testing::two_of_everything;

/// An edit of the fleet, and what is said about it: code, message, the marked text, and what to do.
type Mistake = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

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
        assert_eq!(
            (error.code, error.message.as_str(), found),
            (*code, *message, *marked),
            "{to}"
        );
        assert_eq!(error.help, *help, "{to}");
    }
}

#[test]
fn a_key_that_its_table_does_not_have_is_refused_with_the_nearest() {
    const CODE: &str = code::UNKNOWN_FIELD;
    let fleet: &[Mistake] = &[
        (
            "[ssh]",
            "[shh]",
            CODE,
            "a fleet has no key `shh`",
            "shh",
            "write `ssh`, if that is what you mean",
        ),
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
        (
            "name = \"two\"",
            "",
            CODE,
            "a fleet has no `name`",
            "",
            "add a line such as `name = \"demo\"`",
        ),
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
