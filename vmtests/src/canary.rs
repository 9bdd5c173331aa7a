//! Planted secrets, and what to look for when asking whether one of them leaked.
//!
//! A secret leaks raw, in base64 or in hexadecimal. Base64 has three forms of the same bytes, one for each alignment in
//! the text around it; each form is cut to the characters that depend on the secret alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// A secret that must stay where it was put.
pub struct Canary {
    /// What a report calls it; never the value.
    pub name: &'static str,
    needles: Vec<Vec<u8>>,
}

impl Canary {
    /// A canary of any bytes: a password, a key's DER.
    pub fn new(name: &'static str, secret: &[u8]) -> Canary {
        assert!(
            secret.len() >= 16,
            "a canary of {} bytes could be found by chance",
            secret.len()
        );
        let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut needles = vec![hex.to_uppercase().into_bytes(), hex.into_bytes()];
        needles.extend(base64_forms(secret).map(String::into_bytes));
        needles.extend(longest_line(secret).map(<[u8]>::to_vec));
        Canary { name, needles }
    }

    /// A canary of a private key in PEM: what is looked for is the key itself, without its framing.
    pub fn pem(name: &'static str, pem: &str) -> anyhow::Result<Canary> {
        let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        let der = base64::engine::general_purpose::STANDARD.decode(body.trim())?;
        // The head of a PKCS#8 key names the algorithm and is the same in all keys; the middle is the secret.
        let middle = der.len() / 3..der.len() / 3 + 24;
        Ok(Canary::new(name, &der[middle]))
    }

    /// The byte strings to look for; none holds a newline, so they suit `grep -F -f -`.
    pub fn needles(&self) -> &[Vec<u8>] {
        &self.needles
    }

    /// Whether the secret stands in `haystack` in any form.
    pub fn is_in(&self, haystack: &[u8]) -> bool {
        self.needles
            .iter()
            .any(|needle| haystack.windows(needle.len()).any(|window| window == needle))
    }
}

fn base64_forms(secret: &[u8]) -> impl Iterator<Item = String> {
    (0..3).map(|shift| {
        let shifted: Vec<u8> = std::iter::repeat_n(0, shift)
            .chain(secret.iter().copied())
            .collect();
        let text = STANDARD_NO_PAD.encode(&shifted);
        // The first characters mix in what stands before the secret, the last what stands behind it.
        let start = [0, 2, 3][shift];
        let whole = shifted.len() / 3 * 4;
        text[start..whole].to_owned()
    })
}

/// The longest run of the secret that `grep` can look for: no newline, no NUL.
fn longest_line(secret: &[u8]) -> Option<&[u8]> {
    secret
        .split(|byte| matches!(byte, 0 | b'\n'))
        .max_by_key(|run| run.len())
        .filter(|run| run.len() >= 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"correct horse battery staple";

    #[test]
    fn a_canary_is_found_raw() {
        assert!(Canary::new("password", SECRET).is_in(&[b"x=", SECRET, b"\n"].concat()));
    }

    #[test]
    fn a_canary_is_found_in_hexadecimal_of_either_case() {
        let hex: String = SECRET.iter().map(|byte| format!("{byte:02x}")).collect();
        let canary = Canary::new("password", SECRET);
        assert!(canary.is_in(hex.as_bytes()));
        assert!(canary.is_in(hex.to_uppercase().as_bytes()));
    }

    #[test]
    fn a_canary_is_found_in_base64_at_every_alignment() {
        for before in ["", "u", "us", "user:"] {
            let text = STANDARD_NO_PAD.encode([before.as_bytes(), SECRET, b" and more"].concat());
            assert!(
                Canary::new("password", SECRET).is_in(text.as_bytes()),
                "behind {before:?}"
            );
        }
    }

    #[test]
    fn a_key_is_found_without_its_pem_framing() {
        let der: Vec<u8> = (0..90).map(|n: u8| n.wrapping_mul(89).wrapping_add(7)).collect();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD_NO_PAD.encode(&der)
        );
        let canary = Canary::pem("key", &pem).unwrap();
        assert!(canary.is_in(&der));
        assert!(canary.is_in(pem.as_bytes()));
    }

    #[test]
    fn another_secret_is_not_found() {
        assert!(!Canary::new("password", SECRET).is_in(b"correct horse battery stable, and some more text"));
    }

    #[test]
    fn no_needle_breaks_a_line() {
        let canary = Canary::new("bytes", b"\x01\n\x00abcdefghijklmnop\nqrstuvwxyz");
        assert!(canary.needles().iter().all(|needle| !needle.contains(&b'\n')));
    }
}
