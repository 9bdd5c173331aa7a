//! The processes of one command, found again so that they can be killed together.
//!
//! With cgroup v2 each command lives in a cgroup of its own, and the kernel kills it whole. Without, its
//! processes are those that descend from it, those of its session, and those that inherited [`MARKER`]; only
//! one that left the session, lost its parent and replaced its environment is missed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::sys;

/// The variable that each command and all its descendants have in their environment.
pub(crate) const MARKER: &str = "PROVISOR_COMMAND";

/// Killed processes are gone within a few milliseconds, unless one hangs in the kernel. It must not take the agent
/// with it.
const KILL_LIMIT: Duration = Duration::from_secs(2);
const KILL_STEP: Duration = Duration::from_millis(2);

/// Where cgroups for commands are made, if anywhere.
pub(crate) enum Cgroups {
    /// Under the agent's own cgroup.
    Under(PathBuf),
    /// No writable cgroup v2 with `cgroup.kill` (Linux 5.14) here.
    Unavailable,
}

impl Cgroups {
    /// Finds out by making one. Removes what agents that were killed have left.
    pub(crate) fn probe() -> Self {
        let Some(own) = own_cgroup() else {
            return Self::Unavailable;
        };
        sweep(&own);
        let probe = own.join(format!("provisor-{}-probe", std::process::id()));
        let usable = fs::create_dir(&probe).is_ok() && probe.join("cgroup.kill").exists();
        if fs::remove_dir(&probe).is_ok() && usable {
            Self::Under(own)
        } else {
            Self::Unavailable
        }
    }

    /// A new cgroup, and the file through which a process enters it.
    pub(crate) fn create(&self, serial: u64) -> Option<(PathBuf, File)> {
        let Self::Under(own) = self else { return None };
        let path = own.join(format!("provisor-{}-{serial}", std::process::id()));
        fs::create_dir(&path).ok()?;
        match OpenOptions::new().write(true).open(path.join("cgroup.procs")) {
            Ok(procs) => Some((path, procs)),
            Err(_) => {
                let _ = fs::remove_dir(&path);
                None
            }
        }
    }
}

/// Only the empty ones go; the kernel refuses the others.
fn sweep(own: &Path) {
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let agent = name
            .to_str()
            .and_then(|name| name.strip_prefix("provisor-")?.split('-').next());
        if agent.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The folder of this process's cgroup, by the two files that describe it.
fn own_cgroup() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    cgroup_folder(&mounts, &own)
}

fn cgroup_folder(mountinfo: &str, cgroup: &str) -> Option<PathBuf> {
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (root, mounted_at) = mountinfo.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        kind.starts_with("cgroup2 ")
            .then_some((fields.next()?, fields.next()?))
    })?;
    let below = Path::new(own).strip_prefix(root).ok()?;
    Some(Path::new(mounted_at).join(below))
}

/// One command's processes.
pub(crate) struct Tree {
    /// The process that was started; it must not be reaped while the tree may be killed, so that its number
    /// stays its own.
    pub(crate) leader: u32,
    /// The value of [`MARKER`].
    pub(crate) marker: String,
    /// The command's cgroup.
    pub(crate) cgroup: Option<PathBuf>,
}

impl Tree {
    /// Kills all and returns when they are gone.
    pub(crate) fn kill(&self) {
        let limit = Instant::now() + KILL_LIMIT;
        while self.kill_once() && Instant::now() < limit {
            thread::sleep(KILL_STEP);
        }
    }

    /// Removes what the kernel keeps of the tree. False while something still lives in it.
    pub(crate) fn forget(&self) -> bool {
        self.cgroup
            .as_ref()
            .is_none_or(|cgroup| fs::remove_dir(cgroup).is_ok())
    }

    /// Sends the signal to all there are. False when there are none.
    fn kill_once(&self) -> bool {
        match &self.cgroup {
            Some(cgroup) => {
                let events = fs::read_to_string(cgroup.join("cgroup.events")).unwrap_or_default();
                let populated = events.lines().any(|line| line == "populated 1");
                if populated {
                    // A failed write leaves the cgroup populated, and the next turn tries again.
                    let _ = fs::write(cgroup.join("cgroup.kill"), "1");
                }
                populated
            }
            None => {
                let members = members(&processes(), self.leader, |pid| carries_marker(pid, &self.marker));
                members
                    .iter()
                    .for_each(|pid| sys::signal(*pid as i32, sys::SIGKILL));
                !members.is_empty()
            }
        }
    }
}

/// A line of the process table.
#[derive(Clone, Copy)]
pub(crate) struct Process {
    pub(crate) parent: u32,
    session: u32,
    alive: bool,
}

/// The process table. Whoever ends while it is read is left out.
pub(crate) fn processes() -> BTreeMap<u32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parse_stat(&stat)?))
        })
        .collect()
}

/// The name stands in brackets and may itself hold brackets and blanks: the fields follow the last one.
fn parse_stat(stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let alive = !matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some(Process {
        parent,
        session,
        alive,
    })
}

/// The living processes that belong to the command of `leader`.
fn members(
    processes: &BTreeMap<u32, Process>,
    leader: u32,
    carries_marker: impl Fn(u32) -> bool,
) -> BTreeSet<u32> {
    let mut members = descendants(processes, leader);
    members.insert(leader);
    members.extend(
        processes
            .iter()
            .filter(|(_, process)| process.session == leader)
            .map(|(pid, _)| *pid),
    );
    members.extend(processes.keys().filter(|pid| carries_marker(**pid)));
    members.retain(|pid| processes.get(pid).is_some_and(|process| process.alive));
    members
}

/// The processes below `ancestor`, zombies too.
pub(crate) fn descendants(processes: &BTreeMap<u32, Process>, ancestor: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut generation = vec![ancestor];
    while !generation.is_empty() {
        let children = processes
            .iter()
            .filter(|(_, process)| generation.contains(&process.parent));
        generation = children
            .map(|(pid, _)| *pid)
            .filter(|pid| found.insert(*pid))
            .collect();
    }
    found
}

fn carries_marker(pid: u32, marker: &str) -> bool {
    let entry = format!("{MARKER}={marker}");
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
        environment
            .split(|byte| *byte == 0)
            .any(|line| line == entry.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroup_is_found_below_where_cgroup2_is_mounted() {
        let unified = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let hybrid = "41 32 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
        let legacy = "33 32 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu";
        let container = "41 32 0:37 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let cases = [
            (
                unified,
                "0::/system.slice/agent.service\n",
                Some("/sys/fs/cgroup/system.slice/agent.service"),
            ),
            (hybrid, "1:cpu:/x\n0::/a\n", Some("/sys/fs/cgroup/unified/a")),
            (container, "0::/box/inner\n", Some("/sys/fs/cgroup/inner")),
            (container, "0::/elsewhere\n", None),
            (legacy, "1:cpu:/x\n", None),
            (legacy, "0::/\n", None),
        ];
        for (mountinfo, cgroup, expected) in cases {
            assert_eq!(
                cgroup_folder(mountinfo, cgroup),
                expected.map(PathBuf::from),
                "{mountinfo}"
            );
        }
    }

    #[test]
    fn a_process_name_may_hold_brackets_and_blanks() {
        let process = parse_stat("42 (a) b (c) S 7 42 40 0 -1 4194560").unwrap();
        assert_eq!((process.parent, process.session, process.alive), (7, 40, true));
        assert!(!parse_stat("42 (x) Z 7 42 40 0").unwrap().alive);
    }

    #[test]
    fn descent_session_and_marker_each_make_a_member() {
        let process = |parent, session| Process {
            parent,
            session,
            alive: true,
        };
        let table = BTreeMap::from([
            (10, process(1, 10)),
            (11, process(10, 10)),
            (12, process(11, 12)),
            (13, process(1, 10)),
            (14, process(1, 14)),
            (
                15,
                Process {
                    alive: false,
                    ..process(10, 10)
                },
            ),
            (20, process(1, 20)),
        ]);
        assert_eq!(
            members(&table, 10, |pid| pid == 14),
            BTreeSet::from([10, 11, 12, 13, 14])
        );
    }
}
