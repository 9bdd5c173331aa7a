//! The program's verbs. A binary is a thin `main` over [`run`], with its own setup.
//!
//! Data goes to stdout, all else to stderr. Exit codes: 0 done, 1 failed, 2 a plan shows changes, 3 refused, 4 degraded,
//! 100 a reboot is needed, 130 interrupted; `docs/cli.md` has the whole list.

mod ca;
mod check;
mod console;
mod diagnostics;
mod diff;
mod fleet;
mod graph;
mod homes;
mod output;
mod pin;
mod pins;
mod pins_file;
mod preparation;
mod show;
mod summary;
mod takes;
mod terminal;
mod tf;
mod transport;
mod unpin;
mod why;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::setup::{Programs, Setup};

/// What an exit code says (`docs/cli.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// All is done.
    Done,
    /// Something failed.
    Failed,
    /// Nothing was touched.
    Refused,
    /// What a run's report says.
    Run(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Refused => 3,
            Exit::Run(code) => code,
        })
    }
}

/// Deploy a fleet of hosts, with its state on a backend that the fleet itself can hold.
#[derive(Debug, Parser)]
#[command(name = "provisor", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: Verb,
}

/// Flags that every verb takes.
#[derive(Clone, Debug, Args)]
pub struct Globals {
    /// Folder with fleet.toml, components/ and system.nix.
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub fleet: PathBuf,
    /// OpenTofu or Terraform; otherwise `tofu`, then `terraform` on PATH, then the release that `./dev` fetched.
    #[arg(long, global = true, value_name = "PATH")]
    pub tofu: Option<PathBuf>,
    /// Folder for working directories; otherwise $XDG_STATE_HOME/provisor.
    #[arg(long, global = true, value_name = "DIR")]
    pub state_home: Option<PathBuf>,
    /// How results are printed.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub format: Output,
}

/// What `--format` takes. The pictures are of `graph` alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For Graphviz; `graph` only.
    Dot,
    /// For Markdown; `graph` only.
    Mermaid,
    /// A picture; `graph` only.
    Svg,
}

impl Output {
    /// As every verb can print it.
    fn plain(self) -> Option<Format> {
        match self {
            Output::Text => Some(Format::Text),
            Output::Json => Some(Format::Json),
            Output::Dot | Output::Mermaid | Output::Svg => None,
        }
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Check the fleet's files and show all that is wrong.
    Check,
    /// Show what one node runs, writes, is granted and takes from elsewhere; as JSON, its plan.
    Show {
        /// Deployment name.
        node: String,
    },
    /// Tell why a provision is answered, or refused, as it is on a node.
    Why {
        /// Deployment name.
        node: String,
        /// The provision.
        provision: String,
    },
    /// Choose who answers a provision on a node.
    Pin(pin::Arguments),
    /// Take a choice back.
    Unpin(unpin::Arguments),
    /// List the choices that people made.
    Pins(pins::Arguments),
    /// Show who stops working when a node leaves.
    Takes {
        /// The node that leaves.
        #[arg(long, value_name = "NODE")]
        from: String,
    },
    /// Draw who takes what from whom.
    Graph,
    /// Show what changes between two fleets.
    Diff {
        /// The fleet's folder as it was.
        old: PathBuf,
        /// The fleet's folder as it is to be.
        new: PathBuf,
    },
    /// Run the fleet's graph: deploy what changed, or show what would.
    Tf(tf::Arguments),
    /// Print the certificate of the fleet's internal CA.
    Ca,
    /// Type verbs at a prompt, with history, completion and help.
    Console,
    /// Serve or look after a state backend.
    #[command(disable_help_flag = true)]
    Backend {
        /// What `provisor-backend` takes.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Deploy one node; the graph calls it.
    #[command(hide = true)]
    Transport(transport::Arguments),
}

/// Runs the command line of this process. `setup` makes the setup of a run from the flags; [`default_setup`] is the
/// shipped program's.
pub fn run(setup: impl FnOnce(&Globals) -> Setup) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nowhere is left to say that this could not be said.
            let _said = error.print();
            return if error.use_stderr() {
                Exit::Refused.into()
            } else {
                Exit::Done.into()
            };
        }
    };
    let globals = cli.globals;
    let format = match (globals.format.plain(), &cli.verb) {
        (Some(format), _) => format,
        // It has the pictures, too.
        (None, Verb::Graph) => Format::Text,
        (None, _) => {
            output::error(&"only `graph` draws pictures; give --format text or json");
            return Exit::Refused.into();
        }
    };
    let setup = || setup(&globals);
    match cli.verb {
        Verb::Check => check::run(&setup(), format).into(),
        Verb::Show { node } => show::run(&setup(), format, &node).into(),
        Verb::Why { node, provision } => why::run(&setup(), format, &node, &provision).into(),
        Verb::Pin(arguments) => pin::run(&setup(), format, &arguments).into(),
        Verb::Unpin(arguments) => unpin::run(&setup(), format, &arguments).into(),
        Verb::Pins(arguments) => pins::run(&setup(), format, &arguments).into(),
        Verb::Takes { from } => takes::run(&setup(), format, &from).into(),
        Verb::Graph => graph::run(&setup(), globals.format, format).into(),
        Verb::Diff { old, new } => diff::run(format, &old, &new).into(),
        Verb::Tf(arguments) => tf::run(&setup(), format, &arguments).into(),
        Verb::Ca => ca::run(&setup(), format).into(),
        Verb::Console => console::run(&setup(), &globals).into(),
        Verb::Backend { arguments } => {
            provisor_backend::cli::run([OsString::from("provisor backend")].into_iter().chain(arguments))
        }
        Verb::Transport(arguments) => transport::run(&arguments).into(),
    }
}

/// The setup of the shipped program: flags, the environment, and `PATH`.
pub fn default_setup(globals: &Globals) -> Setup {
    Setup {
        fleet: globals.fleet.clone(),
        programs: Programs {
            tofu: globals.tofu.clone(),
            ..Programs::default()
        },
        state_home: globals.state_home.clone().unwrap_or_else(homes::state_home),
        backend_address: std::env::var("TF_HTTP_ADDRESS")
            .ok()
            .filter(|address| !address.is_empty()),
    }
}

#[cfg(test)]
mod testing;

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_may_stand_before_and_after_the_verb() {
        for line in [
            "provisor --fleet f --format json check",
            "provisor check --format json --fleet f",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(
                (cli.globals.fleet, cli.globals.format),
                ("f".into(), Output::Json)
            );
        }
    }

    #[test]
    fn what_follows_backend_is_the_backend_s() {
        let cli = Cli::try_parse_from(["provisor", "backend", "serve", "--listen", "[::]:1"]).unwrap();
        assert!(
            matches!(cli.verb, Verb::Backend { arguments } if arguments == ["serve", "--listen", "[::]:1"])
        );
    }
}
