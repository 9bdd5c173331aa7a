//! What an argument names. The kind stands in the verb's declaration, and nothing here knows a verb.
//!
//! | kind | how a verb declares it |
//! |---|---|
//! | choice | the values it allows (`ValueEnum`) |
//! | node, component, provision | its type, or a value name that is or ends in `NODE`, `COMPONENT`, `PROVISION` (`FROM-NODE`) |
//! | path | its type `PathBuf`, or a `ValueHint` of a path |
//! | number | its type |
//! | text | `ValueHint::Other`: anything, and nothing to complete |

use std::any::TypeId;

use clap::{Arg, ValueHint};
use provisor_model::names::{ComponentName, NodeName, ProvisionName};

use super::catalogue::Catalogue;

/// What an argument names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One of these.
    Choice(Vec<String>),
    /// A node of the fleet.
    Node,
    /// A component that has a file.
    Component,
    /// A name that is provided and required.
    Provision,
    /// A file or a folder.
    Path,
    /// A whole number.
    Number,
    /// Anything.
    Text,
}

/// What may stand where the cursor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Candidates {
    /// These words, sorted.
    Words(Vec<String>),
    /// Whatever the file system has.
    Paths,
}

impl Kind {
    /// The kind of an argument, if its declaration says one.
    pub(super) fn of(argument: &Arg) -> Option<Kind> {
        if !argument.get_action().takes_values() {
            return None;
        }
        let choices: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| value.get_name().to_owned())
            .collect();
        if !choices.is_empty() {
            return Some(Kind::Choice(choices));
        }
        by_type(argument)
            .or_else(|| by_value_name(argument))
            .or_else(|| by_hint(argument))
    }

    /// Values of this kind that a parser must take.
    pub(super) fn samples(&self) -> Vec<String> {
        match self {
            Kind::Choice(values) => values.clone(),
            Kind::Node => vec!["node".into()],
            Kind::Component => vec!["component".into()],
            Kind::Provision => vec!["postgresql".into()],
            Kind::Path => vec!["folder/file".into()],
            Kind::Number => vec!["1".into()],
            Kind::Text => vec!["text".into()],
        }
    }

    /// What there is of this kind.
    pub(super) fn candidates(&self, catalogue: &Catalogue) -> Candidates {
        let words = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect();
        Candidates::Words(match self {
            Kind::Choice(values) => values.clone(),
            Kind::Node => words(&catalogue.nodes),
            Kind::Component => words(&catalogue.components),
            Kind::Provision => words(&catalogue.provisions),
            Kind::Path => return Candidates::Paths,
            Kind::Number | Kind::Text => vec![],
        })
    }
}

fn by_type(argument: &Arg) -> Option<Kind> {
    let parsed = argument.get_value_parser().type_id();
    let table = [
        (TypeId::of::<NodeName>(), Kind::Node),
        (TypeId::of::<ComponentName>(), Kind::Component),
        (TypeId::of::<ProvisionName>(), Kind::Provision),
        (TypeId::of::<u8>(), Kind::Number),
        (TypeId::of::<u16>(), Kind::Number),
        (TypeId::of::<u32>(), Kind::Number),
        (TypeId::of::<u64>(), Kind::Number),
        (TypeId::of::<usize>(), Kind::Number),
    ];
    table
        .into_iter()
        .find_map(|(kind_type, kind)| (parsed == kind_type).then_some(kind))
}

fn by_value_name(argument: &Arg) -> Option<Kind> {
    let name = argument.get_value_names()?.first()?.replace('_', "-");
    match name.rsplit('-').next()? {
        "NODE" => Some(Kind::Node),
        "COMPONENT" => Some(Kind::Component),
        "PROVISION" => Some(Kind::Provision),
        _ => None,
    }
}

fn by_hint(argument: &Arg) -> Option<Kind> {
    match argument.get_value_hint() {
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath | ValueHint::ExecutablePath => {
            Some(Kind::Path)
        }
        ValueHint::Other => Some(Kind::Text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::builder::PossibleValuesParser;
    use clap::{ArgAction, value_parser};

    use super::*;

    #[test]
    fn the_declaration_says_the_kind() {
        let arg = || Arg::new("argument");
        let table = [
            (arg().value_name("NODE"), Some(Kind::Node)),
            (arg().value_name("FROM-NODE"), Some(Kind::Node)),
            (arg().value_name("FROM_NODE"), Some(Kind::Node)),
            (
                arg().value_name("FROM").value_parser(value_parser!(NodeName)),
                Some(Kind::Node),
            ),
            (arg().value_name("COMPONENT"), Some(Kind::Component)),
            (arg().value_name("PROVISION"), Some(Kind::Provision)),
            (
                arg().value_name("OLD").value_parser(value_parser!(PathBuf)),
                Some(Kind::Path),
            ),
            (arg().value_hint(ValueHint::DirPath), Some(Kind::Path)),
            (arg().value_hint(ValueHint::Other), Some(Kind::Text)),
            (arg().value_parser(value_parser!(u16)), Some(Kind::Number)),
            (
                arg().value_parser(PossibleValuesParser::new(["a", "b"])),
                Some(Kind::Choice(vec!["a".into(), "b".into()])),
            ),
            (arg().action(ArgAction::SetTrue), None),
            (arg().value_name("NODES"), None),
            (arg().value_name("FROM"), None),
        ];
        for (argument, wanted) in table {
            // clap fills in what a declaration leaves out when the command is built.
            let mut command = clap::Command::new("verb").arg(argument);
            command.build();
            let argument = command
                .get_arguments()
                .find(|a| a.get_id() == "argument")
                .unwrap();
            assert_eq!(Kind::of(argument), wanted, "{argument:?}");
        }
    }
}
