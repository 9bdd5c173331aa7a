//! The state backend's users file, in the backend's own words.

use provisor_backend::Password;
use provisor_backend::users;

use super::{GrantsError, Login};

/// One line of the file, with a new salt.
pub(super) fn line(login: &Login) -> Result<String, GrantsError> {
    users::hash_line(&login.name, &password(login)).map_err(|error| GrantsError::Login {
        reason: error.to_string(),
    })
}

/// Whether a users file accepts a login.
pub(super) fn accepts(text: &str, login: &Login) -> bool {
    users::verify(text, &login.name, &password(login))
}

fn password(login: &Login) -> Password {
    Password::new(login.password.reveal())
}
