//! The one list of resources. It is matched without a wildcard: to add a resource is a list of compile errors.

use std::fmt;

use super::nixos_module::{self, NixosModule};
use super::ssl::{self, Ssl};
use super::{Definition, read};
use crate::policy::{Effects, Instance, Outcome as _, Policy, PolicyError};
use crate::raw::spot::Spot;
use crate::shape::Argument;

/// A resource of the registry, in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// [`nixos_module`]
    NixosModule,
    /// [`ssl`]
    Ssl,
}

/// A request of any resource, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is its resource's request")]
pub enum Request {
    NixosModule(nixos_module::Request),
    Ssl(ssl::Request),
}

/// A policy of any resource, closed: `process` is the only way in (RF FR-003).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnyPolicy(Held);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    NixosModule(nixos_module::Policy),
    Ssl(ssl::Policy),
}

impl Resource {
    /// Every resource, by name.
    pub const ALL: [Resource; 2] = [Resource::NixosModule, Resource::Ssl];

    /// As it is written in fleet files.
    pub fn name(self) -> &'static str {
        match self {
            Resource::NixosModule => NixosModule::NAME,
            Resource::Ssl => Ssl::NAME,
        }
    }

    /// The resource of that name.
    pub fn named(name: &str) -> Option<Resource> {
        Resource::ALL.into_iter().find(|resource| resource.name() == name)
    }

    /// What it is, for a person, in one line.
    pub fn description(self) -> &'static str {
        match self {
            Resource::NixosModule => NixosModule::DESCRIPTION,
            Resource::Ssl => Ssl::DESCRIPTION,
        }
    }

    /// Whether it is a contract resource: its policy declares a consumer side (RF FR-009).
    pub fn is_contract(self) -> bool {
        fn declares<D: Definition>() -> bool {
            <D::Policy as Policy>::Outcome::CONSUMER_SIDE
        }
        match self {
            Resource::NixosModule => declares::<NixosModule>(),
            Resource::Ssl => declares::<Ssl>(),
        }
    }

    /// The policy where an environment holds none, if the resource can do without one.
    pub fn default_policy(self) -> Option<AnyPolicy> {
        let held = match self {
            Resource::NixosModule => NixosModule::default_policy().map(Held::NixosModule),
            Resource::Ssl => Ssl::default_policy().map(Held::Ssl),
        };
        held.map(AnyPolicy)
    }

    /// A policy to write where one is missing, in TOML.
    pub(crate) fn policy_example(self) -> &'static str {
        match self {
            Resource::NixosModule => nixos_module::POLICY_EXAMPLE,
            Resource::Ssl => ssl::POLICY_EXAMPLE,
        }
    }

    /// The keys of its request and of its policy: a test checks that each is documented.
    #[cfg(test)]
    pub(crate) fn keys(self) -> [&'static crate::raw::spot::Keys; 2] {
        match self {
            Resource::NixosModule => read::keys::<NixosModule>(),
            Resource::Ssl => read::keys::<Ssl>(),
        }
    }

    /// Type-checks a request (RF US1-1). `None`: it is not one, and was reported.
    pub(crate) fn read_request(self, spot: Spot<'_>) -> Option<Request> {
        match self {
            Resource::NixosModule => read::request::<NixosModule>(spot).map(Request::NixosModule),
            Resource::Ssl => read::request::<Ssl>(spot).map(Request::Ssl),
        }
    }

    /// Type-checks a policy. `None`: it is not one, and was reported.
    pub(crate) fn read_policy(self, spot: Spot<'_>) -> Option<AnyPolicy> {
        let held = match self {
            Resource::NixosModule => read::policy::<NixosModule>(spot).map(Held::NixosModule),
            Resource::Ssl => read::policy::<Ssl>(spot).map(Held::Ssl),
        };
        held.map(AnyPolicy)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl AnyPolicy {
    /// Answers the requests of one component, given by component, then by instance key.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] as of [`Policy::process`].
    pub fn process(&self, requests: Argument<Instance>) -> Result<Effects, PolicyError> {
        match &self.0 {
            Held::NixosModule(policy) => policy.process(requests).map(Effects::from),
            Held::Ssl(policy) => policy.process(requests).map(Effects::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_in_the_order_of_names_and_finds_each_by_its_name() {
        let names: Vec<_> = Resource::ALL.map(Resource::name).into();
        assert_eq!(names, ["nixos-module", "ssl"]);
        assert!(Resource::ALL.is_sorted());
        for resource in Resource::ALL {
            assert_eq!(Resource::named(resource.name()), Some(resource));
        }
        assert_eq!(Resource::named("ssh"), None);
    }

    #[test]
    fn each_resource_has_a_description_of_one_line() {
        for resource in Resource::ALL {
            let description = resource.description();
            assert!(
                !description.is_empty() && !description.contains('\n'),
                "{resource}"
            );
        }
    }

    #[test]
    fn the_contract_resources_are_read_off_the_policies() {
        let contracts: Vec<_> = Resource::ALL
            .into_iter()
            .filter(|resource| resource.is_contract())
            .collect();
        assert_eq!(contracts, [Resource::Ssl]);
    }

    #[test]
    fn each_resource_is_in_the_index() {
        for resource in Resource::ALL {
            let row = format!(
                "//! | [`{}`] | {} |",
                resource.name().replace('-', "_"),
                match resource.is_contract() {
                    true => "yes",
                    false => "no",
                }
            );
            assert!(include_str!("mod.rs").contains(&row), "{row}");
        }
    }
}
