//! A password that shows itself nowhere.

use std::fmt;

/// A password. It has no `Display`, and `Debug` hides it; [`Password::expose`] is the one way to it.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// Takes a text as a password.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The password itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_it() {
        assert_eq!(format!("{:?}", Password::new("hunter2")), "Password(hidden)");
    }
}
