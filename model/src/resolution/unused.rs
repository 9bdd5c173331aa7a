//! Pins that decide nothing, and why.

use std::collections::BTreeMap;

use super::Link;
use super::mesh::Mesh;
use super::walk::Offer;
use crate::diagnostic::{Diagnostic, Report, code};
use crate::pins::Pin;

/// Warns of pins that no requirement uses, and of old ones that a component can be added to.
pub(super) fn pins(mesh: &Mesh<'_>, links: &[Link<'_>], report: &mut Report) {
    let answers: BTreeMap<_, _> = links
        .iter()
        .map(|link| ((&link.need.node.name, link.need.provision), link))
        .collect();
    for pin in mesh.model.pins() {
        let is_needed = mesh.model.node(pin.consumer.as_str()).is_some_and(|node| {
            mesh.components(&node.name)
                .any(|component| component.needs.contains_key(&pin.provision))
        });
        if !is_needed {
            report.add(unused(mesh, pin));
            continue;
        }
        let answer = answers.get(&(&pin.consumer, &pin.provision));
        if let (None, Some([offer])) = (&pin.component, answer.map(|link| link.offers.as_slice())) {
            report.add(incomplete(pin, offer));
        }
    }
}

fn incomplete(pin: &Pin, offer: &Offer<'_>) -> Diagnostic {
    let message = format!(
        "the pin of `{}` on `{}` names the node `{}` and no component; `{}` is the one that provides it there",
        pin.provision, pin.consumer, pin.from, offer.component.name
    );
    let help = "run `provisor pins --complete`, so that a second provider there is no question";
    Diagnostic::warning(code::INCOMPLETE_PIN, message, help).at(&pin.place, "incomplete")
}

fn unused(mesh: &Mesh<'_>, pin: &Pin) -> Diagnostic {
    let requiring: Vec<_> = mesh
        .model
        .components()
        .filter(|component| component.needs.contains_key(&pin.provision))
        .map(|component| format!("`{}`", component.name))
        .collect();
    let why = match requiring.as_slice() {
        [] => format!("no component requires `{}`", pin.provision),
        names => format!(
            "none of those that require it is on the node: {}",
            names.join(", ")
        ),
    };
    let message = format!(
        "the pin of `{}` on `{}` decides nothing: {why}",
        pin.provision, pin.consumer
    );
    let help = format!("run `provisor unpin {} {}`", pin.consumer, pin.provision);
    Diagnostic::warning(code::UNUSED_PIN, message, help).at(&pin.place, "unused")
}
