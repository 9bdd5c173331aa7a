//! `provisor pin NODE PROVISION FROM-NODE COMPONENT`: who answers a provision on a node.

use clap::Args;
use provisor_model::explain;
use provisor_model::pins::edit;
use provisor_model::resolution::{Running, refusals};

use super::pins_file::{self, PINS, PinsError};
use super::{Exit, Format, output};
use crate::setup::Setup;

/// A choice: both halves of the provider, always.
#[derive(Clone, Debug, Args)]
pub(super) struct Arguments {
    /// The node whose components it is for.
    node: String,
    /// What is answered.
    provision: String,
    /// The provider's node; it may be the consumer's own.
    from_node: String,
    /// The provider's component.
    component: String,
}

pub(super) fn run(setup: &Setup, format: Format, arguments: &Arguments) -> Exit {
    match pin(setup, arguments) {
        Ok(told) => {
            output::note(&told);
            Exit::Done
        }
        Err(error) => error.refuse(&setup.fleet, format),
    }
}

/// Pins, unless the choice would be refused; and says what it came to.
fn pin(setup: &Setup, arguments: &Arguments) -> Result<String, PinsError> {
    let (node, provision) = (arguments.node.parse()?, arguments.provision.parse()?);
    let provider = Running {
        node: arguments.from_node.parse()?,
        component: arguments.component.parse()?,
    };
    let (mut files, text) = pins_file::read(&setup.fleet)?;
    let pinned = edit::pin(&text, &node, &provision, &provider)?;
    let model = pins_file::model(&files, Some(&pinned))?;
    let refused = refusals(&model, node.as_str(), provision.as_str());
    if !refused.is_empty() {
        files.0.insert(PINS.to_owned(), pinned);
        return Err(pins_file::mistakes(files, refused).into());
    }
    pins_file::write(&setup.fleet, &pinned)?;
    Ok(match explain::why(&model, node.as_str(), provision.as_str()) {
        Ok(trees) => {
            let lines: Vec<_> = trees.iter().map(|tree| tree.text.as_str()).collect();
            lines.join("\n")
        }
        Err(nothing) => format!("warning: the pin decides nothing yet: {nothing}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ForkedFleet, two_providers};
    use super::*;

    fn choose(fleet: &ForkedFleet, words: [&str; 4]) -> Result<String, PinsError> {
        let [node, provision, from_node, component] = words.map(str::to_owned);
        let arguments = Arguments {
            node,
            provision,
            from_node,
            component,
        };
        pin(&fleet.setup(), &arguments)
    }

    #[test]
    fn a_pin_is_written_and_says_who_answers_now() {
        let fleet = two_providers();
        let told = choose(&fleet, ["desk", "route", "edge-a", "caddy"]).unwrap();
        assert_eq!(
            told,
            "`desk/gitea` requires `route`: `edge-a/caddy` answers\n`desk/keycloak` requires `route`: `edge-a/caddy` answers"
        );
        let text = fleet.pins();
        assert!(text.contains("# And the desk on the second.\n[desk]\n"), "{text}");
        assert_eq!(text.matches("\"caddy\"").count(), 2, "{text}");
    }

    #[test]
    fn what_would_be_refused_is_refused_and_the_file_stays_as_it_was() {
        let fleet = two_providers();
        let before = fleet.pins();
        for words in [
            // No provider; nothing of that name; no name.
            ["desk", "route", "db-a", "garage-a"],
            ["desk", "route", "edge-a", "cady"],
            ["desc", "route", "edge-a", "caddy"],
            ["desk", "database", "db-a", "postgres-a"],
            ["desk", "route", "Edge", "caddy"],
        ] {
            assert!(choose(&fleet, words).is_err(), "{words:?}");
            assert_eq!(fleet.pins(), before, "{words:?}");
        }
    }

    #[test]
    fn a_pin_ahead_of_its_consumer_is_written_with_a_warning() {
        let fleet = two_providers();
        let told = choose(&fleet, ["db-a", "route", "edge-a", "caddy"]).unwrap();
        assert!(
            told.starts_with("warning: the pin decides nothing yet: no component of `db-a` requires `route`")
        );
        assert!(fleet.pins().contains("[db-a]"));
    }
}
