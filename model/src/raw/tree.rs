//! A fleet file as a tree in which every key and value knows its place.
//!
//! serde would stop at the first mistake and loses places under untagged and flattened types; a tree that is read by
//! hand keeps both. It knows nothing of TOML, so that another syntax can fill it.

use std::collections::BTreeMap;
use std::ops::Range;

/// A value and the bytes it stands in.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A TOML date or time, which no key takes.
    Date,
    List(Vec<Item>),
    Table(BTreeMap<String, Entry>),
}

/// A key's value, and the bytes the key stands in.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Range<usize>,
    pub(crate) item: Item,
}

/// A value that JSON, and so Nix, cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotJson {
    pub(crate) span: Range<usize>,
    pub(crate) what: &'static str,
}

impl Item {
    /// What it is, with its article.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Boolean(_) => "a boolean",
            Value::Date => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The same value as JSON with sorted keys, or every part of it that JSON cannot hold.
    pub(crate) fn to_json(&self) -> Result<serde_json::Value, Vec<NotJson>> {
        let mut misfits = Vec::new();
        let json = self.collect_json(&mut misfits);
        if misfits.is_empty() {
            Ok(json)
        } else {
            Err(misfits)
        }
    }

    fn collect_json(&self, misfits: &mut Vec<NotJson>) -> serde_json::Value {
        use serde_json::Value as Json;
        let mut misfit = |what| {
            misfits.push(NotJson {
                span: self.span.clone(),
                what,
            });
            Json::Null
        };
        match &self.value {
            Value::Text(text) => Json::from(text.as_str()),
            Value::Integer(integer) => Json::from(*integer),
            Value::Float(float) => match serde_json::Number::from_f64(*float) {
                Some(number) => Json::Number(number),
                None => misfit("an infinite float or `nan`"),
            },
            Value::Boolean(boolean) => Json::Bool(*boolean),
            Value::Date => misfit("a date"),
            Value::List(items) => items.iter().map(|item| item.collect_json(misfits)).collect(),
            Value::Table(table) => table
                .iter()
                .map(|(key, entry)| (key.clone(), entry.item.collect_json(misfits)))
                .collect(),
        }
    }
}
