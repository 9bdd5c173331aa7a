//! How an environment answers requests for a resource. [`Policy::process`] is the only door to a policy.

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

use crate::diagnostic::Place;
use crate::names::{ComponentName, InstanceKey};
use crate::node_plan::{GrantFile, GrantKind};
use crate::resources::Definition;
use crate::resources::registry::{Request, Resource};
use crate::shape::{Argument, Layers, Leaf, Shape, ShapeError};

/// The requests that one component makes under one instance key, each of another resource.
pub type Instance = BTreeMap<Resource, Asked<Request>>;

/// Requests by component, then by instance key: what `process` takes (RF FR-004a).
pub type ByComponent = BTreeMap<String, BTreeMap<String, Leaf<Instance>>>;

/// A request, and who makes it.
///
/// A policy may name what it makes after the origin. It must not combine requests by it: `process` gets the requests
/// of one component, and a policy that needs them by key says so in its [`Policy::Input`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked<R> {
    /// Who makes it.
    pub origin: Origin,
    /// What is asked.
    pub request: R,
}

/// Who makes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The component.
    pub component: ComponentName,
    /// Its key for the request.
    pub instance: InstanceKey,
    /// Where the request is written.
    pub place: Place,
}

/// What an environment answers a resource's requests with.
///
/// A policy sets its resource ([`Policy::Of`]), what `apply` takes ([`Policy::Input`]) and what it answers
/// ([`Policy::answer`]). `apply` and `process` are provided; one that needs the keys of the requests overrides
/// `process`.
pub trait Policy {
    /// The resource it answers for.
    type Of: Definition;
    /// What `apply` takes; a list of requests, unless the policy needs their keys.
    type Input: Layers<Asked<<Self::Of as Definition>::Request>>;
    /// What it answers. A resource whose policies answer with a [`ConsumerSide`] is a contract resource.
    type Outcome: Outcome;

    /// What requests of the right shape are answered with. It cannot fail: a request was checked when it was read.
    fn answer(&self, input: Self::Input) -> Self::Outcome;

    /// The resource it answers for.
    fn resource_type(&self) -> Resource {
        <Self::Of as Definition>::RESOURCE
    }

    /// The outer shape that `apply` takes.
    fn apply_input(&self) -> Shape {
        Self::Input::SHAPE
    }

    /// Checks the argument's outer shape, and answers.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Shape`] for another shape than [`Policy::apply_input`].
    fn apply(
        &self,
        argument: Argument<Asked<<Self::Of as Definition>::Request>>,
    ) -> Result<Self::Outcome, PolicyError> {
        Ok(self.answer(Self::Input::take(
            &option(self.resource_type(), "apply"),
            argument,
        )?))
    }

    /// Checks the outer shape of `requests`, selects those of this resource, and applies the list of them, ordered by
    /// `<component>.<instance key>` (RF FR-004). The caller passes one component's requests only (RF FR-005).
    ///
    /// # Errors
    ///
    /// [`PolicyError::Shape`] for requests that are not by component, then by instance key; or from `apply`.
    fn process(&self, requests: Argument<Instance>) -> Result<Self::Outcome, PolicyError> {
        let selected = flatten::<Self::Of>(by_component(self.resource_type(), requests)?);
        self.apply(Argument::List(
            selected.into_values().map(Argument::Leaf).collect(),
        ))
    }
}

/// Why a policy did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// It was called with something else than it takes.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// What a policy may answer.
pub trait Outcome: Into<Effects> {
    /// Whether it declares a consumer side; the set of contract resources is read off this (RF FR-009).
    const CONSUMER_SIDE: bool;
}

/// The answer of a resource that wraps no contract: modules for the node.
#[derive(Clone, Debug, PartialEq)]
pub struct HostModules(pub Vec<Value>);

/// The answer of a contract resource: what the consumer's node gets.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerSide {
    /// Modules for the consumer's node.
    pub modules: Vec<Value>,
    /// Credentials for the consumer.
    pub grants: Vec<GrantWanted>,
}

/// A credential that an answer needs on the consumer's node. It is named, and numbered, with the node's plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantWanted {
    /// For whom.
    pub origin: Origin,
    /// What is granted.
    pub kind: GrantKind,
    /// Files on the node.
    pub files: Vec<GrantFile>,
    /// Units that read the files.
    pub units: Vec<String>,
}

/// Any answer, as the node's plan takes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Modules for the node.
    pub modules: Vec<Value>,
    /// Credentials for the node.
    pub grants: Vec<GrantWanted>,
}

impl Outcome for HostModules {
    const CONSUMER_SIDE: bool = false;
}

impl From<HostModules> for Effects {
    fn from(HostModules(modules): HostModules) -> Effects {
        Effects {
            modules,
            grants: Vec::new(),
        }
    }
}

impl Outcome for ConsumerSide {
    const CONSUMER_SIDE: bool = true;
}

impl From<ConsumerSide> for Effects {
    fn from(ConsumerSide { modules, grants }: ConsumerSide) -> Effects {
        Effects { modules, grants }
    }
}

/// Checks the outer shape of what `process` is called with. For policies that override `process`.
///
/// # Errors
///
/// [`ShapeError`] for requests that are not by component, then by instance key.
pub fn by_component(resource: Resource, requests: Argument<Instance>) -> Result<ByComponent, ShapeError> {
    ByComponent::take(&option(resource, "process"), requests)
}

/// The requests for one resource, by `<component>.<instance key>`. A component's name has no dot, so that no two
/// requests get one key.
pub fn flatten<D: Definition>(by_component: ByComponent) -> BTreeMap<String, Asked<D::Request>> {
    let select = |(component, instances): (String, BTreeMap<String, Leaf<Instance>>)| {
        let named = move |(key, Leaf(mut instance)): (String, Leaf<Instance>)| {
            let Asked { origin, request } = instance.remove(&D::RESOURCE)?;
            Some((
                format!("{component}.{key}"),
                Asked {
                    origin,
                    request: D::select(request)?,
                },
            ))
        };
        instances.into_iter().filter_map(named)
    };
    by_component.into_iter().flat_map(select).collect()
}

fn option(resource: Resource, function: &str) -> String {
    format!("resources.{resource}.policy.{function}")
}

#[cfg(test)]
mod tests;
