//! Who is let in: HTTP basic authentication.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blake2::Blake2sMac256;
use blake2::digest::{KeyInit as _, Mac as _};
use tokio::sync::Semaphore;

use crate::password::Password;
use crate::users::{UserName, Users};

/// Password hashes computed at once. Each takes 19 MiB, and anybody may ask for one.
const HASHES_AT_ONCE: usize = 2;

/// Tells who sends a request.
pub(crate) struct Gate {
    round: Mutex<Arc<Round>>,
    key: MacKey,
    turns: Arc<Semaphore>,
}

/// The users of one reading of the file, and which credentials they were admitted with. They are replaced together, so
/// that no old credential outlives its line.
struct Round {
    users: Users,
    admitted: Mutex<HashMap<Tag, UserName>>,
}

/// A credential under a key that only this process knows: what is remembered tells nothing about passwords, and how long
/// a look-up takes tells a client nothing about what is remembered.
type Tag = [u8; 32];

type MacKey = [u8; 32];

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    /// No credentials.
    #[error("this address needs a user and a password; set TF_HTTP_USERNAME and TF_HTTP_PASSWORD")]
    Missing,
    /// Credentials that cannot be read.
    #[error(
        "the credentials are not in the form of basic authentication; set TF_HTTP_USERNAME and TF_HTTP_PASSWORD"
    )]
    Unreadable,
    /// Credentials of nobody.
    #[error("the user or the password is wrong; check TF_HTTP_USERNAME and TF_HTTP_PASSWORD")]
    Wrong,
}

impl Gate {
    /// Lets these users in.
    pub(crate) fn new(users: Users) -> Result<Self, getrandom::Error> {
        let mut key = MacKey::default();
        getrandom::fill(&mut key)?;
        let turns = Arc::new(Semaphore::new(HASHES_AT_ONCE));
        Ok(Self {
            round: Mutex::new(Arc::new(Round::new(users))),
            key,
            turns,
        })
    }

    /// Lets these users in from now on, and forgets who was let in before.
    pub(crate) fn replace(&self, users: Users) {
        *self.round.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(Round::new(users));
    }

    /// Who sends a request with this `Authorization` header.
    pub(crate) async fn admit(&self, header: Option<&HeaderValue>) -> Result<UserName, Denied> {
        let credentials = Credentials::parse(header.ok_or(Denied::Missing)?)?;
        let tag = credentials.tag(&self.key);
        let round = Arc::clone(&self.round.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(user) = round.remembered(&tag) {
            return Ok(user);
        }
        let Ok(turn) = Arc::clone(&self.turns).acquire_owned().await else {
            return Err(Denied::Wrong);
        };
        let hashed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            // Another request of the same client may have been before us in the queue.
            round.remembered(&tag).or_else(|| {
                let user = round.users.admit(&credentials.name, &credentials.password)?;
                round.remember(tag, user.clone());
                Some(user)
            })
        });
        hashed.await.ok().flatten().ok_or(Denied::Wrong)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl Round {
    fn new(users: Users) -> Self {
        Self {
            users,
            admitted: Mutex::default(),
        }
    }

    fn remembered(&self, tag: &Tag) -> Option<UserName> {
        self.admitted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(tag)
            .cloned()
    }

    fn remember(&self, tag: Tag, user: UserName) {
        self.admitted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(tag, user);
    }
}

struct Credentials {
    name: String,
    password: Password,
}

impl Credentials {
    fn parse(header: &HeaderValue) -> Result<Self, Denied> {
        let (scheme, encoded) = header
            .to_str()
            .ok()
            .and_then(|text| text.split_once(' '))
            .ok_or(Denied::Unreadable)?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(Denied::Unreadable);
        }
        let decoded = STANDARD.decode(encoded.trim()).map_err(|_| Denied::Unreadable)?;
        let text = String::from_utf8(decoded).map_err(|_| Denied::Unreadable)?;
        let (name, password) = text.split_once(':').ok_or(Denied::Unreadable)?;
        Ok(Self {
            name: name.to_owned(),
            password: Password::new(password),
        })
    }

    /// A name holds no `:`, so name and password cannot be shifted against each other.
    fn tag(&self, key: &MacKey) -> Tag {
        let mut mac = Blake2sMac256::new(key.into());
        mac.update(self.name.as_bytes());
        mac.update(b":");
        mac.update(self.password.expose().as_bytes());
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::users::hash_line;

    fn users(name: &str, password: &str) -> Users {
        Users::parse(&hash_line(name, &Password::new(password)).unwrap()).unwrap()
    }

    fn basic(credentials: &str) -> HeaderValue {
        HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(credentials))).unwrap()
    }

    #[tokio::test]
    async fn a_user_is_known_by_name_and_password() {
        let gate = Gate::new(users("alice", "se:cret")).unwrap();
        let alice = Ok("alice".parse().unwrap());
        assert_eq!(gate.admit(Some(&basic("alice:se:cret"))).await, alice);
        assert_eq!(gate.admit(Some(&basic("alice:se:cret"))).await, alice);
        assert_eq!(gate.admit(Some(&basic("alice:secret"))).await, Err(Denied::Wrong));
        assert_eq!(gate.admit(Some(&basic("bob:se:cret"))).await, Err(Denied::Wrong));
    }

    #[rstest]
    #[case::none(None, Denied::Missing)]
    #[case::another_scheme(Some("Bearer abc"), Denied::Unreadable)]
    #[case::nothing_after_the_scheme(Some("Basic"), Denied::Unreadable)]
    #[case::not_base64(Some("Basic ***"), Denied::Unreadable)]
    #[case::no_colon(Some("Basic YWxpY2U="), Denied::Unreadable)]
    #[case::not_utf8(Some("Basic /zo="), Denied::Unreadable)]
    #[tokio::test]
    async fn who_cannot_be_read_is_denied(#[case] header: Option<&'static str>, #[case] denied: Denied) {
        let gate = Gate::new(users("alice", "secret")).unwrap();
        let header = header.map(HeaderValue::from_static);
        assert_eq!(gate.admit(header.as_ref()).await, Err(denied));
    }

    #[tokio::test]
    async fn a_replaced_password_stops_working_although_it_was_remembered() {
        let gate = Gate::new(users("alice", "old")).unwrap();
        assert!(gate.admit(Some(&basic("alice:old"))).await.is_ok());
        gate.replace(users("alice", "new"));
        assert_eq!(gate.admit(Some(&basic("alice:old"))).await, Err(Denied::Wrong));
        assert!(gate.admit(Some(&basic("alice:new"))).await.is_ok());
    }

    #[tokio::test]
    async fn a_password_is_hashed_once() {
        let gate = Gate::new(users("alice", "secret")).unwrap();
        gate.admit(Some(&basic("alice:secret"))).await.unwrap();
        gate.turns.close();
        assert!(
            gate.admit(Some(&basic("alice:secret"))).await.is_ok(),
            "it is remembered"
        );
        assert_eq!(gate.admit(Some(&basic("alice:other"))).await, Err(Denied::Wrong));
    }
}
