//! How values become bytes: little endian, lengths as `u32`, no padding, no schema.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Something that can stand in a frame.
pub(super) trait Wire: Sized {
    /// Appends the value's bytes.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes the value from the front of `input`; nothing if the bytes are not such a value.
    fn take(input: &mut &[u8]) -> Option<Self>;
}

macro_rules! wire_integer {
    ($($integer:ty),*) => {$(
        impl Wire for $integer {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(input: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = input.split_first_chunk()?;
                *input = rest;
                Some(Self::from_le_bytes(*bytes))
            }
        }
    )*};
}
wire_integer!(u8, u16, u32, u64, i32);

/// Declares a struct whose wire form is its fields in order.
macro_rules! wire_struct {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }

        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn take(input: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Wire::take(input)?,)* })
            }
        }
    };
}
pub(super) use wire_struct;

/// Bytes that are copied as a whole; a `Vec<u8>` would be handled one element at a time.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl std::fmt::Debug for Bytes {
    /// Only the length: the bytes may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Wire for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        (self.0.len() as u32).put(out);
        out.extend_from_slice(&self.0);
    }
    fn take(input: &mut &[u8]) -> Option<Self> {
        let length = u32::take(input)? as usize;
        let (bytes, rest) = input.split_at_checked(length)?;
        *input = rest;
        Some(Self(bytes.to_vec()))
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }
    fn take(input: &mut &[u8]) -> Option<Self> {
        match u8::take(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(input: &mut &[u8]) -> Option<Self> {
        String::from_utf8(Bytes::take(input)?.0).ok()
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        self.iter().for_each(|item| item.put(out));
    }
    fn take(input: &mut &[u8]) -> Option<Self> {
        (0..u32::take(input)?).map(|_| T::take(input)).collect()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|value| value.put(out));
    }
    fn take(input: &mut &[u8]) -> Option<Self> {
        Some(if bool::take(input)? {
            Some(T::take(input)?)
        } else {
            None
        })
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(input: &mut &[u8]) -> Option<Self> {
        Some((A::take(input)?, B::take(input)?))
    }
}

impl<const N: usize> Wire for [u8; N] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
    fn take(input: &mut &[u8]) -> Option<Self> {
        let (bytes, rest) = input.split_first_chunk()?;
        *input = rest;
        Some(*bytes)
    }
}

impl Wire for IpAddr {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            IpAddr::V4(address) => (4_u8, address.octets()).put(out),
            IpAddr::V6(address) => (6_u8, address.octets()).put(out),
        }
    }
    fn take(input: &mut &[u8]) -> Option<Self> {
        match u8::take(input)? {
            4 => Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::take(input)?))),
            6 => Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::take(input)?))),
            _ => None,
        }
    }
}
