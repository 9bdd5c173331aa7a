//! Each declared verb is shown to be runnable: arguments are sampled from its own schema and parsed back (PR-08).
//!
//! The compiler shows the other half: what is parsed is an enum, and the match that runs it has no wildcard.

use clap::error::ErrorKind;
use clap::{Arg, Command, FromArgMatches};

use super::kind::Kind;

/// Why a declared verb cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unrunnable {
    /// Nothing says what a required argument names.
    #[error(
        "`{verb}` needs {argument}, and its declaration does not say what that names; give it a value name such as \
         NODE, a type, or a value hint"
    )]
    NoSample {
        /// The verb with its parents, as it is typed.
        verb: String,
        /// The argument, as help texts show it.
        argument: String,
    },
    /// A line made from the schema is not taken.
    #[error(
        "`{line}` is what the declaration allows, and it is not taken: {reason}; correct the verb's declaration"
    )]
    NotTaken {
        /// The line.
        line: String,
        /// What the parser said.
        reason: String,
    },
}

/// Samples every verb of `command` and parses each sample into `L`, the type that is run. Empty if all is well.
pub(super) fn unrunnable<L: FromArgMatches>(command: &Command) -> Vec<Unrunnable> {
    let mut built = command.clone();
    built.build();
    let mut found = Vec::new();
    for (path, verb) in verbs(&built) {
        match lines(&path, verb) {
            Ok(lines) => found.extend(lines.iter().filter_map(|line| parse::<L>(command, line).err())),
            Err(reason) => found.push(reason),
        }
    }
    found
}

/// A line with the required arguments, and whether an optional one was added.
struct Line {
    words: Vec<String>,
    content: Content,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Required,
    WithOptional,
}

fn parse<L: FromArgMatches>(command: &Command, line: &Line) -> Result<(), Unrunnable> {
    let error = match command.clone().try_get_matches_from(&line.words) {
        Ok(matches) => match L::from_arg_matches(&matches) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        },
        Err(error) => error,
    };
    let refused_by_another = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict
    );
    // An optional argument may need another one, or exclude one: such is its schema.
    if line.content == Content::WithOptional && refused_by_another {
        return Ok(());
    }
    let text = error.to_string();
    Err(Unrunnable::NotTaken {
        line: line.words.join(" "),
        reason: text.lines().next().unwrap_or_default().to_owned(),
    })
}

/// Every command that can be run, with the words that name it. clap's own `help` is not a verb.
fn verbs(command: &Command) -> Vec<(Vec<String>, &Command)> {
    let mut found = Vec::new();
    let mut open: Vec<(Vec<String>, &Command)> = vec![(vec![], command)];
    while let Some((path, command)) = open.pop() {
        let mut below = command
            .get_subcommands()
            .filter(|verb| verb.get_name() != "help")
            .peekable();
        if !path.is_empty() && (below.peek().is_none() || !command.is_subcommand_required_set()) {
            found.push((path.clone(), command));
        }
        open.extend(below.map(|verb| ([path.as_slice(), &[verb.get_name().to_owned()]].concat(), verb)));
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

/// The line of the required arguments; then one line for each further value of theirs, and for each value of each
/// optional argument whose kind is known.
fn lines(path: &[String], verb: &Command) -> Result<Vec<Line>, Unrunnable> {
    let required = required(verb);
    let mut sampled: Vec<(&Arg, Vec<String>)> = Vec::new();
    for argument in &required {
        let kind = Kind::of(argument).ok_or_else(|| Unrunnable::NoSample {
            verb: path.join(" "),
            argument: argument.to_string(),
        })?;
        sampled.push((argument, kind.samples()));
    }
    let line = |changed: Option<(&Arg, &str)>, content| {
        let mut words = path.to_vec();
        for (argument, samples) in &sampled {
            let value = match changed {
                Some((other, value)) if other.get_id() == argument.get_id() => value,
                Some(_) | None => samples.first().map_or("", String::as_str),
            };
            words.extend(written(argument, value));
        }
        if let Some((argument, value)) = changed.filter(|_| content == Content::WithOptional) {
            words.extend(written(argument, value));
        }
        Line { words, content }
    };
    let mut lines = vec![line(None, Content::Required)];
    for (argument, samples) in &sampled {
        lines.extend(
            samples
                .iter()
                .skip(1)
                .map(|value| line(Some((argument, value)), Content::Required)),
        );
    }
    let is_required = |argument: &Arg| required.iter().any(|one| one.get_id() == argument.get_id());
    for argument in verb.get_arguments().filter(|argument| !is_required(argument)) {
        for value in optional_samples(argument) {
            lines.push(line(Some((argument, &value)), Content::WithOptional));
        }
    }
    Ok(lines)
}

/// The arguments that a line cannot leave out, in the order of their positions; of a group, the first.
fn required(verb: &Command) -> Vec<&Arg> {
    let mut found: Vec<&Arg> = verb
        .get_arguments()
        .filter(|argument| argument.is_required_set())
        .collect();
    for group in verb.get_groups().filter(|group| group.is_required_set()) {
        let members: Vec<&Arg> = group
            .get_args()
            .filter_map(|id| verb.get_arguments().find(|argument| argument.get_id() == id))
            .collect();
        if !members.iter().any(|argument| argument.is_required_set()) {
            found.extend(members.first());
        }
    }
    found.sort_by_key(|argument| argument.get_index());
    found
}

/// A flag is its own sample. Help and version print instead of running.
fn optional_samples(argument: &Arg) -> Vec<String> {
    use clap::ArgAction;
    match argument.get_action() {
        ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count => vec![String::new()],
        ArgAction::Set | ArgAction::Append => Kind::of(argument).map_or_else(Vec::new, |kind| kind.samples()),
        _ => vec![],
    }
}

/// An argument with a value, as it is typed.
fn written(argument: &Arg, value: &str) -> Vec<String> {
    let times = argument
        .get_num_args()
        .map_or(1, |range| range.min_values().max(1));
    let values = std::iter::repeat_n(value.to_owned(), times);
    if argument.is_positional() {
        return values.collect();
    }
    let name = match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => return vec![],
    };
    if argument.get_action().takes_values() {
        [name].into_iter().chain(values).collect()
    } else {
        vec![name]
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser, Subcommand, ValueEnum};

    use super::*;

    #[derive(Debug, Parser)]
    #[command(no_binary_name = true)]
    struct Planted {
        #[command(subcommand)]
        verb: PlantedVerb,
    }

    #[derive(Debug, Subcommand)]
    enum PlantedVerb {
        Pin {
            node: String,
            provision: String,
            from_node: String,
            component: String,
        },
        #[command(subcommand)]
        Users(Users),
        Colour {
            colour: Colour,
            #[arg(long, requires = "node")]
            dark: bool,
            #[arg(long)]
            node: Option<String>,
        },
    }

    #[derive(Debug, Subcommand)]
    enum Users {
        Add { node: String },
    }

    #[derive(Clone, Debug, ValueEnum)]
    enum Colour {
        Red,
        Green,
    }

    /// The planted verbs, and one more declaration that the enum does not know.
    fn with(verb: Command) -> Vec<Unrunnable> {
        unrunnable::<Planted>(&Planted::command().subcommand(verb))
    }

    fn sampled(command: &Command) -> Vec<String> {
        let mut command = command.clone();
        command.build();
        verbs(&command)
            .into_iter()
            .flat_map(|(path, verb)| lines(&path, verb).unwrap())
            .map(|line| line.words.join(" "))
            .collect()
    }

    #[test]
    fn every_verb_and_every_allowed_value_is_sampled() {
        assert_eq!(
            sampled(&Planted::command()),
            [
                "colour red",
                "colour green",
                "colour red --dark",
                "colour red --node node",
                "pin node postgresql node component",
                "users add node",
            ]
        );
        assert_eq!(unrunnable::<Planted>(&Planted::command()), []);
    }

    #[test]
    fn a_required_argument_that_nothing_can_sample_is_named_with_its_verb() {
        let found = with(Command::new("weigh").arg(Arg::new("weight").value_name("WEIGHT").required(true)));
        assert_eq!(
            found,
            [Unrunnable::NoSample {
                verb: "weigh".into(),
                argument: "<WEIGHT>".into()
            }]
        );
    }

    #[test]
    fn a_verb_that_the_parsed_type_does_not_know_has_no_handler() {
        let found = with(Command::new("ghost").arg(Arg::new("node").value_name("NODE").required(true)));
        assert!(
            matches!(found.as_slice(), [Unrunnable::NotTaken { line, .. }] if line == "ghost node"),
            "{found:?}"
        );
    }

    #[test]
    fn a_parser_that_takes_no_value_of_its_kind_is_found() {
        let picky = |_: &str| Err::<String, _>("never".to_owned());
        let found = with(
            Command::new("picky").arg(
                Arg::new("node")
                    .value_name("NODE")
                    .required(true)
                    .value_parser(picky),
            ),
        );
        assert!(
            matches!(found.as_slice(), [Unrunnable::NotTaken { line, reason }] if line == "picky node" && reason.contains("never")),
            "{found:?}"
        );
    }
}
