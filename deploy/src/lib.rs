//! What happens to hosts: closures, the OpenTofu graph, the bootstrap, the SSH transport, the program's verbs.

pub mod entry;
pub mod progress;
pub mod setup;
pub mod verdict;
