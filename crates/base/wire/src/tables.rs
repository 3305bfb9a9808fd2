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
            pub const fn of(octets: &'a [u8; $length]) -> $name<'a> {
                $name(octets)
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
    (u8, $octets:expr, $at:literal) => {
        $octets[$at]
    };
    (u16, $octets:expr, $at:literal) => {
        u16::from_be_bytes([$octets[$at], $octets[$at + 1]])
    };
    (u32, $octets:expr, $at:literal) => {
        u32::from_be_bytes([$octets[$at], $octets[$at + 1], $octets[$at + 2], $octets[$at + 3]])
    };
    (Code, $octets:expr, $at:literal) => {
        Code($octets[$at])
    };
    (IpProtocol, $octets:expr, $at:literal) => {
        IpProtocol($octets[$at])
    };
    (EtherType, $octets:expr, $at:literal) => {
        EtherType(field!(u16, $octets, $at))
    };
    (Ipv4Addr, $octets:expr, $at:literal) => {
        Ipv4Addr::new($octets[$at], $octets[$at + 1], $octets[$at + 2], $octets[$at + 3])
    };
    (MacAddress, $octets:expr, $at:literal) => {
        MacAddress([
            $octets[$at],
            $octets[$at + 1],
            $octets[$at + 2],
            $octets[$at + 3],
            $octets[$at + 4],
            $octets[$at + 5],
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
