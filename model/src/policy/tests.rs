//! Two policies that answer with what they were called with, two components, two instance keys, two resources.

use serde_json::json;

use super::*;
use crate::resources::nixos_module::NixosModule;
use crate::resources::{nixos_module, ssl};
use crate::shape::Scalar;

/// Takes the default input; answers with the modules it was given.
struct Listed;

impl Policy for Listed {
    type Of = NixosModule;
    type Input = Vec<Leaf<Asked<nixos_module::Request>>>;
    type Outcome = HostModules;

    fn answer(&self, input: Self::Input) -> HostModules {
        HostModules(
            input
                .into_iter()
                .map(|Leaf(asked)| asked.request.module)
                .collect(),
        )
    }
}

/// Keeps the keys, as `smtp` and `secrets` do; answers with one module that shows them.
struct Keyed;

impl Policy for Keyed {
    type Of = NixosModule;
    type Input = BTreeMap<String, BTreeMap<String, Leaf<Asked<nixos_module::Request>>>>;
    type Outcome = HostModules;

    fn answer(&self, input: Self::Input) -> HostModules {
        let names =
            |(app, keys): (String, BTreeMap<String, _>)| json!({ app: keys.into_keys().collect::<Vec<_>>() });
        HostModules(input.into_iter().map(names).collect())
    }

    fn process(&self, requests: Argument<Instance>) -> Result<HostModules, PolicyError> {
        let mut by_app: BTreeMap<String, BTreeMap<String, Argument<_>>> = BTreeMap::new();
        for asked in flatten::<NixosModule>(by_component(self.resource_type(), requests)?).into_values() {
            let Origin {
                component, instance, ..
            } = asked.origin.clone();
            by_app
                .entry(component.into())
                .or_default()
                .insert(instance.into(), Argument::Leaf(asked));
        }
        self.apply(Argument::attrs(
            by_app.into_iter().map(|(app, keys)| (app, Argument::Attrs(keys))),
        ))
    }
}

fn asked<R>(component: &str, instance: &str, request: R) -> Asked<R> {
    let place = Place {
        file: format!("components/{component}.toml"),
        span: 0..1,
    };
    let origin = Origin {
        component: component.parse().unwrap(),
        instance: instance.parse().unwrap(),
        place,
    };
    Asked { origin, request }
}

fn module(component: &str, instance: &str) -> Asked<nixos_module::Request> {
    asked(
        component,
        instance,
        nixos_module::Request {
            module: json!({ component: instance }),
        },
    )
}

/// One component's instance with a request for each of two resources.
fn instance(component: &str, key: &str) -> Argument<Instance> {
    let module = asked(
        component,
        key,
        Request::NixosModule(module(component, key).request),
    );
    let domain = format!("{key}.{component}.test");
    let certificate = asked(component, key, Request::Ssl(ssl::Request { domain }));
    Argument::Leaf(BTreeMap::from([
        (Resource::NixosModule, module),
        (Resource::Ssl, certificate),
    ]))
}

/// `web` and `web-2`, each with the instances `first` and `second`.
fn requests() -> Argument<Instance> {
    let keys = |component| Argument::attrs(["second", "first"].map(|key| (key, instance(component, key))));
    Argument::attrs(["web", "web-2"].map(|component| (component, keys(component))))
}

fn shape_message<T: std::fmt::Debug>(result: Result<T, PolicyError>) -> String {
    let PolicyError::Shape(error) = result.unwrap_err();
    error.to_string()
}

#[test]
fn without_its_own_process_a_policy_receives_one_list_of_the_matching_requests() {
    let answered = Listed.process(requests()).unwrap();
    assert_eq!(
        answered,
        Listed
            .apply(Argument::List(vec![
                Argument::Leaf(module("web-2", "first")),
                Argument::Leaf(module("web-2", "second")),
                Argument::Leaf(module("web", "first")),
                Argument::Leaf(module("web", "second")),
            ]))
            .unwrap()
    );
}

#[test]
fn the_list_is_ordered_by_the_written_key_and_has_lost_it() {
    // "web-2.first" is before "web.first", as Nix orders them.
    let HostModules(modules) = Listed.process(requests()).unwrap();
    assert_eq!(
        modules,
        [
            json!({ "web-2": "first" }),
            json!({ "web-2": "second" }),
            json!({ "web": "first" }),
            json!({ "web": "second" }),
        ]
    );
}

#[test]
fn requests_for_other_resources_are_left_out() {
    let only_ssl = BTreeMap::from([(
        Resource::Ssl,
        asked(
            "web",
            "main",
            Request::Ssl(ssl::Request {
                domain: "a.test".to_owned(),
            }),
        ),
    )]);
    let requests = Argument::attrs([("web", Argument::attrs([("main", Argument::Leaf(only_ssl))]))]);
    assert_eq!(Listed.process(requests), Ok(HostModules(vec![])));
}

#[test]
fn no_requests_are_an_empty_list() {
    assert_eq!(
        Listed.process(Argument::Attrs(BTreeMap::new())),
        Ok(HostModules(vec![]))
    );
}

#[test]
fn a_policy_that_overrides_process_sees_the_requests_by_component() {
    let HostModules(modules) = Keyed.process(requests()).unwrap();
    assert_eq!(
        modules,
        [
            json!({ "web": ["first", "second"] }),
            json!({ "web-2": ["first", "second"] })
        ]
    );
}

#[test]
fn the_apply_input_is_a_list_by_convention_and_what_the_policy_declares_otherwise() {
    assert_eq!(format!("{:#}", Listed.apply_input()), "listOf attrs");
    assert_eq!(format!("{:#}", Keyed.apply_input()), "attrsOf (attrsOf attrs)");
}

#[test]
fn apply_given_a_scalar_names_option_and_type() {
    assert_eq!(
        shape_message(Listed.apply(Argument::Scalar(Scalar::String))),
        "`resources.nixos-module.policy.apply` takes a list of attribute sets (`listOf attrs`), and its argument is a \
         string; pass a list of attribute sets"
    );
}

#[test]
fn apply_given_the_shape_of_another_policy_names_option_and_type() {
    let by_app = Argument::attrs([("web", Argument::Leaf(module("web", "first")))]);
    assert!(
        shape_message(Listed.apply(by_app))
            .contains("(`listOf attrs`), and its argument is an attribute set")
    );
    let list = Argument::List(vec![Argument::Leaf(module("web", "first"))]);
    assert!(
        shape_message(Keyed.apply(list)).contains("(`attrsOf (attrsOf attrs)`), and its argument is a list")
    );
}

#[test]
fn process_given_a_wrong_shape_names_option_and_type_in_either_kind_of_policy() {
    let wrong = || {
        Argument::attrs([(
            "web",
            Argument::attrs([("main", Argument::Scalar(Scalar::Number))]),
        )])
    };
    let expected = "`resources.nixos-module.policy.process` takes an attribute set of attribute sets of attribute sets \
                    (`attrsOf (attrsOf attrs)`), and its argument's `.\"web\".\"main\"` is a number; pass an \
                    attribute set of attribute sets of attribute sets";
    assert_eq!(shape_message(Listed.process(wrong())), expected);
    assert_eq!(shape_message(Keyed.process(wrong())), expected);
    assert!(shape_message(Listed.process(Argument::List(vec![]))).contains("its argument is a list"));
}
