use super::*;
use crate::raw::FleetFiles;
use crate::testing::two_providers;

const UNIT: &str = "provisor-postgresql-roles-postgres-a";

/// The module of one component's roles on one node.
fn module(fleet: &FleetFiles, node: &str, component: &str) -> Value {
    let unit = format!("provisor-postgresql-roles-{component}");
    let modules = fleet.plan(node).modules;
    let mut found = modules
        .into_iter()
        .filter(|module| module["systemd"]["services"][&unit].is_object());
    let module = found.next().unwrap();
    assert_eq!(found.next(), None);
    module
}

fn roles(module: &Value, component: &str) -> Vec<String> {
    let service = &module["systemd"]["services"][format!("provisor-postgresql-roles-{component}")];
    let credentials = service["serviceConfig"]["LoadCredential"].as_array().unwrap();
    let role = |credential: &Value| credential.as_str().unwrap().split(':').next().unwrap().to_owned();
    credentials.iter().map(role).collect()
}

fn sql(module: &Value, component: &str) -> String {
    let file = &module["environment"]["etc"][format!("provisor/postgresql-roles/{component}.sql")];
    file["text"].as_str().unwrap().to_owned()
}

/// The desk's database is with `db-a`, too.
fn all_with_db_a() -> FleetFiles {
    two_providers().edit(
        "pins.toml",
        "postgresql = { node = \"db-b\", component = \"postgres-b\" }",
        "postgresql = { node = \"db-a\", component = \"postgres-a\" }",
    )
}

#[test]
fn each_provider_makes_the_roles_of_its_own_consumers_and_of_nobody_else() {
    let fleet = two_providers();
    let (a, b) = (
        module(&fleet, "db-a", "postgres-a"),
        module(&fleet, "db-b", "postgres-b"),
    );
    assert_eq!(
        roles(&a, "postgres-a"),
        ["gitea_forge", "keycloak_forge", "wiki_forge"]
    );
    assert_eq!(roles(&b, "postgres-b"), ["gitea_desk", "keycloak_desk"]);
    assert_eq!(
        roles(&module(&all_with_db_a(), "db-a", "postgres-a"), "postgres-a"),
        [
            "gitea_desk",
            "keycloak_desk",
            "gitea_forge",
            "keycloak_forge",
            "wiki_forge"
        ]
    );
    assert_eq!(
        roles(&module(&all_with_db_a(), "db-b", "postgres-b"), "postgres-b"),
        [""; 0]
    );
}

#[test]
fn every_consumer_has_a_role_and_a_database_of_its_own_that_nobody_else_opens() {
    let sql = sql(&module(&two_providers(), "db-a", "postgres-a"), "postgres-a");
    for role in ["gitea_forge", "keycloak_forge", "wiki_forge"] {
        for line in [
            format!("CREATE ROLE \"{role}\" NOLOGIN"),
            format!("CREATE DATABASE \"{role}\" OWNER \"{role}\""),
            format!("REVOKE CONNECT, TEMPORARY ON DATABASE \"{role}\" FROM PUBLIC;"),
            format!("\\set password `cat \"$CREDENTIALS_DIRECTORY/{role}\"`"),
            format!("ALTER ROLE \"{role}\" LOGIN "),
        ] {
            assert_eq!(sql.matches(&line).count(), 1, "{line} in\n{sql}");
        }
    }
    assert!(!sql.contains('@'), "{sql}");
}

#[test]
fn a_consumer_that_is_gone_is_not_among_those_that_keep_their_login() {
    let wanted = |fleet: &FleetFiles| {
        let sql = sql(&module(fleet, "db-a", "postgres-a"), "postgres-a");
        let start = sql.find("ARRAY[").unwrap();
        sql[start..].split_inclusive(']').next().unwrap().to_owned()
    };
    assert_eq!(
        wanted(&two_providers()),
        "ARRAY['gitea_forge', 'keycloak_forge', 'wiki_forge']"
    );
    let without = two_providers().edit(
        "fleet.toml",
        "[\"gitea\", \"keycloak\", \"wiki\", \"bash\", \"zsh\"]",
        "[\"gitea\", \"wiki\", \"bash\", \"zsh\"]",
    );
    assert_eq!(wanted(&without), "ARRAY['gitea_forge', 'wiki_forge']");
}

#[test]
fn consumers_come_from_the_networks_that_they_share_with_their_provider() {
    let authentication = |fleet: &FleetFiles| {
        let module = module(fleet, "db-a", "postgres-a");
        let postgresql = &module["services"]["postgresql"];
        assert_eq!(postgresql["enable"], true);
        assert_eq!(postgresql["enableTCPIP"], true);
        assert_eq!(postgresql["settings"]["port"], 5432);
        postgresql["authentication"].as_str().unwrap().to_owned()
    };
    // `db-a` is in the network `storage`, too, and nobody comes from there.
    assert_eq!(
        authentication(&two_providers()),
        "host sameuser all 10.90.0.0/24 scram-sha-256\n"
    );
    let beside = two_providers().edit(
        "fleet.toml",
        "components = [\"postgres-a\", \"garage-a\"]",
        "components = [\"postgres-a\", \"garage-a\", \"local\"]",
    );
    let beside = beside
        .with("components/local.toml", "requires = [\"postgresql\"]\n")
        .edit(
            "pins.toml",
            "[desk]",
            "[db-a]\npostgresql = { node = \"db-a\", component = \"postgres-a\" }\n[desk]",
        );
    assert_eq!(
        authentication(&beside),
        "host sameuser all 10.90.0.0/24 scram-sha-256\n\
         host sameuser all 127.0.0.1/32 scram-sha-256\n\
         host sameuser all ::1/128 scram-sha-256\n"
    );
}

#[test]
fn the_unit_reads_each_password_from_the_file_that_is_delivered_to_its_node() {
    let fleet = two_providers();
    let plan = fleet.plan("db-a");
    let module = module(&fleet, "db-a", "postgres-a");
    let credentials = &module["systemd"]["services"][UNIT]["serviceConfig"]["LoadCredential"];
    let delivered: Vec<_> = plan
        .grants
        .iter()
        .filter_map(|grant| match &grant.kind {
            GrantKind::Role(login) => Some(format!("{}:{}", login.name, grant.files[0].path)),
            GrantKind::Certificate { .. } | GrantKind::BackendUsers | GrantKind::AccessKey(_) => None,
        })
        .collect();
    assert_eq!(*credentials, serde_json::json!(delivered));
}

#[test]
fn a_rotated_password_runs_the_unit_again_at_the_provider_only() {
    let units = |node: &str| -> Vec<(String, Vec<String>)> {
        let grants = two_providers().plan(node).grants.into_iter();
        let roles = grants.filter(|grant| matches!(grant.kind, GrantKind::Role(_)));
        roles.map(|grant| (grant.name, grant.units)).collect()
    };
    let at_provider = units("db-a");
    assert_eq!(at_provider.len(), 3);
    for (name, units) in at_provider {
        assert_eq!(units, [format!("{UNIT}.service")], "{name}");
    }
    assert!(units("forge").iter().all(|(_, units)| units.is_empty()));
}

#[test]
fn two_providers_on_one_node_have_units_and_scripts_of_their_own() {
    let fleet = two_providers()
        .edit(
            "fleet.toml",
            "components = [\"postgres-a\", \"garage-a\"]",
            "components = [\"postgres-a\", \"garage-a\", \"postgres-b\"]",
        )
        .edit(
            "pins.toml",
            "postgresql = { node = \"db-b\", component = \"postgres-b\" }",
            "postgresql = { node = \"db-a\", component = \"postgres-b\" }",
        );
    assert_eq!(
        roles(&module(&fleet, "db-a", "postgres-a"), "postgres-a"),
        ["gitea_forge", "keycloak_forge", "wiki_forge"]
    );
    assert_eq!(
        roles(&module(&fleet, "db-a", "postgres-b"), "postgres-b"),
        ["gitea_desk", "keycloak_desk"]
    );
}

#[test]
fn what_grants_no_role_gets_no_server_of_ours() {
    let plain = "provides = [{ name = \"postgresql\", scope = \"mesh\", serves = { port = 5432 } }]\n";
    let fleet = two_providers().with("components/postgres-a.toml", plain);
    let modules = fleet.plan("db-a").modules;
    assert!(
        modules
            .iter()
            .all(|module| module["services"]["postgresql"].is_null())
    );
}
