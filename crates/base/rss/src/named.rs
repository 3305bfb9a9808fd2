//! Enums whose variants have names that people, profiles and `ethtool` use.

macro_rules! named {
    ($(#[$about:meta])* $type:ident[$count:literal] {
        $($(#[$variant_about:meta])* $variant:ident = $name:literal,)*
    }) => {
        $(#[$about])*
        pub enum $type { $($(#[$variant_about])* $variant,)* }

        impl $type {
            /// Every variant, in the order in which they are declared.
            const EVERY: [$type; $count] = [$($type::$variant,)*];

            /// The name, as commands and profiles use it.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
