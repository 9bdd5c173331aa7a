//! The one way to a host: a generated `ssh_config` with one `Host`, so that no quoting is left to a command line.
//!
//! Every reader of it is called as `ssh -F <file> <name>` or with `NIX_SSHOPTS="-F <file>"`.

use std::path::{Path, PathBuf};

use crate::entry::{HostKey, NodeEntry};

/// Where the files that the configuration names are kept.
#[derive(Clone, Copy, Debug)]
pub struct Paths<'a> {
    /// The file with the host's key: ours with one line when it is pinned, or the one of first uses.
    pub known_hosts: &'a Path,
    /// The socket by which the commands of one job share a login; a short path (Unix sockets end at 107 bytes).
    pub control: &'a Path,
}

/// Why a configuration cannot be written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An operator's item would end the host's block or read another file.
    #[error(
        "ssh option `{item}` is not one `Key=Value` of a host; write it as in ssh_config(5), without Host, Match or Include"
    )]
    Option {
        /// The item as it was given.
        item: String,
    },
    /// A path that ssh_config cannot express.
    #[error(
        "the path {path} has a quote, a line break or `${{`, which ssh_config cannot express; move the file"
    )]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// An address or a user with blanks.
    #[error("`{value}` is not a host address or user name; correct it in fleet.toml")]
    Word {
        /// The value.
        value: String,
    },
}

/// The text of the configuration for one node.
///
/// The operator's items come first, since OpenSSH takes the first value of an option.
pub fn render(entry: &NodeEntry, paths: Paths<'_>) -> Result<String, ConfigError> {
    let mut lines = vec![format!("Host {}", word(&entry.name)?)];
    for item in &entry.ssh_options {
        lines.push(option(item)?);
    }
    lines.push(format!("HostName {}", word(&entry.address)?));
    lines.push(format!("Port {}", entry.port));
    lines.push(format!("User {}", word(&entry.user)?));
    lines.push(format!("HostKeyAlias {}", entry.name));
    lines.push(format!("UserKnownHostsFile {}", quoted(paths.known_hosts)?));
    lines.push("GlobalKnownHostsFile /dev/null".into());
    lines.push(format!("StrictHostKeyChecking {}", strictness(&entry.host_key)));
    lines.push("UpdateHostKeys no".into());
    if let Some(identity) = &entry.identity {
        lines.push(format!("IdentityFile {}", quoted(identity)?));
        lines.push("IdentitiesOnly yes".into());
    }
    lines.extend(FIXED.iter().map(|&line| line.to_owned()));
    lines.push(format!("ControlPath {}", quoted(paths.control)?));
    Ok(lines.join("\n  ") + "\n")
}

/// The line of a known-hosts file that pins a key under the deployment name.
pub fn pinned_line(name: &str, key: &str) -> String {
    format!("{name} {key}\n")
}

/// A login costs up to a second on a small host, so the commands of a job share one. The shared connection ends with
/// the job, and by itself a minute after its last command if the job is killed.
const FIXED: &[&str] = &[
    "BatchMode yes",
    "ConnectTimeout 15",
    "ServerAliveInterval 5",
    "ServerAliveCountMax 6",
    "LogLevel ERROR",
    "ForwardAgent no",
    "ForwardX11 no",
    "RequestTTY no",
    "ControlMaster auto",
    "ControlPersist 60",
];

fn strictness(key: &HostKey) -> &'static str {
    match key {
        HostKey::Pinned(_) => "yes",
        HostKey::TrustOnFirstUse => "accept-new",
    }
}

fn word(value: &str) -> Result<&str, ConfigError> {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '%' | '*' | '?' | '!' | '#');
    if !value.is_empty() && value.chars().all(plain) && !value.starts_with('-') {
        Ok(value)
    } else {
        Err(ConfigError::Word {
            value: value.to_owned(),
        })
    }
}

fn option(item: &str) -> Result<String, ConfigError> {
    let key = item.split('=').next().unwrap_or_default().trim();
    let opens_a_block = ["host", "match", "include"].contains(&key.to_ascii_lowercase().as_str());
    let is_a_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric());
    if item.contains('=') && is_a_key && !opens_a_block && !item.contains(['\n', '\r']) {
        Ok(item.to_owned())
    } else {
        Err(ConfigError::Option {
            item: item.to_owned(),
        })
    }
}

/// In quotes, since an unquoted blank makes two files of one; `%` doubled, since ssh expands it.
fn quoted(path: &Path) -> Result<String, ConfigError> {
    let text = path.to_string_lossy();
    if text.contains(['"', '\n', '\r']) || text.contains("${") || path.to_str().is_none() {
        return Err(ConfigError::Path {
            path: path.to_owned(),
        });
    }
    Ok(format!("\"{}\"", text.replace('%', "%%")))
}

#[cfg(test)]
mod tests {
    use super::super::job::tests::entry;
    use super::*;

    fn rendered(entry: &NodeEntry) -> String {
        let paths = Paths {
            known_hosts: Path::new("/state/http%3A%2F%2Fbackend/my hosts"),
            control: Path::new("/tmp/p-1/control"),
        };
        render(entry, paths).unwrap()
    }

    #[test]
    fn the_whole_configuration_of_a_pinned_host() {
        insta::assert_snapshot!(rendered(&entry()), @r#"
        Host forge
          HostName 192.0.2.20
          Port 22
          User root
          HostKeyAlias forge
          UserKnownHostsFile "/state/http%%3A%%2F%%2Fbackend/my hosts"
          GlobalKnownHostsFile /dev/null
          StrictHostKeyChecking yes
          UpdateHostKeys no
          BatchMode yes
          ConnectTimeout 15
          ServerAliveInterval 5
          ServerAliveCountMax 6
          LogLevel ERROR
          ForwardAgent no
          ForwardX11 no
          RequestTTY no
          ControlMaster auto
          ControlPersist 60
          ControlPath "/tmp/p-1/control"
        "#);
    }

    #[test]
    fn operator_items_come_first_in_their_order_and_ipv6_port_and_identity_are_written_bare() {
        let entry = NodeEntry {
            address: "2001:db8::20".into(),
            port: 2222,
            user: "deploy".into(),
            host_key: HostKey::TrustOnFirstUse,
            ssh_options: vec![
                "StrictHostKeyChecking=yes".into(),
                "ProxyCommand=nc -x proxy %h %p".into(),
            ],
            identity: Some("/keys of alice/id_ed25519".into()),
            ..entry()
        };
        let text = rendered(&entry);
        let head: Vec<&str> = text.lines().take(7).map(str::trim).collect();
        assert_eq!(
            head,
            [
                "Host forge",
                "StrictHostKeyChecking=yes",
                "ProxyCommand=nc -x proxy %h %p",
                "HostName 2001:db8::20",
                "Port 2222",
                "User deploy",
                "HostKeyAlias forge",
            ]
        );
        assert!(text.contains("StrictHostKeyChecking accept-new"), "{text}");
        assert!(
            text.contains("IdentityFile \"/keys of alice/id_ed25519\"\n  IdentitiesOnly yes"),
            "{text}"
        );
    }

    #[test]
    fn items_that_would_leave_the_hosts_block_are_refused() {
        for item in [
            "Host=other",
            "match=all",
            "Include=/etc/passwd",
            "Port",
            "Port 22",
            "=x",
            "A=b\nHost c",
        ] {
            let entry = NodeEntry {
                ssh_options: vec![item.into()],
                ..entry()
            };
            let paths = Paths {
                known_hosts: Path::new("/k"),
                control: Path::new("/c"),
            };
            assert_eq!(
                render(&entry, paths),
                Err(ConfigError::Option { item: item.into() }),
                "{item}"
            );
        }
    }

    #[test]
    fn addresses_and_paths_that_ssh_would_read_otherwise_are_refused() {
        let paths = Paths {
            known_hosts: Path::new("/k"),
            control: Path::new("/c"),
        };
        for address in ["", "-oProxyCommand=x", "a b", "a\nb", "*"] {
            let entry = NodeEntry {
                address: address.into(),
                ..entry()
            };
            assert_eq!(
                render(&entry, paths),
                Err(ConfigError::Word {
                    value: address.into()
                })
            );
        }
        for path in ["/a\"b", "/a\nb", "/${HOME}/k"] {
            let entry = NodeEntry {
                identity: Some(path.into()),
                ..entry()
            };
            assert_eq!(
                render(&entry, paths),
                Err(ConfigError::Path { path: path.into() })
            );
        }
    }

    /// OpenSSH itself reads what we wrote, and says which values it took.
    #[test]
    fn openssh_takes_the_values_that_were_meant() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("ssh_config");
        let entry = NodeEntry {
            address: "::1".into(),
            port: 2222,
            ssh_options: vec!["ConnectTimeout=3".into()],
            identity: Some("/keys of alice/100%/id".into()),
            ..entry()
        };
        std::fs::write(&config, rendered(&entry)).unwrap();
        let output = std::process::Command::new("ssh")
            .args(["-G", "-F"])
            .arg(&config)
            .arg("forge")
            .output()
            .expect("OpenSSH's client is needed: install openssh-client");
        let said = String::from_utf8(output.stdout).unwrap();
        for line in [
            "hostname ::1",
            "port 2222",
            "hostkeyalias forge",
            "connecttimeout 3",
            "identitiesonly yes",
            "stricthostkeychecking true",
            "batchmode yes",
        ] {
            assert!(said.lines().any(|said| said == line), "{line} not in:\n{said}");
        }
    }
}
