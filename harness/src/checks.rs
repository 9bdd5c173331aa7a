//! What no guest may do unnoticed: its console and its journal are searched at the end of every lab.
//!
//! The search costs a guest nothing, since both are files on the host. What a test means to happen it allows, with a reason:
//! [`Lab::allow`](crate::Lab::allow).

use std::collections::BTreeMap;
use std::fmt;

/// A kind of trouble that fails a test, whatever the test itself says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// The kernel panicked.
    Panic,
    /// The kernel found an error of its own, and went on.
    Oops,
    /// A processor or a task made no progress for a long time.
    Lockup,
    /// The kernel killed a process for want of memory.
    OutOfMemory,
    /// The boot ended in the emergency or rescue shell.
    Emergency,
    /// A program crashed.
    Coredump,
    /// A unit failed, and nobody started it again.
    FailedUnit,
}

/// One trouble of one guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The guest.
    pub machine: String,
    /// What kind.
    pub trouble: Trouble,
    /// The line that tells, or the name of the unit that failed.
    pub line: String,
}

/// Trouble that a test means to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// What kind.
    pub trouble: Trouble,
    /// What its line has in it: the name of a unit, of a program.
    pub text: String,
    /// Why the test means it.
    pub reason: String,
}

/// What a line of the console, or one the kernel wrote to the journal, must not have in it.
const ON_CONSOLE: [(Trouble, &[&str]); 6] = [
    (Trouble::Panic, &["Kernel panic - not syncing"]),
    (
        Trouble::Oops,
        &[
            "Oops: ",
            "kernel BUG at ",
            "BUG: unable to handle",
            "BUG: kernel NULL pointer",
            "general protection fault:",
            "BUG: scheduling while atomic",
        ],
    ),
    (
        Trouble::Lockup,
        &["BUG: soft lockup", "hard LOCKUP", "blocked for more than"],
    ),
    (
        Trouble::OutOfMemory,
        &["Out of memory: Killed process", "Memory cgroup out of memory"],
    ),
    (
        Trouble::Emergency,
        &[
            "You are in emergency mode",
            "You are in rescue mode",
            "emergency.target - Emergency Mode",
        ],
    ),
    (Trouble::Coredump, &[": segfault at ", "traps: "]),
];

/// The trouble that `console` and `journal` of `machine` show, in the order of its kinds. Text that merely looks like it, because a
/// program printed it, counts too: a test says so with an allowance.
pub fn findings(machine: &str, console: &str, journal: &str) -> Vec<Finding> {
    let finding = |trouble, line: &str| Finding {
        machine: machine.to_owned(),
        trouble,
        line: line.trim().to_owned(),
    };
    let on_console = ON_CONSOLE.iter().flat_map(|(trouble, texts)| {
        console
            .lines()
            .filter(|line| texts.iter().any(|text| line.contains(text)))
            .map(|line| finding(*trouble, line))
    });
    let dumped = journal
        .lines()
        .filter(|line| of_systemd(line).is_some_and(|said| said.contains("code=dumped")))
        .map(|line| finding(Trouble::Coredump, line));
    let emergency = journal
        .lines()
        .filter(|line| {
            of_systemd(line).is_some_and(|said| said.starts_with("Reached target emergency.target"))
        })
        .map(|line| finding(Trouble::Emergency, line));
    let failed = failed_units(journal);
    let failed = failed
        .iter()
        .map(|(unit, result)| finding(Trouble::FailedUnit, &format!("{unit}: {result}")));
    let mut found: Vec<_> = on_console.chain(dumped).chain(emergency).chain(failed).collect();
    found.sort_by_key(|finding| finding.trouble);
    found
}

/// Those of `findings` that no allowance covers.
pub fn not_allowed(findings: Vec<Finding>, allowed: &[Allowance]) -> Vec<Finding> {
    let covered = |finding: &Finding| {
        allowed
            .iter()
            .any(|allowance| allowance.trouble == finding.trouble && finding.line.contains(&allowance.text))
    };
    findings.into_iter().filter(|finding| !covered(finding)).collect()
}

/// The units that failed last, with systemd's word for how. One that was started again, by whomever, has not.
fn failed_units(journal: &str) -> BTreeMap<&str, &str> {
    let mut failed = BTreeMap::new();
    for said in journal.lines().filter_map(of_systemd) {
        if let Some((unit, result)) = said.split_once(": Failed with result '") {
            failed.insert(unit, result.trim_end_matches(['.', '\'']));
        } else if let Some(unit) = started(said) {
            failed.remove(unit);
        }
    }
    failed
}

/// What systemd itself said, in a line such as `[    3.141592] systemd[1]: Started ssh.service - OpenBSD server.`
fn of_systemd(line: &str) -> Option<&str> {
    let (before, said) = line.split_once("systemd[1]: ")?;
    let clock = before.trim();
    (clock.is_empty() || clock.starts_with('[') && clock.ends_with(']')).then_some(said.trim_end())
}

/// The unit that comes up, in what systemd says of that.
fn started(said: &str) -> Option<&str> {
    let (verb, rest) = said.split_once(' ')?;
    match verb {
        "Starting" | "Started" | "Finished" => Some(rest.split_once(" - ")?.0),
        _ => said.split_once(": Scheduled restart job").map(|(unit, _)| unit),
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Panic => "kernel panic",
            Self::Oops => "kernel error",
            Self::Lockup => "lockup",
            Self::OutOfMemory => "out of memory",
            Self::Emergency => "emergency shell",
            Self::Coredump => "crashed program",
            Self::FailedUnit => "failed unit",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`: {}: {}", self.machine, self.trouble, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(console: &str, journal: &str) -> Vec<(Trouble, String)> {
        findings("app", console, journal)
            .into_iter()
            .map(|finding| (finding.trouble, finding.line))
            .collect()
    }

    #[test]
    fn each_kind_of_trouble_is_seen_on_the_console() {
        let cases = [
            (
                Trouble::Panic,
                "[    9.1] Kernel panic - not syncing: sysrq triggered crash",
            ),
            (Trouble::Oops, "[    9.1] Oops: 0002 [#1] PREEMPT SMP NOPTI"),
            (
                Trouble::Oops,
                "[    9.1] BUG: unable to handle page fault for address: 0000000000001000",
            ),
            (Trouble::Oops, "[    9.1] kernel BUG at mm/slub.c:4133!"),
            (
                Trouble::Lockup,
                "[   61.0] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [sh:211]",
            ),
            (
                Trouble::Lockup,
                "[  242.0] INFO: task cat:112 blocked for more than 120 seconds.",
            ),
            (
                Trouble::OutOfMemory,
                "[   12.0] Out of memory: Killed process 233 (tail) total-vm:262144kB",
            ),
            (
                Trouble::OutOfMemory,
                "[   12.0] Memory cgroup out of memory: Killed process 233 (tail)",
            ),
            (
                Trouble::Emergency,
                "You are in emergency mode. After logging in, type",
            ),
            (
                Trouble::Coredump,
                "[   30.1] crash[301]: segfault at 0 ip 000055d0 sp 00007ffc error 6 in crash",
            ),
        ];
        for (trouble, line) in cases {
            let console = format!("[    1.0] before\n{line}\n[   99.0] after\n");
            assert_eq!(kinds(&console, ""), [(trouble, line.to_owned())], "{line}");
        }
    }

    const JOURNAL: &str = "\
[    3.100000] systemd[1]: Starting web.service - A server...
[    3.200000] systemd[1]: web.service: Main process exited, code=exited, status=1/FAILURE
[    3.300000] systemd[1]: web.service: Failed with result 'exit-code'.
[    3.400000] systemd[1]: Failed to start web.service - A server.
";

    #[test]
    fn a_unit_that_failed_is_trouble_until_it_is_started_again() {
        let failed = vec![(Trouble::FailedUnit, "web.service: exit-code".to_owned())];
        assert_eq!(kinds("", JOURNAL), failed);

        for again in [
            "[    4.0] systemd[1]: Started web.service - A server.",
            "[    4.0] systemd[1]: Starting web.service - A server...",
            "[    4.0] systemd[1]: web.service: Scheduled restart job, restart counter is at 1.",
        ] {
            assert_eq!(kinds("", &format!("{JOURNAL}{again}\n")), [], "{again}");
            assert_eq!(
                kinds("", &format!("{JOURNAL}{again}\n{JOURNAL}")),
                failed,
                "{again}"
            );
        }
    }

    #[test]
    fn another_unit_s_start_does_not_excuse_it() {
        let journal = format!("{JOURNAL}[    4.0] systemd[1]: Started web.socket - Its socket.\n");
        assert_eq!(kinds("", &journal).len(), 1);
    }

    #[test]
    fn only_systemd_says_that_a_unit_failed() {
        let journal =
            "[    3.0] app[212]: I read: systemd[1]: web.service: Failed with result 'exit-code'.\n";
        assert_eq!(kinds("", journal), []);
    }

    #[test]
    fn a_program_that_dumped_its_core_is_trouble_beside_its_unit() {
        let journal = "\
[    3.2] systemd[1]: web.service: Main process exited, code=dumped, status=11/SEGV
[    3.3] systemd[1]: web.service: Failed with result 'core-dump'.
";
        let found: Vec<_> = kinds("", journal)
            .into_iter()
            .map(|(trouble, _)| trouble)
            .collect();
        assert_eq!(found, [Trouble::Coredump, Trouble::FailedUnit]);
    }

    #[test]
    fn a_quiet_guest_has_no_trouble() {
        let console = "[    0.0] Linux version 6.1\n[    2.0] systemd[1]: Failed to find module 'autofs4'\n";
        assert_eq!(
            kinds(console, "[    3.0] systemd[1]: Reached target basic.target.\n"),
            []
        );
    }

    #[test]
    fn an_allowance_covers_its_kind_and_its_text_and_nothing_else() {
        let allow = |trouble, text: &str| Allowance {
            trouble,
            text: text.to_owned(),
            reason: "the test breaks it".to_owned(),
        };
        let found = || findings("app", "", JOURNAL);
        let cases = [
            (allow(Trouble::FailedUnit, "web.service"), 0),
            (allow(Trouble::FailedUnit, "other.service"), 1),
            (allow(Trouble::Coredump, "web.service"), 1),
        ];
        for (allowance, left) in cases {
            assert_eq!(
                not_allowed(found(), std::slice::from_ref(&allowance)).len(),
                left,
                "{allowance:?}"
            );
        }
    }
}
