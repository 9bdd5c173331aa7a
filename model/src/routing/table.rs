//! The provider table: which module answers a resource on which route.

use serde_json::{Value, json};

use super::{Override, Route};
use crate::diagnostic::Place;
use crate::resources::registry::Resource;

/// How a resource is answered in one group.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// What is answered.
    pub resource: Resource,
    /// By which route.
    pub route: Route,
    /// The provider module `<resource>-<flavor>`.
    pub flavor: &'static str,
    /// Settings of that module, a JSON object.
    pub settings: Value,
    /// Who says so.
    pub set_by: SetBy,
}

/// Who sets a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// The table.
    Default,
    /// The fleet's file, there.
    Override(Place),
}

/// The routes of a resource, those of its default first. None for `garage`, whose routing is outside the table, and
/// for what is no contract.
pub fn routes(resource: Resource) -> &'static [Route] {
    use Route::{Always, CrossGroup, External, Roster};
    match resource {
        Resource::Oidc | Resource::Postgresql | Resource::Redis | Resource::Spiffe => &[Roster, CrossGroup],
        Resource::Dns | Resource::Netbox | Resource::Smtp => &[Roster, External],
        Resource::Ldap => &[Roster],
        Resource::Ssl => &[Always],
        Resource::Garage
        | Resource::Firewall
        | Resource::GenerateFiles
        | Resource::Network
        | Resource::NixosModule
        | Resource::Otel
        | Resource::Secrets => &[],
    }
}

/// Whether a request for `resource` has to find somebody who answers it. A certificate does not; what wraps no
/// contract is answered on its own host.
pub fn is_answered_by_somebody(resource: Resource) -> bool {
    resource.is_contract() && routes(resource) != [Route::Always]
}

/// The row of `resource` on `route`, with what the fleet says over it. `None` where the table has no such row.
pub fn provider_module(resource: Resource, route: Route, over: Option<&Override>) -> Option<Row> {
    if !routes(resource).contains(&route) {
        return None;
    }
    let settings = over.and_then(|over| over.settings.clone());
    Some(Row {
        resource,
        route,
        flavor: flavor(resource, route),
        settings: settings.unwrap_or_else(|| json!({})),
        set_by: over.map_or(SetBy::Default, |over| SetBy::Override(over.place.clone())),
    })
}

fn flavor(resource: Resource, route: Route) -> &'static str {
    match (route, resource) {
        (Route::Always, _) => "internal-ca",
        (Route::Roster, _) => "own",
        (Route::CrossGroup, _) => "hosted",
        (Route::External, Resource::Smtp) => "relay",
        (Route::External, _) => "external",
    }
}

impl Row {
    /// The name of the provider module that it selects.
    pub fn provider(&self) -> String {
        format!("{}-{}", self.resource, self.flavor)
    }

    /// The routing module: it selects the provider, as an overridable default unless the fleet's file says so, and
    /// sets the options of its module (RF FR-006). A default has NixOS's priority for `mkDefault`.
    pub fn module(&self) -> Value {
        let provider = Value::from(self.provider());
        let selected = match self.set_by {
            SetBy::Default => json!({ "_type": "override", "priority": MK_DEFAULT, "content": provider }),
            SetBy::Override(_) => provider,
        };
        json!({
            "contracts": { self.resource.name(): { "defaultProviderName": selected } },
            "fediversity": { self.provider(): self.settings },
        })
    }
}

/// `lib.mkDefault` in Nixpkgs is `lib.mkOverride 1000`.
const MK_DEFAULT: u32 = 1000;
