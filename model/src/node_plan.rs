//! What one node is to become: the last stage's output, and all that `system.nix` gets to see.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::names::{ComponentName, NodeName};

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
    /// Files that tell components where their providers are and what was contributed to them, sorted by path. Each is
    /// written by one of the modules.
    pub files: Vec<WrittenFile>,
    /// What the node gets from other machines, sorted: it is all that stops working when another goes away (PR-26).
    pub takes: Vec<Take>,
    /// Credentials this node receives, sorted by name. Paths and numbers only: no type here can hold a secret's value.
    pub grants: Vec<Grant>,
    /// Set where this node serves the state backend.
    pub state_backend: Option<StateBackend>,
}

/// A component on a node, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct End {
    /// The node.
    pub node: String,
    /// The component.
    pub component: String,
}

/// A file below `/etc` that the mesh writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrittenFile {
    /// Absolute path.
    pub path: String,
    /// What it tells.
    pub kind: FileKind,
    /// The component that reads it.
    pub component: String,
    /// What it is about.
    pub provision: String,
    /// What is in it. Never a credential.
    pub content: serde_json::Value,
}

/// What a written file tells its component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// Where its provider is.
    Binding,
    /// What its consumers contribute.
    Contributions,
}

/// Something that a component gets from another machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Take {
    /// The component that needs it.
    pub component: String,
    /// What it needs.
    pub provision: String,
    /// Who answers.
    pub from: End,
    /// The network over which.
    pub network: String,
    /// What the other machine is called there.
    pub host: String,
    /// Its address there.
    pub address: String,
}

/// A credential for one consumer component, delivered to files on the node before activation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grant {
    /// The written form of its identity: `<node>/<component>/<resource>/<instance key>`, or, of a consumer's credential
    /// at its provider, `<node>/<component>/<provision>/<provider's node>/<provider's component>`.
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
    /// A login role with a password.
    Role(Login),
    /// An access key: an id, and a secret.
    AccessKey(Login),
}

/// What one consumer is at one provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Login {
    /// Name of the role or of the access key, named after the consumer, within the limit of the provider's engine.
    pub name: String,
    /// What is provided.
    pub provision: String,
    /// Who uses it.
    pub consumer: End,
    /// Who makes it: its node gets the files too.
    pub provider: End,
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
    /// A role's password. Secret.
    Password,
    /// An access key's id.
    AccessKeyId,
    /// An access key's other half. Secret.
    SecretAccessKey,
}

impl End {
    pub(crate) fn new(node: &NodeName, component: &ComponentName) -> End {
        End {
            node: node.to_string(),
            component: component.to_string(),
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.node, self.component)
    }
}

/// What a node serves as the fleet's state backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateBackend {
    /// TCP port it listens on.
    pub port: u16,
}
