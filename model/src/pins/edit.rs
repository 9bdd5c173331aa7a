//! Changes of `pins.toml` that leave everything else in it as it is, people's comments first of all.
//!
//! A comment beside a pin stays when the pin gets another provider. A pin that is removed takes the comments right above
//! and beside it along: they are about it.

use thiserror::Error;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::fleet::Model;
use crate::names::{ComponentName, NodeName, ProvisionName};
use crate::resolution::Running;
use crate::resolution::mesh::Mesh;

/// Why a change was not made. The text is as it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    /// The file is not TOML.
    #[error("pins.toml cannot be read: {reason}; correct it first")]
    Syntax {
        /// The parser's reason, on one line.
        reason: String,
    },
    /// A node of the file is not a table.
    #[error("in pins.toml, `{node}` is not a table of pins; correct it first")]
    NotATable {
        /// The node.
        node: String,
    },
    /// There is no such pin.
    #[error("`{provision}` is not pinned on `{node}`; `provisor pins` lists the pins there are")]
    NotPinned {
        /// The node.
        node: NodeName,
        /// The provision.
        provision: ProvisionName,
    },
}

/// A pin of a file, as it is named to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The consumer's node.
    pub node: String,
    /// The provision.
    pub provision: String,
    /// What became of it, or why nothing did.
    pub what: String,
}

/// A changed file, and the rows that the change was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The whole text.
    pub text: String,
    /// Rows that are other now.
    pub changed: Vec<Row>,
    /// Rows that are left for a person.
    pub left: Vec<Row>,
}

/// The text with `provision` on `node` pinned to `provider`: both halves, always (PR-02).
///
/// # Errors
///
/// [`EditError`] for a file that cannot be read.
pub fn pin(
    text: &str,
    node: &NodeName,
    provision: &ProvisionName,
    provider: &Running,
) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let pins = document
        .entry(node.as_str())
        .or_insert_with(|| Item::Table(Table::new()))
        .as_table_like_mut()
        .ok_or_else(|| not_a_table(node.as_str()))?;
    let mut value = Value::InlineTable(InlineTable::from_iter([
        ("node", provider.node.as_str()),
        ("component", provider.component.as_str()),
    ]));
    if let Some(old) = pins.get(provision.as_str()).and_then(Item::as_value) {
        *value.decor_mut() = old.decor().clone();
    }
    pins.insert(provision.as_str(), Item::Value(value));
    Ok(document.to_string())
}

/// The text without the pin of `provision` on `node`.
///
/// # Errors
///
/// [`EditError`] for a file that cannot be read, or that has no such pin.
pub fn unpin(text: &str, node: &NodeName, provision: &ProvisionName) -> Result<String, EditError> {
    let mut document = parse(text)?;
    let pins = document.get_mut(node.as_str()).and_then(Item::as_table_like_mut);
    let removed = pins.and_then(|pins| pins.remove(provision.as_str()));
    if removed.is_none() {
        return Err(EditError::NotPinned {
            node: node.clone(),
            provision: provision.clone(),
        });
    }
    drop_empty(&mut document, node.as_str());
    Ok(document.to_string())
}

/// The text with a component in each pin that has none and can mean one only. The others are left for a person (PR-06).
///
/// # Errors
///
/// [`EditError`] for a file that cannot be read.
pub fn complete(text: &str, model: &Model) -> Result<Edited, EditError> {
    let mesh = Mesh::of(model);
    let mut document = parse(text)?;
    let (mut changed, mut left) = (Vec::new(), Vec::new());
    for pin in model.pins().filter(|pin| pin.component.is_none()) {
        let names: Vec<&ComponentName> = mesh
            .offers_on(&pin.from, &pin.provision)
            .iter()
            .map(|offer| &offer.component.name)
            .collect();
        let row = |what: String| Row {
            node: pin.consumer.to_string(),
            provision: pin.provision.to_string(),
            what,
        };
        match names.as_slice() {
            [component] => {
                let entry = document
                    .get_mut(pin.consumer.as_str())
                    .and_then(|pins| pins.get_mut(pin.provision.as_str()))
                    .and_then(Item::as_table_like_mut);
                if let Some(entry) = entry {
                    // Else the space before the closing brace stays before the comma.
                    if let Some(from) = entry.get_mut("node").and_then(Item::as_value_mut) {
                        from.decor_mut().set_suffix("");
                    }
                    entry.insert("component", toml_edit::value(component.as_str()));
                    changed.push(row(format!("is `{}/{component}`", pin.from)));
                }
            }
            [] => left.push(row(format!("`{}` does not provide it", pin.from))),
            names => {
                let names: Vec<_> = names
                    .iter()
                    .map(|name| format!("`{}/{name}`", pin.from))
                    .collect();
                left.push(row(format!("may be {}", names.join(" or "))));
            }
        }
    }
    Ok(Edited {
        text: document.to_string(),
        changed,
        left,
    })
}

/// The text without the pins that name a node, a component or a provision that the fleet does not have (PR-28). `model`
/// is the fleet without its pins.
///
/// # Errors
///
/// [`EditError`] for a file that cannot be read.
pub fn prune(text: &str, model: &Model) -> Result<Edited, EditError> {
    let mut document = parse(text)?;
    let mut changed = Vec::new();
    for Row { node, provision, .. } in rows(&document)? {
        let pins = document.get_mut(&node).and_then(Item::as_table_like_mut);
        let Some(pins) = pins else { continue };
        let gone = pins
            .get(&provision)
            .and_then(Item::as_table_like)
            .and_then(|pin| gone(model, &node, &provision, pin));
        if let Some(what) = gone {
            pins.remove(&provision);
            changed.push(Row {
                node,
                provision,
                what,
            });
        }
    }
    for node in changed.iter().map(|row| &row.node) {
        drop_empty(&mut document, node);
    }
    Ok(Edited {
        text: document.to_string(),
        changed,
        left: Vec::new(),
    })
}

/// What a pin names that is not there.
fn gone(model: &Model, node: &str, provision: &str, pin: &dyn TableLike) -> Option<String> {
    let text = |key| pin.get(key).and_then(Item::as_str);
    let provided = |name| {
        model
            .components()
            .any(|component| component.provides.contains_key(name))
    };
    if model.node(node).is_none() {
        return Some(format!("there is no node `{node}`"));
    }
    if let Some(from) = text("node").filter(|from| model.node(from).is_none()) {
        return Some(format!("there is no node `{from}`"));
    }
    if let Some(component) = text("component").filter(|component| model.component(component).is_none()) {
        return Some(format!("there is no component `{component}`"));
    }
    (!provided(provision)).then(|| format!("nothing provides `{provision}`"))
}

fn rows(document: &DocumentMut) -> Result<Vec<Row>, EditError> {
    let mut rows = Vec::new();
    for (node, pins) in document.iter() {
        let pins = pins.as_table_like().ok_or_else(|| not_a_table(node))?;
        rows.extend(pins.iter().map(|(provision, _)| Row {
            node: node.to_owned(),
            provision: provision.to_owned(),
            what: String::new(),
        }));
    }
    Ok(rows)
}

/// An empty table goes, unless a person wrote something above it.
fn drop_empty(document: &mut DocumentMut, node: &str) {
    let Some(Item::Table(table)) = document.get(node) else {
        return;
    };
    let comment = table
        .decor()
        .prefix()
        .and_then(|prefix| prefix.as_str())
        .unwrap_or_default();
    if table.is_empty() && comment.trim().is_empty() {
        document.remove(node);
    }
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| EditError::Syntax {
            reason: error.message().replace('\n', " "),
        })
}

fn not_a_table(node: &str) -> EditError {
    EditError::NotATable {
        node: node.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FleetFiles;
    use crate::testing::two_providers;

    fn running(node: &str, component: &str) -> Running {
        Running {
            node: node.parse().unwrap(),
            component: component.parse().unwrap(),
        }
    }

    fn named(node: &str, provision: &str) -> (NodeName, ProvisionName) {
        (node.parse().unwrap(), provision.parse().unwrap())
    }

    fn count(text: &str) -> usize {
        rows(&parse(text).unwrap()).unwrap().len()
    }

    fn without_pins(mut fleet: FleetFiles) -> Model {
        fleet.0.remove("pins.toml");
        fleet.model()
    }

    #[test]
    fn a_pin_that_is_changed_keeps_every_comment() {
        let before = &two_providers().0["pins.toml"];
        let (node, provision) = named("forge", "postgresql");
        let after = pin(before, &node, &provision, &running("db-b", "postgres-b")).unwrap();
        assert_eq!(
            after,
            before.replace(
                "[forge]\npostgresql = { node = \"db-a\", component = \"postgres-a\" }",
                "[forge]\npostgresql = { node = \"db-b\", component = \"postgres-b\" }"
            )
        );
        assert!(after.contains("# close by"));
        let (node, provision) = named("db-a", "route");
        let more = pin(&after, &node, &provision, &running("edge-a", "caddy")).unwrap();
        assert_eq!(
            more,
            format!("{after}\n[db-a]\nroute = {{ node = \"edge-a\", component = \"caddy\" }}\n")
        );
        assert_eq!(unpin(&more, &node, &provision).unwrap(), after);
    }

    #[test]
    fn a_file_begins_with_its_first_pin_and_a_pin_that_is_not_there_is_not_removed() {
        let (node, provision) = named("desk", "route");
        let first = pin("", &node, &provision, &running("edge-a", "caddy")).unwrap();
        assert_eq!(
            first,
            "[desk]\nroute = { node = \"edge-a\", component = \"caddy\" }\n"
        );
        assert_eq!(unpin(&first, &node, &provision).unwrap(), "");
        let error = unpin("", &node, &provision).unwrap_err();
        assert!(
            error.to_string().starts_with("`route` is not pinned on `desk`"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_left_alone() {
        let (node, provision) = named("desk", "route");
        for (text, syntax) in [("[desk", true), ("desk = 1", false)] {
            let error = pin(text, &node, &provision, &running("edge-a", "caddy")).unwrap_err();
            assert_eq!(matches!(error, EditError::Syntax { .. }), syntax, "{error}");
        }
    }

    #[test]
    fn an_old_pin_is_completed_where_its_node_answers_once_and_left_where_it_answers_twice() {
        let old = "# old\n[forge]\npostgresql = { node = \"db-a\" } # one\n";
        let old = format!("{old}[desk]\npostgresql = {{ node = \"db-b\" }}\nroute = {{ node = \"db-b\" }}\n");
        let fleet = two_providers()
            .edit(
                "fleet.toml",
                "[\"postgres-b\", \"garage-b\"]",
                "[\"postgres-a\", \"postgres-b\", \"garage-b\"]",
            )
            .with("pins.toml", &old);
        let edited = complete(&old, &fleet.model()).unwrap();
        assert_eq!(
            edited.text,
            old.replace(
                "{ node = \"db-a\" }",
                "{ node = \"db-a\", component = \"postgres-a\" }"
            )
        );
        let told = |rows: &[Row]| -> Vec<String> {
            rows.iter()
                .map(|row| format!("{} {} {}", row.node, row.provision, row.what))
                .collect()
        };
        assert_eq!(told(&edited.changed), ["forge postgresql is `db-a/postgres-a`"]);
        assert_eq!(
            told(&edited.left),
            [
                "desk postgresql may be `db-b/postgres-a` or `db-b/postgres-b`",
                "desk route `db-b` does not provide it",
            ]
        );
    }

    #[test]
    fn the_rows_that_name_a_removed_node_or_component_are_removed_and_no_others() {
        let text = two_providers().0["pins.toml"].clone();
        assert_eq!(count(&text), 6);
        // As a consumer.
        let mut fleet = two_providers();
        let file = fleet.0.get_mut("fleet.toml").unwrap();
        let at = file.find("[groups.alice.nodes.desk]").unwrap();
        file.truncate(at);
        let pruned = prune(&text, &without_pins(fleet)).unwrap();
        assert_eq!((count(&pruned.text), pruned.changed.len()), (3, 3));
        assert!(
            pruned.text.contains("# And the desk on the second."),
            "a person wrote that: {}",
            pruned.text
        );
        // As a provider's node, and as a provider's component.
        let fleet = two_providers().edit("fleet.toml", "nodes.edge-b]", "nodes.edge-c]");
        let pruned = prune(&text, &without_pins(fleet)).unwrap();
        assert_eq!(count(&pruned.text), 5);
        assert_eq!(pruned.changed[0].what, "there is no node `edge-b`");
        let mut fleet =
            two_providers().edit("fleet.toml", "[\"postgres-a\", \"garage-a\"]", "[\"garage-a\"]");
        fleet.0.remove("components/postgres-a.toml");
        let pruned = prune(&text, &without_pins(fleet)).unwrap();
        assert_eq!(count(&pruned.text), 5);
        assert_eq!(pruned.changed[0].what, "there is no component `postgres-a`");
        // Nothing is gone, nothing is removed.
        assert_eq!(prune(&text, &without_pins(two_providers())).unwrap().text, text);
    }
}
