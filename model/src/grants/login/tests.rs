//! Names of roles and access keys, their limits, and what both ends get.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::testing::two_providers;

#[test]
fn a_credential_is_on_both_ends_for_root_alone_under_one_name_and_number() {
    let resolution = two_providers().resolution();
    let name = "forge/wiki/postgresql/db-a/postgres-a";
    let plans = resolution.plans(&BTreeMap::from([(name.to_owned(), 7)]));
    let folders = [
        ("forge", "taken/postgresql/forge/wiki"),
        ("db-a", "given/postgres-a/postgresql/forge/wiki"),
    ];
    for (node, folder) in folders {
        let grant = plans[node]
            .grants
            .iter()
            .find(|grant| grant.name == name)
            .unwrap();
        assert_eq!(grant.generation, 7, "{node}");
        let [file] = grant.files.as_slice() else {
            panic!("{grant:?}");
        };
        assert_eq!(
            file.path,
            format!("/var/lib/provisor/credentials/{folder}/password")
        );
        assert_eq!(
            (file.mode.as_str(), file.owner.as_str(), file.part),
            ("0600", "root", GrantPart::Password)
        );
    }
    // A rotation changes the plans of both ends, and of nobody else.
    let before = resolution.plans(&BTreeMap::new());
    let changed: Vec<_> = plans
        .keys()
        .filter(|node| before[*node] != plans[*node])
        .collect();
    assert_eq!(changed, ["db-a", "forge"]);
}

#[test]
fn an_access_key_has_an_id_and_a_secret() {
    let plan = two_providers().plan("forge");
    let grant = plan
        .grants
        .iter()
        .find(|grant| grant.name == "forge/wiki/garage/db-a/garage-a")
        .unwrap();
    assert!(
        matches!(&grant.kind, GrantKind::AccessKey(login) if login.name == "wiki_forge"),
        "{grant:?}"
    );
    let parts: Vec<_> = grant.files.iter().map(|file| file.part).collect();
    assert_eq!(parts, [GrantPart::AccessKeyId, GrantPart::SecretAccessKey]);
}

#[test]
fn another_provider_is_another_credential() {
    let moved = two_providers().edit(
        "pins.toml",
        "postgresql = { node = \"db-a\", component = \"postgres-a\" }",
        "postgresql = { node = \"db-b\", component = \"postgres-b\" }",
    );
    let names = |fleet: &crate::FleetFiles| -> BTreeSet<String> {
        let grants = fleet.resolution().grants().into_iter();
        grants
            .map(|grant| grant.name)
            .filter(|name| name.contains("/wiki/postgresql/"))
            .collect()
    };
    assert!(names(&two_providers()).is_disjoint(&names(&moved)));
}

/// A fleet whose component `wiki` and node `forge` have names of these lengths.
fn renamed(component: usize, node: usize) -> crate::FleetFiles {
    let (component, node) = ("w".repeat(component), "f".repeat(node));
    let mut fleet = two_providers();
    for text in fleet.0.values_mut() {
        *text = text
            .replace("wiki\"", &format!("{component}\""))
            .replace("[forge]", &format!("[{node}]"));
        *text = text.replace("nodes.forge]", &format!("nodes.{node}]"));
    }
    let file = fleet.0.remove("components/wiki.toml").unwrap();
    fleet.with(&format!("components/{component}.toml"), &file)
}

#[test]
fn a_role_over_the_limit_of_its_engine_is_refused_with_length_limit_and_what_to_shorten() {
    assert!(
        renamed(42, 20)
            .resolution()
            .grants()
            .iter()
            .any(|grant| grant.name.starts_with("ffff"))
    );
    let fleet = renamed(43, 20);
    let errors = fleet.resolve_errors();
    let role = format!("{}_{}", "w".repeat(43), "f".repeat(20));
    for line in [
        format!("error[model::name-too-long]: the role `{role}` has 64 bytes, and `postgresql` takes 63"),
        format!("error[model::name-too-long]: the access key `{role}` has 64 bytes, and `garage` takes 63"),
        format!(
            "help: shorten the name of the component `{}` or of the node",
            "w".repeat(43)
        ),
        "by 1 bytes together: a cut name could be another's".to_owned(),
    ] {
        assert!(errors.contains(&line), "{line}\n{errors}");
    }
}

#[test]
fn each_engine_has_its_own_limit() {
    let limits = [
        "postgresql",
        "mysql",
        "mariadb",
        "sqlserver",
        "minio",
        "ldap",
        "unheard-of",
    ]
    .map(limit);
    assert_eq!(limits, [63, 32, 80, 128, 20, 64, 63]);
    // Where PostgreSQL takes a name, MySQL may not.
    let of_mysql = |fleet: crate::FleetFiles| {
        let mut fleet = fleet;
        for text in fleet.0.values_mut() {
            *text = text.replace("postgresql", "mysql");
        }
        fleet
    };
    assert!(of_mysql(renamed(16, 15)).resolution().grants().len() > 1);
    let errors = of_mysql(renamed(16, 16)).resolve_errors();
    assert!(errors.contains("has 33 bytes, and `mysql` takes 32"), "{errors}");
}

#[test]
fn a_component_grants_by_one_provision_only() {
    let file = "provides = [\n  { name = \"postgresql\", scope = \"mesh\", grants = \"role\" },\n  { name = \"replica\", \
                scope = \"mesh\", grants = \"role\" },\n]\n";
    let errors = two_providers()
        .with("components/postgres-a.toml", file)
        .load_errors();
    assert!(
        errors.contains("error[model::grants-twice]: `postgres-a` grants by `postgresql` and by `replica`"),
        "{errors}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(2),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_two_consumers_share_a_name_or_a_path(
        a in ("[a-b]([a-b-]{0,3}[a-b])?", "[a-b]([a-b-]{0,3}[a-b])?"),
        b in ("[a-b]([a-b-]{0,3}[a-b])?", "[a-b]([a-b-]{0,3}[a-b])?"),
    ) {
        let names = |(component, node): &(String, String)| -> (ComponentName, NodeName) {
            (component.parse().unwrap(), node.parse().unwrap())
        };
        let ((component_a, node_a), (component_b, node_b)) = (names(&a), names(&b));
        let (end_a, end_b) = (End::new(&node_a, &component_a), End::new(&node_b, &component_b));
        prop_assert_eq!(login_name(&component_a, &node_a) == login_name(&component_b, &node_b), a == b);
        prop_assert_eq!(taken("p", &end_a) == taken("p", &end_b), a == b);
    }
}
