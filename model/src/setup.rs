//! What the components of one node come to: each policy answers its own component's requests, and the answers are
//! put in order.
//!
//! The order of a node's modules is: by component, then by resource in the registry's order, then by instance key.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Report, code};
use crate::fleet::component::{Component, STATE_BACKEND, Serves};
use crate::fleet::{Model, Node};
use crate::grants::Claim;
use crate::names::{ComponentName, EnvironmentName};
use crate::node_plan::StateBackend;
use crate::policy::{Asked, Effects, Instance};
use crate::resources::registry::{AnyPolicy, Request, Resource};
use crate::shape::Argument;
use crate::writers;

/// What a node gets.
#[derive(Debug, Default)]
pub(crate) struct NodeSetup {
    pub(crate) modules: Vec<Value>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) state_backend: Option<StateBackend>,
}

/// Sets up nodes, and says once what is missing on several.
pub(crate) struct Setup<'a> {
    model: &'a Model,
    report: &'a mut Report,
    without_policy: BTreeSet<(&'a EnvironmentName, &'a ComponentName, Resource)>,
}

impl<'a> Setup<'a> {
    pub(crate) fn new(model: &'a Model, report: &'a mut Report) -> Setup<'a> {
        Setup {
            model,
            report,
            without_policy: BTreeSet::new(),
        }
    }

    /// Sets up `node` with the components it has, assigned or added.
    pub(crate) fn node(&mut self, node: &'a Node, components: &[&'a Component]) -> NodeSetup {
        let mut setup = NodeSetup::default();
        for component in components {
            for resource in Resource::ALL {
                self.resource(node, component, resource, &mut setup);
            }
            if let Some(provision) = component.provides.get(STATE_BACKEND) {
                let port = provision.serves.as_ref().and_then(Serves::port);
                setup.state_backend = setup.state_backend.or(port.map(|port| StateBackend { port }));
                setup
                    .claims
                    .push(Claim::of_state_backend(&component.name, &provision.place));
            }
        }
        writers::check(node, components, &setup.claims, self.report);
        setup
    }

    fn resource(
        &mut self,
        node: &'a Node,
        component: &'a Component,
        resource: Resource,
        setup: &mut NodeSetup,
    ) {
        let Some(first) = component
            .resources
            .values()
            .find_map(|instance| instance.get(&resource))
        else {
            return;
        };
        let Some(policy) = self.policy(node, component, resource, first) else {
            return;
        };
        match policy.process(requests(component)) {
            Ok(Effects { modules, grants }) => {
                setup.modules.extend(modules);
                setup.claims.extend(
                    grants
                        .into_iter()
                        .map(|wanted| Claim::of_request(resource, wanted)),
                );
            }
            Err(error) => {
                let help = "this is a fault in the resource's policy: report it, with this message";
                self.report.add(
                    Diagnostic::error(code::WRONG_SHAPE, error.to_string(), help)
                        .at(&first.origin.place, "while answering this"),
                );
            }
        }
    }

    /// The policy of the node's environment, else the resource's own.
    fn policy(
        &mut self,
        node: &'a Node,
        component: &'a Component,
        resource: Resource,
        first: &Asked<Request>,
    ) -> Option<AnyPolicy> {
        let group = self.model.group(node.group.as_str())?;
        let environment = self.model.environment(group.environment.as_str())?;
        let held = environment
            .policies
            .get(&resource)
            .map(|labelled| labelled.policy.clone());
        let policy = held.or_else(|| resource.default_policy());
        if policy.is_none()
            && self
                .without_policy
                .insert((&group.environment, &component.name, resource))
        {
            let message = format!(
                "`{}` asks for `{resource}`, and the environment `{}` of the group `{}` has no policy for it",
                component.name, group.environment, group.name
            );
            let help = format!(
                "add a policy to `fleet.toml` under a label of your choice, such as \
                 `environments.{}.resources.{resource}.{}`",
                group.environment,
                resource.policy_example()
            );
            self.report.add(
                Diagnostic::error(code::NO_POLICY, message, help).at(&first.origin.place, "asked for here"),
            );
        }
        policy
    }
}

/// The requests of one component only (RF FR-005).
fn requests(component: &Component) -> Argument<Instance> {
    let instances = component
        .resources
        .iter()
        .map(|(key, instance)| (key.as_str(), Argument::Leaf(instance.clone())));
    Argument::attrs([(component.name.as_str(), Argument::attrs(instances))])
}

#[cfg(test)]
mod tests;
