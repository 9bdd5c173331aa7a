//! What happens to hosts: closures, the OpenTofu graph, the bootstrap, the SSH transport, the program's verbs.

pub mod address;
pub mod build;
pub mod decide;
pub mod entry;
pub mod grants;
pub mod graph;
pub mod lease;
pub mod lock;
pub mod marker;
pub mod migrate;
pub mod observe;
pub mod obstacle;
pub mod process;
pub mod progress;
pub mod runner;
pub mod salvage;
pub mod setup;
pub mod state;
pub mod store;
pub mod transfer;
pub mod transport;
pub mod verdict;
pub mod workdir;
