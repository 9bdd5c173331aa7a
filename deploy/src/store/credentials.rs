//! What the operator gives for the backend: who they are, whom they trust, how long to insist.

use std::fmt;
use std::time::Duration;

use crate::address::StateAddress;

/// Credentials and trust for one backend. They reach OpenTofu by its environment only, and never a file or an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// `TF_HTTP_USERNAME`.
    pub username: Option<String>,
    /// `TF_HTTP_PASSWORD`.
    pub password: Option<Secret>,
    /// `TF_HTTP_CLIENT_CA_CERTIFICATE_PEM`: the text of the CA certificates to trust in place of the public ones.
    pub ca_certificates: Option<String>,
    /// `TF_HTTP_RETRY_MAX`, `TF_HTTP_RETRY_WAIT_MIN` and `TF_HTTP_RETRY_WAIT_MAX`.
    pub retries: Retries,
}

/// How OpenTofu insists on a request that failed by connection, 429 or 5xx.
///
/// The defaults are generous, since the graph restarts its own backend in mid-apply: 12 attempts are about four minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Attempts after the first.
    pub max: u32,
    /// The first pause.
    pub wait_min: Duration,
    /// The longest pause.
    pub wait_max: Duration,
}

/// Text that no `Debug` shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Credentials {
    /// Reads the `TF_HTTP_*` variables out of `variables`, which is the process environment in the program. A number that
    /// does not parse is taken as not given.
    pub fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> Credentials {
        let mut credentials = Credentials::default();
        for (name, value) in variables {
            let seconds = || value.parse().map(Duration::from_secs).ok();
            match name.as_str() {
                "TF_HTTP_USERNAME" => credentials.username = Some(value),
                "TF_HTTP_PASSWORD" => credentials.password = Some(Secret::new(value)),
                "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM" => credentials.ca_certificates = Some(value),
                "TF_HTTP_RETRY_MAX" => {
                    credentials.retries.max = value.parse().unwrap_or(credentials.retries.max)
                }
                "TF_HTTP_RETRY_WAIT_MIN" => {
                    credentials.retries.wait_min = seconds().unwrap_or(credentials.retries.wait_min);
                }
                "TF_HTTP_RETRY_WAIT_MAX" => {
                    credentials.retries.wait_max = seconds().unwrap_or(credentials.retries.wait_max);
                }
                _ => {}
            }
        }
        credentials
    }

    /// The same, with user name and password from the address where none are given apart.
    pub fn with_userinfo_of(mut self, address: &StateAddress) -> Credentials {
        if let (None, Some(userinfo)) = (&self.username, address.userinfo()) {
            self.username = Some(userinfo.username.clone());
            self.password = Some(Secret::new(userinfo.password.clone()));
        }
        self
    }
}

impl Default for Retries {
    fn default() -> Retries {
        Retries {
            max: 12,
            wait_min: Duration::from_secs(1),
            wait_max: Duration::from_secs(30),
        }
    }
}

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(xxxxx)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Credentials {
        Credentials::from_variables(
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        )
    }

    #[test]
    fn credentials_come_from_opentofus_variables() {
        let credentials = variables(&[
            ("TF_HTTP_USERNAME", "alice"),
            ("TF_HTTP_PASSWORD", "canary"),
            ("TF_HTTP_RETRY_MAX", "3"),
            ("TF_HTTP_RETRY_WAIT_MIN", "2"),
            ("TF_HTTP_RETRY_WAIT_MAX", "many"),
            ("HOME", "/"),
        ]);
        assert_eq!(credentials.username.as_deref(), Some("alice"));
        assert_eq!(credentials.password.as_ref().map(Secret::reveal), Some("canary"));
        assert_eq!(credentials.retries.max, 3);
        assert_eq!(credentials.retries.wait_min, Duration::from_secs(2));
        assert_eq!(credentials.retries.wait_max, Retries::default().wait_max);
        assert!(!format!("{credentials:?}").contains("canary"));
    }

    #[test]
    fn the_addresss_userinfo_is_used_only_where_no_user_is_given() {
        let address = StateAddress::parse("http://bob:inline@host/s").unwrap();
        let from_address = Credentials::default().with_userinfo_of(&address);
        assert_eq!(from_address.username.as_deref(), Some("bob"));
        assert_eq!(from_address.password.as_ref().map(Secret::reveal), Some("inline"));
        let given = variables(&[("TF_HTTP_USERNAME", "alice")]).with_userinfo_of(&address);
        assert_eq!((given.username.as_deref(), given.password), (Some("alice"), None));
    }
}
