//! With the real Nix, in a store of the test's own.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;

/// A store, a fleet and a working folder in one temporary folder, and the tools that use them.
struct Bench {
    directory: TempDir,
}

const SYSTEM: &str = r#"{ node }: derivation {
  name = "system-${node.name}";
  system = builtins.currentSystem;
  builder = "/bin/sh";
  args = [ "-c" "echo made ${node.name} >&2; echo \"$node\" > $out" ];
  node = builtins.toJSON (removeAttrs node [ "store_paths" ]);
  paths = map builtins.storePath node.store_paths;
}"#;

impl Bench {
    fn new(system: &str) -> Bench {
        let bench = Bench {
            directory: tempfile::tempdir().unwrap(),
        };
        let path = |name: &str| bench.directory.path().join(name);
        for folder in ["fleet", "tools", "conf"] {
            std::fs::create_dir(path(folder)).unwrap();
        }
        std::fs::write(path("fleet/system.nix"), system).unwrap();
        std::fs::write(
            path("conf/nix.conf"),
            "substituters =\nbuild-users-group =\nsandbox = false\n",
        )
        .unwrap();
        for tool in ["nix-build", "nix-store"] {
            bench.tool(tool);
        }
        bench
    }

    /// The real tool with the test's own store.
    fn tool(&self, name: &str) {
        let root = self.directory.path().display();
        let script = format!(
            "#!/bin/sh\nexport NIX_STORE_DIR={root}/store NIX_STATE_DIR={root}/var NIX_LOG_DIR={root}/log \
             NIX_CONF_DIR={root}/conf NIX_REMOTE= HOME={root}\nexec {name} \"$@\"\n"
        );
        let path = self.directory.path().join("tools").join(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn builder(&self, folder: &str) -> Builder {
        Builder {
            fleet: self.directory.path().join("fleet"),
            folder: self.directory.path().join(folder),
            nix: Some(self.directory.path().join("tools")),
            deadline: Duration::from_secs(300),
        }
    }
}

impl Drop for Bench {
    /// The store's files are read-only, and so are its folders.
    fn drop(&mut self) {
        let _done = Command::new("chmod")
            .arg("-R")
            .arg("u+w")
            .arg(self.directory.path())
            .status();
    }
}

fn plan(name: &str) -> NodePlan {
    NodePlan {
        name: name.into(),
        group: "alice".into(),
        components: vec![],
        networks: BTreeMap::new(),
        modules: vec![serde_json::json!({ "services": { "nginx": { "enable": true } } })],
        files: vec![],
        takes: vec![],
        grants: vec![],
        state_backend: None,
    }
}

#[test]
fn the_same_plan_has_the_same_path_wherever_it_is_built_and_another_plan_another() {
    let bench = Bench::new(SYSTEM);
    let mut lines = Vec::new();
    let mut build = |folder: &str, plan: &NodePlan| {
        bench
            .builder(folder)
            .build(plan, &[], &mut |line| lines.push(line.to_owned()))
            .unwrap()
    };
    let first = build("one", &plan("forge"));
    let again = build("another folder", &plan("forge"));
    let other = build("one", &plan("backend"));
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert!(std::fs::read_to_string(&first).unwrap().contains("nginx"));
    assert_eq!(
        std::fs::read_link(bench.directory.path().join("one/forge/system")).unwrap(),
        first
    );
    assert!(lines.iter().any(|line| line.contains("made forge")), "{lines:?}");
}

#[test]
fn a_program_becomes_a_folder_of_the_store_that_a_system_can_depend_on() {
    let bench = Bench::new(SYSTEM);
    let program = bench.directory.path().join("program");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let added = bench
        .builder("one")
        .add_program(&program, "provisor-backend")
        .unwrap();
    assert_eq!(
        added,
        bench
            .builder("two")
            .add_program(&program, "provisor-backend")
            .unwrap()
    );
    let installed = added.join("bin/provisor-backend");
    assert_eq!(
        std::fs::metadata(installed).unwrap().permissions().mode() & 0o777,
        0o555
    );

    let with = bench
        .builder("one")
        .build(&plan("forge"), &[added], &mut |_| {})
        .unwrap();
    let without = bench
        .builder("one")
        .build(&plan("forge"), &[], &mut |_| {})
        .unwrap();
    assert_ne!(with, without);
}

#[test]
fn a_failed_build_shows_nix_s_last_lines_and_the_plan() {
    let bench = Bench::new("{ node }: throw \"no module for ${node.name}\"");
    let error = bench
        .builder("one")
        .build(&plan("forge"), &[], &mut |_| {})
        .unwrap_err();
    let message = error.to_string();
    assert!(message.contains("no module for forge"), "{message}");
    assert!(message.contains("one/forge/plan.json"), "{message}");
}

#[test]
fn a_fleet_without_system_nix_is_told_what_to_write() {
    let bench = Bench::new(SYSTEM);
    std::fs::remove_file(bench.directory.path().join("fleet/system.nix")).unwrap();
    let error = bench
        .builder("one")
        .build(&plan("forge"), &[], &mut |_| {})
        .unwrap_err();
    assert!(matches!(error, BuildError::NoSystemNix { .. }));
}

#[test]
fn the_backend_s_service_runs_the_stored_program_and_takes_its_users_from_the_grant() {
    let module = backend_module(
        Path::new("/nix/store/x-provisor-backend"),
        &StateBackend { port: 8080 },
    );
    let service = &module["systemd"]["services"]["provisor-backend"];
    let start = service["serviceConfig"]["ExecStart"].as_str().unwrap();
    assert!(
        start.starts_with("/nix/store/x-provisor-backend/bin/provisor-backend serve --listen [::]:8080 ")
    );
    assert_eq!(
        service["serviceConfig"]["LoadCredential"],
        "users:/var/lib/provisor/grants/state-backend/users"
    );
}
