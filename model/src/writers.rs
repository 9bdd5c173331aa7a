//! What only one component of a node may have: a path that is written, a certificate for a domain.

use std::collections::BTreeMap;
use std::fmt;

use crate::diagnostic::{Diagnostic, Place, Report, code};
use crate::fleet::Node;
use crate::fleet::component::{Component, FileAt};
use crate::grants::Claim;
use crate::names::ProvisionName;
use crate::node_plan::GrantKind;
use crate::policy::Asked;
use crate::resources::registry::{Request, Resource};

/// Reports what two components of the node, or one of them twice, would both write.
pub(crate) fn check(node: &Node, components: &[&Component], claims: &[Claim], report: &mut Report) {
    let etc = components.iter().flat_map(|component| etc_files(component));
    let mesh = components.iter().flat_map(|component| mesh_files(component));
    two_writers(node, granted_files(claims).chain(mesh).chain(etc), report);
    certificates(node, claims, report);
}

/// Who writes a path.
struct Writer<'a> {
    component: &'a str,
    what: &'a str,
    instance: &'a str,
    place: &'a Place,
}

impl fmt::Display for Writer<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "`{}` (its `{}` under `{}`)",
            self.component, self.what, self.instance
        )
    }
}

fn granted_files(claims: &[Claim]) -> impl Iterator<Item = (String, Writer<'_>)> {
    claims
        .iter()
        .flat_map(|claim| claim.paths().map(|path| (path.to_owned(), writer(claim))))
}

fn writer(claim: &Claim) -> Writer<'_> {
    let Claim {
        component,
        what,
        instance,
        place,
        ..
    } = claim;
    Writer {
        component: component.as_str(),
        what,
        instance,
        place,
    }
}

/// The files that tell a component who answers it. They count where nothing is written now, too: who answers may change.
fn mesh_files<'a>(component: &'a Component) -> impl Iterator<Item = (String, Writer<'a>)> {
    let writer = |what, (provision, file): (&'a ProvisionName, &'a FileAt)| {
        let writer = Writer {
            component: component.name.as_str(),
            what,
            instance: provision.as_str(),
            place: &file.place,
        };
        (file.path.clone(), writer)
    };
    let binds = component.binds.iter().map(move |bind| writer("binds", bind));
    binds.chain(
        component
            .receives
            .iter()
            .map(move |receive| writer("receives", receive)),
    )
}

/// The files that a component's modules write by `environment.etc`. Settings of another's file, such as its mode, do
/// not make a second writer.
fn etc_files<'a>(component: &'a Component) -> impl Iterator<Item = (String, Writer<'a>)> {
    let writer = |asked: &'a Asked<Request>| Writer {
        component: component.name.as_str(),
        what: Resource::NixosModule.name(),
        instance: asked.origin.instance.as_str(),
        place: &asked.origin.place,
    };
    let requests = component
        .resources
        .values()
        .filter_map(|instance| instance.get(&Resource::NixosModule));
    requests.flat_map(move |asked| {
        etc_paths(&asked.request)
            .into_iter()
            .map(move |path| (path, writer(asked)))
    })
}

fn etc_paths(request: &Request) -> Vec<String> {
    let module = match request {
        Request::NixosModule(request) => &request.module,
        Request::Ssl(_) => return Vec::new(),
    };
    let entries = module
        .pointer("/environment/etc")
        .and_then(|etc| etc.as_object())
        .into_iter()
        .flatten();
    entries
        .filter(|(_, entry)| entry.get("text").is_some() || entry.get("source").is_some())
        .map(|(name, entry)| {
            entry
                .get("target")
                .and_then(|target| target.as_str())
                .unwrap_or(name)
        })
        .map(|name| format!("/etc/{name}"))
        .collect()
}

/// Reports paths with two writers, and paths below a path that another writes: a file has no files below it.
fn two_writers<'a>(node: &Node, files: impl Iterator<Item = (String, Writer<'a>)>, report: &mut Report) {
    let mut first: BTreeMap<String, Writer<'a>> = BTreeMap::new();
    for (path, writer) in files {
        if let Some(other) = first.get(&path) {
            report.add(conflict(node, &format!("both write `{path}`"), &writer, other));
            continue;
        }
        first.insert(path, writer);
    }
    for (path, writer) in &first {
        for (end, _) in path.match_indices('/') {
            if let Some(other) = first.get(&path[..end]) {
                let what = format!("write `{path}` and the file `{}`", &path[..end]);
                report.add(conflict(node, &what, writer, other));
            }
        }
    }
}

fn conflict(node: &Node, what: &str, writer: &Writer<'_>, other: &Writer<'_>) -> Diagnostic {
    let message = format!("on the node `{}`, {other} and {writer} {what}", node.name);
    let help = "rename one of the two, or remove one of the components from the node";
    Diagnostic::error(code::TWO_WRITERS, message, help)
        .at(writer.place, format!("written for `{}`", writer.component))
        .at(other.place, format!("written for `{}`", other.component))
}

/// One domain has one virtual host on a node, and that has one certificate.
fn certificates(node: &Node, claims: &[Claim], report: &mut Report) {
    let mut first: BTreeMap<&str, &Claim> = BTreeMap::new();
    for claim in claims {
        let domain = match claim.kind() {
            GrantKind::Certificate { domain } => domain,
            GrantKind::BackendUsers | GrantKind::Role(_) | GrantKind::AccessKey(_) => continue,
        };
        let Some(other) = first.get(domain.as_str()) else {
            first.insert(domain, claim);
            continue;
        };
        let message = format!(
            "on the node `{}`, {} and {} both ask for a certificate for `{domain}`",
            node.name,
            writer(other),
            writer(claim)
        );
        let help = "ask once for each domain of a node: remove one of the two requests, or change its domain";
        report.add(
            Diagnostic::error(code::CERTIFICATE_TWICE, message, help)
                .at(&claim.place, format!("for `{}`", claim.component))
                .at(&other.place, format!("for `{}`", other.component)),
        );
    }
}

#[cfg(test)]
mod tests;
