//! Keys, and who logs in with them.

use std::fmt;
use std::sync::Arc;

use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey, PublicKey, ssh_key};

/// Who logs in, with what, and where.
#[derive(Clone)]
pub struct Login {
    pub(super) user: String,
    pub(super) private_key: Arc<PrivateKey>,
    pub(super) host: HostKey,
}

/// Which host key is accepted.
#[derive(Clone)]
pub(super) enum HostKey {
    Pinned(PublicKey),
    /// Whichever it shows.
    Any,
}

/// A text that is no key.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the {what}: {source}; give it as OpenSSH writes it, and not encrypted")]
pub struct KeyError {
    what: &'static str,
    #[source]
    source: ssh_key::Error,
}

impl Login {
    /// A user with a private key (`-----BEGIN OPENSSH PRIVATE KEY-----`), and the one host key to accept
    /// (`ssh-ed25519 AAAA…`).
    ///
    /// # Errors
    /// [`KeyError`] if one of them is no key.
    pub fn new(user: impl Into<String>, private_key: &str, host_key: &str) -> Result<Self, KeyError> {
        let wrong = |what| move |source| KeyError { what, source };
        let private_key = PrivateKey::from_openssh(private_key).map_err(wrong("private key"))?;
        let host_key = PublicKey::from_openssh(host_key).map_err(wrong("host key"))?;
        Ok(Self {
            user: user.into(),
            private_key: Arc::new(private_key),
            host: HostKey::Pinned(host_key),
        })
    }

    /// The same, whatever host key it shows: for a guest that makes its own, on a port of 127.0.0.1 where nobody else can be.
    ///
    /// # Errors
    /// [`KeyError`] if it is no key.
    pub fn whatever_host_key(user: impl Into<String>, private_key: &str) -> Result<Self, KeyError> {
        let wrong = |source| KeyError {
            what: "private key",
            source,
        };
        Ok(Self {
            user: user.into(),
            private_key: Arc::new(PrivateKey::from_openssh(private_key).map_err(wrong)?),
            host: HostKey::Any,
        })
    }

    /// The pinned host key, as OpenSSH writes it; empty if there is none.
    pub(crate) fn host_key(&self) -> String {
        match &self.host {
            HostKey::Pinned(key) => key.to_openssh().unwrap_or_default(),
            HostKey::Any => String::new(),
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host_key = match &self.host {
            HostKey::Pinned(key) => key.fingerprint(ssh_key::HashAlg::Sha256).to_string(),
            HostKey::Any => "any".to_owned(),
        };
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("host_key", &host_key)
            .finish()
    }
}

/// A new Ed25519 key, for a login or for a host.
pub struct KeyPair {
    private: String,
    public: String,
}

impl KeyPair {
    /// Draws one.
    pub fn generate() -> Self {
        let key = ssh_key::private::Ed25519Keypair::from_seed(&rand::random());
        Self::of(&PrivateKey::from(key)).unwrap_or_else(|_| Self::generate())
    }

    /// The private half as OpenSSH stores it. It is a secret: write it to a file of mode 0600 only.
    pub fn private(&self) -> &str {
        &self.private
    }

    /// The public half, `ssh-ed25519 AAAA…`, without a comment or a line end.
    pub fn public(&self) -> &str {
        &self.public
    }

    fn of(key: &PrivateKey) -> Result<Self, ssh_key::Error> {
        debug_assert_eq!(key.algorithm(), Algorithm::Ed25519);
        let private = key.to_openssh(LineEnding::LF)?.to_string();
        Ok(Self {
            private,
            public: key.public_key().to_openssh()?,
        })
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_pair_logs_in_and_its_private_half_is_not_shown() {
        let (user, host) = (KeyPair::generate(), KeyPair::generate());
        assert_ne!(user.public(), host.public());
        let login = Login::new("root", user.private(), host.public()).unwrap();
        assert_eq!(
            login.private_key.public_key().to_openssh().unwrap(),
            user.public()
        );
        let secret = user.private().lines().nth(2).unwrap();
        assert!(!format!("{user:?} {login:?}").contains(secret));
    }

    #[test]
    fn a_text_that_is_no_key_is_named_and_not_repeated() {
        let pair = KeyPair::generate();
        let message = Login::new("root", "canary", pair.public())
            .unwrap_err()
            .to_string();
        assert!(message.starts_with("cannot read the private key: "), "{message}");
        assert!(!message.contains("canary"));
        assert!(
            Login::new("root", pair.private(), "x")
                .unwrap_err()
                .to_string()
                .contains("host key")
        );
    }
}
