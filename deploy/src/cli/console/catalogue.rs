//! The names of a fleet, for completion.

use std::collections::BTreeSet;

use provisor_model::resources::registry::Resource;
use provisor_model::{FleetFiles, Model};

/// What a fleet's files name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Catalogue {
    /// Deployment names.
    pub(super) nodes: BTreeSet<String>,
    /// Components that have a file, assigned or not.
    pub(super) components: BTreeSet<String>,
    /// What any component provides or needs.
    pub(super) provisions: BTreeSet<String>,
}

impl Catalogue {
    /// All names of a fleet.
    pub(super) fn of(model: &Model) -> Catalogue {
        Catalogue {
            nodes: model.nodes().map(|node| node.name.to_string()).collect(),
            components: model.components().map(|one| one.name.to_string()).collect(),
            provisions: model
                .components()
                .flat_map(|one| one.provides.keys().chain(one.needs.keys()))
                .map(ToString::to_string)
                .collect(),
        }
    }

    /// The names that can be read in files with mistakes. A file that is not TOML at all gives its own name only; what
    /// `fleet.toml` named before is kept, since an edit in progress takes no node away.
    pub(super) fn glean(files: &FleetFiles, before: &Catalogue) -> Catalogue {
        let mut found = Catalogue::default();
        for (path, text) in &files.0 {
            let table = text.parse::<toml::Table>().ok();
            if let Some(name) = path
                .strip_prefix("components/")
                .and_then(|name| name.strip_suffix(".toml"))
            {
                found.components.insert(name.to_owned());
                found.provisions.extend(table.iter().flat_map(provisions));
            } else if path == "fleet.toml" {
                found.nodes = match table {
                    Some(table) => nodes(&table),
                    None => before.nodes.clone(),
                };
            }
        }
        found
    }
}

fn nodes(fleet: &toml::Table) -> BTreeSet<String> {
    tables(fleet.get("groups"))
        .flat_map(|group| tables_by_name(group.get("nodes")))
        .collect()
}

/// What a component's file provides, requires and asks for, as far as it has the right shape.
fn provisions(component: &toml::Table) -> Vec<String> {
    let listed = |key| {
        component
            .get(key)
            .and_then(toml::Value::as_array)
            .into_iter()
            .flatten()
    };
    let provided = listed("provides").filter_map(|item| item.get("name")?.as_str());
    let required = listed("requires").filter_map(toml::Value::as_str);
    let asked = tables(component.get("resources"))
        .flat_map(|instance| instance.keys())
        .map(String::as_str)
        .filter(|name| Resource::contract_named(name).is_some());
    provided.chain(required).chain(asked).map(str::to_owned).collect()
}

fn tables(value: Option<&toml::Value>) -> impl Iterator<Item = &toml::Table> {
    value
        .and_then(toml::Value::as_table)
        .into_iter()
        .flat_map(|table| table.values())
        .filter_map(toml::Value::as_table)
}

fn tables_by_name(value: Option<&toml::Value>) -> Vec<String> {
    value
        .and_then(toml::Value::as_table)
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(texts: &[(&str, &str)]) -> FleetFiles {
        FleetFiles(
            texts
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect(),
        )
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_fleet_with_mistakes_gives_what_can_be_read() {
        let broken = files(&[
            (
                "fleet.toml",
                "name = 3\n[groups.alice.nodes.app]\n[groups.bob.nodes.site]\ncomponents = 1\n",
            ),
            (
                "components/website.toml",
                "requires = [\"route\"]\nprovides = [{ name = \"page\" }, 3]\n[resources.main.ssl]\n",
            ),
            ("components/torn.toml", "requires = ["),
            ("pins.toml", "also wrong"),
        ]);
        let found = Catalogue::glean(&broken, &Catalogue::default());
        assert_eq!(found.nodes, set(&["app", "site"]));
        assert_eq!(found.components, set(&["torn", "website"]));
        assert_eq!(found.provisions, set(&["page", "route", "ssl"]));
    }

    #[test]
    fn nodes_outlive_a_fleet_file_that_is_being_written() {
        let before = Catalogue {
            nodes: set(&["app"]),
            ..Catalogue::default()
        };
        let found = Catalogue::glean(&files(&[("fleet.toml", "[groups")]), &before);
        assert_eq!(found.nodes, set(&["app"]));
    }
}
