//! What may stand at the cursor: verbs, flags, and values by the kind that the verb's declaration gives them.

use clap::{Arg, ArgAction, Command};

use super::catalogue::Catalogue;
use super::kind::{Candidates, Kind};
use super::words::{self, Word};

/// What may replace the text from `start` to the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Completion {
    /// A byte of the line.
    pub(super) start: usize,
    /// The candidates that begin as the text does.
    pub(super) candidates: Candidates,
}

/// Completes a line at its cursor. `command` is built (`Command::build`).
pub(super) fn complete(command: &Command, line: &str, cursor: usize, catalogue: &Catalogue) -> Completion {
    let line = line.get(..cursor).unwrap_or(line);
    let (before, here) = words::before_cursor(line);
    let place = Place::after(command, &before);
    let Word { text, start } = here;
    let (start, candidates) = match (place.waiting, place.flags, text.split_once('=')) {
        (Some(option), _, _) => (start, values(option, catalogue)),
        (None, Flags::Open, Some((name, _))) if name.starts_with("--") => {
            let behind = line[start..].find('=').map_or(line.len(), |at| start + at + 1);
            let values = place
                .option(name)
                .map_or(NOTHING, |option| values(option, catalogue));
            (behind, values)
        }
        (None, Flags::Open, _) if text.starts_with('-') => (start, flags(place.command)),
        (None, Flags::Open | Flags::Over, _) => (start, place.positionals(catalogue)),
    };
    let typed = match text.split_once('=') {
        Some((_, value)) if start > here.start => value,
        Some(_) | None => &text,
    };
    Completion {
        start,
        candidates: match candidates {
            Candidates::Words(words) => starting(words, typed),
            Candidates::Paths => Candidates::Paths,
        },
    }
}

const NOTHING: Candidates = Candidates::Words(vec![]);

/// Where in the schema a line has come to.
struct Place<'a> {
    command: &'a Command,
    /// How many positional arguments are written.
    position: usize,
    /// An option whose value comes next.
    waiting: Option<&'a Arg>,
    flags: Flags,
}

/// Whether a word that starts with `-` is a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flags {
    Open,
    Over,
}

impl<'a> Place<'a> {
    fn after(command: &'a Command, words: &[String]) -> Place<'a> {
        let mut place = Place {
            command,
            position: 0,
            waiting: None,
            flags: Flags::Open,
        };
        for word in words {
            place.step(word);
        }
        place
    }

    fn step(&mut self, word: &str) {
        if self.waiting.take().is_some() {
            return;
        }
        if self.flags == Flags::Open && word == "--" {
            self.flags = Flags::Over;
        } else if self.flags == Flags::Open && word.len() > 1 && word.starts_with('-') {
            if !word.contains('=') {
                self.waiting = self
                    .option(word)
                    .filter(|option| option.get_action().takes_values());
            }
        } else if let Some(verb) = self.verb(word) {
            self.command = verb;
            self.position = 0;
            self.take_over();
        } else {
            self.position += 1;
            self.take_over();
        }
    }

    fn verb(&self, word: &str) -> Option<&'a Command> {
        (self.flags == Flags::Open && self.position == 0)
            .then(|| self.command.find_subcommand(word))
            .flatten()
    }

    /// What follows a verb that hands its arguments on is not ours to complete.
    fn take_over(&mut self) {
        if self.positional().is_some_and(Arg::is_trailing_var_arg_set) {
            self.flags = Flags::Over;
        }
    }

    /// `--name`, or the last letter of `-abc`.
    fn option(&self, word: &str) -> Option<&'a Arg> {
        let mut arguments = self.command.get_arguments();
        match word.strip_prefix("--") {
            Some(name) => arguments.find(|argument| {
                argument.get_long() == Some(name)
                    || argument
                        .get_all_aliases()
                        .is_some_and(|aliases| aliases.contains(&name))
            }),
            None => arguments.find(|argument| argument.get_short() == word.chars().last()),
        }
    }

    /// Verbs, and values of the positional argument that comes next.
    fn positionals(&self, catalogue: &Catalogue) -> Candidates {
        let verbs = self
            .command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set() && self.flags == Flags::Open && self.position == 0)
            .map(|verb| verb.get_name().to_owned());
        match self
            .positional()
            .map_or(NOTHING, |argument| values(argument, catalogue))
        {
            Candidates::Words(words) => Candidates::Words(verbs.chain(words).collect()),
            Candidates::Paths => Candidates::Paths,
        }
    }

    /// The positional argument that comes next; the last one may be repeated.
    fn positional(&self) -> Option<&'a Arg> {
        let all: Vec<&Arg> = self.command.get_positionals().collect();
        all.get(self.position).copied().or_else(|| {
            all.last()
                .copied()
                .filter(|last| matches!(last.get_action(), ArgAction::Append) || repeats(last))
        })
    }
}

fn repeats(argument: &Arg) -> bool {
    argument
        .get_num_args()
        .is_some_and(|range| range.max_values() > 1)
}

fn values(argument: &Arg, catalogue: &Catalogue) -> Candidates {
    Kind::of(argument).map_or(NOTHING, |kind| kind.candidates(catalogue))
}

fn flags(command: &Command) -> Candidates {
    let names = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set())
        .filter_map(|argument| argument.get_long().map(|name| format!("--{name}")));
    Candidates::Words(names.collect())
}

fn starting(mut words: Vec<String>, text: &str) -> Candidates {
    words.retain(|word| word.starts_with(text));
    words.sort();
    words.dedup();
    Candidates::Words(words)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::{CommandFactory as _, Parser, Subcommand};
    use rstest::rstest;

    use super::super::line;
    use super::*;

    /// Verbs with every kind of argument.
    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Planted {
        #[command(subcommand)]
        _verb: PlantedVerb,
    }

    #[derive(Subcommand)]
    enum PlantedVerb {
        Pin {
            _node: String,
            #[arg(value_name = "PROVISION")]
            _provision: String,
            #[arg(value_name = "FROM-NODE")]
            _from: String,
            #[arg(value_name = "COMPONENT")]
            _component: String,
        },
        Takes {
            #[arg(short, long = "from", value_name = "NODE")]
            _from: String,
            #[arg(value_name = "COMPONENT")]
            _only: Vec<String>,
        },
        Diff {
            _old: PathBuf,
        },
    }

    fn catalogue() -> Catalogue {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Catalogue {
            nodes: set(&["app", "apple", "site"]),
            components: set(&["proxy", "website"]),
            provisions: set(&["postgresql", "route"]),
        }
    }

    /// `|` is the cursor.
    fn completed(schema: Command, line: &str) -> Completion {
        let mut schema = schema;
        schema.build();
        let cursor = line.find('|').unwrap();
        complete(&schema, &line.replace('|', ""), cursor, &catalogue())
    }

    fn words(start: usize, words: &[&str]) -> Completion {
        Completion {
            start,
            candidates: Candidates::Words(words.iter().map(|word| (*word).to_owned()).collect()),
        }
    }

    #[rstest]
    #[case::verbs("sh|", 0, &["show"])]
    #[case::verbs_after_flags("--format json c|", 14, &["ca", "check", "console"])]
    #[case::hidden_verbs("tr|", 0, &[])]
    #[case::only_what_is_before_the_cursor("sh|ow app", 0, &["show"])]
    #[case::nodes("show |", 5, &["app", "apple", "site"])]
    #[case::nodes_that_begin_so("show ap|", 5, &["app", "apple"])]
    #[case::nodes_in_a_quote("show \"s|", 5, &["site"])]
    #[case::no_second_node("show app |", 9, &[])]
    #[case::values("tf |", 3, &["apply", "plan"])]
    #[case::flags("tf --al|", 3, &["--allow-lost-state"])]
    #[case::flags_of_every_verb("show app --f|", 9, &["--fleet", "--format"])]
    #[case::values_of_flags("check --format te|", 15, &["text"])]
    #[case::values_behind_equals("check --format=j|", 15, &["json"])]
    #[case::values_in_a_quote_behind_equals("check --format=\"é\"|", 15, &[])]
    #[case::an_unknown_flag("check --frmat=j|", 14, &[])]
    #[case::help("help sh|", 5, &["show"])]
    #[case::what_the_backend_takes_is_its_own("backend --f|", 8, &[])]
    fn the_shipped_verbs(#[case] line: &str, #[case] start: usize, #[case] wanted: &[&str]) {
        let found = completed(line::schema(), line);
        assert_eq!(found, words(start, wanted), "{line}");
    }

    #[rstest]
    #[case::node("pin |", 4, &["app", "apple", "site"])]
    #[case::provision("pin app |", 8, &["postgresql", "route"])]
    #[case::from_node("pin app route s|", 14, &["site"])]
    #[case::component("pin app route site |", 19, &["proxy", "website"])]
    #[case::a_flag_moves_no_position("takes --from site |", 18, &["proxy", "website"])]
    #[case::of_a_flag("takes --from s|", 13, &["site"])]
    #[case::of_a_short_flag("takes -f s|", 9, &["site"])]
    #[case::repeated("takes -f site proxy w|", 20, &["website"])]
    #[case::after_two_dashes("takes -f site -- -|", 17, &[])]
    fn each_kind(#[case] line: &str, #[case] start: usize, #[case] wanted: &[&str]) {
        assert_eq!(
            completed(Planted::command(), line),
            words(start, wanted),
            "{line}"
        );
    }

    #[rstest]
    #[case("diff o|")]
    #[case("diff |")]
    fn paths_are_the_file_system_s(#[case] line: &str) {
        assert_eq!(completed(Planted::command(), line).candidates, Candidates::Paths);
    }
}
