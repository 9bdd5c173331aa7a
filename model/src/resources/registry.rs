//! The one list of resources. It is matched without a wildcard: to add a resource is a list of compile errors.

use std::fmt;

use super::nixos_module::{self, NixosModule};
use super::ssl::{self, Ssl};
use super::{Definition, read};
use crate::diagnostic::{Diagnostic, code};
use crate::near::enumerate;
use crate::policy::{ConsumerSide, Effects, HostModules, Instance, Outcome, Policy, PolicyError};
use crate::raw::spot::Spot;
use crate::shape::Argument;

/// A resource of the registry, in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Names of the fleet in the DNS.
    Dns,
    /// Openings of the host's firewall.
    Firewall,
    /// A bucket of an S3 store.
    Garage,
    /// Files made by a script.
    GenerateFiles,
    /// A directory of users and groups.
    Ldap,
    /// An inventory of addresses and hosts.
    Netbox,
    /// Settings of the host's network.
    Network,
    /// [`nixos_module`]
    NixosModule,
    /// Single sign-on by OpenID Connect.
    Oidc,
    /// Metrics, logs and traces.
    Otel,
    /// A PostgreSQL database.
    Postgresql,
    /// A namespace of a Redis store.
    Redis,
    /// Secret files.
    Secrets,
    /// A way to send mail.
    Smtp,
    /// An identity of a workload.
    Spiffe,
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
    pub const ALL: [Resource; 16] = [
        Resource::Dns,
        Resource::Firewall,
        Resource::Garage,
        Resource::GenerateFiles,
        Resource::Ldap,
        Resource::Netbox,
        Resource::Network,
        Resource::NixosModule,
        Resource::Oidc,
        Resource::Otel,
        Resource::Postgresql,
        Resource::Redis,
        Resource::Secrets,
        Resource::Smtp,
        Resource::Spiffe,
        Resource::Ssl,
    ];

    /// As it is written in fleet files.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Dns => "dns",
            Resource::Firewall => "firewall",
            Resource::Garage => "garage",
            Resource::GenerateFiles => "generateFiles",
            Resource::Ldap => "ldap",
            Resource::Netbox => "netbox",
            Resource::Network => "network",
            Resource::NixosModule => NixosModule::NAME,
            Resource::Oidc => "oidc",
            Resource::Otel => "otel",
            Resource::Postgresql => "postgresql",
            Resource::Redis => "redis",
            Resource::Secrets => "secrets",
            Resource::Smtp => "smtp",
            Resource::Spiffe => "spiffe",
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
            Resource::Dns => "names of the fleet in the DNS",
            Resource::Firewall => "openings of the host's firewall",
            Resource::Garage => "a bucket of an S3 store",
            Resource::GenerateFiles => "files made by a script",
            Resource::Ldap => "a directory of users and groups",
            Resource::Netbox => "an inventory of addresses and hosts",
            Resource::Network => "settings of the host's network",
            Resource::NixosModule => NixosModule::DESCRIPTION,
            Resource::Oidc => "single sign-on by OpenID Connect",
            Resource::Otel => "metrics, logs and traces",
            Resource::Postgresql => "a PostgreSQL database",
            Resource::Redis => "a namespace of a Redis store",
            Resource::Secrets => "secret files",
            Resource::Smtp => "a way to send mail",
            Resource::Spiffe => "an identity of a workload",
            Resource::Ssl => Ssl::DESCRIPTION,
        }
    }

    /// The resource whose provision has that name: one that a policy answers with a consumer side.
    pub fn contract_named(name: &str) -> Option<Resource> {
        Resource::named(name).filter(|resource| resource.is_contract())
    }

    /// Whether it is a contract resource: its policy declares a consumer side (RF FR-009).
    pub fn is_contract(self) -> bool {
        fn of<D: Definition>() -> bool {
            declares::<<D::Policy as Policy>::Outcome>()
        }
        fn declares<O: Outcome>() -> bool {
            O::CONSUMER_SIDE
        }
        match self {
            Resource::NixosModule => of::<NixosModule>(),
            Resource::Ssl => of::<Ssl>(),
            Resource::Dns
            | Resource::Garage
            | Resource::Ldap
            | Resource::Netbox
            | Resource::Oidc
            | Resource::Postgresql
            | Resource::Redis
            | Resource::Smtp
            | Resource::Spiffe => declares::<ConsumerSide>(),
            Resource::Firewall
            | Resource::GenerateFiles
            | Resource::Network
            | Resource::Otel
            | Resource::Secrets => declares::<HostModules>(),
        }
    }

    /// Whether there is a policy that can answer requests for it. The others have a name, a row and providers, and
    /// requests for them are refused.
    pub fn has_policy(self) -> bool {
        match self {
            Resource::NixosModule | Resource::Ssl => true,
            Resource::Dns
            | Resource::Firewall
            | Resource::Garage
            | Resource::GenerateFiles
            | Resource::Ldap
            | Resource::Netbox
            | Resource::Network
            | Resource::Oidc
            | Resource::Otel
            | Resource::Postgresql
            | Resource::Redis
            | Resource::Secrets
            | Resource::Smtp
            | Resource::Spiffe => false,
        }
    }

    /// The policy where an environment holds none, if the resource can do without one.
    pub fn default_policy(self) -> Option<AnyPolicy> {
        let held = match self {
            Resource::NixosModule => NixosModule::default_policy().map(Held::NixosModule),
            Resource::Ssl => Ssl::default_policy().map(Held::Ssl),
            Resource::Dns
            | Resource::Firewall
            | Resource::Garage
            | Resource::GenerateFiles
            | Resource::Ldap
            | Resource::Netbox
            | Resource::Network
            | Resource::Oidc
            | Resource::Otel
            | Resource::Postgresql
            | Resource::Redis
            | Resource::Secrets
            | Resource::Smtp
            | Resource::Spiffe => None,
        };
        held.map(AnyPolicy)
    }

    /// A policy to write where one is missing, in TOML.
    pub(crate) fn policy_example(self) -> &'static str {
        match self {
            Resource::NixosModule => nixos_module::POLICY_EXAMPLE,
            Resource::Ssl => ssl::POLICY_EXAMPLE,
            Resource::Dns
            | Resource::Firewall
            | Resource::Garage
            | Resource::GenerateFiles
            | Resource::Ldap
            | Resource::Netbox
            | Resource::Network
            | Resource::Oidc
            | Resource::Otel
            | Resource::Postgresql
            | Resource::Redis
            | Resource::Secrets
            | Resource::Smtp
            | Resource::Spiffe => "",
        }
    }

    /// The keys of its request and of its policy: a test checks that each is documented.
    #[cfg(test)]
    pub(crate) fn keys(self) -> Vec<&'static crate::raw::spot::Keys> {
        match self {
            Resource::NixosModule => read::keys::<NixosModule>().into(),
            Resource::Ssl => read::keys::<Ssl>().into(),
            Resource::Dns
            | Resource::Firewall
            | Resource::Garage
            | Resource::GenerateFiles
            | Resource::Ldap
            | Resource::Netbox
            | Resource::Network
            | Resource::Oidc
            | Resource::Otel
            | Resource::Postgresql
            | Resource::Redis
            | Resource::Secrets
            | Resource::Smtp
            | Resource::Spiffe => Vec::new(),
        }
    }

    /// Type-checks a request (RF US1-1). `None`: it is not one, and was reported.
    pub(crate) fn read_request(self, spot: Spot<'_>) -> Option<Request> {
        match self {
            Resource::NixosModule => read::request::<NixosModule>(spot).map(Request::NixosModule),
            Resource::Ssl => read::request::<Ssl>(spot).map(Request::Ssl),
            Resource::Dns
            | Resource::Firewall
            | Resource::Garage
            | Resource::GenerateFiles
            | Resource::Ldap
            | Resource::Netbox
            | Resource::Network
            | Resource::Oidc
            | Resource::Otel
            | Resource::Postgresql
            | Resource::Redis
            | Resource::Secrets
            | Resource::Smtp
            | Resource::Spiffe => self.not_available(spot),
        }
    }

    /// Type-checks a policy. `None`: it is not one, and was reported.
    pub(crate) fn read_policy(self, spot: Spot<'_>) -> Option<AnyPolicy> {
        let held = match self {
            Resource::NixosModule => read::policy::<NixosModule>(spot).map(Held::NixosModule),
            Resource::Ssl => read::policy::<Ssl>(spot).map(Held::Ssl),
            Resource::Dns
            | Resource::Firewall
            | Resource::Garage
            | Resource::GenerateFiles
            | Resource::Ldap
            | Resource::Netbox
            | Resource::Network
            | Resource::Oidc
            | Resource::Otel
            | Resource::Postgresql
            | Resource::Redis
            | Resource::Secrets
            | Resource::Smtp
            | Resource::Spiffe => self.not_available(spot),
        };
        held.map(AnyPolicy)
    }

    fn not_available<T>(self, spot: Spot<'_>) -> Option<T> {
        let ready = Resource::ALL.into_iter().filter(|resource| resource.has_policy());
        let message =
            format!("`{self}` has no policy in this version, so that nothing can answer a request for it");
        let help = format!(
            "write `{self}` in `requires`, which needs no policy, or ask for one of those that have one: {}",
            enumerate(ready.map(Resource::name))
        );
        spot.add(Diagnostic::error(code::NOT_AVAILABLE, message, help).at(&spot.place(), "not available"));
        None
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
        assert_eq!(
            names,
            [
                "dns",
                "firewall",
                "garage",
                "generateFiles",
                "ldap",
                "netbox",
                "network",
                "nixos-module",
                "oidc",
                "otel",
                "postgresql",
                "redis",
                "secrets",
                "smtp",
                "spiffe",
                "ssl"
            ]
        );
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
        assert_eq!(
            contracts,
            [
                Resource::Dns,
                Resource::Garage,
                Resource::Ldap,
                Resource::Netbox,
                Resource::Oidc,
                Resource::Postgresql,
                Resource::Redis,
                Resource::Smtp,
                Resource::Spiffe,
                Resource::Ssl,
            ]
        );
    }

    #[test]
    fn each_resource_is_in_the_index() {
        for resource in Resource::ALL.into_iter().filter(|resource| resource.has_policy()) {
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
