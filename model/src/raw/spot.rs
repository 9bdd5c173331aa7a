//! Reading a tree by hand: every refusal knows its place, and reading goes on after it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;

use super::tree::{Entry, Item, Value};
use crate::access::AccessError;
use crate::diagnostic::{Diagnostic, Place, Report, code};
use crate::names::NameError;
use crate::near::did_you_mean;
use crate::networks::CidrError;
use crate::paths::PathError;

/// A file that is being read, and where its mistakes go.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) report: &'a RefCell<Report>,
}

/// A value in a file.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    source: &'a Source<'a>,
    item: &'a Item,
}

/// A key in a file.
#[derive(Clone)]
pub(crate) struct Key<'a> {
    source: &'a Source<'a>,
    pub(crate) text: &'a str,
    span: Range<usize>,
}

/// What was read, and where.
#[derive(Clone, Debug)]
pub(crate) struct Sited<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

/// The keys of one kind of table. `docs/fleet.md` describes each, which a test checks.
#[derive(Debug)]
pub(crate) struct Keys {
    /// What the table is, such as `a node`.
    pub(crate) of: &'static str,
    pub(crate) all: &'static [&'static str],
}

/// A table whose keys are all known.
pub(crate) struct Fields<'a> {
    source: &'a Source<'a>,
    of: &'static str,
    span: Range<usize>,
    table: &'a BTreeMap<String, Entry>,
}

/// A value error: its message, its code, and what to do.
pub(crate) trait Refusal: std::fmt::Display {
    fn code(&self) -> &'static str {
        code::INVALID_VALUE
    }
    fn help(&self) -> String;
}

impl Refusal for NameError {
    fn code(&self) -> &'static str {
        match self {
            NameError::Empty { .. } | NameError::TooLong { .. } | NameError::Character { .. } => {
                code::INVALID_NAME
            }
            NameError::GenericEngine { .. } => code::GENERIC_ENGINE,
        }
    }

    fn help(&self) -> String {
        NameError::help(self)
    }
}

impl Refusal for AccessError {
    fn help(&self) -> String {
        AccessError::help(self)
    }
}

impl Refusal for CidrError {
    fn help(&self) -> String {
        CidrError::help(self)
    }
}

impl Refusal for PathError {
    fn help(&self) -> String {
        PathError::help(self)
    }
}

/// A text that is one of the words of `all`. `what` is such as `a scope`.
pub(crate) fn one_of<T: Copy, const N: usize>(
    spot: Spot<'_>,
    what: &str,
    all: [T; N],
    as_str: fn(T) -> &'static str,
) -> Option<T> {
    let words = all.map(as_str);
    let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let written = spot.text(&format!("{what} ({})", quoted.join(" or ")))?;
    let found = all.into_iter().find(|value| as_str(*value) == written);
    if found.is_none() {
        let help = did_you_mean(written, words, "");
        let message = format!("`{written}` is not {what}");
        spot.add(Diagnostic::error(code::INVALID_VALUE, message, help).at(&spot.place(), "here"));
    }
    found
}

impl<'a> Source<'a> {
    pub(crate) fn root(&'a self, item: &'a Item) -> Spot<'a> {
        Spot { source: self, item }
    }

    pub(crate) fn add(&self, diagnostic: Diagnostic) {
        self.report.borrow_mut().add(diagnostic);
    }

    pub(crate) fn place(&self, span: Range<usize>) -> Place {
        Place {
            file: self.file.to_owned(),
            span,
        }
    }

    fn refuse(&self, refusal: &impl Refusal, span: Range<usize>) {
        let diagnostic = Diagnostic::error(refusal.code(), refusal.to_string(), refusal.help());
        self.add(diagnostic.at(&self.place(span), "here"));
    }
}

impl<'a> Key<'a> {
    pub(crate) fn place(&self) -> Place {
        self.source.place(self.span.clone())
    }

    pub(crate) fn add(&self, diagnostic: Diagnostic) {
        self.source.add(diagnostic);
    }

    /// The key as a name; a refusal is reported.
    pub(crate) fn name<T: FromStr<Err: Refusal>>(&self) -> Option<T> {
        let refuse = |refusal| self.source.refuse(&refusal, self.span.clone());
        self.text.parse().map_err(refuse).ok()
    }
}

impl<'a> Spot<'a> {
    pub(crate) fn place(&self) -> Place {
        self.source.place(self.item.span.clone())
    }

    pub(crate) fn add(&self, diagnostic: Diagnostic) {
        self.source.add(diagnostic);
    }

    /// `wanted` says what is taken, with an example.
    pub(crate) fn text(&self, wanted: &str) -> Option<&'a str> {
        match &self.item.value {
            Value::Text(text) => Some(text),
            _ => self.wrong_type(wanted),
        }
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self.item.value, Value::Text(_))
    }

    /// A text that `parse` accepts.
    pub(crate) fn parsed<T, E: Refusal>(
        &self,
        wanted: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<Sited<T>> {
        match parse(self.text(wanted)?) {
            Ok(value) => Some(Sited {
                value,
                place: self.place(),
            }),
            Err(refusal) => {
                self.source.refuse(&refusal, self.item.span.clone());
                None
            }
        }
    }

    /// A text that is a name.
    pub(crate) fn name<T: FromStr<Err: Refusal>>(&self, wanted: &str) -> Option<Sited<T>> {
        self.parsed(wanted, str::parse)
    }

    /// A TCP port.
    pub(crate) fn port(&self) -> Option<u16> {
        const WANTED: &str = "a port (an integer from 1 to 65535)";
        let Value::Integer(integer) = self.item.value else {
            return self.wrong_type(WANTED);
        };
        match u16::try_from(integer) {
            Ok(port @ 1..) => Some(port),
            Ok(0) | Err(_) => {
                let message = format!("{integer} is not a port");
                let help = format!("write {WANTED}");
                self.add(Diagnostic::error(code::INVALID_VALUE, message, help).at(&self.place(), "here"));
                None
            }
        }
    }

    pub(crate) fn list(&self, wanted: &str) -> Option<Vec<Spot<'a>>> {
        match &self.item.value {
            Value::List(items) => Some(
                items
                    .iter()
                    .map(|item| Spot {
                        source: self.source,
                        item,
                    })
                    .collect(),
            ),
            _ => self.wrong_type(wanted),
        }
    }

    /// A table whose keys are names: its entries, in the order of the keys.
    pub(crate) fn entries(&self, wanted: &str) -> Option<Vec<(Key<'a>, Spot<'a>)>> {
        let Value::Table(table) = &self.item.value else {
            return self.wrong_type(wanted);
        };
        let entry = |(text, entry): (&'a String, &'a Entry)| {
            let key = Key {
                source: self.source,
                text,
                span: entry.key.clone(),
            };
            (
                key,
                Spot {
                    source: self.source,
                    item: &entry.item,
                },
            )
        };
        Some(table.iter().map(entry).collect())
    }

    /// A table with known keys. Unknown ones are reported, and the rest is read.
    pub(crate) fn fields(&self, keys: &'static Keys) -> Option<Fields<'a>> {
        let entries = self.entries(&format!("the table of {}", keys.of))?;
        for (key, _) in &entries {
            if !keys.all.contains(&key.text) {
                self.unknown_field(key, keys);
            }
        }
        let Value::Table(table) = &self.item.value else {
            return None;
        };
        Some(Fields {
            source: self.source,
            of: keys.of,
            span: self.item.span.clone(),
            table,
        })
    }

    /// The value as JSON; what JSON cannot hold is reported.
    pub(crate) fn json(&self) -> Option<serde_json::Value> {
        let misfits = match self.item.to_json() {
            Ok(json) => return Some(json),
            Err(misfits) => misfits,
        };
        for misfit in misfits {
            let message = format!("JSON, and so Nix, cannot hold {}", misfit.what);
            let place = self.source.place(misfit.span);
            self.add(
                Diagnostic::error(code::INVALID_VALUE, message, "write it as a string").at(&place, "here"),
            );
        }
        None
    }

    fn unknown_field(&self, key: &Key<'_>, keys: &Keys) {
        let message = format!("{} has no key `{}`", keys.of, key.text);
        let none = format!("remove it: {} has no keys", keys.of);
        let help = did_you_mean(key.text, keys.all.iter().copied(), &none);
        self.add(Diagnostic::error(code::UNKNOWN_FIELD, message, help).at(&key.place(), "unknown key"));
    }

    fn wrong_type<T>(&self, wanted: &str) -> Option<T> {
        let message = format!("this is {} where {wanted} belongs", self.item.kind());
        let help = format!("write {wanted}");
        self.add(Diagnostic::error(code::WRONG_TYPE, message, help).at(&self.place(), "here"));
        None
    }
}

impl<'a> Fields<'a> {
    /// Where the table begins: its header.
    pub(crate) fn place(&self) -> Place {
        self.source.place(self.span.clone())
    }

    pub(crate) fn add(&self, diagnostic: Diagnostic) {
        self.source.add(diagnostic);
    }

    pub(crate) fn get(&self, key: &str) -> Option<Spot<'a>> {
        self.table.get(key).map(|entry| Spot {
            source: self.source,
            item: &entry.item,
        })
    }

    /// A key that the table must have; `example` is the line to write.
    pub(crate) fn require(&self, key: &str, example: &str) -> Option<Spot<'a>> {
        let found = self.get(key);
        if found.is_none() {
            let message = format!("{} has no `{key}`", self.of);
            let help = format!("add a line such as `{example}`");
            self.add(Diagnostic::error(code::MISSING_FIELD, message, help).at(&self.place(), "missing here"));
        }
        found
    }

    /// The entries of the table under `key`; none where it is absent.
    pub(crate) fn entries(&self, key: &str, wanted: &str) -> Vec<(Key<'a>, Spot<'a>)> {
        self.get(key)
            .and_then(|spot| spot.entries(wanted))
            .unwrap_or_default()
    }

    /// The items of the list under `key`; none where it is absent.
    pub(crate) fn items(&self, key: &str, wanted: &str) -> Vec<Spot<'a>> {
        self.get(key)
            .and_then(|spot| spot.list(wanted))
            .unwrap_or_default()
    }
}
