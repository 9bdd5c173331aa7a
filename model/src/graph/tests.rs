//! Graphs of fleets that resolve and of fleets that do not.

use super::*;
use crate::testing::{two_of_everything, two_providers};

#[test]
fn every_requirement_is_an_edge_and_every_component_is_drawn() {
    let graph = graph(&two_providers().model());
    let (dot, mermaid, svg) = (graph.dot(), graph.mermaid(), graph.svg());
    assert!(
        dot.contains("  \"forge/wiki\" -> \"db-a/postgres-a\" [label=\"postgresql\"];\n"),
        "{dot}"
    );
    assert!(
        mermaid.contains("  n_forge__wiki -->|postgresql| n_db_h_a__postgres_h_a\n"),
        "{mermaid}"
    );
    assert!(svg.contains("<title>forge/wiki: postgresql</title>"), "{svg}");
    for machine in &graph.nodes {
        for component in &machine.components {
            assert!(dot.contains(&format!("\"{}/{component}\" [label", machine.name)));
            assert!(mermaid.contains(&format!("[\"{component}\"]")));
            assert!(svg.contains(&format!(">{component}</text>")));
        }
    }
    // Of a host's plain capability, each that answers.
    assert_eq!(dot.matches("\"forge/gitea\" -> \"forge/").count(), 2);
}

#[test]
fn what_is_refused_is_drawn_as_such_in_every_form() {
    let graph = graph(&two_providers().with("pins.toml", "").model());
    let unresolved = graph
        .edges
        .iter()
        .filter(|edge| matches!(edge.to, Target::Unresolved(_)));
    assert_eq!(unresolved.count(), 12);
    assert_eq!(graph.dot().matches("color=red, style=dashed").count(), 12);
    assert_eq!(graph.mermaid().matches("-.->").count(), 12);
    assert_eq!(graph.svg().matches("stroke-dasharray").count(), 12);
    let json = serde_json::to_value(&graph).unwrap();
    assert!(
        json["edges"][0]["to"]["unresolved"]
            .as_str()
            .unwrap()
            .contains("both"),
        "{json}"
    );
}

#[test]
fn a_fleet_with_nothing_in_it_is_a_picture_with_nothing_in_it() {
    let text =
        "name = \"a\"\nenvironments.e = {}\n[groups.g]\nenvironment = \"e\"\nnodes.n.address = \"a.test\"\n";
    let graph = graph(&crate::testing::files([("fleet.toml", text)]).model());
    assert!(graph.edges.is_empty());
    assert!(graph.dot().contains("subgraph \"cluster_n\""));
    assert!(graph.svg().starts_with("<svg ") && graph.svg().ends_with("</svg>\n"));
}

#[test]
fn svg_has_no_open_element_and_no_bare_ampersand() {
    for fleet in [
        two_of_everything(),
        two_providers(),
        two_providers().with("pins.toml", ""),
    ] {
        let svg = graph(&fleet.model()).svg();
        for element in ["text", "path", "title", "svg"] {
            let (open, closed) = (format!("<{element}"), format!("</{element}>"));
            assert_eq!(
                svg.matches(&open).count(),
                svg.matches(&closed).count(),
                "{element}"
            );
        }
        assert!(
            !svg.replace("&amp;", "")
                .replace("&lt;", "")
                .replace("&gt;", "")
                .contains('&')
        );
    }
}
