use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use provisor_model::node_plan::{GrantFile, GrantPart};

use super::super::testing::{Sshd, executable, id};
use super::super::*;
use crate::entry::HostKey;
use crate::grants::at_rest::{Made, Record, Secret, Shelf};
use crate::transport::job::Delivery;

const MINUTE: Duration = Duration::from_secs(60);

fn run(host: &Host, script: &str, words: &[&str], stdin: &str) -> Result<Answer, HostError> {
    host.run(script, words, stdin.as_bytes(), MINUTE)
}

#[test]
fn a_script_gets_its_words_and_its_stdin_and_its_code_comes_back() {
    let sshd = Sshd::new();
    let host = Host::new(&sshd.job()).unwrap();
    let answer = run(
        &host,
        r#"echo "word=$1"; echo "input=$(cat)"; echo oops >&2; exit 255"#,
        &["it's a"],
        "text",
    );
    let answer = answer.unwrap();
    assert_eq!(
        (answer.value("word"), answer.value("input")),
        (Some("it's a"), Some("text"))
    );
    assert_eq!((answer.code, answer.stderr.trim()), (255, "oops"));
}

#[test]
fn a_connection_cut_in_mid_script_is_lost_and_the_next_one_works() {
    let sshd = Sshd::new();
    let host = Host::new(&sshd.job()).unwrap();
    let cut = run(&host, "echo begun=yes; kill -9 $PPID; sleep 60", &[], "");
    assert!(matches!(cut, Err(HostError::Lost { .. })), "{cut:?}");
    assert_eq!(
        run(&host, "echo back=yes", &[], "").unwrap().value("back"),
        Some("yes")
    );
}

#[test]
fn the_commands_of_a_job_share_one_login_and_nothing_is_left_of_it() {
    let sshd = Sshd::new();
    let host = Host::new(&sshd.job()).unwrap();
    for _ in 0..3 {
        run(&host, "true", &[], "").unwrap();
    }
    assert_eq!(sshd.logins(), 1);
    let control = host.control_path();
    assert!(control.exists());
    drop(host);
    assert!(!control.exists() && !control.parent().unwrap().exists());
}

#[test]
fn a_host_with_another_key_than_the_pinned_one_is_refused() {
    let sshd = Sshd::new();
    let job = sshd.job();
    sshd.key("host_key");
    let error = run(&Host::new(&job).unwrap(), "true", &[], "").unwrap_err();
    assert!(
        matches!(&error, HostError::Lost { advice, .. } if advice.contains("host_key")),
        "{error}"
    );
}

#[test]
fn a_key_trusted_on_first_use_is_kept_and_compared_from_then_on() {
    let sshd = Sshd::new();
    let mut job = sshd.job();
    job.entry.host_key = HostKey::TrustOnFirstUse;
    run(&Host::new(&job).unwrap(), "true", &[], "").unwrap();
    assert!(
        std::fs::read_to_string(&job.known_hosts)
            .unwrap()
            .contains("forge ssh-ed25519")
    );
    run(&Host::new(&job).unwrap(), "true", &[], "").unwrap();
    sshd.key("host_key");
    let error = run(&Host::new(&job).unwrap(), "true", &[], "").unwrap_err();
    assert!(
        matches!(&error, HostError::Lost { advice, .. } if advice.contains("known_hosts")),
        "{error}"
    );
}

#[test]
fn a_refused_login_says_what_to_check() {
    let sshd = Sshd::new();
    let job = sshd.job();
    sshd.key("user_key");
    let error = run(&Host::new(&job).unwrap(), "true", &[], "").unwrap_err();
    assert!(
        matches!(&error, HostError::Lost { advice, .. } if advice.contains("accepts your key")),
        "{error}"
    );
}

/// A grant at rest with a key and a chain, and where they go.
fn delivery(sshd: &Sshd, key: &str, chain: &str) -> Delivery {
    let shelf = Shelf::at(&sshd.path("grants"));
    let record = Record {
        generation: 1,
        made: Made::BackendUsers,
        parts: BTreeMap::from([
            (GrantPart::PrivateKey, Secret::new(key.into())),
            (GrantPart::CertificateChain, Secret::new(chain.into())),
        ]),
    };
    shelf.keep("grant", &record).unwrap();
    let file = |part, name: &str, mode: &str| GrantFile {
        part,
        path: sshd.path("delivered").join(name).display().to_string(),
        owner: id("-un"),
        group: id("-gn"),
        mode: mode.into(),
    };
    Delivery {
        grant: "grant".into(),
        at_rest: shelf.path("grant"),
        files: vec![
            file(GrantPart::PrivateKey, "key.pem", "0600"),
            file(GrantPart::CertificateChain, "chain.pem", "0644"),
        ],
        units: vec![],
    }
}

fn content_and_mode(path: &Path) -> (String, u32) {
    let mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    (std::fs::read_to_string(path).unwrap(), mode)
}

#[test]
fn grants_arrive_whole_with_their_modes_and_only_what_changed_is_written_again() {
    let sshd = Sshd::new();
    let mut job = sshd.job();
    let host = Host::new(&job).unwrap();
    let (key, chain) = (sshd.path("delivered/key.pem"), sshd.path("delivered/chain.pem"));
    let paths = |paths: &[&Path]| paths.iter().map(|path| path.display().to_string()).collect();

    job.deliveries = vec![delivery(&sshd, "key\0one\n", "chain")];
    let first = deliver::deliver(&host, &job).unwrap();
    assert_eq!(first.changed, paths(&[&key, &chain]));
    assert_eq!(content_and_mode(&key), ("key\0one\n".into(), 0o600));
    assert_eq!(content_and_mode(&chain), ("chain".into(), 0o644));

    assert_eq!(deliver::deliver(&host, &job).unwrap(), Delivered::default());

    job.deliveries = vec![delivery(&sshd, "key\0two\n", "chain")];
    assert_eq!(deliver::deliver(&host, &job).unwrap().changed, paths(&[&key]));
    let files = std::fs::read_dir(sshd.path("delivered")).unwrap().count();
    assert_eq!(files, 2, "no temporary file is left");
}

#[test]
fn a_file_whose_owner_does_not_exist_yet_is_private_until_it_does() {
    let sshd = Sshd::new();
    let mut job = sshd.job();
    let mut delivery = delivery(&sshd, "key", "chain");
    delivery.files[1].owner = "no-such-user".into();
    job.deliveries = vec![delivery];
    let host = Host::new(&job).unwrap();
    let delivered = deliver::deliver(&host, &job).unwrap();
    let chain = sshd.path("delivered/chain.pem");
    assert_eq!(delivered.pending, [chain.display().to_string()].into());
    assert_eq!(content_and_mode(&chain).1, 0o600);

    job.deliveries[0].files[1].owner = id("-un");
    deliver::own(&host, &job, &delivered).unwrap();
    assert_eq!(content_and_mode(&chain).1, 0o644);
}

#[test]
fn a_parcel_that_is_cut_short_replaces_no_file() {
    let sshd = Sshd::new();
    let mut job = sshd.job();
    let host = Host::new(&job).unwrap();
    job.deliveries = vec![delivery(&sshd, "key", "chain")];
    deliver::deliver(&host, &job).unwrap();
    let key = sshd.path("delivered/key.pem").display().to_string();
    let words = ["9", &id("-un"), &id("-gn"), "0600", &key];
    let answer = run(&host, include_str!("../remote/deliver.sh"), &words, "new").unwrap();
    assert_eq!(answer.code, 1);
    assert_eq!(content_and_mode(Path::new(&key)).0, "key");
}

/// Two stores under one name, as two machines have them: the host's is elsewhere on the disk (`NIX_REMOTE`).
#[test]
fn a_closure_is_copied_once_and_proved() {
    let sshd = Sshd::new();
    let stores = Stores::new(&sshd);
    let mut job = sshd.job();
    job.nix = Some(stores.tools.clone());
    job.entry.system = stores.system.clone();
    let host = Host::new(&job).unwrap();

    let closure = copy::closure(&job).unwrap();
    assert_eq!(closure.len(), 2, "{closure:?}");
    assert_eq!(copy::missing(&host, &job, &closure).unwrap(), closure);
    assert!(matches!(
        copy::verify(&host, &job, &closure),
        Err(CopyError::Incomplete { count: 2, .. })
    ));

    let sent = copy::send(&host, &job, &closure).unwrap();
    assert_eq!(sent.paths, 2);
    assert!(sent.bytes > 0);
    copy::verify(&host, &job, &closure).unwrap();
    assert_eq!(
        copy::missing(&host, &job, &closure).unwrap(),
        Vec::<String>::new()
    );
    assert_eq!(sshd.logins(), 1, "nix copy shares the login");
}

struct Stores {
    _directory: tempfile::TempDir,
    tools: std::path::PathBuf,
    system: std::path::PathBuf,
}

impl Stores {
    fn new(sshd: &Sshd) -> Stores {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for folder in ["tools", "conf"] {
            std::fs::create_dir(path(folder)).unwrap();
        }
        std::fs::write(
            path("conf/nix.conf"),
            "substituters =\nbuild-users-group =\nsandbox = false\n",
        )
        .unwrap();
        let root = directory.path().display();
        let environment = format!(
            "export NIX_STORE_DIR={root}/store NIX_STATE_DIR={root}/var NIX_LOG_DIR={root}/log \
             NIX_CONF_DIR={root}/conf HOME={root}"
        );
        for tool in ["nix", "nix-store", "nix-build"] {
            executable(
                &path("tools").join(tool),
                &format!("#!/bin/sh\n{environment}\nexec {tool} \"$@\"\n"),
            );
        }
        sshd.configure(&[
            ("NIX_STORE_DIR", &path("store")),
            ("NIX_STATE_DIR", &path("var")),
            ("NIX_CONF_DIR", &path("conf")),
            ("NIX_REMOTE", &path("host")),
            ("HOME", directory.path()),
        ]);
        let expression = r#"let make = name: text: derivation {
          inherit name text; system = builtins.currentSystem; builder = "/bin/sh"; args = [ "-c" "echo $text > $out" ];
        }; in make "system" (make "part" "text")"#;
        let built = std::process::Command::new(path("tools/nix-build"))
            .args(["--no-out-link", "--expr", expression])
            .output()
            .expect("Nix is needed: install nix-bin");
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        let system = String::from_utf8(built.stdout).unwrap().trim().into();
        Stores {
            tools: path("tools"),
            system,
            _directory: directory,
        }
    }
}

impl Drop for Stores {
    fn drop(&mut self) {
        let _done = std::process::Command::new("chmod")
            .args(["-R", "u+w"])
            .arg(self._directory.path())
            .status();
    }
}
