//! Machines by hand: a line is one thing to do. Nothing that is typed is kept anywhere.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};

use provisor_harness::artifacts::TestName;
use provisor_harness::{Lab, Machine};

use crate::Done;

const HELP: &str = "\
start NAME [on VLAN]... [memory MIB]   boots a machine
run NAME COMMAND...                    runs a command in it
console NAME                           shows the end of its console
reboot NAME | kill NAME | stop NAME    what they say
list                                   the machines
help, quit";

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked<'a> {
    Start {
        name: &'a str,
        vlans: Vec<&'a str>,
        memory_mib: Option<u32>,
    },
    Run {
        name: &'a str,
        command: &'a str,
    },
    Console(&'a str),
    Reboot(&'a str),
    Kill(&'a str),
    Stop(&'a str),
    List,
    Help,
    Quit,
    Nothing,
}

impl<'a> Asked<'a> {
    fn parse(line: &'a str) -> Result<Self, String> {
        let line = line.trim();
        let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let one = |name: &'a str| match name {
            "" => Err(format!("`{verb}` needs the name of a machine")),
            name => Ok(name),
        };
        match verb {
            "" => Ok(Self::Nothing),
            "start" => Self::start(rest),
            "run" => {
                let (name, command) = rest
                    .split_once(char::is_whitespace)
                    .ok_or("say which machine, and what to run: run NAME COMMAND")?;
                let command = command.trim();
                Ok(Self::Run { name, command })
            }
            "console" => one(rest).map(Self::Console),
            "reboot" => one(rest).map(Self::Reboot),
            "kill" => one(rest).map(Self::Kill),
            "stop" => one(rest).map(Self::Stop),
            "list" => Ok(Self::List),
            "help" => Ok(Self::Help),
            "quit" | "exit" => Ok(Self::Quit),
            other => Err(format!("there is no `{other}`: see `help`")),
        }
    }

    fn start(rest: &'a str) -> Result<Self, String> {
        let mut words = rest.split_whitespace();
        let name = words.next().ok_or("`start` needs the name of a machine")?;
        let (mut vlans, mut memory_mib) = (Vec::new(), None);
        while let Some(word) = words.next() {
            let value = words.next().ok_or(format!("`{word}` needs a value"))?;
            match word {
                "on" => vlans.push(value),
                "memory" => {
                    let mib = value.parse();
                    memory_mib = Some(mib.map_err(|_| format!("{value} is no number of MiB"))?);
                }
                other => return Err(format!("there is no `{other}`: see `help`")),
            }
        }
        Ok(Self::Start {
            name,
            vlans,
            memory_mib,
        })
    }
}

/// Obeys until the end of the input, and then ends all machines.
pub(crate) fn repl() -> Done {
    let runtime = tokio::runtime::Runtime::new()?;
    let lab = Lab::named(&TestName {
        binary: "lab".to_owned(),
        test: "repl".to_owned(),
    })?;
    let mut machines = BTreeMap::new();
    let mut input = std::io::stdin().lock();
    let prompts = std::io::stdin().is_terminal();
    let mut line = String::new();
    loop {
        if prompts {
            print!("lab> ");
            std::io::stdout().flush()?;
        }
        line.clear();
        if input.read_line(&mut line)? == 0 {
            break;
        }
        let done = match Asked::parse(&line) {
            Ok(Asked::Quit) => break,
            Ok(asked) => runtime.block_on(obey(&lab, &mut machines, asked)),
            Err(message) => Err(message.into()),
        };
        if let Err(error) = done {
            eprintln!("error: {error}");
        }
    }
    machines.clear();
    Ok(runtime.block_on(lab.stop())?)
}

async fn obey(lab: &Lab, machines: &mut BTreeMap<String, Machine>, asked: Asked<'_>) -> Done {
    let known = |name: &str| {
        machines
            .get(name)
            .cloned()
            .ok_or(format!("no machine `{name}`: see `list`"))
    };
    match asked {
        Asked::Start {
            name,
            vlans,
            memory_mib,
        } => {
            let plain = lab.machine(name);
            let plain = vlans
                .into_iter()
                .fold(plain, |machine, vlan| machine.on_vlan(vlan));
            let asked = match memory_mib {
                Some(mib) => plain.memory_mib(mib),
                None => plain,
            };
            let machine = asked.start().await?;
            println!(
                "{name} is ready after {:.2} s",
                machine.ready_after().as_secs_f64()
            );
            machines.insert(name.to_owned(), machine);
        }
        Asked::Run { name, command } => {
            let output = known(name)?.run(command).await?;
            std::io::stdout().write_all(&output.stdout)?;
            std::io::stderr().write_all(&output.stderr)?;
            println!("{}", output.status);
        }
        Asked::Console(name) => println!("{}", known(name)?.console().tail(20)),
        Asked::Reboot(name) => known(name)?.reboot().await?,
        Asked::Kill(name) => known(name)?.kill().await,
        Asked::Stop(name) => known(name)?.stop().await.map_err(|death| death.to_string())?,
        Asked::List => machines.iter().for_each(|(name, machine)| {
            let state = machine
                .death()
                .seen()
                .map_or("runs".to_owned(), |death| death.to_string());
            println!("{name}: {state}");
        }),
        Asked::Help => println!("{HELP}"),
        Asked::Quit | Asked::Nothing => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_thing_to_do() {
        let cases = [
            (
                "start app on mesh on storage memory 512",
                Asked::Start {
                    name: "app",
                    vlans: vec!["mesh", "storage"],
                    memory_mib: Some(512),
                },
            ),
            (
                "run app echo  two  words | wc",
                Asked::Run {
                    name: "app",
                    command: "echo  two  words | wc",
                },
            ),
            (" kill app \n", Asked::Kill("app")),
            ("\n", Asked::Nothing),
            ("quit", Asked::Quit),
        ];
        for (line, asked) in cases {
            assert_eq!(Asked::parse(line), Ok(asked), "{line}");
        }
    }

    #[test]
    fn what_is_not_understood_says_what_is_missing() {
        let cases = [
            ("start", "`start` needs the name of a machine"),
            ("start app memory much", "much is no number of MiB"),
            ("start app on", "`on` needs a value"),
            ("run app", "say which machine, and what to run: run NAME COMMAND"),
            ("reboot", "`reboot` needs the name of a machine"),
            ("jump", "there is no `jump`: see `help`"),
        ];
        for (line, message) in cases {
            assert_eq!(Asked::parse(line), Err(message.to_owned()), "{line}");
        }
    }
}
