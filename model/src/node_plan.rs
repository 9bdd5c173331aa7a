//! What one node is to become: the last stage's output, and all that `system.nix` gets to see.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The plan of one node. It is written as JSON and handed to `system.nix` as `node`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodePlan {
    /// Deployment name.
    pub name: String,
    /// The group whose roster lists the node.
    pub group: String,
    /// Components of the node, assigned or added by a requirement on the host, sorted.
    pub components: Vec<String>,
    /// Address in each network the node is a member of.
    pub networks: BTreeMap<String, String>,
    /// Host modules: JSON trees of real NixOS options, imported as modules in this order: by component, then by
    /// resource, then by instance key.
    pub modules: Vec<serde_json::Value>,
    /// Credentials this node receives, sorted by name. Paths and numbers only: no type here can hold a secret's value.
    pub grants: Vec<Grant>,
    /// Set where this node serves the state backend.
    pub state_backend: Option<StateBackend>,
}

/// A credential for one consumer component, delivered to files on the node before activation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grant {
    /// `<node>/<component>/<resource>/<instance key>`, the written form of its identity.
    pub name: String,
    /// What is granted.
    pub kind: GrantKind,
    /// Files on the node.
    pub files: Vec<GrantFile>,
    /// Units restarted by the activation that follows a changed generation.
    pub units: Vec<String>,
    /// Rises by one with each rotation, so that a rotation is a changed plan.
    pub generation: u64,
}

/// The kinds of credential.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum GrantKind {
    /// A key and a certificate for `domain`, signed by the fleet's internal CA.
    Certificate {
        /// DNS name in the certificate.
        domain: String,
    },
    /// Who may use the state backend: names and password hashes.
    BackendUsers,
}

/// One file of a grant on the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GrantFile {
    /// Which part of the grant it holds.
    pub part: GrantPart,
    /// Absolute path on the node.
    pub path: String,
    /// Owner on the node.
    pub owner: String,
    /// Group on the node.
    pub group: String,
    /// Octal mode, such as `0600`.
    pub mode: String,
}

/// The parts a grant can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantPart {
    /// A private key, PEM. Secret.
    PrivateKey,
    /// A certificate chain, PEM, leaf first, without the root.
    CertificateChain,
    /// The state backend's users file. Secret.
    Users,
}

/// What a node serves as the fleet's state backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateBackend {
    /// TCP port it listens on.
    pub port: u16,
}
