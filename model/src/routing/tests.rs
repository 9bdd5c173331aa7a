//! The sixteen names: which are routed, by which route, and with which row.

use std::collections::BTreeSet;

use serde_json::json;

use super::provided::{CrossGroup, routed};
use super::*;
use crate::diagnostic::code;
use crate::resources::registry::Resource;
use crate::testing::{assert_lines, two_of_everything};

const ALWAYS: Provided = Provided::By(Route::Always);
const ROSTER: Provided = Provided::By(Route::Roster);
const CROSS_GROUP: Provided = Provided::By(Route::CrossGroup);
const EXTERNAL: Provided = Provided::By(Route::External);

/// With nothing on the roster and a hosting provider; with nothing and without one; with all on the roster.
const TABLE: [(Resource, Provided, Provided, Provided); 16] = [
    (Resource::Dns, EXTERNAL, EXTERNAL, ROSTER),
    (
        Resource::Firewall,
        Provided::NoAnswer,
        Provided::NoAnswer,
        Provided::NoAnswer,
    ),
    (Resource::Garage, ALWAYS, ALWAYS, ALWAYS),
    (
        Resource::GenerateFiles,
        Provided::NoAnswer,
        Provided::NoAnswer,
        Provided::NoAnswer,
    ),
    (Resource::Ldap, Provided::Not, Provided::Not, ROSTER),
    (Resource::Netbox, EXTERNAL, EXTERNAL, ROSTER),
    (
        Resource::Network,
        Provided::NoAnswer,
        Provided::NoAnswer,
        Provided::NoAnswer,
    ),
    (
        Resource::NixosModule,
        Provided::NoAnswer,
        Provided::NoAnswer,
        Provided::NoAnswer,
    ),
    (Resource::Oidc, CROSS_GROUP, Provided::Not, ROSTER),
    (
        Resource::Otel,
        Provided::NoAnswer,
        Provided::NoAnswer,
        Provided::NoAnswer,
    ),
    (Resource::Postgresql, CROSS_GROUP, Provided::Not, ROSTER),
    (Resource::Redis, CROSS_GROUP, Provided::Not, ROSTER),
    (
        Resource::Secrets,
        Provided::NoAnswer,
        Provided::NoAnswer,
        Provided::NoAnswer,
    ),
    (Resource::Smtp, EXTERNAL, EXTERNAL, ROSTER),
    (Resource::Spiffe, CROSS_GROUP, Provided::Not, ROSTER),
    (Resource::Ssl, ALWAYS, ALWAYS, ALWAYS),
];

fn deployment(roster: &BTreeSet<Resource>, cross_group: CrossGroup) -> Deployment<'_> {
    Deployment { roster, cross_group }
}

#[test]
fn each_of_the_sixteen_is_provided_by_its_route_or_not_at_all() {
    let (none, all) = (BTreeSet::new(), BTreeSet::from(Resource::ALL));
    for (resource, hosted, alone, on_roster) in TABLE {
        for (roster, cross_group, expected) in [
            (&none, CrossGroup::Open, hosted),
            (&none, CrossGroup::Closed, alone),
            (&all, CrossGroup::Open, on_roster),
            (&all, CrossGroup::Closed, on_roster),
        ] {
            let found = provided(resource, deployment(roster, cross_group));
            assert_eq!(found, expected, "{resource} {cross_group:?}");
        }
    }
}

#[test]
fn another_resource_on_the_roster_answers_nothing() {
    let roster = BTreeSet::from([Resource::Oidc]);
    for (resource, _, alone, _) in TABLE.into_iter().filter(|row| row.0 != Resource::Oidc) {
        assert_eq!(
            provided(resource, deployment(&roster, CrossGroup::Closed)),
            alone,
            "{resource}"
        );
    }
}

#[test]
fn every_contract_resource_has_an_answer_and_every_one_but_garage_a_row_for_it() {
    let (none, all) = (BTreeSet::new(), BTreeSet::from(Resource::ALL));
    for resource in Resource::ALL {
        for roster in [&none, &all] {
            let answer = provided(resource, deployment(roster, CrossGroup::Open));
            assert_eq!(answer != Provided::NoAnswer, resource.is_contract(), "{resource}");
            if let Provided::By(route) = answer {
                let row = provider_module(resource, route, None);
                assert_eq!(row.is_some(), resource != Resource::Garage, "{resource}");
            }
        }
    }
    assert!(table::routes(Resource::Garage).is_empty());
}

#[test]
fn a_roster_that_provides_a_resource_gives_the_row_of_that_provider() {
    let own = provider_module(Resource::Postgresql, Route::Roster, None).unwrap();
    let hosted = provider_module(Resource::Postgresql, Route::CrossGroup, None).unwrap();
    assert_eq!(
        (own.provider().as_str(), hosted.provider().as_str()),
        ("postgresql-own", "postgresql-hosted")
    );
    assert_eq!(provider_module(Resource::Postgresql, Route::External, None), None);
}

#[test]
fn no_two_rows_select_one_provider_module() {
    let rows = Resource::ALL.into_iter().flat_map(|resource| {
        let routes = table::routes(resource).iter();
        routes.filter_map(move |route| provider_module(resource, *route, None))
    });
    let names: Vec<_> = rows.map(|row| row.provider()).collect();
    assert_eq!(
        names.iter().collect::<BTreeSet<_>>().len(),
        names.len(),
        "{names:?}"
    );
}

fn over(route: Option<Route>) -> Override {
    Override {
        route,
        provider: None,
        settings: Some(json!({ "port": 6432 })),
        place: Place {
            file: "fleet.toml".to_owned(),
            span: 3..5,
        },
    }
}

#[test]
fn a_row_is_a_default_that_an_override_wins_over() {
    let default = provider_module(Resource::Redis, Route::Roster, None).unwrap();
    assert_eq!(default.set_by, SetBy::Default);
    assert_eq!(
        default.module(),
        json!({
            "contracts": { "redis": { "defaultProviderName":
                { "_type": "override", "priority": 1000, "content": "redis-own" } } },
            "fediversity": { "redis-own": {} },
        })
    );
    let over = over(None);
    let set = provider_module(Resource::Redis, Route::Roster, Some(&over)).unwrap();
    assert_eq!(set.set_by, SetBy::Override(over.place.clone()));
    assert_eq!(
        set.module(),
        json!({
            "contracts": { "redis": { "defaultProviderName": "redis-own" } },
            "fediversity": { "redis-own": { "port": 6432 } },
        })
    );
}

#[test]
fn a_route_that_is_chosen_is_taken_as_far_as_it_leads() {
    let (none, own) = (BTreeSet::new(), BTreeSet::from([Resource::Redis, Resource::Smtp]));
    for (resource, roster, cross_group, route, expected) in [
        (
            Resource::Redis,
            &own,
            CrossGroup::Open,
            Route::CrossGroup,
            CROSS_GROUP,
        ),
        (
            Resource::Redis,
            &own,
            CrossGroup::Closed,
            Route::CrossGroup,
            Provided::Not,
        ),
        (
            Resource::Redis,
            &none,
            CrossGroup::Open,
            Route::Roster,
            Provided::Not,
        ),
        (Resource::Smtp, &own, CrossGroup::Open, Route::External, EXTERNAL),
    ] {
        let found = routed(
            resource,
            deployment(roster, cross_group),
            Some(&over(Some(route))),
        );
        assert_eq!(found, expected, "{resource} {route}");
    }
}

#[test]
fn what_is_consumed_and_not_provided_is_unprovided_and_what_nobody_consumes_is_nothing() {
    let none = BTreeSet::new();
    let alone = deployment(&none, CrossGroup::Closed);
    let consumed = BTreeSet::from([Resource::Ldap, Resource::Redis, Resource::Smtp, Resource::Garage]);
    assert_eq!(
        unprovided(&consumed, alone),
        BTreeSet::from([Resource::Ldap, Resource::Redis])
    );
    assert_eq!(unprovided(&none, alone), none);
}

#[test]
fn what_declares_no_consumer_side_is_never_unprovided() {
    let none = BTreeSet::new();
    let consumed = BTreeSet::from([
        Resource::Firewall,
        Resource::GenerateFiles,
        Resource::Network,
        Resource::NixosModule,
        Resource::Otel,
        Resource::Secrets,
    ]);
    assert_eq!(unprovided(&consumed, deployment(&none, CrossGroup::Closed)), none);
}

mod fleets;
