//! Two writers of one path.

use crate::testing::{assert_lines, two_of_everything};

fn etc(name: &str, entry: &str) -> String {
    format!("\n[resources.\"etc\".nixos-module.module.environment.etc.\"{name}\"]\n{entry}\n")
}

/// The fleet with an `environment.etc` entry in `website` and one in `webmail`, which are on one node.
fn with_etc(website: (&str, &str), webmail: (&str, &str)) -> crate::FleetFiles {
    let mut fleet = two_of_everything();
    for (component, (name, entry)) in [("website", website), ("webmail", webmail)] {
        fleet
            .0
            .get_mut(&format!("components/{component}.toml"))
            .unwrap()
            .push_str(&etc(name, entry));
    }
    fleet
}

#[test]
fn two_components_that_write_one_file_of_etc_are_both_named() {
    assert_lines(
        &with_etc(
            ("app/x.conf", "text = \"a\""),
            ("y", "source = \"/b\"\ntarget = \"app/x.conf\""),
        )
        .resolve_errors(),
        r#"
        error[model::two-writers]: on the node `app`, `webmail` (its `nixos-module` under `etc`) and `website` (its `nixos-module` under `etc`) both write `/etc/app/x.conf`
          components/website.toml:16:18 "nixos-module": written for `website`
          components/webmail.toml:10:18 "nixos-module": written for `webmail`
          help: rename one of the two, or remove one of the components from the node
        "#,
    );
}

#[test]
fn a_file_has_no_files_below_it() {
    let errors = with_etc(("app", "text = \"a\""), ("app/x", "text = \"b\"")).resolve_errors();
    assert!(
        errors.contains("write `/etc/app/x` and the file `/etc/app`"),
        "{errors}"
    );
}

#[test]
fn other_files_or_a_mode_for_anothers_file_are_no_conflict() {
    with_etc(("app/x", "text = \"a\""), ("app/y", "text = \"b\"")).resolution();
    with_etc(("app", "text = \"a\""), ("app-2", "text = \"b\"")).resolution();
    with_etc(("app", "text = \"a\""), ("app", "mode = \"0400\"")).resolution();
}

#[test]
fn two_state_backends_on_one_node_are_both_named() {
    let fleet = two_of_everything()
        .with(
            "components/second.toml",
            "provides = [{ name = \"state-backend\", scope = \"mesh\", serves = { port = 1 } }]\n",
        )
        .edit("fleet.toml", "\"resolver\"]", "\"resolver\", \"second\"]");
    assert_lines(
        &fleet.resolve_errors(),
        r#"
        error[model::two-writers]: on the node `backend`, `second` (its `state-backend` under `users`) and `state-backend` (its `state-backend` under `users`) both write `/var/lib/provisor/grants/state-backend/users`
          components/state-backend.toml:1:13 "{ name = \"state-backend\", scope = \"mesh\", serves = { port = 8080 } }": written for `state-backend`
          components/second.toml:1:13 "{ name = \"state-backend\", scope = \"mesh\", serves = { port = 1 } }": written for `second`
          help: rename one of the two, or remove one of the components from the node
        "#,
    );
}

#[test]
fn an_instance_key_that_would_be_a_folder_of_the_users_file_is_refused() {
    let file = "provides = [{ name = \"state-backend\", scope = \"mesh\", serves = { port = 1 } }]\n\
                resources.users.ssl.domain = \"a.test\"\n";
    let errors = two_of_everything()
        .with("components/state-backend.toml", file)
        .resolve_errors();
    assert!(
        errors.contains("and the file `/var/lib/provisor/grants/state-backend/users`"),
        "{errors}"
    );
}
