//! The program's verbs. A binary is a thin `main` over [`run`], with its own setup.
//!
//! Data goes to stdout, all else to stderr. Exit codes: 0 done, 1 failed, 2 a plan shows changes, 3 refused, 4 degraded,
//! 100 a reboot is needed, 130 interrupted; `docs/cli.md` has the whole list.

mod ca;
mod check;
mod console;
mod diagnostics;
mod fleet;
mod homes;
mod output;
mod preparation;
mod show;
mod summary;
mod terminal;
mod tf;
mod transport;

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
    pub format: Format,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Check the fleet's files and show all that is wrong.
    Check,
    /// Print the plan of one node as JSON.
    Show {
        /// Deployment name.
        node: String,
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
    match cli.verb {
        Verb::Check => check::run(&setup(&globals), globals.format).into(),
        Verb::Show { node } => show::run(&setup(&globals), globals.format, &node).into(),
        Verb::Tf(arguments) => tf::run(&setup(&globals), globals.format, &arguments).into(),
        Verb::Ca => ca::run(&setup(&globals), globals.format).into(),
        Verb::Console => console::run(&setup(&globals), &globals).into(),
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
                ("f".into(), Format::Json)
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
