//! What happens to hosts: closures, the OpenTofu graph, the bootstrap, the SSH transport, the program's verbs.

pub mod address;
pub mod bootstrap;
mod cycle;
pub mod decide;
pub mod entry;
pub mod graph;
pub mod lease;
pub mod lock;
pub mod marker;
pub mod migrate;
pub mod observe;
pub mod obstacle;
pub mod progress;
mod report;
pub mod runner;
pub mod salvage;
pub mod setup;
pub mod state;
pub mod store;
pub mod transfer;
pub mod verdict;
pub mod workdir;
pub mod wrapper;
