//! How much there is: the machine's memory or its cgroup's limit, whichever is less, without a reserve; and its processors.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use super::BudgetError;

/// Overrides the memory that tests may use together, in MiB.
pub const MEMORY_VARIABLE: &str = "PROVISOR_MEMORY";

/// Overrides the number of processors on which machines boot at one time.
pub const CPUS_VARIABLE: &str = "PROVISOR_CPUS";

/// The size of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Memory for guests, in MiB.
    pub memory_mib: u64,
    /// Processors for machines that start.
    pub cpus: u64,
}

impl Size {
    /// What the variables say, and else what fits this machine and the cgroup of this process.
    ///
    /// It depends on limits only, never on what is free just now, so that all processes find the same.
    ///
    /// # Errors
    /// [`BudgetError::Setting`], [`BudgetError::Unmeasured`].
    pub fn of_this_machine() -> Result<Self, BudgetError> {
        let set = |variable| {
            setting(
                variable,
                std::env::var_os(variable).map(|value| value.to_string_lossy().into_owned()),
            )
        };
        let read = |path: &Path| fs::read_to_string(path).ok();
        let memory_mib = match set(MEMORY_VARIABLE)? {
            Some(mib) => mib,
            None => for_guests(limit_bytes(&read).ok_or(BudgetError::Unmeasured)? / MIB),
        };
        let cpus = match set(CPUS_VARIABLE)? {
            Some(cpus) => cpus,
            // It knows of affinity and of the cgroup's quota.
            None => thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
        };
        Ok(Self { memory_mib, cpus })
    }
}

const MIB: u64 = 1 << 20;

fn setting(variable: &'static str, value: Option<String>) -> Result<Option<u64>, BudgetError> {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    match value.parse() {
        Ok(size) if size > 0 => Ok(Some(size)),
        _ => Err(BudgetError::Setting { variable, value }),
    }
}

/// What is left of `limit_mib` for guests. The rest is for the system, the tests themselves and the page cache of their images:
/// 12 %, and 512 MiB at least.
fn for_guests(limit_mib: u64) -> u64 {
    limit_mib.saturating_sub((limit_mib * 12 / 100).max(512))
}

/// The least of the machine's memory and the limits of the process's cgroups and of those above them, in bytes. `read` gives the text
/// of a file.
fn limit_bytes(read: &impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let total = mem_total(&read(Path::new("/proc/meminfo"))?)?;
    let cgroup = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let mountinfo = read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    let limits = limit_files(&cgroup, &mountinfo)
        .into_iter()
        // A root has no such file, and `max` is no number.
        .filter_map(|file| read(&file)?.trim().parse::<u64>().ok());
    limits.chain([total]).min()
}

fn mem_total(meminfo: &str) -> Option<u64> {
    let kib = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB"))?;
    Some(kib.trim().parse::<u64>().ok()? * 1024)
}

/// The two generations of cgroups. A machine may have both mounted; only one of them controls memory, and the other has no such files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Generation {
    V1,
    V2,
}

impl Generation {
    fn limit_file(self) -> &'static str {
        match self {
            Self::V1 => "memory.limit_in_bytes",
            Self::V2 => "memory.max",
        }
    }

    /// Where the process is in this hierarchy, by a line of `/proc/self/cgroup`: `4:memory:/a/b`, `0::/a/b`.
    fn path(self, line: &str) -> Option<&str> {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let found = match self {
            Self::V1 => controllers.split(',').any(|controller| controller == "memory"),
            Self::V2 => number == "0" && controllers.is_empty(),
        };
        found.then_some(path)
    }

    /// The part of the hierarchy that is mounted, and where, by a line of `/proc/self/mountinfo`.
    fn mount(self, line: &str) -> Option<(&str, &str)> {
        let (place, filesystem) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, at) = (place.next()?, place.next()?);
        let mut filesystem = filesystem.split(' ');
        let (kind, options) = (filesystem.next()?, filesystem.nth(1)?);
        let found = match self {
            Self::V1 => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
            Self::V2 => kind == "cgroup2",
        };
        found.then_some((root, at))
    }
}

/// The files that may limit the process: its cgroup's, and those of all above that can be seen.
fn limit_files(cgroup: &str, mountinfo: &str) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for generation in [Generation::V1, Generation::V2] {
        let path = cgroup.lines().find_map(|line| generation.path(line));
        let mount = mountinfo.lines().find_map(|line| generation.mount(line));
        let (Some(path), Some((root, at))) = (path, mount) else {
            continue;
        };
        // In a container the mount shows a part only, and the path may lie outside it: its top limits the process then.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        files.extend(
            below
                .ancestors()
                .map(|folder| Path::new(at).join(folder).join(generation.limit_file())),
        );
    }
    files
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const GIB: u64 = 1 << 30;
    const MEMINFO: &str = "MemTotal:       16777216 kB\nMemFree:         1000000 kB\n";
    const V1_MOUNT: &str = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                            35 31 0:32 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n\
                            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const V2_MOUNT: &str = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    fn limit(cgroup: &str, mountinfo: &str, files: &[(&str, &str)]) -> u64 {
        let proc = [
            ("/proc/meminfo", MEMINFO),
            ("/proc/self/cgroup", cgroup),
            ("/proc/self/mountinfo", mountinfo),
        ];
        let files: BTreeMap<_, _> = proc.into_iter().chain(files.iter().copied()).collect();
        limit_bytes(&|path| files.get(path.to_str()?).map(|&text| text.to_owned())).unwrap()
    }

    #[test]
    fn the_limit_is_the_least_of_the_machine_and_every_cgroup_above() {
        let (v1, v2) = ("5:cpu:/\n4:memory:/ci/job\n0::/\n", "0::/ci.slice/job.scope\n");
        let unlimited = "9223372036854771712\n";
        type Case<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, &'a str)], u64);
        let cases: [Case<'_>; 10] = [
            ("no cgroup", "", "", &[], 16 * GIB),
            (
                "v1, 4 GB",
                v1,
                V1_MOUNT,
                &[
                    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited),
                    ("/sys/fs/cgroup/memory/ci/memory.limit_in_bytes", unlimited),
                    (
                        "/sys/fs/cgroup/memory/ci/job/memory.limit_in_bytes",
                        "4294967296\n",
                    ),
                ],
                4 * GIB,
            ),
            (
                "v1, limited above",
                v1,
                V1_MOUNT,
                &[
                    ("/sys/fs/cgroup/memory/ci/memory.limit_in_bytes", "3221225472\n"),
                    (
                        "/sys/fs/cgroup/memory/ci/job/memory.limit_in_bytes",
                        "4294967296\n",
                    ),
                ],
                3 * GIB,
            ),
            (
                "v1, unlimited",
                v1,
                V1_MOUNT,
                &[("/sys/fs/cgroup/memory/ci/job/memory.limit_in_bytes", unlimited)],
                16 * GIB,
            ),
            (
                "v1, in a container that shows its own part",
                "4:memory:/docker/abc\n",
                "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
                &[("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n")],
                4 * GIB,
            ),
            (
                "v1, in a container that shows another part",
                "4:memory:/elsewhere\n",
                "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
                &[("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n")],
                4 * GIB,
            ),
            (
                "v2, 4 GB",
                v2,
                V2_MOUNT,
                &[
                    ("/sys/fs/cgroup/ci.slice/memory.max", "max\n"),
                    ("/sys/fs/cgroup/ci.slice/job.scope/memory.max", "4294967296\n"),
                ],
                4 * GIB,
            ),
            (
                "v2, limited above",
                v2,
                V2_MOUNT,
                &[
                    ("/sys/fs/cgroup/ci.slice/memory.max", "2147483648\n"),
                    ("/sys/fs/cgroup/ci.slice/job.scope/memory.max", "max\n"),
                ],
                2 * GIB,
            ),
            (
                "v2, unlimited",
                v2,
                V2_MOUNT,
                &[("/sys/fs/cgroup/ci.slice/job.scope/memory.max", "max\n")],
                16 * GIB,
            ),
            (
                "v2, in a namespace of its own",
                "0::/../elsewhere\n",
                V2_MOUNT,
                &[("/sys/fs/cgroup/memory.max", "4294967296\n")],
                4 * GIB,
            ),
        ];
        for (name, cgroup, mountinfo, files, expected) in cases {
            assert_eq!(limit(cgroup, mountinfo, files), expected, "{name}");
        }
    }

    #[test]
    fn a_part_of_the_limit_is_left_to_others() {
        for (limit, guests) in [(4096, 3584), (24105, 21213), (600, 88), (512, 0), (100, 0)] {
            assert_eq!(for_guests(limit), guests);
        }
    }

    #[test]
    fn a_variable_is_a_size_or_an_error_that_names_it() {
        let set = |value: Option<&str>| setting(MEMORY_VARIABLE, value.map(str::to_owned));
        assert_eq!(set(None).unwrap(), None);
        assert_eq!(set(Some("")).unwrap(), None);
        assert_eq!(set(Some("1000")).unwrap(), Some(1000));
        for value in ["0", "-1", "1G", "1.5"] {
            let error = set(Some(value)).unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "PROVISOR_MEMORY=`{value}` is no size: set it to a whole number above 0, or unset it"
                )
            );
        }
    }

    #[test]
    fn this_machine_has_some_memory_and_processors() {
        let read = |path: &Path| fs::read_to_string(path).ok();
        assert!(limit_bytes(&read).unwrap() > 0);
    }
}
