//! `postgresql` with `grants = "role"`: a server, and for each consumer a role, its password, and a database of the same
//! name that the role owns and nobody else can open.
//!
//! `provisor-postgresql-roles-<component>` does it after `postgresql.service`. It can run at any time again: it makes
//! what is missing and sets every password from its file. Systemd hands it those files, which only root reads
//! (`LoadCredential`), and `psql` reads them itself: no password is in an argument, the environment, the server's
//! log or the store.
//!
//! A consumer that is gone loses its login and its sessions. Its role and its database stay, since they are people's data;
//! if it comes back, it finds them. Only roles that this component's unit has made are looked at: each says so in its
//! comment.

use serde_json::{Value, json};

use super::{Granted, Served};
use crate::names::ComponentName;

/// `initdb` makes this role, and only the operating system's user of that name may use it.
const SUPERUSER: &str = "postgres";

/// NixOS has its programs in the first, others in the second.
const PATH: &str = "/run/current-system/sw/bin:/usr/bin:/bin";

/// The server's folder of sockets, on NixOS and on Debian.
const SOCKETS: &str = "/run/postgresql";

const DEFAULT_PORT: u16 = 5432;

/// The unit that makes the roles, without its suffix.
pub(super) fn unit(component: &ComponentName) -> String {
    format!("provisor-postgresql-roles-{component}")
}

/// The module of one component on one node; `sources` are the address ranges of its consumers.
pub(super) fn module(served: &Served<'_>, sources: &[String]) -> Value {
    let port = served.port.unwrap_or(DEFAULT_PORT);
    let script = format!("provisor/postgresql-roles/{}.sql", served.component);
    let credentials: Vec<String> = served
        .granted
        .iter()
        .map(|Granted { login, password }| format!("{}:{password}", login.name))
        .collect();
    let psql = format!("psql -X -q -v ON_ERROR_STOP=1 -h {SOCKETS} -p {port} -d postgres -f /etc/{script}");
    let service = json!({
        "description": format!("PostgreSQL roles of the consumers of {}", served.component),
        "after": ["postgresql.service"],
        "requires": ["postgresql.service"],
        "wantedBy": ["multi-user.target"],
        "serviceConfig": {
            "Type": "oneshot",
            "RemainAfterExit": true,
            "User": SUPERUSER,
            "LoadCredential": credentials,
            "ExecStart": format!("/bin/sh -c 'PATH={PATH}; export PATH; exec {psql}'"),
        },
    });
    json!({
        "environment": { "etc": { script: { "text": sql(served) } } },
        "services": {
            "postgresql": {
                "enable": true,
                "enableTCPIP": true,
                "authentication": authentication(sources),
                "settings": { "port": port },
            },
        },
        "systemd": { "services": { unit(served.component): service } },
    })
}

/// Consumers come from their networks only, each to the database of its own name.
fn authentication(sources: &[String]) -> String {
    let line = |source| format!("host sameuser all {source} scram-sha-256\n");
    sources.iter().map(line).collect()
}

/// What `psql` runs. Names have letters, digits, `-` and `_` only, so that quotes hold them.
fn sql(served: &Served<'_>) -> String {
    let wanted: Vec<String> = served
        .granted
        .iter()
        .map(|Granted { login, .. }| format!("'{}'", login.name))
        .collect();
    let start = include_str!("postgresql/start.sql")
        .replace("@component@", served.component.as_str())
        .replace("@wanted@", &wanted.join(", "));
    let consumer = |Granted { login, .. }: &Granted<'_>| {
        include_str!("postgresql/consumer.sql")
            .replace("@component@", served.component.as_str())
            .replace("@consumer@", &login.consumer.to_string())
            .replace("@role@", &login.name)
    };
    start + &served.granted.iter().map(consumer).collect::<String>()
}
