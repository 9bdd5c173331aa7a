//! What the protocol carries, as types: keys, documents, locks, and who may replace what. Pure.

mod admission;
mod document;
mod key;
mod lock;

pub use admission::{Admission, Refusal, StoredBytes, admit};
pub use document::{Document, DocumentError, Identity, Resources, Summary};
pub use key::{KeyError, StateKey};
pub use lock::{Claim, Lock, LockError, LockId, Release};
