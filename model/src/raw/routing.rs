//! Overrides of routing rows, as they are written under `routing` of a group or an environment.

use std::collections::BTreeMap;

use super::spot::{Key, Keys, Spot, one_of};
use crate::diagnostic::{Diagnostic, code};
use crate::names::ComponentName;
use crate::near::{did_you_mean, enumerate};
use crate::raw::spot::Sited;
use crate::resources::registry::Resource;
use crate::routing::{Override, Route, table};

pub(crate) const ROW: Keys = Keys {
    of: "a routing row",
    all: &["route", "provider", "settings"],
};

/// Reads the overrides by resource.
pub(crate) fn read(entries: Vec<(Key<'_>, Spot<'_>)>) -> BTreeMap<Resource, Override> {
    let row = |(key, spot): (Key<'_>, Spot<'_>)| {
        let resource = resource(&key)?;
        Some((resource, row(resource, &key, spot)?))
    };
    entries.into_iter().filter_map(row).collect()
}

/// A resource that has a row.
fn resource(key: &Key<'_>) -> Option<Resource> {
    let found = Resource::named(key.text).filter(|resource| !table::routes(*resource).is_empty());
    if found.is_none() {
        let with_row = Resource::ALL
            .into_iter()
            .filter(|resource| !table::routes(*resource).is_empty());
        let names: Vec<_> = with_row.map(Resource::name).collect();
        let message = format!("the provider table has no row `{}`", key.text);
        let help = did_you_mean(key.text, names.iter().copied(), "");
        key.add(Diagnostic::error(code::NO_ROW, message, help).at(&key.place(), "no such row"));
    }
    found
}

fn row(resource: Resource, key: &Key<'_>, spot: Spot<'_>) -> Option<Override> {
    let fields = spot.fields(&ROW)?;
    let route = match fields.get("route") {
        Some(spot) => Some(route(resource, spot)?),
        None => None,
    };
    let provider = match fields.get("provider") {
        Some(spot) => Some(spot.name::<ComponentName>("the name of a component (a string)")?),
        None => None,
    };
    let settings = match fields.get("settings") {
        Some(spot) => {
            spot.entries("a table of settings of the provider's module")?;
            Some(spot.json()?)
        }
        None => None,
    };
    Some(Override {
        route,
        provider: provider.map(|Sited { value, place }| (value, place)),
        settings,
        place: key.place(),
    })
}

fn route(resource: Resource, spot: Spot<'_>) -> Option<Route> {
    let route = one_of(spot, "a route", Route::ALL, Route::as_str)?;
    let routes = table::routes(resource);
    if routes.contains(&route) {
        return Some(route);
    }
    let message = format!("`{resource}` has no route `{}`", route.as_str());
    let help = format!(
        "write one of its routes: {}",
        enumerate(routes.iter().map(|route| route.as_str()))
    );
    spot.add(Diagnostic::error(code::INVALID_VALUE, message, help).at(&spot.place(), "here"));
    None
}
