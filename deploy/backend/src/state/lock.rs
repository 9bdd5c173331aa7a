//! Locks, and who is barred by one.

use serde::Deserialize;

/// Identifies the holder of a lock; not empty, at most [`LockId::MAX_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockId(String);

impl LockId {
    /// Longest identifier in bytes. The programs send a UUID of 36.
    pub const MAX_BYTES: usize = 256;

    /// Takes the identifier from a body's `ID` or a query's `ID=`.
    pub fn new(text: &str) -> Result<Self, LockError> {
        match text.len() {
            0 => Err(LockError::NoId),
            1..=Self::MAX_BYTES => Ok(Self(text.to_owned())),
            bytes => Err(LockError::LongId { bytes }),
        }
    }

    /// The identifier as it was sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A lock as its holder described it.
///
/// The bytes are kept as they came and go back verbatim to whoever finds the lock taken: OpenTofu's `Created` trims
/// zeros, so writing the fields anew would change them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    id: LockId,
    bytes: Vec<u8>,
}

impl Lock {
    /// Reads the body of a LOCK request: a JSON object with an `ID`.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, LockError> {
        let id = parse_id(&bytes)?;
        Ok(Self { id, bytes })
    }

    /// Who holds it.
    pub fn id(&self) -> &LockId {
        &self.id
    }

    /// The body it was taken with.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it keeps a write or a DELETE out. (Where no lock is held a claim keeps nobody out: the lock was released
    /// by force, and the rule about serials still guards the state.)
    pub fn bars(&self, claim: &Claim) -> bool {
        match claim {
            Claim::None => true,
            Claim::Holder(id) => self.id != *id,
        }
    }

    /// Gives the body away.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// What a write or a DELETE says about the lock it works under (`?ID=` in its address).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It claims no lock.
    None,
    /// It claims to hold this one.
    Holder(LockId),
}

/// What an UNLOCK asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// An empty body, as `terraform force-unlock` sends it: whoever holds the lock loses it.
    Forced,
    /// The lock with this identifier. OpenTofu's `force-unlock` sends no more than the identifier, so nothing else is
    /// compared.
    Holder(LockId),
}

impl Release {
    /// Reads the body of an UNLOCK request.
    pub fn parse(bytes: &[u8]) -> Result<Self, LockError> {
        if bytes.trim_ascii().is_empty() {
            return Ok(Self::Forced);
        }
        parse_id(bytes).map(Self::Holder)
    }
}

/// Why a text is not a lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Not a JSON object, or `ID` is no text.
    #[error("the body is not a lock ({reason}); send the JSON object that OpenTofu sends, with its ID")]
    NotALock {
        /// What the parser says.
        reason: String,
    },
    /// `ID` is missing or empty.
    #[error("the lock has no ID; send one, or an empty body to UNLOCK by force")]
    NoId,
    /// `ID` is too long.
    #[error("the lock's ID has {bytes} bytes; use at most {}", LockId::MAX_BYTES)]
    LongId {
        /// Length in bytes.
        bytes: usize,
    },
}

#[derive(Deserialize)]
struct LockBody {
    #[serde(rename = "ID", default)]
    id: String,
}

fn parse_id(bytes: &[u8]) -> Result<LockId, LockError> {
    let refused = |reason: &dyn ToString| LockError::NotALock {
        reason: reason.to_string(),
    };
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(refused(&"no JSON object"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| refused(&error))?;
    let body: LockBody = serde_json::from_str(text).map_err(|error| refused(&error))?;
    LockId::new(&body.id)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn id(text: &str) -> LockId {
        LockId::new(text).unwrap()
    }

    #[rstest]
    #[case::terraform_force_unlock("", Release::Forced)]
    #[case::blank(" \n", Release::Forced)]
    #[case::tofu_force_unlock(r#"{"ID":"a","Operation":"","Info":"","Who":""}"#, Release::Holder(id("a")))]
    fn an_unlock_body_says_whose_lock_it_is(#[case] body: &str, #[case] release: Release) {
        assert_eq!(Release::parse(body.as_bytes()), Ok(release));
    }

    #[rstest]
    #[case::no_id(r#"{"Who":"a@b"}"#)]
    #[case::empty_id(r#"{"ID":""}"#)]
    fn a_lock_without_an_id_is_refused(#[case] body: &str) {
        assert_eq!(Lock::parse(body.into()), Err(LockError::NoId));
        assert_eq!(Release::parse(body.as_bytes()), Err(LockError::NoId));
    }

    #[rstest]
    #[case::nothing("")]
    #[case::html("<html>")]
    #[case::a_list(r#"["a"]"#)]
    #[case::a_text(r#""a""#)]
    #[case::a_number_for_an_id(r#"{"ID":7}"#)]
    #[case::cut_off(r#"{"ID":"a""#)]
    fn what_is_no_lock_is_refused(#[case] body: &str) {
        assert!(matches!(
            Lock::parse(body.into()),
            Err(LockError::NotALock { .. })
        ));
    }

    #[rstest]
    #[case::no_claim(Claim::None, true)]
    #[case::the_claim_of_another(Claim::Holder(id("b")), true)]
    #[case::the_holder(Claim::Holder(id("a")), false)]
    fn a_lock_lets_only_its_holder_pass(#[case] claim: Claim, #[case] barred: bool) {
        let lock = Lock::parse(r#"{"ID":"a"}"#.into()).unwrap();
        assert_eq!(lock.bars(&claim), barred);
    }
}
