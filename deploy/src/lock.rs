//! Locks of a state: what we say when we take one, and who holds one that we did not get.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The body of a LOCK request, with OpenTofu's fields in OpenTofu's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LockInfo {
    /// A UUID; a write under the lock carries it in its query.
    #[serde(rename = "ID")]
    pub id: String,
    /// What the lock is for.
    #[serde(default)]
    pub operation: String,
    /// Free text; OpenTofu leaves it empty.
    #[serde(default)]
    pub info: String,
    /// `user@host`.
    #[serde(default)]
    pub who: String,
    /// Version of the program.
    #[serde(default)]
    pub version: String,
    /// RFC 3339 in UTC, nanoseconds with trailing zeros trimmed.
    #[serde(default)]
    pub created: String,
    /// Path of the state, for file locks.
    #[serde(default)]
    pub path: String,
}

impl LockInfo {
    /// A lock of ours for `operation`, taken at `now`.
    pub fn new(operation: &str, now: Timestamp) -> LockInfo {
        LockInfo {
            id: uuid::Uuid::new_v4().to_string(),
            operation: operation.to_owned(),
            info: String::new(),
            who: who(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created: now.to_string(),
            path: String::new(),
        }
    }

    /// The bytes to send. UNLOCK wants the very same again: servers compare whole bodies.
    pub fn body(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Who holds a lock, as the server's 409 or 423 told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The body, to be sent back verbatim by an UNLOCK: re-serialising can change its bytes.
    pub body: Vec<u8>,
    /// The same, read; `None` when it is not a lock (some servers answer plain text). Such a lock is never released by us.
    pub info: Option<LockInfo>,
}

impl Holder {
    /// Reads the body of a 409 or 423.
    pub fn read(body: Vec<u8>) -> Holder {
        let info = serde_json::from_slice::<LockInfo>(&body)
            .ok()
            .filter(|info| !info.id.is_empty());
        Holder { body, info }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.info {
            Some(info) => write!(
                formatter,
                "{} for {} since {} (lock {})",
                or_unknown(&info.who),
                or_unknown(&info.operation),
                or_unknown(&info.created),
                info.id
            ),
            None => {
                let head = String::from_utf8_lossy(&self.body[..self.body.len().min(80)]).into_owned();
                write!(formatter, "an unknown holder; the server says {head:?}")
            }
        }
    }
}

/// `user@host` as OpenTofu computes it: the password database and the kernel's host name, never `$USER`.
pub fn who() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current())
        .ok()
        .flatten()
        .map_or_else(|| nix::unistd::Uid::current().to_string(), |user| user.name);
    let host = nix::unistd::gethostname()
        .map(|host| host.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("{user}@{host}")
}

fn or_unknown(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_opentofus_fields_in_its_order() {
        let info = LockInfo {
            id: "1".into(),
            operation: "OperationTypeApply".into(),
            info: String::new(),
            who: "root@deployer".into(),
            version: "1.10.6".into(),
            created: "2026-01-02T03:04:05.12345Z".into(),
            path: String::new(),
        };
        let expected = concat!(
            r#"{"ID":"1","Operation":"OperationTypeApply","Info":"","Who":"root@deployer","Version":"1.10.6","#,
            r#""Created":"2026-01-02T03:04:05.12345Z","Path":""}"#
        );
        assert_eq!(String::from_utf8(info.body()).unwrap(), expected);
    }

    #[test]
    fn created_has_nanoseconds_with_trailing_zeros_trimmed() {
        let at = |text: &str| LockInfo::new("x", text.parse().unwrap()).created;
        assert_eq!(at("2026-01-02T03:04:05.123450000Z"), "2026-01-02T03:04:05.12345Z");
        assert_eq!(at("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05Z");
    }

    #[test]
    fn two_locks_have_two_ids() {
        let now = Timestamp::UNIX_EPOCH;
        assert_ne!(LockInfo::new("x", now).id, LockInfo::new("x", now).id);
    }

    #[test]
    fn who_ignores_the_environment() {
        let who = who();
        let (user, host) = who.split_once('@').unwrap();
        assert!(!user.is_empty());
        assert_eq!(host, nix::unistd::gethostname().unwrap().to_str().unwrap());
    }

    #[test]
    fn a_holders_body_is_kept_to_the_byte() {
        let body =
            br#"{"ID": "1", "Who":"bob@laptop", "Created":"2026-01-02T03:04:05.120Z", "Extra":1}"#.to_vec();
        let holder = Holder::read(body.clone());
        assert_eq!(holder.body, body);
        assert_eq!(holder.info.unwrap().who, "bob@laptop");
    }

    #[test]
    fn a_holder_that_is_not_told_is_unknown() {
        for body in ["locked by somebody", "{\"errors\":[]}", "", "{\"ID\":\"\"}"] {
            let holder = Holder::read(body.as_bytes().to_vec());
            assert_eq!(holder.info, None, "{body}");
            assert!(holder.to_string().starts_with("an unknown holder"));
        }
    }
}
