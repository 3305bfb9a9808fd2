//! Headers and names as tables: what is alike is written once, and a field stated once.

/// A view over the fixed bytes of a header: a function for each field, of this type, at this byte.
macro_rules! view {
    ($(#[$about:meta])* $name:ident[$length:literal] {
        $($(#[$field_about:meta])* $field:ident: $type:tt @ $at:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub struct $name<'a>(&'a [u8; $length]);

        #[allow(missing_docs, reason = "a field that says no more than its name")]
        impl<'a> $name<'a> {
            /// Bytes of the fixed part.
            pub const LENGTH: usize = $length;

            /// Over these bytes.
            #[inline(always)]
            pub const fn of(bytes: &'a [u8; $length]) -> $name<'a> {
                $name(bytes)
            }

            $($(#[$field_about])*
            #[inline(always)]
            pub const fn $field(&self) -> $type {
                field!($type, self.0, $at)
            })*
        }
    };
}

/// A field in network byte order that starts at a byte of an array.
macro_rules! field {
    (u8, $bytes:expr, $at:literal) => {
        $bytes[$at]
    };
    (u16, $bytes:expr, $at:literal) => {
        u16::from_be_bytes([$bytes[$at], $bytes[$at + 1]])
    };
    (u32, $bytes:expr, $at:literal) => {
        u32::from_be_bytes([$bytes[$at], $bytes[$at + 1], $bytes[$at + 2], $bytes[$at + 3]])
    };
    (Code, $bytes:expr, $at:literal) => {
        Code($bytes[$at])
    };
    (IpProtocol, $bytes:expr, $at:literal) => {
        IpProtocol($bytes[$at])
    };
    (EtherType, $bytes:expr, $at:literal) => {
        EtherType(field!(u16, $bytes, $at))
    };
    (Ipv4Addr, $bytes:expr, $at:literal) => {
        Ipv4Addr::new($bytes[$at], $bytes[$at + 1], $bytes[$at + 2], $bytes[$at + 3])
    };
    (MacAddress, $bytes:expr, $at:literal) => {
        MacAddress([
            $bytes[$at],
            $bytes[$at + 1],
            $bytes[$at + 2],
            $bytes[$at + 3],
            $bytes[$at + 4],
            $bytes[$at + 5],
        ])
    };
}

/// An enum whose variants have names that people and scripts read.
macro_rules! named {
    ($(#[$about:meta])* $type:ident { $($(#[$variant_about:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the name is in the table")]
        pub enum $type { $($(#[$variant_about])* $variant,)* }

        impl $type {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [$type] = &[$($type::$variant,)*];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }
        }
    };
}
