//! What `ssl` asks for, and what an internal CA answers.

use serde_json::json;

use super::*;
use crate::node_plan::{GrantFile, GrantKind, GrantPart};
use crate::policy::{Asked, ConsumerSide, Origin, Policy as _};
use crate::shape::{Argument, Shape};
use crate::testing::{assert_lines, two_of_everything};

const POLICY: Policy = Policy {
    issuer: Issuer::InternalCa,
};

fn asked(component: &str, instance: &str, domain: &str) -> Asked<Request> {
    let place = crate::diagnostic::Place {
        file: format!("components/{component}.toml"),
        span: 0..1,
    };
    let origin = Origin {
        component: component.parse().unwrap(),
        instance: instance.parse().unwrap(),
        place,
    };
    Asked {
        origin,
        request: Request {
            domain: domain.to_owned(),
        },
    }
}

fn answered(requests: &[Asked<Request>]) -> ConsumerSide {
    POLICY
        .apply(Argument::List(
            requests.iter().cloned().map(Argument::Leaf).collect(),
        ))
        .unwrap()
}

#[test]
fn the_answer_is_two_paths_and_a_service_below_the_component_and_its_instance() {
    let answer = Answer::to(&asked("website", "main", "app.example.test").origin);
    assert_eq!(
        answer.cert,
        "/var/lib/provisor/grants/website/main/certificate.pem"
    );
    assert_eq!(answer.key, "/var/lib/provisor/grants/website/main/key.pem");
    assert_eq!(answer.systemd_service, "nginx.service");
}

#[test]
fn two_requests_are_two_modules_that_set_the_certificate_of_each_domain_and_nothing_else() {
    let side = answered(&[
        asked("website", "main", "app.example.test"),
        asked("website", "other", "www.example.test"),
    ]);
    let module = |domain: &str, instance: &str| {
        let folder = format!("/var/lib/provisor/grants/website/{instance}");
        json!({ "services": { "nginx": { "virtualHosts": { domain: {
            "sslCertificate": format!("{folder}/certificate.pem"),
            "sslCertificateKey": format!("{folder}/key.pem"),
        } } } } })
    };
    assert_eq!(
        side.modules,
        [
            module("app.example.test", "main"),
            module("www.example.test", "other")
        ]
    );
}

#[test]
fn the_key_is_for_root_only_and_the_chain_for_everyone_and_nginx_reads_both() {
    let side = answered(&[
        asked("website", "main", "app.example.test"),
        asked("webmail", "main", "mail.example.test"),
    ]);
    let file = |part, path: &str, mode: &str| GrantFile {
        part,
        path: path.to_owned(),
        owner: "root".to_owned(),
        group: "root".to_owned(),
        mode: mode.to_owned(),
    };
    let [website, webmail] = side.grants.as_slice() else {
        panic!("{:?}", side.grants);
    };
    assert_eq!(
        website.kind,
        GrantKind::Certificate {
            domain: "app.example.test".to_owned()
        }
    );
    assert_eq!(
        website.files,
        [
            file(
                GrantPart::PrivateKey,
                "/var/lib/provisor/grants/website/main/key.pem",
                "0600"
            ),
            file(
                GrantPart::CertificateChain,
                "/var/lib/provisor/grants/website/main/certificate.pem",
                "0644"
            ),
        ]
    );
    assert_eq!(website.units, ["nginx.service"]);
    assert_eq!(
        webmail.kind,
        GrantKind::Certificate {
            domain: "mail.example.test".to_owned()
        }
    );
}

#[test]
fn without_requests_nothing_is_answered() {
    assert_eq!(
        answered(&[]),
        ConsumerSide {
            modules: vec![],
            grants: vec![]
        }
    );
}

#[test]
fn it_is_a_contract_resource_whose_policy_takes_a_list() {
    assert!(Resource::Ssl.is_contract());
    assert_eq!(POLICY.resource_type(), Resource::Ssl);
    assert_eq!(POLICY.apply_input(), Shape::ListOf(&Shape::Attrs));
    assert_eq!(Resource::Ssl.default_policy(), None);
}

#[test]
fn a_request_needs_a_domain_in_its_one_form() {
    for (written, error) in [
        (
            "",
            "error[model::missing-field]: an `ssl` request has no `domain`",
        ),
        (
            "domain = 1",
            "error[model::wrong-type]: this is an integer where a domain",
        ),
        (
            "domain = \"*.example.test\"",
            "error[model::invalid-value]: `*.example.test` is not a domain",
        ),
        (
            "domian = \"a.test\"\ndomain = \"a.test\"",
            "error[model::unknown-field]: an `ssl` request has no key `domian`",
        ),
    ] {
        let fleet = two_of_everything().edit(
            "components/proxy.toml",
            "domain = \"proxy.example.test\"",
            written,
        );
        let errors = fleet.load_errors();
        assert!(errors.starts_with(error), "{errors}");
        assert_eq!(errors.matches("error[").count(), 1, "{errors}");
    }
}

#[test]
fn a_policy_needs_an_issuer_that_there_is() {
    for (written, error) in [
        ("", "error[model::missing-field]: an `ssl` policy has no `issuer`"),
        (
            "issuer = true",
            "error[model::wrong-type]: this is a boolean where an issuer",
        ),
        (
            "issuer = \"acme\"",
            "error[model::invalid-value]: `ssl` has no issuer `acme`",
        ),
    ] {
        let from = "\"own-certificates\".ssl]\nissuer = \"internal-ca\"";
        let fleet = two_of_everything().edit(
            "fleet.toml",
            from,
            &format!("\"own-certificates\".ssl]\n{written}"),
        );
        let errors = fleet.load_errors();
        assert!(errors.starts_with(error), "{errors}");
        assert_eq!(errors.matches("error[").count(), 1, "{errors}");
    }
}

#[test]
fn one_domain_is_asked_for_once_per_node() {
    let twice = two_of_everything().edit("components/webmail.toml", "domain = \"mail.", "domain = \"www.");
    assert_lines(
        &twice.resolve_errors(),
        r#"
        error[model::certificate-twice]: on the node `app`, `webmail` (its `ssl` under `main`) and `website` (its `ssl` under `other`) both ask for a certificate for `www.example.test`
          components/website.toml:6:20 "ssl": for `website`
          components/webmail.toml:3:19 "ssl": for `webmail`
          help: ask once for each domain of a node: remove one of the two requests, or change its domain
        "#,
    );
    let same_component =
        two_of_everything().edit("components/website.toml", "domain = \"www.", "domain = \"app.");
    assert!(
        same_component
            .resolve_errors()
            .starts_with("error[model::certificate-twice]")
    );
}

#[test]
fn one_domain_on_two_nodes_is_two_certificates() {
    // `webmail` is on `app` and on `site`.
    let grants = two_of_everything().resolution().grants();
    let names: Vec<_> = grants
        .iter()
        .filter(|grant| {
            grant.kind
                == GrantKind::Certificate {
                    domain: "mail.example.test".to_owned(),
                }
        })
        .map(|grant| grant.name.as_str())
        .collect();
    assert_eq!(names, ["app/webmail/ssl/main", "site/webmail/ssl/main"]);
}
