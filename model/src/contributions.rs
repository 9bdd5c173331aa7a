//! What consumers hand to their provider: the routes of a proxy, for example (PR-27). The other direction of
//! [`crate::bindings`].

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::diagnostic::{Diagnostic, code};
use crate::fleet::Node;
use crate::fleet::component::Component;
use crate::names::{ComponentName, NodeName, ProvisionName};
use crate::networks;
use crate::node_plan::{FileKind, WrittenFile};
use crate::resolution::Link;
use crate::resolution::walk::Offer;

/// What was contributed, by receiver: node, component, provision. Each in the order of its consumers.
#[derive(Default)]
pub(crate) struct Contributions<'a>(
    BTreeMap<(&'a NodeName, &'a ComponentName, &'a ProvisionName), Vec<Value>>,
);

impl<'a> Contributions<'a> {
    /// Hands the contribution of a link's consumer to everyone who answers it.
    ///
    /// # Errors
    ///
    /// A provider that receives none, so that nothing is dropped in silence.
    pub(crate) fn add(&mut self, link: &Link<'a>) -> Result<(), Diagnostic> {
        let need = &link.need;
        let Some(contribution) = need.component.contributes.get(need.provision) else {
            return Ok(());
        };
        for offer in &link.offers {
            if !offer.component.receives.contains_key(need.provision) {
                let message = format!(
                    "`{}/{}` contributes to `{}`, and `{}`, which answers it, receives nothing",
                    need.node.name,
                    need.component.name,
                    need.provision,
                    offer.running()
                );
                let help = format!(
                    "add `receives.{} = \"/etc/…\"` to the component `{}`, or remove the contribution",
                    need.provision, offer.component.name
                );
                return Err(Diagnostic::error(code::NOBODY_RECEIVES, message, help)
                    .at(&contribution.place, "contributed here")
                    .at(
                        &offer.provision.place,
                        format!("provided by `{}`", offer.running()),
                    ));
            }
            let receiver = (&offer.node.name, &offer.component.name, need.provision);
            self.0
                .entry(receiver)
                .or_default()
                .push(entry(link, offer, &contribution.value));
        }
        Ok(())
    }

    /// The files of one component on one node: one for each provision that it receives for, with nothing in it where
    /// nobody contributes.
    pub(crate) fn files(
        &self,
        node: &'a Node,
        component: &'a Component,
    ) -> impl Iterator<Item = WrittenFile> {
        component.receives.iter().map(|(provision, file)| {
            let received = self.0.get(&(&node.name, &component.name, provision));
            WrittenFile {
                path: file.path.clone(),
                kind: FileKind::Contributions,
                component: component.name.to_string(),
                provision: provision.to_string(),
                content: json!({
                    "provision": provision.as_str(),
                    "contributions": received.cloned().unwrap_or_default(),
                }),
            }
        })
    }
}

/// A contribution with where it came from, and how the receiver reaches that machine.
fn entry(link: &Link<'_>, offer: &Offer<'_>, value: &Value) -> Value {
    let need = &link.need;
    let (host, address) = match networks::shared(offer.node, need.node) {
        Some(member) if offer.node.name != need.node.name => (member.host_name(), member.address.to_string()),
        Some(_) | None => ("localhost".to_owned(), "127.0.0.1".to_owned()),
    };
    json!({
        "from": { "node": need.node.name.as_str(), "component": need.component.name.as_str() },
        "host": host,
        "address": address,
        "value": value,
    })
}

#[cfg(test)]
mod tests;
