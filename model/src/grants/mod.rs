//! Where credentials are on a node, and what they are called. Paths, owners and modes; never a value.

pub(crate) mod login;

use crate::diagnostic::Place;
use crate::fleet::component::STATE_BACKEND;
use crate::names::{ComponentName, NodeName};
use crate::node_plan::{Grant, GrantFile, GrantKind, GrantPart};
use crate::policy::{GrantWanted, Origin};
use crate::resources::registry::Resource;

/// Every grant is below it.
const ROOT: &str = "/var/lib/provisor/grants";

/// A grant that one component needs on each node that has it.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) component: ComponentName,
    /// The resource that is asked for, or the provision that needs it.
    pub(crate) what: &'static str,
    pub(crate) instance: String,
    /// Where it comes from.
    pub(crate) place: Place,
    kind: GrantKind,
    files: Vec<GrantFile>,
    units: Vec<String>,
}

impl Claim {
    /// What a policy wants for a request.
    pub(crate) fn of_request(resource: Resource, wanted: GrantWanted) -> Claim {
        let GrantWanted {
            origin:
                Origin {
                    component,
                    instance,
                    place,
                },
            kind,
            files,
            units,
        } = wanted;
        Claim {
            component,
            what: resource.name(),
            instance: instance.into(),
            place,
            kind,
            files,
            units,
        }
    }

    /// Who may use the state backend. The backend reads the file on the one path that it knows, so that a node has
    /// room for one.
    pub(crate) fn of_state_backend(component: &ComponentName, place: &Place) -> Claim {
        Claim {
            component: component.clone(),
            what: STATE_BACKEND,
            instance: "users".to_owned(),
            place: place.clone(),
            kind: GrantKind::BackendUsers,
            files: vec![secret_file(
                GrantPart::Users,
                format!("{ROOT}/state-backend/users"),
            )],
            units: vec!["provisor-backend.service".to_owned()],
        }
    }

    /// What is granted.
    pub(crate) fn kind(&self) -> &GrantKind {
        &self.kind
    }

    /// The files it is delivered to.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.path.as_str())
    }

    /// The grant of one node, not yet made.
    pub(crate) fn on(&self, node: &NodeName) -> Grant {
        let Claim {
            component,
            what,
            instance,
            kind,
            files,
            units,
            place: _,
        } = self.clone();
        Grant {
            name: format!("{node}/{component}/{what}/{instance}"),
            kind,
            files,
            units,
            generation: 0,
        }
    }
}

/// `<root>/<component>/<instance key>/<file>`. Both names are safe in a path, and no two origins share one.
pub(crate) fn path(origin: &Origin, file: &str) -> String {
    format!("{ROOT}/{}/{}/{file}", origin.component, origin.instance)
}

/// A file that only root reads.
pub(crate) fn secret_file(part: GrantPart, path: String) -> GrantFile {
    file(part, path, "0600")
}

/// A file that everyone reads.
pub(crate) fn public_file(part: GrantPart, path: String) -> GrantFile {
    file(part, path, "0644")
}

fn file(part: GrantPart, path: String, mode: &str) -> GrantFile {
    GrantFile {
        part,
        path,
        owner: "root".to_owned(),
        group: "root".to_owned(),
        mode: mode.to_owned(),
    }
}
