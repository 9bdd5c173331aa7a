//! `components/<name>.toml` as it is written. It refers to nothing outside itself but by the names of provisions, so
//! what is read is the component of the model.

use std::collections::BTreeMap;

use super::spot::{Keys, Sited, Spot, one_of};
use super::{named, once};
use crate::diagnostic::{Diagnostic, Place, code};
use crate::fleet::component::{
    Component, Contribution, Credential, FileAt, Provision, STATE_BACKEND, Scope, Serves,
};
use crate::names::{ComponentName, InstanceKey, ProvisionName};
use crate::paths;
use crate::policy::Instance;
use crate::resources::read;
use crate::routing::table;

pub(crate) const COMPONENT: Keys = Keys {
    of: "a component",
    all: &[
        "requires",
        "provides",
        "binds",
        "contributes",
        "receives",
        "resources",
    ],
};
pub(crate) const PROVISION: Keys = Keys {
    of: "a provision",
    all: &["name", "scope", "serves", "grants"],
};

/// A component, and whether all that it provides could be read.
pub(crate) struct RawComponent {
    pub(crate) component: Component,
    pub(crate) all_provisions_known: bool,
}

/// Reads a component's file.
pub(crate) fn read(root: Spot<'_>, name: &ComponentName) -> Option<RawComponent> {
    let fields = root.fields(&COMPONENT)?;
    let requires = fields
        .items("requires", "a list of provisions")
        .into_iter()
        .filter_map(|spot| spot.name::<ProvisionName>("the name of a provision (a string)"))
        .collect();
    let requires = once(requires, |diagnostic| fields.add(diagnostic));
    let entries = fields.items("provides", "a list of provisions");
    let written = entries.len();
    let provisions: Vec<_> = entries.into_iter().filter_map(provision).collect();
    let all_provisions_known = provisions.len() == written;
    let resources = read::instances(
        name,
        fields.entries("resources", "a table of requests by instance key"),
    );
    Some(RawComponent {
        component: Component {
            name: name.clone(),
            needs: needs(&requires, &resources),
            requires,
            provides: provides(provisions, |diagnostic| fields.add(diagnostic)),
            binds: named(
                fields.entries("binds", "a table of paths by provision"),
                |_, spot| file_at(spot),
            ),
            contributes: named(
                fields.entries("contributes", "a table of what is contributed, by provision"),
                |_, spot| contribution(spot),
            ),
            receives: named(
                fields.entries("receives", "a table of paths by provision"),
                |_, spot| file_at(spot),
            ),
            resources,
            place: fields.place(),
        },
        all_provisions_known,
    })
}

/// What is required, and what is asked of others: contract resources that are not always there.
fn needs(
    requires: &BTreeMap<ProvisionName, Place>,
    resources: &BTreeMap<InstanceKey, Instance>,
) -> BTreeMap<ProvisionName, Place> {
    let mut needs = requires.clone();
    for (resource, asked) in resources.values().flatten() {
        let provision: Option<ProvisionName> = resource.name().parse().ok();
        if let Some(provision) = provision.filter(|_| table::is_answered_by_somebody(*resource)) {
            needs
                .entry(provision)
                .or_insert_with(|| asked.origin.place.clone());
        }
    }
    needs
}

fn provides(
    provisions: Vec<(Sited<ProvisionName>, Provision)>,
    add: impl Fn(Diagnostic),
) -> BTreeMap<ProvisionName, Provision> {
    let names = provisions.iter().map(|(name, _)| name.clone()).collect();
    once(names, add);
    provisions
        .into_iter()
        .map(|(name, provision)| (name.value, provision))
        .collect()
}

/// `"shell"`, or `{ name = "route", scope = "mesh", serves = { port = 3000 } }`. A string has the scope host (PR-22).
fn provision(spot: Spot<'_>) -> Option<(Sited<ProvisionName>, Provision)> {
    let (name, provision) = if spot.is_text() { short(spot)? } else { long(spot)? };
    let port = provision.serves.as_ref().and_then(Serves::port);
    if name.value.as_str() == STATE_BACKEND && (provision.scope == Scope::Host || port.is_none()) {
        let message =
            format!("`{STATE_BACKEND}` is provided in the scope mesh, with the port it is served on");
        let help =
            format!("write `{{ name = \"{STATE_BACKEND}\", scope = \"mesh\", serves = {{ port = 8080 }} }}`");
        spot.add(Diagnostic::error(code::INVALID_VALUE, message, help).at(&provision.place, "here"));
        return None;
    }
    Some((name, provision))
}

const NAME: &str = "the name of a provision (a string)";

fn short(spot: Spot<'_>) -> Option<(Sited<ProvisionName>, Provision)> {
    Some((
        spot.name(NAME)?,
        Provision {
            scope: Scope::Host,
            serves: None,
            grants: None,
            place: spot.place(),
        },
    ))
}

fn long(spot: Spot<'_>) -> Option<(Sited<ProvisionName>, Provision)> {
    let fields = spot.fields(&PROVISION)?;
    let name = fields
        .require("name", "name = \"route\"")
        .and_then(|spot| spot.name(NAME));
    let scope = fields.get("scope").map_or(Some(Scope::Host), scope);
    let serves = fields
        .get("serves")
        .map_or(Some(None), |spot| serves(spot).map(Some));
    let grants = fields
        .get("grants")
        .map_or(Some(None), |spot| credential(spot).map(Some));
    Some((
        name?,
        Provision {
            scope: scope?,
            serves: serves?,
            grants: grants?,
            place: spot.place(),
        },
    ))
}

fn scope(spot: Spot<'_>) -> Option<Scope> {
    one_of(spot, "a scope", Scope::ALL, Scope::as_str)
}

fn credential(spot: Spot<'_>) -> Option<Credential> {
    one_of(spot, "a credential", Credential::ALL, Credential::as_str)
}

fn file_at(spot: Spot<'_>) -> Option<FileAt> {
    let Sited { value: path, place } = spot.parsed(
        "a path (a string such as \"/etc/app/database.json\")",
        paths::etc_file,
    )?;
    Some(FileAt { path, place })
}

fn contribution(spot: Spot<'_>) -> Option<Contribution> {
    Some(Contribution {
        value: spot.json()?,
        place: spot.place(),
    })
}

fn serves(spot: Spot<'_>) -> Option<Serves> {
    let mut facts = BTreeMap::new();
    let mut complete = true;
    for (key, fact) in spot.entries("a table of what a consumer needs to know, such as { port = 3000 }")? {
        let json = match key.text {
            "port" => fact.port().map(serde_json::Value::from),
            _ => fact.json(),
        };
        complete &= json.is_some();
        facts.extend(json.map(|json| (key.text.to_owned(), json)));
    }
    complete.then_some(Serves(facts))
}
