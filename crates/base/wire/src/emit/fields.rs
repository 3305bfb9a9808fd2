//! Headers of nothing but fields one behind the other, which are read and written alike.

use super::Octets;
use crate::ethernet::{EtherType, MacAddress};
use crate::vlan::Tci;

/// A field of whole bytes, in network byte order.
pub(super) trait Wire: Sized {
    fn read(rest: &mut &[u8]) -> Self;
    fn write(self, out: Octets<'_>) -> Octets<'_>;
}

macro_rules! wire {
    ($($type:ty, $bytes:literal: $of:expr, $to:expr;)*) => {$(
        impl Wire for $type {
            #[inline]
            fn read(rest: &mut &[u8]) -> $type {
                let bytes = rest.split_off(..$bytes).and_then(|bytes| bytes.first_chunk::<$bytes>());
                $of(bytes.copied().unwrap_or_default())
            }

            #[inline]
            fn write(self, out: Octets<'_>) -> Octets<'_> {
                out.put(&$to(self))
            }
        }
    )*};
}

wire! {
    u8, 1: u8::from_be_bytes, u8::to_be_bytes;
    u16, 2: u16::from_be_bytes, u16::to_be_bytes;
    u32, 4: u32::from_be_bytes, u32::to_be_bytes;
    [u8; 4], 4: core::convert::identity, core::convert::identity;
    [u8; 8], 8: core::convert::identity, core::convert::identity;
    EtherType, 2: |bytes| EtherType(u16::from_be_bytes(bytes)), |value: EtherType| value.0.to_be_bytes();
    Tci, 2: |bytes| Tci(u16::from_be_bytes(bytes)), |value: Tci| value.0.to_be_bytes();
    MacAddress, 6: MacAddress, |address: MacAddress| address.0;
}

/// Such a header: its struct, reader and writer.
macro_rules! fields {
    ($(#[$about:meta])* $name:ident: Layer::$layer:ident, $length:literal {
        $($(#[$field_about:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_about])* pub $field: $type,)*
        }

        impl $name {
            /// Bytes.
            pub const LENGTH: usize = $length;

            /// Reads the header at the start of `octets`. Error: not whole.
            pub fn parse(octets: &[u8]) -> Result<$name, crate::error::Error> {
                let mut rest = octets.get(..$length).ok_or(cut(Layer::$layer, octets, $length))?;
                Ok($name { $($field: crate::emit::fields::Wire::read(&mut rest),)* })
            }
        }

        impl Emit for $name {
            fn length(&self) -> usize {
                $length
            }

            fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
                let octets = place(Layer::$layer, $length, buffer)?;
                $(let octets = crate::emit::fields::Wire::write(self.$field, octets);)*
                Ok(octets.length())
            }
        }
    };
}
