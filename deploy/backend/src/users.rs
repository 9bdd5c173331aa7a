//! Who may use the backend: the users file.
//!
//! One user a line, `name:hash`, the hash in the PHC form of Argon2id; blank lines and lines that start with `#` are
//! skipped. [`hash_line`] makes a line.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};

use crate::password::Password;

/// A user's name: letters, digits and `. _ @ -`, at most 64 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserName(String);

impl UserName {
    const MAX_BYTES: usize = 64;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserName {
    type Err = UsersError;

    fn from_str(text: &str) -> Result<Self, UsersError> {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._@-".contains(letter);
        if text.is_empty() || text.len() > Self::MAX_BYTES || !text.chars().all(allowed) {
            return Err(UsersError::Name {
                name: text.escape_debug().to_string(),
            });
        }
        Ok(Self(text.to_owned()))
    }
}

/// A line of the users file for a user, without a newline. The salt is new each time, so two lines for one password
/// differ; [`verify`] tells whether a line that is there already will do.
pub fn hash_line(name: &str, password: &Password) -> Result<String, UsersError> {
    let name: UserName = name.parse()?;
    if password.expose().is_empty() {
        return Err(UsersError::NoPassword);
    }
    let hash: PasswordHash = argon2()
        .hash_password(password.expose().as_bytes())
        .map_err(|error| UsersError::Hash {
            reason: error.to_string(),
        })?;
    Ok(format!("{}:{hash}", name.as_str()))
}

/// Whether `line` lets `name` in with `password`. A line that is no user lets nobody in.
pub fn verify(line: &str, name: &str, password: &Password) -> bool {
    Users::parse(line).is_ok_and(|users| users.admit(name, password).is_some())
}

/// The users of one backend; never empty.
#[derive(Clone, Debug)]
pub struct Users(BTreeMap<UserName, PasswordHash>);

impl Users {
    /// Reads a users file. It holds what opens every state, so a file that others may read is refused.
    ///
    /// A file that systemd hands over by `LoadCredential=` has mode 0400 or 0440, and passes.
    pub fn read(path: &Path) -> Result<Self, UsersError> {
        let unreadable = |source| UsersError::Read {
            path: path.to_owned(),
            source,
        };
        let mut file = std::fs::File::open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o777;
        if mode & 0o007 != 0 {
            return Err(UsersError::Exposed {
                path: path.to_owned(),
                mode,
            });
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(unreadable)?;
        Self::parse(&text)
    }

    /// Reads the text of a users file.
    pub fn parse(text: &str) -> Result<Self, UsersError> {
        let mut users = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = index + 1;
            let malformed = UsersError::Line { line: number };
            let Some((name, hash)) = line.split_once(':') else {
                return Err(malformed);
            };
            let Ok(name) = name.parse::<UserName>() else {
                return Err(malformed);
            };
            let Some(hash) = argon2id_hash(hash) else {
                return Err(malformed);
            };
            if users.contains_key(&name) {
                return Err(UsersError::Twice {
                    line: number,
                    name: name.0,
                });
            }
            users.insert(name, hash);
        }
        if users.is_empty() {
            Err(UsersError::Nobody)
        } else {
            Ok(Self(users))
        }
    }

    /// The user of that name, if the password is theirs.
    ///
    /// It takes as long for a name that is unknown as for one that is known: some hash is always computed. Tens of
    /// milliseconds and 19 MiB, so call it where blocking is allowed and not for many at once.
    pub fn admit(&self, name: &str, password: &Password) -> Option<UserName> {
        let known = self.0.iter().find(|(user, _)| user.as_str() == name);
        let (_, hash) = known.or_else(|| self.0.first_key_value())?;
        let matches = argon2()
            .verify_password(password.expose().as_bytes(), hash)
            .is_ok();
        known.filter(|_| matches).map(|(user, _)| user.clone())
    }
}

/// Why there are no users. No variant holds a hash or a password.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// The file cannot be read.
    #[error(
        "cannot read the users file {}: {source}; make it with `provisor-backend user add NAME`",
        path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Others may read or write the file.
    #[error("the users file {} has mode {mode:04o}; take it from others with `chmod o= {}`", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A line is not `name:hash`.
    #[error("line {line} of the users file is not name:hash; write it with `provisor-backend user add NAME`")]
    Line {
        /// Counts from 1.
        line: usize,
    },
    /// One name has two lines.
    #[error("line {line} of the users file names {name} again; keep one of the lines")]
    Twice {
        /// Counts from 1.
        line: usize,
        /// The name.
        name: String,
    },
    /// The file holds no user.
    #[error(
        "the users file holds no user, so nobody could log in; add one with `provisor-backend user add NAME`"
    )]
    Nobody,
    /// Not a name.
    #[error(
        "\"{name}\" cannot be a user's name; use 1 to {} of a-z A-Z 0-9 . _ @ -",
        UserName::MAX_BYTES
    )]
    Name {
        /// The text, escaped.
        name: String,
    },
    /// The password is empty.
    #[error("the password is empty; give one of at least one character")]
    NoPassword,
    /// The hash could not be computed.
    #[error("the password could not be hashed ({reason}); use a shorter one")]
    Hash {
        /// What the library says.
        reason: String,
    },
}

/// OWASP's minimum for Argon2id (19 MiB, two passes, one lane): a backend may run on a small host, or in an emulated
/// one. A hash in the file that was made with other costs is checked with its own.
fn argon2() -> Argon2<'static> {
    const COSTS: Params = match Params::new(19 * 1024, 2, 1, None) {
        Ok(costs) => costs,
        Err(_) => Params::DEFAULT,
    };
    Argon2::new(Algorithm::Argon2id, Version::V0x13, COSTS)
}

fn argon2id_hash(text: &str) -> Option<PasswordHash> {
    let hash = PasswordHash::new(text).ok()?;
    let complete = hash.salt.is_some() && hash.hash.is_some() && Params::try_from(&hash).is_ok();
    (complete && hash.algorithm.as_str() == Algorithm::Argon2id.as_str()).then_some(hash)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rstest::rstest;

    use super::*;

    /// Cheap, since most of these tests are not about its cost. The password is "secret".
    const CHEAP: &str = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$";

    fn line(name: &str) -> String {
        let argon2 = Argon2::new(
            Algorithm::Argon2id,
            Version::V0x13,
            Params::new(8, 1, 1, None).unwrap(),
        );
        let hash: PasswordHash = argon2.hash_password_with_salt(b"secret", b"saltsalt").unwrap();
        assert!(hash.to_string().starts_with(CHEAP));
        format!("{name}:{hash}")
    }

    #[test]
    fn a_line_lets_its_user_in_and_nobody_else() {
        let line = hash_line("alice", &Password::new("correct horse")).unwrap();
        assert!(
            line.starts_with("alice:$argon2id$v=19$m=19456,t=2,p=1$"),
            "{line}"
        );
        assert!(verify(&line, "alice", &Password::new("correct horse")));
        assert!(!verify(&line, "alice", &Password::new("correct horse ")));
        assert!(!verify(&line, "bob", &Password::new("correct horse")));
        assert!(!verify("alice", "alice", &Password::new("correct horse")));
    }

    #[test]
    fn each_line_has_its_own_salt() {
        let password = Password::new("secret");
        assert_ne!(
            hash_line("alice", &password).unwrap(),
            hash_line("alice", &password).unwrap()
        );
    }

    #[test]
    fn each_user_has_a_password_of_their_own() {
        let bob = hash_line("bob", &Password::new("other")).unwrap();
        let users = Users::parse(&format!("# our users\n\n{}\n{bob}\n", line("alice"))).unwrap();
        let admitted = |name: &str, password: &str| users.admit(name, &Password::new(password)).is_some();
        assert!(admitted("alice", "secret") && admitted("bob", "other"));
        assert!(!admitted("alice", "other") && !admitted("bob", "secret") && !admitted("carol", "secret"));
    }

    #[rstest]
    #[case::empty("")]
    #[case::colon("a:b")]
    #[case::newline("a\nb")]
    #[case::space("a b")]
    #[case::long(&"a".repeat(65))]
    fn a_name_that_would_not_fit_a_line_is_refused(#[case] name: &str) {
        let refused = hash_line(name, &Password::new("secret"));
        assert!(matches!(refused, Err(UsersError::Name { .. })));
    }

    #[test]
    fn an_empty_password_is_refused() {
        assert!(matches!(
            hash_line("alice", &Password::new("")),
            Err(UsersError::NoPassword)
        ));
    }

    #[rstest]
    #[case::no_colon("alice")]
    #[case::plain_text("alice:secret")]
    #[case::no_name(&line(""))]
    #[case::no_output("alice:$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ")]
    #[case::weaker_function(&line("alice").replace("argon2id", "argon2i"))]
    #[case::another_function("alice:$scrypt$ln=17,r=8,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA")]
    fn a_line_that_is_no_user_is_named_and_not_quoted(#[case] bad: &str) {
        let error = Users::parse(&format!("{}\n{bad}\n", line("zoe"))).unwrap_err();
        assert!(matches!(error, UsersError::Line { line: 2 }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("secret"));
    }

    #[test]
    fn a_user_named_twice_is_refused() {
        let error = Users::parse(&format!("{}\n{}\n", line("alice"), line("alice"))).unwrap_err();
        assert!(matches!(error, UsersError::Twice { line: 2, .. }));
    }

    #[test]
    fn a_file_without_users_is_refused() {
        assert!(matches!(Users::parse("# nobody yet\n"), Err(UsersError::Nobody)));
    }

    #[rstest]
    #[case::owner(0o600, true)]
    #[case::systemd_credential(0o440, true)]
    #[case::read_by_others(0o604, false)]
    #[case::written_by_others(0o602, false)]
    fn a_file_that_others_may_touch_is_refused(#[case] mode: u32, #[case] accepted: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        fs::write(&path, line("alice")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        match Users::read(&path) {
            Ok(_) => assert!(accepted),
            Err(UsersError::Exposed { mode: found, .. }) => assert!(!accepted && found == mode),
            Err(other) => panic!("{other}"),
        }
    }
}
