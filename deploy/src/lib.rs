//! What happens to hosts: closures, the OpenTofu graph, the bootstrap, the SSH transport, the program's verbs.

pub mod build;
pub mod entry;
pub mod grants;
pub mod process;
pub mod progress;
pub mod setup;
pub mod transport;
pub mod verdict;
