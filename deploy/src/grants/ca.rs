//! The fleet's internal certificate authority: one key on the deployer, one certificate that everybody may have.
//!
//! The authority signs servers' certificates only and no other authority (path length 0). It has no name constraints:
//! a fleet gets new domains in its life, and an authority that must be made anew for each would be trusted anew each
//! time.

use std::path::PathBuf;

use jiff::ToSpan as _;
use jiff::civil::Date;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::at_rest::{AtRestError, Secret, Shelf};

/// Days for which a server's certificate is good.
pub const CERTIFICATE_DAYS: i64 = 90;

/// Years for which the authority is good.
const AUTHORITY_YEARS: i64 = 10;

/// The authority, with its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authority {
    /// Common name in its certificate.
    name: String,
    /// Its certificate, PEM.
    certificate: String,
    /// SHA-256 of the certificate, hexadecimal.
    fingerprint: String,
    /// Its private key, PEM.
    key: Secret,
}

/// A new key with its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The private key, PEM.
    pub key: Secret,
    /// The certificate, PEM; the authority's own is not part of it.
    pub chain: String,
    /// The certificate's last whole day.
    pub not_after: Date,
}

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The file at rest cannot be used.
    #[error(transparent)]
    AtRest(#[from] AtRestError),
    /// The certificate cannot be made.
    #[error("cannot make a certificate for {subject}: {source}; check the domain in the fleet's files")]
    Certificate {
        /// The domain, or the authority's name.
        subject: String,
        /// The library's reason.
        source: rcgen::Error,
    },
    /// A date beyond the calendar.
    #[error("today's date is {today}, which no certificate can express; set the clock")]
    Date {
        /// What the clock says.
        today: Date,
    },
}

const FILE: &str = "ca.json";

impl Authority {
    /// The authority of a shelf, if it has one.
    pub fn load(shelf: &Shelf) -> Result<Option<Authority>, AuthorityError> {
        Ok(shelf.load(&Authority::path(shelf))?)
    }

    /// The file of a shelf's authority.
    pub(super) fn path(shelf: &Shelf) -> PathBuf {
        shelf.folder().join(FILE)
    }

    /// The authority of a shelf; it is made, and kept, if there is none.
    pub fn load_or_make(shelf: &Shelf, today: Date) -> Result<Authority, AuthorityError> {
        if let Some(authority) = Authority::load(shelf)? {
            return Ok(authority);
        }
        let authority = Authority::make(today)?;
        shelf.store(&Authority::path(shelf), &authority)?;
        Ok(authority)
    }

    /// A new authority.
    pub fn make(today: Date) -> Result<Authority, AuthorityError> {
        let failed = |source| AuthorityError::Certificate {
            subject: "the fleet's authority".into(),
            source,
        };
        let key = KeyPair::generate().map_err(failed)?;
        let name = format!(
            "Provisor internal CA {}",
            &hex(&Sha256::digest(key.public_key_raw()))[..16]
        );
        let end = today
            .checked_add(AUTHORITY_YEARS.years())
            .map_err(|_| AuthorityError::Date { today })?;
        let mut params = authority_params(&name);
        set_validity(&mut params, today, end)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok(Authority {
            name,
            fingerprint: fingerprint(&certificate),
            certificate: certificate.pem(),
            key: Secret::new(key.serialize_pem()),
        })
    }

    /// The certificate, PEM: what a client trusts.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// SHA-256 of the certificate, hexadecimal.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// A new key with a certificate for one DNS name.
    pub fn sign(&self, domain: &str, today: Date) -> Result<Signed, AuthorityError> {
        let failed = |source| AuthorityError::Certificate {
            subject: domain.to_owned(),
            source,
        };
        let authority_key = KeyPair::from_pem(self.key.reveal()).map_err(failed)?;
        let issuer = Issuer::new(authority_params(&self.name), authority_key);
        let not_after = today
            .checked_add(CERTIFICATE_DAYS.days())
            .map_err(|_| AuthorityError::Date { today })?;
        let mut params = CertificateParams::new([domain.to_owned()]).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, domain);
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, today, not_after)?;
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
        Ok(Signed {
            key: Secret::new(key.serialize_pem()),
            chain: certificate.pem(),
            not_after,
        })
    }
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// From the start of yesterday, for hosts whose clock is behind, to the start of the last day's morrow.
fn set_validity(params: &mut CertificateParams, today: Date, last: Date) -> Result<(), AuthorityError> {
    let time = |date: Result<Date, jiff::Error>| {
        let date = date.map_err(|_| AuthorityError::Date { today })?;
        let part = |value: i8| u8::try_from(value).map_err(|_| AuthorityError::Date { today });
        let (month, day) = (part(date.month())?, part(date.day())?);
        Ok::<_, AuthorityError>(rcgen::date_time_ymd(i32::from(date.year()), month, day))
    };
    params.not_before = time(today.yesterday())?;
    params.not_after = time(last.tomorrow())?;
    Ok(())
}

fn fingerprint(certificate: &Certificate) -> String {
    hex(&Sha256::digest(certificate.der()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use x509_parser::pem::parse_x509_pem;
    use x509_parser::prelude::*;

    use super::*;

    const TODAY: Date = date(2026, 3, 1);

    fn day(time: ASN1Time) -> Date {
        jiff::tz::Offset::UTC
            .to_datetime(jiff::Timestamp::from_second(time.timestamp()).unwrap())
            .date()
    }

    #[test]
    fn a_certificate_verifies_against_its_authority_and_no_other() {
        let (ours, other) = (Authority::make(TODAY).unwrap(), Authority::make(TODAY).unwrap());
        let signed = ours.sign("forge.example", TODAY).unwrap();
        let (_, leaf) = parse_x509_pem(signed.chain.as_bytes()).unwrap();
        let leaf = leaf.parse_x509().unwrap();
        for (authority, verifies) in [(&ours, true), (&other, false)] {
            let (_, pem) = parse_x509_pem(authority.certificate().as_bytes()).unwrap();
            let certificate = pem.parse_x509().unwrap();
            assert_eq!(
                leaf.verify_signature(Some(certificate.public_key())).is_ok(),
                verifies
            );
            assert_eq!(leaf.issuer() == certificate.subject(), verifies);
        }
    }

    #[test]
    fn a_certificate_names_its_domain_and_lasts_ninety_days() {
        let signed = Authority::make(TODAY)
            .unwrap()
            .sign("forge.example", TODAY)
            .unwrap();
        let (_, pem) = parse_x509_pem(signed.chain.as_bytes()).unwrap();
        let leaf = pem.parse_x509().unwrap();
        let names = leaf.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names, [GeneralName::DNSName("forge.example")]);
        assert!(!leaf.is_ca());
        assert_eq!(day(leaf.validity().not_before), date(2026, 2, 28));
        assert_eq!(day(leaf.validity().not_after), date(2026, 5, 31));
        assert_eq!(signed.not_after, date(2026, 5, 30));
    }

    #[test]
    fn the_authority_signs_no_other_authority() {
        let authority = Authority::make(TODAY).unwrap();
        let (_, pem) = parse_x509_pem(authority.certificate().as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        let constraints = certificate.basic_constraints().unwrap().unwrap();
        assert!(constraints.value.ca);
        assert_eq!(constraints.value.path_len_constraint, Some(0));
        assert_eq!(day(certificate.validity().not_after), date(2036, 3, 2));
    }

    #[test]
    fn the_authority_is_made_once_and_its_key_is_in_no_debug_output() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::at(directory.path());
        assert_eq!(Authority::load(&shelf).unwrap(), None);
        let made = Authority::load_or_make(&shelf, TODAY).unwrap();
        assert_eq!(Authority::load_or_make(&shelf, TODAY).unwrap(), made);
        assert!(!format!("{made:?}").contains("PRIVATE"));
        assert!(made.key.reveal().contains("PRIVATE"));
    }
}
