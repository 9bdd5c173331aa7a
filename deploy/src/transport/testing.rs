//! What the transport's tests talk to: a real sshd for what must work, and `fake_host` for what must fail.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::job::{Deadlines, Job, Order};
use crate::entry::HostKey;

/// A real sshd. It is started by each connection on a pipe (`sshd -i`), so it has no port, and nothing is left to stop.
pub(super) struct Sshd {
    directory: TempDir,
}

impl Sshd {
    /// Keys and a configuration, in a folder whose name has what ssh_config must quote.
    pub(super) fn new() -> Sshd {
        let directory = tempfile::Builder::new().prefix("a 100% sshd ").tempdir().unwrap();
        let sshd = Sshd { directory };
        sshd.key("host_key");
        sshd.key("user_key");
        std::fs::copy(sshd.path("user_key.pub"), sshd.path("authorized_keys")).unwrap();
        sshd.configure(&[]);
        // As root, sshd wants the folder that the distribution's unit makes at boot.
        if is_root() {
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        sshd
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Gives the sessions variables.
    pub(super) fn configure(&self, variables: &[(&str, &Path)]) {
        let variables: Vec<String> = variables
            .iter()
            .map(|(name, value)| format!("\"{name}={}\"", value.display()))
            .collect();
        let set = if variables.is_empty() {
            String::new()
        } else {
            format!("SetEnv {}\n", variables.join(" "))
        };
        let text = format!(
            "HostKey \"{}\"\nAuthorizedKeysFile \"{}\"\nStrictModes no\nUsePAM no\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n{set}",
            self.path("host_key").display(),
            self.path("authorized_keys")
                .display()
                .to_string()
                .replace('%', "%%"),
        );
        std::fs::write(self.path("sshd_config"), text).unwrap();
        // One line for each login, so that logins can be counted.
        let wrapper = format!(
            "#!/bin/sh\ncd '{}' || exit\necho login >> logins\nexec /usr/sbin/sshd -i -f sshd_config\n",
            self.directory.path().display()
        );
        executable(&self.path("connect"), &wrapper);
    }

    pub(super) fn logins(&self) -> usize {
        std::fs::read_to_string(self.path("logins")).map_or(0, |text| text.lines().count())
    }

    /// A new key of the host.
    pub(super) fn key(&self, name: &str) {
        let _absent = std::fs::remove_file(self.path(name));
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
            .arg(self.path(name))
            .status()
            .expect("openssh-client is needed");
        assert!(made.success());
    }

    pub(super) fn pinned(&self) -> HostKey {
        HostKey::Pinned(
            std::fs::read_to_string(self.path("host_key.pub"))
                .unwrap()
                .trim()
                .to_owned(),
        )
    }

    /// A job for this host.
    pub(super) fn job(&self) -> Job {
        let mut job = super::job::tests::job(self.directory.path());
        // `%` is doubled since ssh expands it, and the command is read by a shell.
        let connect = self.path("connect").display().to_string().replace('%', "%%");
        job.entry.ssh_options = vec![format!("ProxyCommand='{connect}'")];
        job.entry.user = whoami();
        job.entry.identity = Some(self.path("user_key"));
        job.entry.host_key = self.pinned();
        job
    }
}

/// A host that fails as it is told to: a scripted `ssh` and a Nix that knows one path.
///
/// The answer to the n-th call of a step is the file `<step>-<n>`, or else `<step>`; an answer that does not end in
/// `code=` was cut off.
pub(super) struct FakeHost {
    directory: TempDir,
}

const FAKE_SSH: &str = r#"#!/bin/sh
directory=$(dirname "$0")
case "$*" in *"-O exit"*) echo close >> "$directory/calls"; exit 0 ;; esac
for last; do :; done
case $last in
  *"What the host is"*) step=connect ;;
  *"Which of the store paths"*) step=missing ;;
  *"Writes secret files"*) step=deliver ;;
  *"The system's own check"* | *"The system'\''s own check"*) step=check ;;
  *"Makes the system the one that boots"*) step=profile ;;
  *"Starts the activation"*) step=start ;;
  *"Waits until the activation"*) step=observe ;;
  *"Units must not go on"*) step=finish ;;
esac
echo "$step" >> "$directory/calls"
answer=$step-$(grep -c "^$step\$" "$directory/calls")
[ -f "$directory/$answer" ] || answer=$step
cat "$directory/$answer"
grep -q "^code=" "$directory/$answer" || { echo "client_loop: send disconnect: Broken pipe" >&2; exit 255; }
"#;

impl FakeHost {
    /// A host that does everything well.
    pub(super) fn new() -> FakeHost {
        let host = FakeHost {
            directory: tempfile::tempdir().unwrap(),
        };
        executable(&host.path("ssh"), FAKE_SSH);
        executable(
            &host.path("nix-store"),
            "#!/bin/sh\ncase $2 in --size) echo 1000 ;; *) echo \"$3\" ;; esac\n",
        );
        executable(&host.path("nix"), "#!/bin/sh\nexit 0\n");
        host.answers(
            "connect",
            "boot=b1\ncurrent=/nix/store/old\nnix=yes\nsystemd=yes\ncode=0\n",
        );
        for step in ["missing", "check", "profile", "finish", "deliver"] {
            host.answers(step, "code=0\n");
        }
        host.answers("start", &host.ended(0));
        host.answers("observe", &host.ended(0));
        host
    }

    /// What `step` answers from now on; `step-2` is its second answer.
    pub(super) fn answers(&self, step: &str, text: &str) {
        std::fs::write(self.path(step), text).unwrap();
    }

    /// The answer of a host whose activation ended with a code.
    pub(super) fn ended(&self, code: i32) -> String {
        let active = if code == 0 { "active" } else { "failed" };
        let system = super::job::tests::entry().system;
        format!(
            "boot=b1\nunit:Id=u.service\nunit:LoadState=loaded\nunit:ActiveState={active}\nunit:ExecMainCode=1\n\
             unit:ExecMainStatus={code}\ncurrent={}\ncode=0\n",
            system.display()
        )
    }

    /// The steps that were called, in order.
    pub(super) fn calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    pub(super) fn job(&self) -> Job {
        let mut job = super::job::tests::job(self.directory.path());
        job.ssh = self.path("ssh");
        job.nix = Some(self.directory.path().to_owned());
        job.deadlines = Deadlines {
            step: 60,
            copy: 60,
            activate: 60,
            reconnect: 60,
        };
        job
    }

    pub(super) fn order(&self) -> Order {
        super::job::tests::order(self.directory.path())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

pub(super) fn executable(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What `id` says of the user who runs the tests.
pub(super) fn id(flag: &str) -> String {
    let output = Command::new("id").arg(flag).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn whoami() -> String {
    id("-un")
}

fn is_root() -> bool {
    id("-u") == "0"
}
