//! The three faults that once went unseen, and hostile data: none may come back.

use std::collections::BTreeSet;

use super::*;
use crate::node_plan::GrantKind;

/// Name of the login, its consumer and its provider, of every credential that the grants of a node are about.
fn logins(plan: &NodePlan) -> Vec<String> {
    let login = |grant: &Grant| match &grant.kind {
        GrantKind::Role(login) | GrantKind::AccessKey(login) => {
            Some(format!("{} {} {}", login.name, login.consumer, login.provider))
        }
        GrantKind::Certificate { .. } | GrantKind::BackendUsers => None,
    };
    plan.grants.iter().filter_map(login).collect()
}

#[test]
fn three_components_of_one_node_have_three_needs_three_roles_and_three_credentials() {
    let fleet = two_providers();
    let needs: Vec<_> = fleet
        .answers()
        .into_iter()
        .filter(|answer| answer.starts_with("forge/") && answer.contains(" postgresql "))
        .collect();
    assert_eq!(
        needs,
        [
            "forge/gitea postgresql db-a/postgres-a",
            "forge/keycloak postgresql db-a/postgres-a",
            "forge/wiki postgresql db-a/postgres-a",
        ]
    );
    let provider = fleet.plan("db-a");
    let roles: Vec<_> = logins(&provider)
        .into_iter()
        .filter(|login| login.ends_with("postgres-a"))
        .collect();
    assert_eq!(
        roles,
        [
            "gitea_forge forge/gitea db-a/postgres-a",
            "keycloak_forge forge/keycloak db-a/postgres-a",
            "wiki_forge forge/wiki db-a/postgres-a",
        ]
    );
    let names: BTreeSet<_> = provider.grants.iter().map(|grant| &grant.name).collect();
    assert_eq!(names.len(), provider.grants.len());
    assert_eq!(provider.grants.len(), 5, "three roles and two access keys");
}

#[test]
fn a_need_is_matched_by_provision_and_component_and_never_by_provision_alone() {
    // Each consumer's file, on its own node, is of the grant that names it as the consumer.
    for node in ["forge", "desk"] {
        let plan = two_providers().plan(node);
        for grant in &plan.grants {
            let (GrantKind::Role(login) | GrantKind::AccessKey(login)) = &grant.kind else {
                panic!("{grant:?}");
            };
            assert_eq!(login.consumer.node, node);
            let folder = format!("/taken/{}/{node}/{}/", login.provision, login.consumer.component);
            assert!(
                grant.files.iter().all(|file| file.path.contains(&folder)),
                "{grant:?}"
            );
            assert_eq!(login.name, format!("{}_{node}", login.consumer.component));
        }
    }
    // One component with the same name on two nodes is two consumers, at two providers.
    let grants = two_providers().resolution().grants();
    let of_gitea: Vec<_> = grants
        .iter()
        .map(|grant| grant.name.as_str())
        .filter(|name| name.contains("/gitea/postgresql"))
        .collect();
    assert_eq!(
        of_gitea,
        [
            "desk/gitea/postgresql/db-b/postgres-b",
            "forge/gitea/postgresql/db-a/postgres-a",
        ]
    );
}

#[test]
fn a_grant_file_is_named_after_both_halves_of_its_consumer() {
    // Both consumers named `gitea` and all of `forge` on one provider: only both halves tell them apart.
    let fleet = two_providers().edit(
        "pins.toml",
        "postgresql = { node = \"db-b\", component = \"postgres-b\" }",
        "postgresql = { node = \"db-a\", component = \"postgres-a\" }",
    );
    let plan = fleet.plan("db-a");
    let paths: Vec<_> = plan
        .grants
        .iter()
        .flat_map(|grant| &grant.files)
        .map(|file| file.path.as_str())
        .filter(|path| path.contains("/postgresql/"))
        .collect();
    let given = "/var/lib/provisor/credentials/given/postgres-a/postgresql";
    assert_eq!(
        paths,
        [
            format!("{given}/desk/gitea/password"),
            format!("{given}/desk/keycloak/password"),
            format!("{given}/forge/gitea/password"),
            format!("{given}/forge/keycloak/password"),
            format!("{given}/forge/wiki/password"),
        ]
    );
}

/// A fleet of one group, `g`, with one network.
fn fleet(nodes: impl Iterator<Item = (String, String)>, components: Vec<(String, String)>) -> FleetFiles {
    let mut text = "name = \"big\"\nnetworks.mesh.cidr = \"10.0.0.0/8\"\nenvironments.e = {}\n[groups.g]\nenvironment = \"e\"\n".to_owned();
    for (index, (node, assigned)) in nodes.enumerate() {
        let address = format!("10.{}.{}.{}", index >> 16, (index >> 8) & 255, index & 255);
        text += &format!(
            "[groups.g.nodes.{node}]\naddress = \"{address}\"\nnetworks.mesh = \"{address}\"\ncomponents = [{assigned}]\n"
        );
    }
    let files = components
        .into_iter()
        .map(|(name, text)| (format!("components/{name}.toml"), text));
    FleetFiles(
        [("fleet.toml".to_owned(), text)]
            .into_iter()
            .chain(files)
            .collect(),
    )
}

#[test]
fn a_hundred_thousand_nodes_in_a_chain_resolve() {
    const LENGTH: usize = 100_000;
    let link = |index: usize| {
        let next = match index + 1 {
            LENGTH => String::new(),
            next => format!("requires = [\"p{next}\"]\n"),
        };
        let provides = format!("provides = [{{ name = \"p{index}\", scope = \"mesh\" }}]\n");
        (format!("c{index}"), next + &provides)
    };
    let nodes = (0..LENGTH).map(|index| (format!("n{index}"), format!("\"c{index}\"")));
    let fleet = fleet(nodes, (0..LENGTH).map(link).collect());
    let resolution = fleet.resolution();
    assert_eq!(resolution.answers().len(), LENGTH - 1);
}

#[test]
fn a_hundred_thousand_components_in_a_chain_on_one_host_resolve() {
    const LENGTH: usize = 100_000;
    let link = |index: usize| {
        let requires = format!("requires = [\"p{}\"]\n", (index + 1) % LENGTH);
        (
            format!("c{index}"),
            format!("{requires}provides = [\"p{index}\"]\n"),
        )
    };
    let nodes = std::iter::once(("n".to_owned(), "\"c0\"".to_owned()));
    let fleet = fleet(nodes, (0..LENGTH).map(link).collect());
    let resolution = fleet.resolution();
    assert_eq!(resolution.plans["n"].components.len(), LENGTH);
}

#[test]
fn everybody_offering_to_everybody_is_refused_in_bounded_words() {
    let peer = "requires = [\"peer\"]\nprovides = [{ name = \"peer\", scope = \"mesh\" }]\n".to_owned();
    let nodes = (0..1000).map(|index| (format!("n{index}"), "\"peer\"".to_owned()));
    let fleet = fleet(nodes, vec![("peer".to_owned(), peer)]);
    let errors = resolve(&fleet.model()).unwrap_err();
    assert_eq!(errors.len(), 1000);
    assert!(
        errors[0].message.contains(" and 899 more provide it"),
        "{}",
        errors[0].message
    );
    assert!(errors.iter().all(|error| error.labels.len() <= 202));
}

#[test]
fn a_component_that_requires_itself_is_told_so() {
    let own = "requires = [\"x\"]\nprovides = [{ name = \"x\", scope = \"mesh\" }]\n".to_owned();
    let nodes = std::iter::once(("n".to_owned(), "\"own\"".to_owned()));
    let fleet = fleet(nodes, vec![("own".to_owned(), own)]);
    let errors = fleet.resolve_errors();
    assert!(
        errors.contains("`n/own` is no candidate: a component does not answer itself"),
        "{errors}"
    );
}
