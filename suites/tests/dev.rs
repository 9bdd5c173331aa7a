//! `./dev` on a machine that lacks something: a PATH of real tools and of fakes, and a home folder of its own.

use std::error::Error;
use std::ffi::OsString;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use provisor_suites::workspace_root;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// The real programs that `dev` calls.
const TOOLS: [&str; 18] = [
    "bash",
    "chmod",
    "curl",
    "cut",
    "dirname",
    "env",
    "grep",
    "mkdir",
    "mktemp",
    "mv",
    "rm",
    "rmdir",
    "sed",
    "sh",
    "sha256sum",
    "uname",
    "unzip",
    "wc",
];
/// The fakes of every machine, by the name `dev` knows them by.
const FAKES: [&str; 4] = ["apt-get", "cargo", "dpkg-query", "id"];

/// fake_tofu.zip, which takes the place of the pinned release.
const ZIP: &str = "fake_tofu.zip";
const ZIP_SIZE: usize = 237;
const ZIP_SHA256: &str = "dc11643308723f94a687ea415de367146b1188466e07a8519b9b77d5070c5293";

struct Machine {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, OsString)>,
}

impl Machine {
    /// Nothing is missing but OpenTofu and Terraform; a plain user; `dev` pins fake_tofu.zip.
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["bin", "checkout/.config", "checkout/suites", "home"] {
            fs::create_dir_all(folder.path().join(name))?;
        }
        let machine = Self {
            folder,
            variables: Vec::new(),
        };
        for tool in TOOLS {
            symlink(real(tool)?, machine.path("bin").join(tool))?;
        }
        for fake in FAKES {
            machine.install(fake, &format!("fake_{fake}"))?;
        }
        let root = workspace_root();
        for file in [".config/nextest.toml", "suites/suites.toml"] {
            fs::copy(root.join(file), machine.path("checkout").join(file))?;
        }
        fs::write(
            machine.path("checkout/dev"),
            fs::read_to_string(root.join("dev"))?,
        )?;
        machine.pin("tofu_size", &ZIP_SIZE.to_string())?;
        machine.pin("tofu_sha256", ZIP_SHA256)?;
        Ok(machine
            .with("PROVISOR_TOFU_URL", format!("file://{}", fakes(ZIP).display()))
            .with("FAKE_UID", "1000"))
    }

    fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Puts the fake on PATH under `name`.
    fn install(&self, name: &str, fake: &str) -> Result {
        Ok(symlink(fakes(fake), self.path("bin").join(name))?)
    }

    /// Gives one constant of `dev` another value.
    fn pin(&self, name: &str, value: &str) -> Result {
        let script = self.path("checkout/dev");
        let old = fs::read_to_string(&script)?;
        let pin = format!("readonly {name}=");
        let lines = old.lines().map(|line| match line.strip_prefix(&pin) {
            Some(_) => format!("{pin}{value}\n"),
            None => format!("{line}\n"),
        });
        let new: String = lines.collect();
        assert!(new.contains(&format!("{pin}{value}\n")), "dev has a line {pin}");
        Ok(fs::write(script, new)?)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("bin/bash"));
        command.arg(self.path("checkout/dev")).args(arguments).env_clear();
        command
            .env("PATH", self.path("bin"))
            .env("HOME", self.path("home"));
        command
            .env("FAKE_LOG", self.path("log"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    fn dev(&self, arguments: &[&str]) -> Result<Run> {
        Ok(Run::of(&self.command(arguments).output()?))
    }

    /// What was asked of apt-get and cargo.
    fn log(&self) -> Result<Vec<String>> {
        let path = self.path("log");
        let text = if path.exists() {
            fs::read_to_string(path)?
        } else {
            String::new()
        };
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// All there is in the home folder, folders too.
    fn home(&self) -> Result<Vec<String>> {
        fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    walk(&path, found)?;
                }
                found.push(path);
            }
            Ok(())
        }
        let home = self.path("home");
        let mut found = Vec::new();
        walk(&home, &mut found)?;
        found.sort();
        Ok(found
            .iter()
            .map(|path| path.strip_prefix(&home).expect("below").display().to_string())
            .collect())
    }

    /// Nothing of a fetch is left.
    fn assert_no_fetch_left(&self) -> Result {
        let home = self.home()?;
        assert!(home.iter().all(|path| path == ".cache"), "{home:?}");
        Ok(())
    }
}

struct Run {
    code: Option<i32>,
    stderr: String,
}

impl Run {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    fn assert_done(&self) {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
    }

    /// It stopped with one error, which says all of `texts`.
    #[track_caller]
    fn assert_refused(&self, texts: &[&str]) {
        assert_eq!(self.code, Some(1), "{}", self.stderr);
        assert_eq!(self.stderr.matches("error: ").count(), 1, "{}", self.stderr);
        for text in texts {
            assert!(self.stderr.contains(text), "no `{text}` in: {}", self.stderr);
        }
    }
}

fn fakes(name: &str) -> PathBuf {
    workspace_root().join("suites/tests/fakes").join(name)
}

fn real(tool: &str) -> Result<PathBuf> {
    let path = env::var_os("PATH").ok_or("no PATH")?;
    let found = env::split_paths(&path)
        .map(|folder| folder.join(tool))
        .find(|path| path.is_file());
    Ok(found.ok_or(format!("{tool} is not on PATH; run ./dev setup"))?)
}

// --- OpenTofu ---

#[test]
fn the_pinned_opentofu_is_fetched_once_and_is_the_one_on_path() -> Result {
    let machine = Machine::new()?;
    machine.dev(&["test"])?.assert_done();
    let tofu = ".cache/provisor/opentofu/1.10.6/tofu";
    let on_path = fs::read_to_string(machine.path("log.tofu"))?;
    assert_eq!(Path::new(on_path.trim_end()), machine.path("home").join(tofu));
    assert_eq!(
        machine.home()?,
        [
            ".cache",
            ".cache/provisor",
            ".cache/provisor/opentofu",
            ".cache/provisor/opentofu/1.10.6",
            tofu
        ]
    );
    assert_eq!(
        fs::metadata(machine.path("home").join(tofu))?
            .permissions()
            .mode()
            & 0o777,
        0o755
    );

    let again = machine.with("PROVISOR_TOFU_URL", "file:///nowhere");
    again.dev(&["setup"])?.assert_done();
    Ok(())
}

#[test]
fn the_cache_is_where_provisor_cache_says() -> Result {
    let machine = Machine::new()?;
    let cache = machine.path("elsewhere");
    let machine = machine.with("PROVISOR_CACHE", &cache);
    machine.dev(&["setup"])?.assert_done();
    assert!(cache.join("opentofu/1.10.6/tofu").is_file());
    assert_eq!(machine.home()?, [""; 0]);
    Ok(())
}

#[test]
fn opentofu_or_terraform_on_path_is_taken_as_it_is() -> Result {
    for program in ["tofu", "terraform"] {
        let machine = Machine::new()?.with("PROVISOR_TOFU_URL", "file:///nowhere");
        machine.install(program, "fake_program")?;
        machine.dev(&["setup"])?.assert_done();
        assert_eq!(machine.home()?, [""; 0], "{program}");
    }
    Ok(())
}

#[test]
fn a_release_of_another_size_is_refused_and_leaves_nothing() -> Result {
    let machine = Machine::new()?;
    machine.pin("tofu_size", "26721174")?;
    let actual = format!("it has {ZIP_SIZE} bytes, not 26721174");
    machine
        .dev(&["setup"])?
        .assert_refused(&[&actual, "PROVISOR_TOFU_URL", ZIP]);
    machine.assert_no_fetch_left()
}

#[test]
fn a_release_of_another_hash_is_refused_and_leaves_nothing() -> Result {
    let machine = Machine::new()?;
    let pinned = "15b7bed76420b50da3e121769c43341df8cd57d751ca14e6dbe9c850124c6dac";
    machine.pin("tofu_sha256", pinned)?;
    let actual = format!("its SHA-256 is {ZIP_SHA256}, not {pinned}");
    machine
        .dev(&["setup"])?
        .assert_refused(&[&actual, "PROVISOR_TOFU_URL"]);
    machine.assert_no_fetch_left()
}

#[test]
fn an_address_that_cannot_be_reached_is_refused_with_what_to_do_and_leaves_nothing() -> Result {
    let server = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/tofu.zip", server.local_addr()?);
    // Every connection is closed before an answer.
    std::thread::spawn(move || server.incoming().for_each(drop));
    let machine = Machine::new()?.with("PROVISOR_TOFU_URL", &url);
    machine
        .dev(&["setup"])?
        .assert_refused(&[&url, "install OpenTofu", "Terraform", "PROVISOR_TOFU_URL"]);
    machine.assert_no_fetch_left()
}

#[test]
fn a_fetch_that_is_interrupted_leaves_nothing() -> Result {
    let server = TcpListener::bind("127.0.0.1:0")?;
    let address = server.local_addr()?;
    let machine = Machine::new()?.with("PROVISOR_TOFU_URL", format!("http://{address}/tofu.zip"));
    let mut child = machine
        .command(&["setup"])
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let mut stderr = child.stderr.take().ok_or("a pipe")?;
    // Where it ends without having connected, this connects in its place, and the test ends too.
    let watcher = std::thread::spawn(move || {
        let mut text = String::new();
        stderr
            .read_to_string(&mut text)
            .and_then(|_| TcpStream::connect(address))
            .map(|_| text)
    });

    // The request has come in, so the fetch is under way; it gets no answer.
    let (mut connection, _) = server.accept()?;
    let asked = connection.read_exact(&mut [0]);
    let ctrl_c = format!("kill -INT -- -{}", child.id());
    let sent = Command::new("bash").args(["-c", &ctrl_c]).output()?;

    let code = child.wait()?.code();
    let stderr = watcher.join().expect("read")?;
    assert!(
        asked.is_ok() && sent.status.success(),
        "it ended by itself: {stderr}"
    );
    assert_eq!(code, Some(130), "{stderr}");
    machine.assert_no_fetch_left()
}

// --- Debian packages and cargo-nextest ---

#[test]
fn without_root_missing_packages_are_one_command_for_a_person() -> Result {
    let machine = Machine::new()?.with("FAKE_MISSING", "qemu-system-x86 nix-bin");
    let command = |root: &str| {
        format!(
            "    {root}'apt-get update && apt-get install -y --no-install-recommends nix-bin qemu-system-x86'\n"
        )
    };
    machine
        .dev(&["test"])?
        .assert_refused(&["nix-bin qemu-system-x86", &command("su -c ")]);
    machine.install("sudo", "fake_program")?;
    machine.dev(&["demo"])?.assert_refused(&[&command("sudo sh -c ")]);
    assert_eq!(machine.log()?, [""; 0]);
    Ok(())
}

#[test]
fn with_root_the_missing_packages_and_no_others_are_installed() -> Result {
    let machine = Machine::new()?
        .with("FAKE_MISSING", "qemu-system-x86 nix-bin")
        .with("FAKE_UID", "0");
    machine.dev(&["setup"])?.assert_done();
    let log = machine.log()?;
    assert_eq!(log.len(), 2, "{log:?}");
    assert!(log[0].ends_with(" update"), "{log:?}");
    assert!(
        log[1].ends_with(" install -y --no-install-recommends nix-bin qemu-system-x86"),
        "{log:?}"
    );
    Ok(())
}

#[test]
fn a_machine_that_has_everything_is_left_alone() -> Result {
    let machine = Machine::new()?;
    machine.install("tofu", "fake_program")?;
    machine.dev(&["setup"])?.assert_done();
    assert_eq!(machine.log()?, [""; 0]);
    Ok(())
}

#[test]
fn cargo_nextest_is_installed_in_a_pinned_version_where_it_is_absent() -> Result {
    let machine = Machine::new()?.with("FAKE_NEXTEST", "absent");
    machine.dev(&["setup"])?.assert_done();
    assert_eq!(
        machine.log()?,
        ["cargo install --locked cargo-nextest --version 0.9.143"]
    );
    Ok(())
}

// --- what the commands end in ---

#[test]
fn test_ends_in_nextest_over_the_workspace() -> Result {
    let machine = Machine::new()?;
    machine.dev(&["test", "--no-capture", "a name"])?.assert_done();
    assert_eq!(
        machine.log()?,
        ["cargo nextest run --workspace --no-capture a name"]
    );
    Ok(())
}

#[test]
fn suite_ends_in_the_profile_of_that_name() -> Result {
    let machine = Machine::new()?;
    machine
        .dev(&["suite", "vm-tf-bootstrap", "--no-capture"])?
        .assert_done();
    assert_eq!(
        machine.log()?,
        ["cargo nextest run --workspace -P vm-tf-bootstrap --no-capture"]
    );
    Ok(())
}

#[test]
fn a_suite_that_is_not_in_the_list_is_refused_before_anything_is_set_up() -> Result {
    let machine = Machine::new()?
        .with("FAKE_MISSING", "nix-bin")
        .with("FAKE_UID", "0");
    machine
        .dev(&["suite", "vm-tf"])?
        .assert_refused(&["no suite `vm-tf`", "    vm-tf-bootstrap\n"]);
    assert_eq!(machine.log()?, [""; 0]);
    Ok(())
}

#[test]
fn demo_ends_in_the_demo_program() -> Result {
    let machine = Machine::new()?;
    machine.dev(&["demo", "--keep"])?.assert_done();
    let log = machine.log()?;
    assert_eq!(
        log.last().map(String::as_str),
        Some("cargo run -q -p provisor-vmtests --bin demo -- --keep")
    );
    Ok(())
}

#[test]
fn vms_off_leaves_the_vm_tests_out_and_says_how_many() -> Result {
    let machine = Machine::new()?.with("PROVISOR_VMS", "off");
    let run = machine.dev(&["test", "-P", "ci"])?;
    run.assert_done();
    assert!(run.stderr.contains("3 VM tests are left out"), "{}", run.stderr);
    assert_eq!(
        machine.log()?.last().map(String::as_str),
        Some("cargo nextest run --workspace --config-file .config/nextest-without-vms.toml -P ci")
    );
    let other = Machine::new()?.with("PROVISOR_VMS", "no");
    other
        .dev(&["test"])?
        .assert_refused(&["PROVISOR_VMS is `no`", "on or off"]);
    Ok(())
}
