//! What the components of a node come to.

use std::collections::BTreeMap;

use crate::node_plan::{GrantKind, StateBackend};
use crate::testing::{assert_lines, two_of_everything};

#[test]
fn modules_are_ordered_by_component_then_resource_then_instance_key() {
    let plan = &two_of_everything().resolution().plans(&BTreeMap::new())["app"];
    assert_eq!(plan.components, ["bash", "php", "webmail", "website"]);
    let modules: Vec<_> = plan.modules.iter().map(|module| module.to_string()).collect();
    let certificates = |component: &str, instance: &str| {
        let folder = format!("/var/lib/provisor/grants/{component}/{instance}");
        format!(r#""sslCertificate":"{folder}/certificate.pem","sslCertificateKey":"{folder}/key.pem""#)
    };
    let virtual_host = |domain: &str, options: &str| {
        format!(r#"{{"services":{{"nginx":{{"virtualHosts":{{"{domain}":{{{options}}}}}}}}}}}"#)
    };
    assert_eq!(
        modules,
        [
            r#"{"programs":{"bash":{"enable":true}}}"#.to_owned(),
            r#"{"services":{"phpfpm":{"pools":{"main":{"user":"php"}}}}}"#.to_owned(),
            virtual_host("mail.example.test", r#""onlySSL":true,"root":"/var/mail""#),
            virtual_host("mail.example.test", &certificates("webmail", "main")),
            r#"{"services":{"nginx":{"enable":true,"virtualHosts":{"app.example.test":{"onlySSL":true,"root":"/var/www"}}}}}"#
                .to_owned(),
            virtual_host("app.example.test", &certificates("website", "main")),
            virtual_host("www.example.test", &certificates("website", "other")),
            r#"{"networking":{"hosts":{"10.90.0.10":["backend.mesh"],"10.90.0.11":["proxy.mesh"]}}}"#.to_owned(),
        ]
    );
}

#[test]
fn the_node_that_provides_the_state_backend_serves_it_and_gets_its_users() {
    let resolution = two_of_everything().resolution();
    let plan = &resolution.plans(&BTreeMap::new())["backend"];
    assert_eq!(plan.state_backend, Some(StateBackend { port: 8080 }));
    let [users] = plan.grants.as_slice() else {
        panic!("{:?}", plan.grants);
    };
    assert_eq!(
        (users.name.as_str(), &users.kind),
        (
            "backend/state-backend/state-backend/users",
            &GrantKind::BackendUsers
        )
    );
    let [file] = users.files.as_slice() else {
        panic!("{:?}", users.files);
    };
    assert_eq!(
        (file.path.as_str(), file.mode.as_str()),
        ("/var/lib/provisor/grants/state-backend/users", "0600")
    );
    assert_eq!((file.owner.as_str(), file.group.as_str()), ("root", "root"));
    assert_eq!(users.units, ["provisor-backend.service"]);
}

#[test]
fn every_node_that_provides_a_state_backend_serves_it_whatever_a_group_names() {
    let fleet = two_of_everything().edit("fleet.toml", "[\"proxy\"]", "[\"proxy\", \"state-backend\"]");
    let plans = fleet.resolution().plans(&BTreeMap::new());
    let serving: Vec<_> = plans
        .values()
        .filter(|plan| plan.state_backend.is_some())
        .map(|plan| plan.name.as_str())
        .collect();
    assert_eq!(serving, ["backend", "proxy"]);
}

#[test]
fn a_request_that_the_environment_has_no_policy_for_is_refused_once_with_a_policy_to_write() {
    // `webmail` is on two nodes of the environment `test`.
    let policy = "[environments.test.resources.\"own-certificates\".ssl]\nissuer = \"internal-ca\"\n";
    let fleet = two_of_everything().edit("fleet.toml", policy, "");
    assert_lines(
        &fleet.resolve_errors(),
        r#"
        error[model::no-policy]: `webmail` asks for `ssl`, and the environment `test` of the group `alice` has no policy for it
          components/webmail.toml:3:19 "ssl": asked for here
          help: add a policy to `fleet.toml` under a label of your choice, such as `environments.test.resources.ssl.ssl = { issuer = "internal-ca" }`
        error[model::no-policy]: `website` asks for `ssl`, and the environment `test` of the group `alice` has no policy for it
          components/website.toml:3:19 "ssl": asked for here
          help: add a policy to `fleet.toml` under a label of your choice, such as `environments.test.resources.ssl.ssl = { issuer = "internal-ca" }`
        "#,
    );
}

#[test]
fn a_policy_sees_the_requests_of_its_own_component_only() {
    // Were they combined, `webmail`'s certificate would be granted under both components.
    let grants = two_of_everything().resolution().grants();
    let names: Vec<_> = grants.iter().map(|grant| grant.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "app/webmail/ssl/main",
            "app/website/ssl/main",
            "app/website/ssl/other",
            "backend/state-backend/state-backend/users",
            "proxy/proxy/ssl/main",
            "site/webmail/ssl/main",
        ]
    );
}
