//! Secret files on their way to a node. This is the only place that reads a value at rest, and it goes on stdin only.

use std::collections::BTreeSet;
use std::path::PathBuf;

use provisor_model::node_plan::{GrantFile, GrantPart};

use super::host::{Answer, Host, HostError};
use super::job::{Delivery, Job};
use crate::grants::at_rest::{AtRestError, Record};
use crate::process;

/// What a delivery came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Files whose content is new, by path.
    pub changed: BTreeSet<String>,
    /// Files whose owner does not exist yet; the activation may make it.
    pub pending: BTreeSet<String>,
}

/// Why grants are not on the host.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// The host gave no answer.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The value is not at rest here.
    #[error(transparent)]
    AtRest(#[from] AtRestError),
    /// The file at rest has not the wanted part.
    #[error(
        "{at_rest} has no {part:?} for grant {grant}; remove it and apply again, so that it is made anew"
    )]
    Part {
        /// The grant.
        grant: String,
        /// The wanted part.
        part: GrantPart,
        /// The file at rest.
        at_rest: PathBuf,
    },
    /// The host refused.
    #[error("the host could not take its grants (exit {code}): {reason}; correct it, then apply again")]
    Refused {
        /// The script's exit code.
        code: i32,
        /// The host's last lines; they name files, never contents.
        reason: String,
    },
}

/// Writes every file of every grant; files that are there already with the same content stay as they are.
pub fn deliver(host: &Host, job: &Job) -> Result<Delivered, DeliverError> {
    if job.deliveries.is_empty() {
        return Ok(Delivered::default());
    }
    let parcel = parcel(&job.deliveries)?;
    let words: Vec<&str> = parcel.words.iter().map(String::as_str).collect();
    let answer = host.run(
        include_str!("remote/deliver.sh"),
        &words,
        &parcel.bytes,
        job.deadlines.step(),
    )?;
    let answer = accepted(answer)?;
    let all = |key| answer.all(key).map(str::to_owned).collect();
    Ok(Delivered {
        changed: all("changed"),
        pending: all("pending"),
    })
}

/// Gives pending files to the owners that the activation has made.
pub fn own(host: &Host, job: &Job, delivered: &Delivered) -> Result<(), DeliverError> {
    let words: Vec<&str> = files(&job.deliveries)
        .filter(|file| delivered.pending.contains(&file.path))
        .flat_map(|file| [&file.owner, &file.group, &file.mode, &file.path])
        .map(String::as_str)
        .collect();
    if words.is_empty() {
        return Ok(());
    }
    accepted(host.run(include_str!("remote/own.sh"), &words, b"", job.deadlines.step())?)?;
    Ok(())
}

/// Each unit with each file it uses, for the restart of those that are older than their file.
pub fn unit_files(deliveries: &[Delivery]) -> Vec<&str> {
    let pairs = deliveries.iter().flat_map(|delivery| {
        delivery
            .units
            .iter()
            .flat_map(|unit| delivery.files.iter().map(move |file| (unit, &file.path)))
    });
    pairs
        .flat_map(|(unit, path)| [unit.as_str(), path.as_str()])
        .collect()
}

fn files(deliveries: &[Delivery]) -> impl Iterator<Item = &GrantFile> {
    deliveries.iter().flat_map(|delivery| &delivery.files)
}

fn accepted(answer: Answer) -> Result<Answer, DeliverError> {
    match answer.code {
        0 => Ok(answer),
        code => Err(DeliverError::Refused {
            code,
            reason: process::last_lines(&answer.stderr, 3),
        }),
    }
}

struct Parcel {
    words: Vec<String>,
    bytes: Vec<u8>,
}

fn parcel(deliveries: &[Delivery]) -> Result<Parcel, DeliverError> {
    let mut parcel = Parcel {
        words: Vec::new(),
        bytes: Vec::new(),
    };
    for delivery in deliveries {
        let record = Record::read(&delivery.at_rest)?;
        for file in &delivery.files {
            let value = record.part(file.part).ok_or_else(|| DeliverError::Part {
                grant: delivery.grant.clone(),
                part: file.part,
                at_rest: delivery.at_rest.clone(),
            })?;
            let size = value.len().to_string();
            parcel
                .words
                .extend([&size, &file.owner, &file.group, &file.mode, &file.path].map(String::clone));
            parcel.bytes.extend_from_slice(value.as_bytes());
        }
    }
    Ok(parcel)
}
