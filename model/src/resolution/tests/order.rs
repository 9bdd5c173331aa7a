//! The order in which things are declared, and damage to files: neither decides anything.

use super::super::*;
use crate::testing::two_of_everything;
use crate::{FleetFiles, load};

/// The parts of a TOML file that can stand in any order: what is before the first header stays first.
fn sections(text: &str) -> (String, Vec<String>) {
    let (mut first, mut sections) = (String::new(), Vec::<String>::new());
    for line in text.split_inclusive('\n') {
        match sections.last_mut() {
            _ if line.starts_with('[') => sections.push(line.to_owned()),
            Some(section) => section.push_str(line),
            None => first.push_str(line),
        }
    }
    (first, sections)
}

/// Every file of the fleet with its sections, its keys of a node, and its lists of names in another order.
fn permuted() -> impl proptest::strategy::Strategy<Value = FleetFiles> {
    use proptest::prelude::*;
    let files: Vec<_> = two_of_everything()
        .0
        .into_iter()
        .map(|(path, text)| {
            let (first, sections) =
                sections(&text.replace("[\"website\", \"webmail\"]", "[\"webmail\", \"website\"]"));
            (Just(path), Just(first), Just(sections).prop_shuffle())
        })
        .collect();
    files.prop_map(|files| {
        let text = |(path, first, sections): (String, String, Vec<String>)| {
            (path, first + "\n" + &sections.join("\n"))
        };
        FleetFiles(files.into_iter().map(text).collect())
    })
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        cases: 64,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        ..Default::default()
    })]

    #[test]
    fn the_order_of_declaration_changes_no_byte_of_any_plan(fleet in permuted()) {
        let json = |fleet: &FleetFiles| {
            let resolution = fleet.resolution();
            let plans = resolution.plans(&BTreeMap::new());
            (serde_json::to_string(&plans).unwrap(), serde_json::to_string(&resolution.grants()).unwrap())
        };
        proptest::prop_assert_eq!(json(&fleet), json(&two_of_everything()));
    }

    #[test]
    fn no_damage_to_a_file_makes_loading_or_resolving_panic(at in 0usize..2000, cut in 0usize..40, insert in ".{0,3}") {
        let mut fleet = two_of_everything();
        let text = fleet.0.get_mut("fleet.toml").unwrap();
        let boundary = |index: usize| (0..=index.min(text.len())).rev().find(|index| text.is_char_boundary(*index)).unwrap();
        let (start, end) = (boundary(at), boundary(at + cut));
        text.replace_range(start..end, &insert);
        if let Ok(loaded) = load(&fleet) {
            let _ = resolve(&loaded.model);
        }
    }
}
