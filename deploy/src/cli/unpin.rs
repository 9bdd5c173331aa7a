//! `provisor unpin NODE PROVISION`: takes a choice back.

use clap::Args;
use provisor_model::pins::edit;

use super::pins_file::{self, PinsError};
use super::{Exit, Format, output};
use crate::setup::Setup;

/// The choice.
#[derive(Clone, Debug, Args)]
pub(super) struct Arguments {
    /// The node whose components it was for.
    node: String,
    /// What was answered.
    provision: String,
}

pub(super) fn run(setup: &Setup, format: Format, arguments: &Arguments) -> Exit {
    match unpin(setup, arguments) {
        Ok(()) => {
            let Arguments { node, provision } = arguments;
            output::note(&format!("`{provision}` is no longer pinned on `{node}`"));
            Exit::Done
        }
        Err(error) => error.refuse(&setup.fleet, format),
    }
}

/// It need not leave a fleet that resolves: to take a wrong pin back is how one gets there.
fn unpin(setup: &Setup, Arguments { node, provision }: &Arguments) -> Result<(), PinsError> {
    let (_, text) = pins_file::read(&setup.fleet)?;
    let text = edit::unpin(&text, &node.parse()?, &provision.parse()?)?;
    pins_file::write(&setup.fleet, &text)
}

#[cfg(test)]
mod tests {
    use super::super::testing::two_providers;
    use super::*;

    #[test]
    fn a_pin_is_taken_back_once() {
        let fleet = two_providers();
        let arguments = Arguments {
            node: "desk".to_owned(),
            provision: "route".to_owned(),
        };
        unpin(&fleet.setup(), &arguments).unwrap();
        assert!(!fleet.pins().contains("traefik"));
        let error = unpin(&fleet.setup(), &arguments).unwrap_err().to_string();
        assert!(error.starts_with("`route` is not pinned on `desk`"), "{error}");
    }
}
