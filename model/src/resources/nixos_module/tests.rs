//! NixOS options, unchanged.

use serde_json::json;

use super::*;
use crate::policy::Policy as _;
use crate::shape::Shape;
use crate::testing::two_of_everything;

fn module_of(written: &str) -> Value {
    let fleet = two_of_everything().with(
        "components/bash.toml",
        &format!("provides = [\"shell\"]\n{written}"),
    );
    let model = fleet.model();
    let instance = model
        .component("bash")
        .unwrap()
        .resources
        .values()
        .next()
        .unwrap()
        .clone();
    let registry::Request::NixosModule(request) = instance[&Resource::NixosModule].request.clone() else {
        panic!("{instance:?}");
    };
    request.module
}

#[test]
fn a_module_is_any_options_as_json_with_sorted_keys() {
    let module = module_of(
        r#"
        [resources."x".nixos-module.module]
        services.nginx.virtualHosts."b.test".root = "/b"
        services.nginx.enable = true
        networking.firewall.allowedTCPPorts = [80, 443]
        boot.ratio = 0.5
        boot.list = [{ b = 1, a = "two" }]
        "#,
    );
    assert_eq!(
        module.to_string(),
        r#"{"boot":{"list":[{"a":"two","b":1}],"ratio":0.5},"networking":{"firewall":{"allowedTCPPorts":[80,443]}},"services":{"nginx":{"enable":true,"virtualHosts":{"b.test":{"root":"/b"}}}}}"#
    );
}

#[test]
fn what_json_cannot_hold_is_refused_in_each_of_its_places() {
    let written =
        "[resources.\"x\".nixos-module.module]\na = nan\nb = [1, -inf]\nc.d = 1979-05-27T07:32:00Z\n";
    let errors = two_of_everything()
        .with("components/bash.toml", written)
        .load_errors();
    for line in [
        "bash.toml:2:5 \"nan\": here",
        "bash.toml:3:9 \"-inf\": here",
        "bash.toml:4:7 \"1979-05-27T07:32:00Z\": here",
    ] {
        assert!(errors.contains(line), "{line}\n{errors}");
    }
}

#[test]
fn a_request_is_a_table_under_module() {
    for (written, error) in [
        (
            "nixos-module.services.nginx.enable = true",
            "error[model::unknown-field]: a `nixos-module` request has no key `services`",
        ),
        (
            "nixos-module = {}",
            "error[model::missing-field]: a `nixos-module` request has no `module`",
        ),
        (
            "nixos-module.module = \"./nginx.nix\"",
            "error[model::wrong-type]: this is a string where a table of NixOS options belongs",
        ),
        (
            "nixos-module = []",
            "error[model::wrong-type]: this is a list where the table of a `nixos-module` request belongs",
        ),
    ] {
        let file = format!("provides = [\"shell\"]\n[resources.\"x\"]\n{written}\n");
        let errors = two_of_everything()
            .with("components/bash.toml", &file)
            .load_errors();
        assert!(errors.contains(error), "{errors}");
    }
}

#[test]
fn each_request_is_one_module_and_nothing_else() {
    let fleet = two_of_everything().with(
        "components/bash.toml",
        "provides = [\"shell\"]\nresources.b.nixos-module.module.x = 1\nresources.a.nixos-module.module.x = 2\n",
    );
    let plans = fleet.resolution().plans(&Default::default());
    assert_eq!(plans["site"].modules[..2], [json!({ "x": 2 }), json!({ "x": 1 })]);
}

#[test]
fn it_wraps_no_contract_and_needs_no_policy() {
    assert!(!Resource::NixosModule.is_contract());
    assert_eq!(Policy.resource_type(), Resource::NixosModule);
    assert_eq!(Policy.apply_input(), Shape::ListOf(&Shape::Attrs));
    // The environment `production` holds none.
    let fleet = two_of_everything().edit("fleet.toml", "[\"proxy\"]", "[\"proxy\", \"bash\"]");
    let plan = &fleet.resolution().plans(&Default::default())["proxy"];
    assert_eq!(
        plan.modules[0],
        json!({ "programs": { "bash": { "enable": true } } })
    );
}
