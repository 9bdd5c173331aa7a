//! The first stage: files as they are written, each value with its place.
//!
//! A part that cannot be read is reported and left out, and reading goes on, so that one run shows every mistake.
//! The names of what was left out are kept: a reference to a broken thing is not called dangling.

pub(crate) mod component;
pub(crate) mod fleet;
pub(crate) mod pins;
pub(crate) mod routing;
pub(crate) mod spot;
pub(crate) mod syntax;
pub(crate) mod tree;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Place, Report, code};
use crate::names::ComponentName;
use crate::raw::component::RawComponent;
use crate::raw::fleet::RawFleet;
use crate::raw::pins::RawPin;
use crate::raw::spot::{Key, Refusal as _, Source};

/// The text of each fleet file by its relative path, such as `fleet.toml` or `components/website.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetFiles(
    /// Path to text.
    pub BTreeMap<String, String>,
);

/// What the files say.
pub(crate) struct Raw {
    /// Absent when `fleet.toml` is, or is not TOML.
    pub(crate) fleet: Option<RawFleet>,
    pub(crate) components: BTreeMap<ComponentName, RawComponent>,
    pub(crate) pins: Vec<RawPin>,
    /// Components whose file there is, readable or not.
    pub(crate) known_components: BTreeSet<ComponentName>,
    /// Whether every `provides` could be read.
    pub(crate) all_provisions_known: bool,
}

/// Reads every file.
pub(crate) fn read(files: &FleetFiles, report: &RefCell<Report>) -> Raw {
    let mut raw = Raw {
        fleet: None,
        components: BTreeMap::new(),
        pins: Vec::new(),
        known_components: BTreeSet::new(),
        all_provisions_known: true,
    };
    for (file, text) in &files.0 {
        let source = Source { file, report };
        match kind(file) {
            Kind::Fleet => raw.fleet = parse(&source, text).and_then(|item| fleet::read(source.root(&item))),
            Kind::Pins => {
                raw.pins = parse(&source, text).map_or_else(Vec::new, |item| pins::read(source.root(&item)));
            }
            Kind::Component(name) => read_component(&mut raw, &source, text, name),
            Kind::Other => source.add(unknown_file(file)),
        }
    }
    if !files.0.contains_key("fleet.toml") {
        let help = "write one with a `name`, `networks`, `environments` and `groups`";
        report.borrow_mut().add(Diagnostic::error(
            code::NO_FLEET_FILE,
            "there is no `fleet.toml`",
            help,
        ));
    }
    raw
}

fn read_component(raw: &mut Raw, source: &Source<'_>, text: &str, name: &str) {
    let name: ComponentName = match name.parse() {
        Ok(name) => name,
        Err(refusal) => {
            let error = Diagnostic::error(refusal.code(), refusal.to_string(), refusal.help());
            source.add(error.at(&source.place(0..0), "the file's name"));
            return;
        }
    };
    raw.known_components.insert(name.clone());
    let component = parse(source, text).and_then(|item| component::read(source.root(&item), &name));
    match component {
        Some(component) => {
            raw.all_provisions_known &= component.all_provisions_known;
            raw.components.insert(name, component);
        }
        None => raw.all_provisions_known = false,
    }
}

fn parse(source: &Source<'_>, text: &str) -> Option<tree::Item> {
    match syntax::parse(source.file, text) {
        Ok(item) => Some(item),
        Err(errors) => {
            errors.into_iter().for_each(|error| source.add(error));
            None
        }
    }
}

/// The file of the pins.
pub(crate) const PINS: &str = "pins.toml";

enum Kind<'a> {
    Fleet,
    Pins,
    Component(&'a str),
    Other,
}

fn kind(file: &str) -> Kind<'_> {
    if file == "fleet.toml" {
        return Kind::Fleet;
    }
    if file == PINS {
        return Kind::Pins;
    }
    match file
        .strip_prefix("components/")
        .and_then(|name| name.strip_suffix(".toml"))
    {
        Some(name) if !name.contains('/') => Kind::Component(name),
        Some(_) | None => Kind::Other,
    }
}

fn unknown_file(file: &str) -> Diagnostic {
    let help = "a fleet is `fleet.toml`, `components/<name>.toml` and `pins.toml`; rename the file or move it elsewhere";
    let place = Place {
        file: file.to_owned(),
        span: 0..0,
    };
    Diagnostic::error(code::UNKNOWN_FILE, format!("a fleet has no file `{file}`"), help)
        .at(&place, "this file")
}

/// Reports the names that a list has twice, and gives each once.
pub(crate) fn once<T: Ord + Clone + std::fmt::Display>(
    sited: Vec<spot::Sited<T>>,
    mut add: impl FnMut(Diagnostic),
) -> BTreeMap<T, Place> {
    let mut places: BTreeMap<T, Place> = BTreeMap::new();
    for spot::Sited { value, place } in sited {
        if let Some(first) = places.get(&value) {
            add(Diagnostic::error(
                code::LISTED_TWICE,
                format!("`{value}` is listed twice"),
                "remove one of the two",
            )
            .at(&place, "again here")
            .at(first, "first here"));
            continue;
        }
        places.insert(value, place);
    }
    places
}

/// Reads entries that are keyed by names; those with a bad name are reported and their values still read.
pub(crate) fn named<'a, N, V>(
    entries: Vec<(Key<'a>, spot::Spot<'a>)>,
    mut read: impl FnMut(&Key<'a>, spot::Spot<'a>) -> Option<V>,
) -> BTreeMap<N, V>
where
    N: Ord + std::str::FromStr<Err: spot::Refusal>,
{
    let mut named = BTreeMap::new();
    for (key, spot) in entries {
        let name = key.name();
        let value = read(&key, spot);
        if let (Some(name), Some(value)) = (name, value) {
            named.insert(name, value);
        }
    }
    named
}

#[cfg(test)]
mod tests;
