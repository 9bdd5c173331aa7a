//! One node as the graph sees it: what is deployed, where, and with which SSH settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A node of the graph, keyed by its deployment name.
///
/// All but [`NodeEntry::identity`] are triggers: a changed value replaces the node's resource and deploys it again
/// (TF FR-002). The identity is a path of this deployer, so a second deployer must not differ by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntry {
    /// Deployment name; the resource's key and the host's `HostKeyAlias`.
    pub name: String,
    /// Store path of the node's system, as `nix-build` printed it.
    pub system: PathBuf,
    /// Bare address (name, IPv4 or IPv6 without brackets).
    pub address: String,
    /// SSH port.
    pub port: u16,
    /// SSH user.
    pub user: String,
    /// The host key, pinned or trusted on first use.
    pub host_key: HostKey,
    /// Operator's options in their order, bare `Key=Value` items; they win over ours.
    pub ssh_options: Vec<String>,
    /// Generation number of each grant delivered to this node, by the grant's name.
    pub grants: BTreeMap<String, u64>,
    /// Private key file on this deployer, if one is set for the node; never a trigger.
    pub identity: Option<PathBuf>,
}

/// How the host proves who it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostKey {
    /// `ssh-ed25519 AAAA…`, without a host name and without a comment.
    Pinned(String),
    /// No key is known: the first one seen is kept in the working directory and compared from then on.
    TrustOnFirstUse,
}
