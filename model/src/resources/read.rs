//! Requests and policies as they are written.

use std::collections::BTreeMap;

use super::Definition;
use super::registry::{AnyPolicy, Resource};
use crate::diagnostic::{Diagnostic, Place, code};
use crate::names::{ComponentName, InstanceKey};
use crate::near::{enumerate, nearest};
use crate::policy::{Asked, Instance, Origin};
use crate::raw::named;
use crate::raw::spot::{Fields, Key, Keys, Spot};

/// A type that is written in a fleet file as a table.
pub(crate) trait Readable: Sized {
    /// The table's keys.
    const KEYS: &'static Keys;

    /// `None`: it could not be read, and was reported.
    fn read(fields: &Fields<'_>) -> Option<Self>;
}

/// What was read for a resource, and where its key stands. `None` for what was reported.
pub(crate) struct Located<T> {
    pub(crate) resource: Resource,
    pub(crate) place: Place,
    pub(crate) value: Option<T>,
}

pub(crate) fn request<D: Definition<Request: Readable>>(spot: Spot<'_>) -> Option<D::Request> {
    Readable::read(&spot.fields(D::Request::KEYS)?)
}

pub(crate) fn policy<D: Definition<Policy: Readable>>(spot: Spot<'_>) -> Option<D::Policy> {
    Readable::read(&spot.fields(D::Policy::KEYS)?)
}

/// The keys of a resource's request and of its policy: a test checks that each is documented.
#[cfg(test)]
pub(crate) fn keys<D: Definition<Request: Readable, Policy: Readable>>() -> [&'static Keys; 2] {
    [D::Request::KEYS, D::Policy::KEYS]
}

/// The requests of a component by instance key.
pub(crate) fn instances(
    component: &ComponentName,
    entries: Vec<(Key<'_>, Spot<'_>)>,
) -> BTreeMap<InstanceKey, Instance> {
    named(entries, |key, spot| {
        let located = by_resource(spot, "a table of requests by resource", Resource::read_request);
        let instance: InstanceKey = key.text.parse().ok()?;
        let asked = |Located {
                         resource,
                         place,
                         value,
                     }: Located<_>| {
            let origin = Origin {
                component: component.clone(),
                instance: instance.clone(),
                place,
            };
            Some((
                resource,
                Asked {
                    origin,
                    request: value?,
                },
            ))
        };
        Some(located.into_iter().filter_map(asked).collect())
    })
}

/// The policies under one label.
pub(crate) fn policies(spot: Spot<'_>) -> Vec<Located<AnyPolicy>> {
    by_resource(spot, "a table of policies by resource", Resource::read_policy)
}

fn by_resource<T>(
    spot: Spot<'_>,
    wanted: &str,
    read: impl Fn(Resource, Spot<'_>) -> Option<T>,
) -> Vec<Located<T>> {
    let mut located = Vec::new();
    for (key, spot) in spot.entries(wanted).unwrap_or_default() {
        match Resource::named(key.text) {
            Some(resource) => located.push(Located {
                resource,
                place: key.place(),
                value: read(resource, spot),
            }),
            None => key.add(unknown_resource(&key)),
        }
    }
    located
}

fn unknown_resource(key: &Key<'_>) -> Diagnostic {
    let all = Resource::ALL.map(Resource::name);
    let ready = Resource::ALL.into_iter().filter(|resource| resource.has_policy());
    let names: Vec<_> = ready.map(Resource::name).collect();
    let message = format!("there is no resource `{}`", key.text);
    // All that can be asked for are listed even where one is near: the list is short, and shows what there is.
    let help = match nearest(key.text, all) {
        Some(near) => format!(
            "write `{near}`, if that is what you mean; there are: {}",
            enumerate(names)
        ),
        None => format!("write one of those there are: {}", enumerate(names)),
    };
    Diagnostic::error(code::UNKNOWN_RESOURCE, message, help).at(&key.place(), "unknown resource")
}
