//! `provisor ca`: the certificate that clients of the fleet trust.

use super::preparation::Place;
use super::{Exit, Format, diagnostics, fleet, output};
use crate::grants::at_rest::Shelf;
use crate::grants::ca::Authority;
use crate::setup::Setup;

pub(super) fn run(setup: &Setup, format: Format) -> Exit {
    let fleet = match fleet::open(&setup.fleet) {
        Ok(fleet) => fleet,
        Err(error) => return diagnostics::refuse(&error, &setup.fleet, format),
    };
    let place = match Place::of(setup, &fleet.loaded.model) {
        Ok(place) => place,
        Err(error) => {
            output::error(&error);
            return Exit::Refused;
        }
    };
    match Authority::load(&Shelf::at(&place.grants())) {
        Ok(Some(authority)) => {
            output::data(authority.certificate());
            Exit::Done
        }
        Ok(None) => {
            output::error(
                &"the fleet has no CA yet; it is made by the first `provisor tf apply` that needs it",
            );
            Exit::Failed
        }
        Err(error) => {
            output::error(&error);
            Exit::Failed
        }
    }
}
