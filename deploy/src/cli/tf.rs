//! `provisor tf`: files, grants, systems, graph, and then the wrapper.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use provisor_model::Model;

use super::fleet::Fleet;
use super::preparation::{self, Place, PreparationError};
use super::terminal::Terminal;
use super::{Exit, Format, diagnostics, fleet, output, summary};
use crate::decide::refused_at_sight;
use crate::entry::NodeEntry;
use crate::grants::at_rest::{Secret, Shelf};
use crate::grants::{self, GrantsError, Login};
use crate::progress::{Event, Phase, Progress as _};
use crate::report::Phases;
use crate::runner::{Places, Program, ProgramError};
use crate::setup::Setup;
use crate::wrapper::{
    self, Asked, BackendNode, Credentials, Flags, Graph, Hosting, LostState, Mode, Request, RunReport,
    StaleLock, TransportCommand,
};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Bring up a fleet that holds its own state backend, which is not there yet.
    #[arg(long)]
    bootstrap: bool,
    /// Apply even though the backend has lost the state of a fleet that was deployed from here.
    #[arg(long)]
    allow_lost_state: bool,
    /// Release a lock that this user took from this machine and did not give back.
    #[arg(long)]
    reclaim_lock: bool,
    /// Make this grant anew, named as a note or a plan names it, and deliver it to both ends.
    #[arg(long, value_name = "GRANT")]
    rotate: Vec<String>,
    /// What to do; apply if nothing is named.
    #[arg(value_enum)]
    verb: Option<Verb>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Verb {
    /// Deploy what changed.
    Apply,
    /// Show what an apply would change.
    Plan,
}

impl Arguments {
    fn asked(&self) -> Asked {
        Asked {
            mode: if self.bootstrap {
                Mode::Bootstrap
            } else {
                Mode::Steady
            },
            verb: self.verb.map(|verb| match verb {
                Verb::Apply => wrapper::Verb::Apply,
                Verb::Plan => wrapper::Verb::Plan,
            }),
            flags: Flags {
                lost_state: if self.allow_lost_state {
                    LostState::Allow
                } else {
                    LostState::Refuse
                },
                stale_lock: if self.reclaim_lock {
                    StaleLock::Release
                } else {
                    StaleLock::Refuse
                },
            },
        }
    }
}

pub(super) fn run(setup: &Setup, format: Format, arguments: &Arguments) -> Exit {
    let start = Instant::now();
    let terminal = Terminal::new();
    let mut setup = setup.clone();
    let outcome = carry_out(&mut setup, arguments, &terminal);
    terminal.close();
    match outcome {
        Ok((program, report)) => {
            output::note(&summary::render(&report, &program, start.elapsed()));
            match format {
                Format::Json => output::json(&report),
                Format::Text => output::data(&summary::data(&report)),
            }
            Exit::Run(report.exit_code())
        }
        Err(Error::Fleet(error)) => diagnostics::refuse(&error, &setup.fleet, format),
        Err(error) => {
            output::error(&error);
            if format == Format::Json {
                output::json(&serde_json::json!({ "error": error.to_string() }));
            }
            error.exit()
        }
    }
}

/// What stops a run.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Fleet(#[from] fleet::FleetError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Preparation(#[from] PreparationError),
    #[error(transparent)]
    Grants(#[from] GrantsError),
    #[error("this program does not know its own path ({0}), and the graph must call it; run it from a file")]
    NoSelf(std::io::Error),
    #[error(transparent)]
    Wrapper(Box<wrapper::Error>),
}

impl From<wrapper::Error> for Error {
    fn from(error: wrapper::Error) -> Error {
        Error::Wrapper(Box::new(error))
    }
}

impl Error {
    fn exit(&self) -> Exit {
        match self {
            Error::Fleet(_)
            | Error::Grants(
                GrantsError::NoLogin { .. } | GrantsError::Login { .. } | GrantsError::Unknown { .. },
            ) => Exit::Refused,
            Error::Wrapper(error) => Exit::Run(error.exit_code()),
            Error::Program(_) | Error::Preparation(_) | Error::Grants(_) | Error::NoSelf(_) => Exit::Failed,
        }
    }
}

fn carry_out(
    setup: &mut Setup,
    arguments: &Arguments,
    terminal: &Terminal,
) -> Result<(Program, RunReport), Error> {
    // OpenTofu runs elsewhere, and hands paths on to the transport.
    setup.state_home = preparation::absolute(&setup.state_home)?;
    let asked = arguments.asked();
    let credentials = Credentials::from_variables(std::env::vars());
    let phases = Phases::new(terminal);

    let fleet = phases.run(
        Phase::Resolve,
        setup.fleet.display().to_string(),
        || fleet::open(&setup.fleet),
        |fleet| diagnostics::count(fleet.loaded.model.nodes().count(), "node"),
    )?;
    diagnostics::show(&fleet.warnings(), &fleet.files, &setup.fleet, Format::Text);
    let backend_node = backend_node(&fleet.loaded.model);
    let hosting = if backend_node.is_some() {
        Hosting::OwnNode
    } else {
        Hosting::Elsewhere
    };
    // Whatever can be refused is refused before anything is made, and so is a missing program.
    if let Some(obstacle) = refused_at_sight(asked, hosting) {
        return Err(wrapper::Error::Refused(obstacle).into());
    }
    let program = Program::find(&setup.programs, &Places::of_this_process())?;
    setup.programs.tofu = Some(program.path.clone());
    let place = Place::of(setup, &fleet.loaded.model)?;
    wrapper::look_ahead(setup, &place.address, hosting, asked, &credentials)?;

    let generations = phases.run(
        Phase::Grants,
        diagnostics::count(fleet.resolution.grants().len(), "grant"),
        || prepare_grants(&place, &fleet, arguments, login(setup, &credentials), terminal),
        |generations| format!("{} in place", diagnostics::count(generations.len(), "grant")),
    )?;
    let mut plans = fleet.resolution.plans(&generations);
    let systems = phases.run(
        Phase::Build,
        diagnostics::count(plans.len(), "system"),
        || preparation::build(setup, &place, &mut plans, terminal),
        |systems| diagnostics::count(systems.len(), "system"),
    )?;

    let mut entries: Vec<NodeEntry> = Vec::new();
    let mut node_jobs: BTreeMap<String, PathBuf> = BTreeMap::new();
    for node in fleet.loaded.model.nodes() {
        let name = node.name.to_string();
        let (Some(plan), Some(system)) = (plans.get(&name), systems.get(&name)) else {
            continue;
        };
        let entry = preparation::entry(setup, node, plan, system)?;
        node_jobs.insert(name, preparation::write_job(setup, &place, &entry, plan)?);
        entries.push(entry);
    }
    let fleet_name = fleet.loaded.model.name().to_string();
    let graph = Graph {
        name: &fleet_name,
        entries: &entries,
        backend_node,
        transport: TransportCommand {
            program: std::env::current_exe().map_err(Error::NoSelf)?,
            args: vec!["transport".into(), "deploy".into()],
        },
        node_jobs,
    };
    let request = Request {
        asked,
        ..Request::default()
    };
    let mut report = wrapper::run(setup, &graph, &request, &credentials, terminal)?;
    report.phases.splice(0..0, phases.times());
    Ok((program, report))
}

/// Makes what is missing; a plan only looks, and shows the generations that an apply would have.
fn prepare_grants(
    place: &Place,
    fleet: &Fleet,
    arguments: &Arguments,
    login: Option<Login>,
    terminal: &Terminal,
) -> Result<BTreeMap<String, u64>, Error> {
    let shelf = Shelf::at(&place.grants());
    let today = preparation::today();
    let mut survey = grants::survey(&shelf, &fleet.resolution.grants(), login.as_ref(), today)?;
    for grant in &arguments.rotate {
        survey.rotate(grant)?;
    }
    for (grant, decision) in survey.decisions() {
        if let grants::generate::Decision::Make { generation, reason } = decision {
            terminal.event(Event::Note {
                message: format!("grant {grant}: generation {generation}, since {reason}"),
            });
        }
    }
    for grants::Discard { path, why, .. } in survey.discards() {
        terminal.event(Event::Note {
            message: format!("the secret in {} is discarded, since {why}", path.display()),
        });
    }
    if arguments.asked().verb.is_none_or(wrapper::Verb::changes_state) {
        place.make()?;
        grants::make(&shelf, &survey, login.as_ref(), &place.certificate(), today)?;
    }
    Ok(survey.generations())
}

fn backend_node(model: &Model) -> Option<BackendNode> {
    model.state_backend().map(|(node, port)| BackendNode {
        node: node.name.to_string(),
        address: node.address.clone(),
        port,
    })
}

/// Who the operator is at the backend: by the variables, or by the address.
fn login(setup: &Setup, credentials: &Credentials) -> Option<Login> {
    let address = setup
        .backend_address
        .as_deref()
        .and_then(|text| crate::address::StateAddress::parse(text).ok());
    let credentials = match &address {
        Some(address) => credentials.clone().with_userinfo_of(address),
        None => credentials.clone(),
    };
    let (name, password) = (credentials.username?, credentials.password?);
    Some(Login {
        name,
        password: Secret::new(password.reveal().to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn asked(line: &str) -> Asked {
        Line::try_parse_from(line.split_whitespace())
            .unwrap()
            .arguments
            .asked()
    }

    #[test]
    fn what_is_asked_for_is_what_the_line_says() {
        assert_eq!(asked("tf"), Asked::default());
        assert_eq!(asked("tf plan").verb, Some(wrapper::Verb::Plan));
        assert_eq!(asked("tf --bootstrap").mode, Mode::Bootstrap);
        assert_eq!(
            asked("tf apply --allow-lost-state").flags.lost_state,
            LostState::Allow
        );
        assert_eq!(
            asked("tf apply --reclaim-lock").flags.stale_lock,
            StaleLock::Release
        );
    }

    #[test]
    fn a_bootstrap_with_a_verb_is_refused_even_with_apply() {
        for line in ["tf --bootstrap apply", "tf --bootstrap plan"] {
            assert!(
                refused_at_sight(asked(line), Hosting::OwnNode).is_some(),
                "{line}"
            );
        }
    }
}
