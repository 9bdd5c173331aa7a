//! What holds for every fleet: small random ones, with two components for every name, against a resolver that tries
//! everything.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::diagnostic::code;

const PROVISIONS: [&str; 4] = ["alpha", "beta", "gamma", "delta"];
const NETWORKS: [&str; 2] = ["mesh", "storage"];

/// A fleet to be written. `alpha` and `beta` are of the host, `gamma` and `delta` of the mesh.
#[derive(Clone, Debug)]
struct Spec {
    /// By node: its networks and its components.
    nodes: Vec<(BTreeSet<usize>, BTreeSet<usize>)>,
    components: Vec<Component>,
    /// By node and provision: node and component, which may be left out.
    pins: BTreeMap<(usize, usize), (usize, Option<usize>)>,
}

#[derive(Clone, Debug)]
struct Component {
    requires: BTreeSet<usize>,
    /// And whether it serves anything.
    provides: BTreeMap<usize, bool>,
}

fn spec() -> impl Strategy<Value = Spec> {
    let component = (
        prop::collection::btree_set(0..PROVISIONS.len(), 0..3),
        prop::collection::btree_map(0..PROVISIONS.len(), any::<bool>(), 0..3),
    );
    let component = component.prop_map(|(requires, provides)| Component { requires, provides });
    let components = prop::collection::vec(component, 4).prop_map(|mut components: Vec<Component>| {
        // Two of every name: the last two provide whatever is required and not provided twice.
        for provision in 0..PROVISIONS.len() {
            for index in [2, 3] {
                let count = components
                    .iter()
                    .filter(|it| it.provides.contains_key(&provision))
                    .count();
                if count < 2 {
                    components[index].provides.entry(provision).or_insert(false);
                }
            }
        }
        components
    });
    let node = (
        prop::collection::btree_set(0..NETWORKS.len(), 0..3),
        prop::collection::btree_set(0..4usize, 0..4),
    );
    let pin = (
        (0..3usize, 0..PROVISIONS.len()),
        (0..3usize, prop::option::of(0..4usize)),
    );
    let pins = prop::collection::vec(pin, 0..6);
    (prop::collection::vec(node, 3), components, pins).prop_map(|(nodes, components, pins)| Spec {
        nodes,
        components,
        pins: pins.into_iter().collect(),
    })
}

fn node_name(index: usize) -> String {
    format!("n{index}")
}

fn component_name(index: usize) -> String {
    format!("c{index}")
}

impl Spec {
    /// The files, with every list and every table in the order that `reversed` says.
    fn files(&self, reversed: bool) -> FleetFiles {
        let ordered = |mut items: Vec<String>, with: &str| {
            if reversed {
                items.reverse();
            }
            items.join(with)
        };
        let node = |(index, (networks, components)): (usize, &(BTreeSet<usize>, BTreeSet<usize>))| {
            let assigned = components.iter().map(|it| format!("\"{}\"", component_name(*it)));
            let members = networks
                .iter()
                .map(|it| format!("networks.{} = \"10.{it}.0.{}\"", NETWORKS[*it], index + 1));
            let mut lines: Vec<_> = members.collect();
            lines.push(format!("components = [{}]", ordered(assigned.collect(), ", ")));
            lines.push(format!("address = \"192.0.2.{}\"", index + 1));
            format!(
                "[groups.g.nodes.{}]\n{}\n",
                node_name(index),
                ordered(lines, "\n")
            )
        };
        let mut tables: Vec<_> = self.nodes.iter().enumerate().map(node).collect();
        tables.push("[groups.g]\nenvironment = \"e\"\n".to_owned());
        for (index, network) in NETWORKS.iter().enumerate() {
            tables.push(format!("[networks.{network}]\ncidr = \"10.{index}.0.0/16\"\n"));
        }
        let fleet = format!("name = \"f\"\nenvironments.e = {{}}\n{}", ordered(tables, "\n"));
        let mut files = vec![
            ("fleet.toml".to_owned(), fleet),
            ("pins.toml".to_owned(), self.pins_file(reversed)),
        ];
        for (index, Component { requires, provides }) in self.components.iter().enumerate() {
            let requires = requires.iter().map(|it| format!("\"{}\"", PROVISIONS[*it]));
            let provides = provides.iter().map(|(it, serves)| {
                let scope = if *it < 2 { "host" } else { "mesh" };
                let serves = if *serves { ", serves = { port = 1 }" } else { "" };
                format!(
                    "{{ name = \"{}\", scope = \"{scope}\"{serves} }}",
                    PROVISIONS[*it]
                )
            });
            let text = format!(
                "requires = [{}]\nprovides = [{}]\n",
                ordered(requires.collect(), ", "),
                ordered(provides.collect(), ", ")
            );
            files.push((format!("components/{}.toml", component_name(index)), text));
        }
        FleetFiles(files.into_iter().collect())
    }

    fn pins_file(&self, reversed: bool) -> String {
        let mut tables = Vec::new();
        for node in 0..self.nodes.len() {
            let mut table = format!("[{}]\n", node_name(node));
            for ((_, provision), (from, component)) in self.pins.iter().filter(|((of, _), _)| *of == node) {
                let component = component.map_or(String::new(), |it| {
                    format!(", component = \"{}\"", component_name(it))
                });
                let _infallible = writeln!(
                    table,
                    "{} = {{ node = \"{}\"{component} }}",
                    PROVISIONS[*provision],
                    node_name(*from)
                );
            }
            tables.push(table);
        }
        if reversed {
            tables.reverse();
        }
        tables.concat()
    }
}

/// What a need comes to: who answers, or the code of its refusal.
type Outcome = Result<BTreeSet<(usize, usize)>, &'static str>;

/// The brute-force resolver: sets and loops over everything, no index, no order.
fn oracle(spec: &Spec) -> BTreeMap<(usize, usize, usize), Outcome> {
    let present: Vec<_> = (0..spec.nodes.len()).map(|node| present(spec, node)).collect();
    let mut outcomes = BTreeMap::new();
    for node in 0..spec.nodes.len() {
        for component in &present[node] {
            for provision in &spec.components[*component].requires {
                let outcome = outcome(spec, &present, (node, *component, *provision));
                outcomes.insert((node, *component, *provision), outcome);
            }
        }
    }
    outcomes
}

fn may(spec: &Spec, provision: usize, provider: usize, itself: bool) -> bool {
    match spec.components[provider].provides.get(&provision) {
        None => false,
        Some(serves) => !itself || (provision < 2 && !serves),
    }
}

fn present(spec: &Spec, node: usize) -> BTreeSet<usize> {
    let mut present = spec.nodes[node].1.clone();
    loop {
        let mut more = present.clone();
        for consumer in &present {
            for provision in spec.components[*consumer].requires.iter().filter(|it| **it < 2) {
                let able: Vec<_> = (0..spec.components.len())
                    .filter(|it| may(spec, *provision, *it, it == consumer))
                    .collect();
                if let [one] = able.as_slice() {
                    more.insert(*one);
                }
            }
        }
        if more == present {
            return present;
        }
        present = more;
    }
}

fn outcome(
    spec: &Spec,
    present: &[BTreeSet<usize>],
    (node, component, provision): (usize, usize, usize),
) -> Outcome {
    let host = provision < 2;
    let all: BTreeSet<_> = (0..present.len())
        .flat_map(|node| present[node].iter().map(move |component| (node, *component)))
        .filter(|(_, it)| spec.components[*it].provides.contains_key(&provision))
        .collect();
    let able = |(at, it): &(usize, usize)| may(spec, provision, *it, (*at, *it) == (node, component));
    let reached = |offers: BTreeSet<(usize, usize)>| -> Outcome {
        let (at, _) = *offers.first().unwrap();
        let shared = at == node || !spec.nodes[at].0.is_disjoint(&spec.nodes[node].0);
        if shared {
            Ok(offers)
        } else {
            Err(code::NO_SHARED_NETWORK)
        }
    };
    if let Some((from, of)) = spec.pins.get(&(node, provision)) {
        if host && *from != node {
            return Err(code::PIN_NOT_A_PROVIDER);
        }
        let named: BTreeSet<_> = all
            .into_iter()
            .filter(|(at, it)| at == from && of.is_none_or(|of| of == *it))
            .filter(able)
            .collect();
        return match named.len() {
            0 => Err(code::PIN_NOT_A_PROVIDER),
            1 => reached(named),
            _ => Err(code::AMBIGUOUS_PROVIDER),
        };
    }
    let able: BTreeSet<_> = all
        .into_iter()
        .filter(able)
        .filter(|(at, _)| !host || *at == node)
        .collect();
    if !host {
        return match able.len() {
            0 => Err(code::NO_PROVIDER),
            1 => reached(able),
            _ => Err(code::AMBIGUOUS_PROVIDER),
        };
    }
    let assigned: BTreeSet<_> = able
        .iter()
        .copied()
        .filter(|(_, it)| spec.nodes[node].1.contains(it))
        .collect();
    let able = if assigned.is_empty() { able } else { assigned };
    let serves = |(_, it): &(usize, usize)| spec.components[*it].provides[&provision];
    match able.len() {
        0 => Err(code::NO_PROVIDER),
        1 => Ok(able),
        _ if able.iter().any(serves) => Err(code::AMBIGUOUS_PROVIDER),
        _ => Ok(able),
    }
}

/// What the resolver makes of every need, in the oracle's numbers.
fn found(model: &Model) -> BTreeMap<(usize, usize, usize), Outcome> {
    let mesh = Mesh::of(model);
    let number = |name: &str| name[1..].parse::<usize>().unwrap();
    let outcome = |need: Need<'_>| {
        let provision = PROVISIONS
            .iter()
            .position(|it| *it == need.provision.as_str())
            .unwrap();
        let key = (
            number(need.node.name.as_str()),
            number(need.component.name.as_str()),
            provision,
        );
        let outcome = match choice::choose(&mesh, &need) {
            Ok(Choice::Offers { offers, .. }) => Ok(offers
                .iter()
                .map(|offer| {
                    (
                        number(offer.node.name.as_str()),
                        number(offer.component.name.as_str()),
                    )
                })
                .collect()),
            Ok(Choice::Elsewhere(route)) => panic!("{route}"),
            Err(refusal) => Err(refusal.diagnostic(&mesh, &need).code),
        };
        (key, outcome)
    };
    mesh.needs().map(outcome).collect()
}

/// Everything that a fleet comes to, as bytes.
fn bytes(fleet: &FleetFiles) -> String {
    match resolve(&fleet.model()) {
        Ok(resolution) => {
            let plans = serde_json::to_string(&resolution.plans(&BTreeMap::new())).unwrap();
            let warnings = resolution.warnings().iter();
            let messages: BTreeSet<_> = warnings.map(|warning| &warning.message).collect();
            format!("{plans}{:?}{messages:?}", resolution.answers())
        }
        // The places differ with the files.
        Err(errors) => {
            let mut lines: Vec<_> = errors
                .iter()
                .map(|it| format!("{} {} {}", it.code, it.message, it.help))
                .collect();
            lines.sort();
            lines.join("\n")
        }
    }
}

/// Only what resolves, which most random fleets do not: those without needs that are refused.
fn resolving(mut spec: Spec) -> Spec {
    loop {
        let refused: Vec<_> = oracle(&spec)
            .into_iter()
            .filter(|(_, outcome)| outcome.is_err())
            .map(|(need, _)| need)
            .collect();
        if refused.is_empty() {
            return spec;
        }
        for (_, component, provision) in refused {
            spec.components[component].requires.remove(&provision);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(3),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_brute_force_resolver_agrees(spec in spec()) {
        prop_assert_eq!(found(&spec.files(false).model()), oracle(&spec));
    }

    #[test]
    fn the_same_answer_comes_every_time_and_in_every_order_of_declaration(spec in spec()) {
        let first = bytes(&spec.files(false));
        prop_assert_eq!(&bytes(&spec.files(false)), &first);
        prop_assert_eq!(&bytes(&spec.files(true)), &first);
        let resolving = resolving(spec);
        prop_assert_eq!(bytes(&resolving.files(true)), bytes(&resolving.files(false)));
    }

    #[test]
    fn an_unrelated_node_changes_nobody_else_s_plan(spec in spec().prop_map(resolving)) {
        let fleet = spec.files(false);
        let text = &fleet.0["fleet.toml"];
        let node = "\n[groups.g.nodes.stranger]\naddress = \"192.0.2.99\"\nnetworks.mesh = \"10.0.0.99\"\ncomponents = [\"own\"]\n";
        let more = fleet
            .clone()
            .with("fleet.toml", &format!("{text}{node}"))
            .with("components/own.toml", "provides = [{ name = \"epsilon\", scope = \"mesh\" }]\n");
        let mut plans = more.resolution().plans(&BTreeMap::new());
        plans.remove("stranger");
        prop_assert_eq!(plans, fleet.resolution().plans(&BTreeMap::new()));
    }

    #[test]
    fn to_pin_the_provider_that_is_chosen_changes_nothing(spec in spec().prop_map(resolving)) {
        let before = spec.files(false).resolution();
        let mut pinned = spec.clone();
        for ((node, _, provision), outcome) in oracle(&spec) {
            let offers = outcome.unwrap();
            let (first, 1) = (offers.first().unwrap(), offers.len()) else { continue };
            // A pin is for the whole node: where another component of it is answered otherwise, there is none.
            let others = oracle(&spec).into_iter().filter(|((at, _, it), _)| (*at, *it) == (node, provision));
            if others.into_iter().all(|(_, other)| other.unwrap() == offers) {
                pinned.pins.insert((node, provision), (first.0, Some(first.1)));
            }
        }
        let after = pinned.files(false).resolution();
        prop_assert_eq!(before.answers(), after.answers());
        prop_assert_eq!(before.plans(&BTreeMap::new()), after.plans(&BTreeMap::new()));
    }

    #[test]
    fn what_a_refusal_does_not_mention_can_go_and_the_refusal_stays(spec in spec()) {
        let Err(errors) = resolve(&spec.files(false).model()) else {
            return Ok(());
        };
        let refusal = &errors[0];
        let said = format!("{refusal:?}");
        let mut less = spec.clone();
        for (node, (_, components)) in less.nodes.iter_mut().enumerate() {
            components.retain(|it| said.contains(&format!("`{}/{}`", node_name(node), component_name(*it))));
        }
        let fewer = resolve(&less.files(false).model()).unwrap_err();
        prop_assert!(
            fewer.iter().any(|it| (it.code, &it.message) == (refusal.code, &refusal.message)),
            "{refusal:?}\n{fewer:?}"
        );
    }
}
