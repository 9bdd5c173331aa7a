//! The protocol: from a request to an answer.

mod answer;
mod body;
mod gate;
mod metrics;
mod route;
mod service;

pub(crate) use gate::Gate;
pub(crate) use service::Service;
