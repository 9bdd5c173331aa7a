//! `provisor pins`: the choices there are; with `--complete` or `--prune`, old ones are put right.

use clap::Args;
use provisor_model::Model;
use provisor_model::pins::Pin;
use provisor_model::pins::edit::{self, Edited, Row};
use serde::Serialize;

use super::pins_file::{self, PinsError};
use super::{Exit, Format, output};
use crate::setup::Setup;

/// What is done to them.
#[derive(Clone, Debug, Args)]
pub(super) struct Arguments {
    /// Add the component to pins that were made without one, where one can be meant.
    #[arg(long, conflicts_with = "prune")]
    complete: bool,
    /// Remove pins that name a node, a component or a provision that is gone.
    #[arg(long)]
    prune: bool,
}

#[derive(Debug, Serialize)]
struct Item<'a> {
    node: &'a str,
    provision: &'a str,
    from_node: &'a str,
    component: Option<&'a str>,
}

pub(super) fn run(setup: &Setup, format: Format, arguments: &Arguments) -> Exit {
    match act(setup, format, arguments) {
        Ok(()) => Exit::Done,
        Err(error) => error.refuse(&setup.fleet, format),
    }
}

fn act(setup: &Setup, format: Format, arguments: &Arguments) -> Result<(), PinsError> {
    let (files, text) = pins_file::read(&setup.fleet)?;
    if arguments.complete {
        let edited = edit::complete(&text, &pins_file::model(&files, Some(&text))?)?;
        return finish(setup, &edited, "completed");
    }
    if arguments.prune {
        let edited = edit::prune(&text, &pins_file::model(&files, None)?)?;
        return finish(setup, &edited, "removed");
    }
    let model = pins_file::model(&files, Some(&text))?;
    match format {
        Format::Json => output::json(&items(&model)),
        Format::Text => output::data(&lines(&model)),
    }
    Ok(())
}

fn finish(setup: &Setup, edited: &Edited, done: &str) -> Result<(), PinsError> {
    pins_file::write(&setup.fleet, &edited.text)?;
    for (rows, what) in [(&edited.changed, done), (&edited.left, "left for you")] {
        for Row {
            node,
            provision,
            what: why,
        } in rows
        {
            output::note(&format!("{what}: `{provision}` on `{node}`: {why}"));
        }
    }
    Ok(())
}

fn items(model: &Model) -> Vec<Item<'_>> {
    model.pins().map(item).collect()
}

fn item(pin: &Pin) -> Item<'_> {
    Item {
        node: pin.consumer.as_str(),
        provision: pin.provision.as_str(),
        from_node: pin.from.as_str(),
        component: pin.component.as_ref().map(|component| component.as_str()),
    }
}

/// `NODE PROVISION FROM-NODE COMPONENT`, as `pin` takes them; `?` for a component that is not known.
fn lines(model: &Model) -> String {
    let line = |item: Item<'_>| {
        format!(
            "{} {} {} {}",
            item.node,
            item.provision,
            item.from_node,
            item.component.unwrap_or("?")
        )
    };
    items(model).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::testing::two_providers;
    use super::*;

    fn act_with(fleet: &super::super::testing::ForkedFleet, complete: bool) {
        let arguments = Arguments {
            complete,
            prune: !complete,
        };
        act(&fleet.setup(), Format::Text, &arguments).unwrap();
    }

    #[test]
    fn pins_are_listed_as_they_are_given() {
        let (files, text) = pins_file::read(&two_providers().setup().fleet).unwrap();
        let model = pins_file::model(&files, Some(&text)).unwrap();
        assert_eq!(
            lines(&model),
            "desk garage db-b garage-b\ndesk postgresql db-b postgres-b\ndesk route edge-b traefik\n\
             forge garage db-a garage-a\nforge postgresql db-a postgres-a\nforge route edge-a caddy"
        );
    }

    #[test]
    fn old_pins_are_completed_and_pins_of_what_is_gone_are_removed() {
        let fleet = two_providers();
        let old = fleet.pins().replace(", component = \"garage-b\"", "");
        fleet.write("pins.toml", &old);
        act_with(&fleet, true);
        assert!(
            fleet
                .pins()
                .contains("garage = { node = \"db-b\", component = \"garage-b\" }")
        );

        fleet.write(
            "pins.toml",
            &format!(
                "{}[gone]\nroute = {{ node = \"edge-a\", component = \"caddy\" }}\n",
                fleet.pins()
            ),
        );
        assert!(
            super::super::fleet::open(&fleet.setup().fleet).is_err(),
            "a dangling pin is an error"
        );
        act_with(&fleet, false);
        assert!(!fleet.pins().contains("gone"));
        assert!(super::super::fleet::open(&fleet.setup().fleet).is_ok());
    }
}
