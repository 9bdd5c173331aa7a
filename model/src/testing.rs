//! What tests share: a fleet with two of everything, edits of it, and a plain renderer.

use std::fmt::Write as _;

use crate::diagnostic::{Diagnostic, Severity};
use crate::node_plan::NodePlan;
use crate::raw::FleetFiles;
use crate::resolution::{Answer, Resolution};
use crate::{Model, load, resolve};

macro_rules! fixture {
    ($fixture:literal: $($path:literal)*) => {
        [$(($path, include_str!(concat!("../fixtures/", $fixture, "/", $path)))),*]
    };
}

/// Files by path and text.
pub(crate) fn files<const N: usize>(files: [(&str, &str); N]) -> FleetFiles {
    FleetFiles(
        files
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .into(),
    )
}

/// Two networks, environments, providers, operators, nodes with two components, components with two requests.
pub(crate) fn two_of_everything() -> FleetFiles {
    files(fixture!["two-of-everything":
        "fleet.toml"
        "components/bash.toml"
        "components/php.toml"
        "components/proxy.toml"
        "components/resolver.toml"
        "components/state-backend.toml"
        "components/webmail.toml"
        "components/website.toml"
    ])
}

/// Two providers of every name, each pinned by one of two nodes whose components need all of them.
pub(crate) fn two_providers() -> FleetFiles {
    files(fixture!["two-providers":
        "fleet.toml"
        "pins.toml"
        "components/bash.toml"
        "components/caddy.toml"
        "components/garage-a.toml"
        "components/garage-b.toml"
        "components/gitea.toml"
        "components/keycloak.toml"
        "components/postgres-a.toml"
        "components/postgres-b.toml"
        "components/traefik.toml"
        "components/wiki.toml"
        "components/zsh.toml"
    ])
}

impl FleetFiles {
    /// With the one occurrence of `from` in `path` replaced.
    pub(crate) fn edit(mut self, path: &str, from: &str, to: &str) -> FleetFiles {
        let text = self.0.get_mut(path).unwrap();
        assert_eq!(text.matches(from).count(), 1, "`{from}` in {path}");
        *text = text.replace(from, to);
        self
    }

    /// With `text` as the file `path`.
    pub(crate) fn with(mut self, path: &str, text: &str) -> FleetFiles {
        self.0.insert(path.to_owned(), text.to_owned());
        self
    }

    /// The fleet, which must be well.
    pub(crate) fn model(&self) -> Model {
        match load(self) {
            Ok(loaded) => loaded.model,
            Err(errors) => panic!("{}", self.render(&errors)),
        }
    }

    /// The resolution, which must be well.
    pub(crate) fn resolution(&self) -> Resolution {
        match resolve(&self.model()) {
            Ok(resolution) => resolution,
            Err(errors) => panic!("{}", self.render(&errors)),
        }
    }

    /// The plan of one node.
    pub(crate) fn plan(&self, node: &str) -> NodePlan {
        self.resolution().plans(&Default::default()).remove(node).unwrap()
    }

    /// `consumer provision providers`, a line for each requirement.
    pub(crate) fn answers(&self) -> Vec<String> {
        let resolution = self.resolution();
        let line = |answer: &Answer| {
            let providers: Vec<_> = answer.providers.iter().map(|it| it.to_string()).collect();
            format!("{} {} {}", answer.consumer, answer.provision, providers.join(","))
        };
        resolution.answers().iter().map(line).collect()
    }

    /// The mistakes of loading it, rendered.
    pub(crate) fn load_errors(&self) -> String {
        self.render(&load(self).unwrap_err())
    }

    /// The mistakes of resolving it, rendered.
    pub(crate) fn resolve_errors(&self) -> String {
        self.render(&resolve(&self.model()).unwrap_err())
    }

    /// `error[code]: message`, a line `file:line:column "what stands there": text` for each label, and the help.
    pub(crate) fn render(&self, diagnostics: &[Diagnostic]) -> String {
        let mut out = String::new();
        for Diagnostic {
            code,
            severity,
            message,
            labels,
            help,
        } in diagnostics
        {
            let severity = match severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            writeln!(out, "{severity}[{code}]: {message}").unwrap();
            for label in labels {
                let text = self.0.get(&label.file).unwrap();
                let before = &text[..label.span.start];
                let line = before.matches('\n').count() + 1;
                let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
                let there = text[label.span.clone()].lines().next().unwrap_or_default();
                writeln!(out, "  {}:{line}:{column} {there:?}: {}", label.file, label.text).unwrap();
            }
            writeln!(out, "  help: {help}").unwrap();
        }
        out
    }
}

/// Compares rendered text with the lines of `expected`, which may be indented.
pub(crate) fn assert_lines(found: &str, expected: &str) {
    let expected: Vec<_> = expected.trim().lines().map(str::trim).collect();
    let lines: Vec<_> = found.trim().lines().map(str::trim).collect();
    assert_eq!(lines, expected, "found:\n{found}");
}
