//! `provisor graph`: who takes what from whom, as a picture. The fleet need not resolve.

use provisor_model::graph::{Graph, Target, graph};

use super::pins_file;
use super::{Exit, Format, Output, diagnostics, output};
use crate::setup::Setup;

/// Prints it as `picture`; mistakes of the files as `format`.
pub(super) fn run(setup: &Setup, picture: Output, format: Format) -> Exit {
    let model = pins_file::read(&setup.fleet)
        .and_then(|(files, _)| pins_file::model(&files, files.0.get(pins_file::PINS).map(String::as_str)));
    let graph = match model {
        Ok(model) => graph(&model),
        Err(error) => return diagnostics::refuse(&error, &setup.fleet, format),
    };
    match picture {
        Output::Text => output::data(&text(&graph)),
        Output::Json => output::json(&graph),
        Output::Dot => output::data(&graph.dot()),
        Output::Mermaid => output::data(&graph.mermaid()),
        Output::Svg => output::data(&graph.svg()),
    }
    Exit::Done
}

/// A line for each requirement.
fn text(graph: &Graph) -> String {
    let line = |edge: &provisor_model::graph::Edge| {
        let to = match &edge.to {
            Target::Providers(providers) => {
                let names: Vec<_> = providers.iter().map(ToString::to_string).collect();
                names.join(", ")
            }
            Target::Outside(route) => format!("({route})"),
            Target::Unresolved(why) => format!("? {why}"),
        };
        format!("{} --{}--> {to}", edge.consumer, edge.provision)
    };
    graph.edges.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::testing::two_providers;
    use super::*;

    #[test]
    fn each_requirement_is_a_line_and_what_is_refused_says_why() {
        let fleet = two_providers();
        fleet.write("pins.toml", &fleet.pins().replace("route", "# route"));
        let (files, text_of_pins) = pins_file::read(&fleet.setup().fleet).unwrap();
        let lines = text(&graph(&pins_file::model(&files, Some(&text_of_pins)).unwrap()));
        assert!(
            lines.contains("\nforge/gitea --shell--> forge/bash, forge/zsh\n"),
            "{lines}"
        );
        assert!(
            lines.contains("\nforge/gitea --route--> ? `forge/gitea` requires `route`, and both"),
            "{lines}"
        );
    }
}
