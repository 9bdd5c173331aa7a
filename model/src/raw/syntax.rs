//! TOML text to a tree, with every syntax error and its place.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::tree::{Entry, Item, Value};
use crate::diagnostic::{Diagnostic, Place, code};

/// The file's tree, or all that is wrong with its syntax.
pub(crate) fn parse(file: &str, text: &str) -> Result<Item, Vec<Diagnostic>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut diagnostics = syntax_errors(file, text, &errors);
    // The whole file is not a place to point at: its beginning is.
    let root = Item {
        span: 0..0,
        value: self::table(file, table.get_ref(), &mut diagnostics),
    };
    if diagnostics.is_empty() {
        Ok(root)
    } else {
        Err(diagnostics)
    }
}

/// One diagnostic a line: what the parser says after its first error on a line follows from that error.
fn syntax_errors(file: &str, text: &str, errors: &[toml::de::Error]) -> Vec<Diagnostic> {
    let mut last_line = None;
    let mut diagnostics = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or(text.len()..text.len());
        let line = text.as_bytes()[..span.start.min(text.len())]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        if last_line.replace(line) == Some(line) {
            continue;
        }
        diagnostics.push(match error.message() {
            "duplicate key" => duplicate(file, text, span),
            message => Diagnostic::error(
                code::SYNTAX,
                format!("this is not TOML: {message}"),
                "correct the syntax; https://toml.io describes it",
            )
            .at(
                &Place {
                    file: file.to_owned(),
                    span,
                },
                "here",
            ),
        });
    }
    diagnostics
}

fn duplicate(file: &str, text: &str, span: Range<usize>) -> Diagnostic {
    let key = text.get(span.clone()).unwrap_or_default().to_owned();
    let first = first_definition(text, &span);
    let place = |span| Place {
        file: file.to_owned(),
        span,
    };
    let diagnostic = Diagnostic::error(
        code::SYNTAX,
        format!("the key `{key}` is defined twice"),
        "keep one of the two, or give one of them another name",
    )
    .at(&place(span), "defined again here");
    match first {
        Some(first) => diagnostic.at(&place(first), "first defined here"),
        None => diagnostic,
    }
}

/// The line that defined the key which is defined again at `span`. The parser does not tell where that is, so the
/// text is searched: the same header in the file, or the same key in its table.
fn first_definition(text: &str, span: &Range<usize>) -> Option<Range<usize>> {
    let start = text[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let again = match text[start..].trim_start() {
        header if header.starts_with('[') => header.lines().next()?.trim_end(),
        _ => text[start..span.end].trim(),
    };
    let mut at = 0;
    let mut first = None;
    for line in text[..start].split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        let written = line.trim();
        if again.starts_with('[') {
            first = first.or((written == again).then_some(at + indent..at + indent + again.len()));
        } else if written.starts_with('[') {
            first = None;
        } else if written
            .strip_prefix(again)
            .is_some_and(|rest| rest.trim_start().starts_with('='))
        {
            first = first.or(Some(at + indent..at + indent + again.len()));
        }
        at += line.len();
    }
    first
}

fn table(file: &str, table: &DeTable<'_>, diagnostics: &mut Vec<Diagnostic>) -> Value {
    let mut entries = std::collections::BTreeMap::new();
    for (key, value) in table {
        let item = item(file, value, diagnostics);
        entries.insert(
            key.get_ref().to_string(),
            Entry {
                key: key.span(),
                item,
            },
        );
    }
    Value::Table(entries)
}

fn item(file: &str, spanned: &Spanned<DeValue<'_>>, diagnostics: &mut Vec<Diagnostic>) -> Item {
    let span = spanned.span();
    let mut too_large = |what: &str| {
        let place = Place {
            file: file.to_owned(),
            span: span.clone(),
        };
        let message = format!("this {what} is out of range");
        diagnostics.push(
            Diagnostic::error(code::SYNTAX, message, "write a number of at most 64 bits").at(&place, "here"),
        );
    };
    let value = match spanned.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => Value::Integer(integer),
            Err(_) => {
                too_large("integer");
                Value::Integer(0)
            }
        },
        DeValue::Float(float) => match float.as_str().parse() {
            Ok(float) => Value::Float(float),
            Err(_) => {
                too_large("float");
                Value::Float(0.0)
            }
        },
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => {
            Value::List(items.iter().map(|each| item(file, each, diagnostics)).collect())
        }
        DeValue::Table(inner) => table(file, inner, diagnostics),
    };
    Item { span, value }
}
