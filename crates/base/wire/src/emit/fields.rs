//! Headers of nothing but fields one behind the other.

use super::Bytes;
use crate::ethernet::{EtherType, MacAddress};
use crate::ppp::PppProtocol;
use crate::pppoe::Code;
use crate::vlan::Tci;
use core::net::Ipv4Addr;

/// A field of whole bytes, in network byte order.
pub(super) trait Wire {
    fn write(self, out: Bytes<'_>) -> Bytes<'_>;
}

macro_rules! wire {
    ($($type:ty: $to:expr;)*) => {$(
        impl Wire for $type {
            #[inline]
            fn write(self, out: Bytes<'_>) -> Bytes<'_> {
                out.put(&$to(self))
            }
        }
    )*};
}

wire! {
    u8: u8::to_be_bytes;
    u16: u16::to_be_bytes;
    u32: u32::to_be_bytes;
    [u8; 3]: core::convert::identity;
    [u8; 4]: core::convert::identity;
    [u8; 8]: core::convert::identity;
    EtherType: |value: EtherType| value.0.to_be_bytes();
    PppProtocol: |value: PppProtocol| value.0.to_be_bytes();
    Tci: |value: Tci| value.0.to_be_bytes();
    Code: |code: Code| [code.0];
    MacAddress: |address: MacAddress| address.0;
    Ipv4Addr: |address: Ipv4Addr| address.octets();
}

/// Such a header: its struct and writer. It may begin with bytes that are always the same.
macro_rules! fields {
    ($(#[$about:meta])* $name:ident: Layer::$layer:ident, $length:literal $(, behind $constant:tt)? {
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
        }

        impl Emit for $name {
            fn length(&self) -> usize {
                $length
            }

            fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
                let bytes = place(Layer::$layer, $length, buffer)?;
                $(let bytes = bytes.put(&$constant);)?
                $(let bytes = crate::emit::fields::Wire::write(self.$field, bytes);)*
                Ok(bytes.length())
            }
        }
    };
}
