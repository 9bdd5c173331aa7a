//! Credentials of consumers at their providers: one a consumer component, never one a machine (PR-09 to PR-13).
//!
//! A grant is named after everything that it depends on, provision, consumer and provider, so that another provider is
//! another grant: the old one goes and a new one is made. Both ends' plans have it, with its generation number, so that a
//! rotation deploys both.

use thiserror::Error;

use super::secret_file;
use crate::diagnostic::{Diagnostic, code};
use crate::fleet::component::Credential;
use crate::names::{ComponentName, NodeName};
use crate::node_plan::{End, Grant, GrantFile, GrantKind, GrantPart, Login};
use crate::provisioners;
use crate::resolution::Link;
use crate::resolution::walk::Offer;

/// Every credential of a consumer is below it. On both ends a file is named after both halves of the consumer (PR-12).
const ROOT: &str = "/var/lib/provisor/credentials";

/// A name that the provider's engine does not take.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the {what} `{name}` has {length} bytes, and `{provision}` takes {limit}")]
pub(crate) struct TooLong {
    what: &'static str,
    name: String,
    length: usize,
    provision: String,
    limit: usize,
}

/// How many bytes a name of a role or an access key may have in an engine. PostgreSQL cuts a longer one with a notice
/// and no error, so that two consumers would share a role.
///
/// An engine that is not listed gets the strictest common limit, 63.
pub(crate) fn limit(provision: &str) -> usize {
    match provision {
        // NAMEDATALEN - 1.
        "postgresql" => 63,
        // CHAR(32) in mysql.user.
        "mysql" => 32,
        "mariadb" => 80,
        // sysname.
        "sqlserver" => 128,
        // An access key id of MinIO.
        "minio" => 20,
        // ub-common-name.
        "ldap" => 64,
        _ => 63,
    }
}

/// `<component>_<node>`: neither name has a `_`, so that no two consumers share one.
pub(crate) fn login_name(component: &ComponentName, node: &NodeName) -> String {
    format!("{component}_{node}")
}

/// The credential that the one provider of a link grants to its consumer, on each of the two nodes; once with the files
/// of both ends where they are one node. None where the provider grants none. Not made yet.
pub(crate) fn of_link<'a>(link: &Link<'a>) -> Result<Vec<(&'a NodeName, Grant)>, Diagnostic> {
    let [offer] = link.offers.as_slice() else {
        return Ok(Vec::new());
    };
    match offer.provision.grants {
        None => Ok(Vec::new()),
        Some(credential) => two_ends(link, offer, credential).map_err(|refusal| diagnostic(link, &refusal)),
    }
}

fn two_ends<'a>(
    link: &Link<'a>,
    offer: &Offer<'a>,
    credential: Credential,
) -> Result<Vec<(&'a NodeName, Grant)>, TooLong> {
    let need = &link.need;
    let (provision, name) = (
        need.provision.as_str(),
        login_name(&need.component.name, &need.node.name),
    );
    let limit = limit(provision);
    if name.len() > limit {
        return Err(TooLong {
            what: match credential {
                Credential::Role => "role",
                Credential::AccessKey => "access key",
            },
            length: name.len(),
            provision: provision.to_owned(),
            name,
            limit,
        });
    }
    let consumer = End::new(&need.node.name, &need.component.name);
    let provider = End::new(&offer.node.name, &offer.component.name);
    let taken = taken(provision, &consumer);
    let login = Login {
        name,
        provision: provision.to_owned(),
        consumer: consumer.clone(),
        provider: provider.clone(),
    };
    let given = given(&login);
    let grant = |folder: &str, units| Grant {
        name: format!(
            "{}/{}/{provision}/{}/{}",
            consumer.node, consumer.component, provider.node, provider.component
        ),
        kind: match credential {
            Credential::Role => GrantKind::Role(login.clone()),
            Credential::AccessKey => GrantKind::AccessKey(login.clone()),
        },
        files: files(credential, folder),
        units,
        generation: 0,
    };
    let units = provisioners::units(need.provision, credential, &offer.component.name);
    let (mut at_consumer, at_provider) = (grant(&taken, Vec::new()), grant(&given, units));
    if need.node.name == offer.node.name {
        at_consumer.units = at_provider.units;
        at_consumer.files.extend(at_provider.files);
        at_consumer.files.sort();
        return Ok(vec![(&need.node.name, at_consumer)]);
    }
    Ok(vec![
        (&need.node.name, at_consumer),
        (&offer.node.name, at_provider),
    ])
}

/// The folder of a credential on its consumer's node.
pub(crate) fn taken(provision: &str, consumer: &End) -> String {
    format!(
        "{ROOT}/taken/{provision}/{}/{}",
        consumer.node, consumer.component
    )
}

/// The folder of a credential on its provider's node.
fn given(login: &Login) -> String {
    let Login {
        provision,
        consumer,
        provider,
        ..
    } = login;
    format!(
        "{ROOT}/given/{}/{provision}/{}/{}",
        provider.component, consumer.node, consumer.component
    )
}

/// Where a part of a credential is on its provider's node.
pub(crate) fn given_file(login: &Login, part: GrantPart) -> String {
    format!("{}/{}", given(login), file_name(part))
}

fn files(credential: Credential, folder: &str) -> Vec<GrantFile> {
    let file = |part| secret_file(part, format!("{folder}/{}", file_name(part)));
    match credential {
        Credential::Role => vec![file(GrantPart::Password)],
        Credential::AccessKey => vec![file(GrantPart::AccessKeyId), file(GrantPart::SecretAccessKey)],
    }
}

fn file_name(part: GrantPart) -> &'static str {
    match part {
        GrantPart::PrivateKey => "key.pem",
        GrantPart::CertificateChain => "certificate.pem",
        GrantPart::Users => "users",
        GrantPart::Password => "password",
        GrantPart::AccessKeyId => "access-key-id",
        GrantPart::SecretAccessKey => "secret-access-key",
    }
}

fn diagnostic(link: &Link<'_>, refusal: &TooLong) -> Diagnostic {
    let need = &link.need;
    let help = format!(
        "shorten the name of the component `{}` or of the node `{}` by {} bytes together: a cut name could be another's",
        need.component.name,
        need.node.name,
        refusal.length - refusal.limit
    );
    Diagnostic::error(code::NAME_TOO_LONG, refusal.to_string(), help).at(need.place, "required here")
}

#[cfg(test)]
mod tests;
