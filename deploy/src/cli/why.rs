//! `provisor why NODE PROVISION`: the reasons behind an answer or a refusal. The fleet need not resolve.

use provisor_model::explain::{self, Reason};

use super::pins_file;
use super::{Exit, Format, diagnostics, output};
use crate::setup::Setup;

pub(super) fn run(setup: &Setup, format: Format, node: &str, provision: &str) -> Exit {
    let model = pins_file::read(&setup.fleet)
        .and_then(|(files, _)| pins_file::model(&files, files.0.get(pins_file::PINS).map(String::as_str)));
    let model = match model {
        Ok(model) => model,
        Err(error) => return diagnostics::refuse(&error, &setup.fleet, format),
    };
    match explain::why(&model, node, provision) {
        Ok(trees) => {
            match format {
                Format::Json => output::json(&trees),
                Format::Text => output::data(&text(&trees)),
            }
            Exit::Done
        }
        Err(error) => {
            output::error(&error);
            Exit::Refused
        }
    }
}

fn text(trees: &[Reason]) -> String {
    trees
        .iter()
        .map(Reason::to_string)
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::super::testing::two_providers;
    use super::*;

    #[test]
    fn each_component_that_requires_it_has_its_tree() {
        let fleet = super::super::fleet::open(&two_providers().setup().fleet).unwrap();
        insta::assert_snapshot!(text(&explain::why(&fleet.loaded.model, "forge", "garage").unwrap()), @"
        `forge/gitea` requires `garage`: `db-a/garage-a` answers
          - a pin names it: `forge.garage` in pins.toml
          - `db-a/garage-a` is assigned here: fleet.toml
          - `forge` reaches it as `db-a.mesh` (10.90.0.1), by the network `mesh`
          - `db-b/garage-b` is no candidate: the pin names `db-a/garage-a`

        `forge/wiki` requires `garage`: `db-a/garage-a` answers
          - a pin names it: `forge.garage` in pins.toml
          - `db-a/garage-a` is assigned here: fleet.toml
          - `forge` reaches it as `db-a.mesh` (10.90.0.1), by the network `mesh`
          - `db-b/garage-b` is no candidate: the pin names `db-a/garage-a`
        ");
    }
}
