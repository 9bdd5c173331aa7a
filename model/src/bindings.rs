//! The file that tells a component where its provider is (PR-17 to PR-19).
//!
//! The provider says what a consumer needs to know (`serves`), and the mesh adds the half that only it has: which
//! machine, and what that machine is called on the private network. Nothing is written for what is answered on the
//! same machine.

use serde_json::{Value, json};

use crate::fleet::component::{Credential, FileAt, Serves};
use crate::grants::login;
use crate::networks;
use crate::node_plan::{End, FileKind, WrittenFile};
use crate::resolution::Link;
use crate::resolution::walk::Offer;

/// The file of one link, if its component binds it and another machine answers it.
pub(crate) fn of_link(link: &Link<'_>) -> Option<WrittenFile> {
    let need = &link.need;
    let FileAt { path, .. } = need.component.binds.get(need.provision)?;
    let offer = link.answer_from_elsewhere()?;
    Some(WrittenFile {
        path: path.clone(),
        kind: FileKind::Binding,
        component: need.component.name.to_string(),
        provision: need.provision.to_string(),
        content: content(link, offer)?,
    })
}

fn content(link: &Link<'_>, offer: &Offer<'_>) -> Option<Value> {
    let need = &link.need;
    let member = networks::shared(need.node, offer.node)?;
    let serves = offer.provision.serves.as_ref().map(Serves::facts);
    Some(json!({
        "provision": need.provision.as_str(),
        "provider": { "node": offer.node.name.as_str(), "component": offer.component.name.as_str() },
        "network": member.network.as_str(),
        "host": member.host_name(),
        "address": member.address.to_string(),
        "serves": serves.cloned().unwrap_or_default(),
        "credential": Value::Null,
        "why_no_credential": why_no_credential(link, offer.provision.grants),
    }))
}

fn why_no_credential(link: &Link<'_>, grants: Option<Credential>) -> String {
    let why = "this file carries no credential: it is part of the node's plan and of the Nix store, which everybody on \
               the node can read";
    let apart = match grants {
        None => "the provider grants none".to_owned(),
        Some(Credential::Role | Credential::AccessKey) => {
            let consumer = End::new(&link.need.node.name, &link.need.component.name);
            format!(
                "the credential is delivered apart, below {}",
                login::taken(link.need.provision.as_str(), &consumer)
            )
        }
    };
    format!("{why}; {apart}")
}

#[cfg(test)]
mod tests;
