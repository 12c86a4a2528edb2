//! The macros that declare options.

/// Declares a struct of options: its fields with their types, defaults and help.
///
/// ```text
/// options! {
///     /// ..
///     pub struct NAME for OpenOptions {            the type it converts to: OpenOptions or WriteOptions
///         flatten FIELD: STRUCT;                   adds the options of another struct
///         /// help
///         FIELD: TYPE = DEFAULT, as KIND, alias "other name";      only FIELD and TYPE are required
///     }
/// }
/// ```
#[macro_export]
macro_rules! options {
    (
        $(#[$of_struct:meta])*
        $vis:vis struct $name:ident for $whole:ty {
            $( flatten $part:ident: $part_type:ty; )*
            $(
                $(#[doc = $help:literal])+
                $field:ident: $type:ty
                $( = $default:expr )?
                $(, as $kind:expr )?
                $(, alias $alias:literal )*
                ;
            )*
        }
    ) => {
        $(#[$of_struct])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $(
                #[doc = concat!("The options of [`", stringify!($part_type), "`].")]
                pub $part: $part_type,
            )*
            $(
                $(#[doc = $help])+
                pub $field: $type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $part: Default::default(), )*
                    $( $field: $crate::options!(@default $type $(, $default)?), )*
                }
            }
        }

        impl $crate::options::Options for $name {
            fn specs() -> &'static [$crate::options::OptionSpec] {
                static ALL: ::std::sync::LazyLock<Vec<$crate::options::OptionSpec>> =
                    ::std::sync::LazyLock::new(|| {
                        #[allow(unused_mut)]
                        let mut all = Vec::new();
                        $( all.extend_from_slice(<$part_type as $crate::options::Options>::specs()); )*
                        $(
                            let default: $type = $crate::options!(@default $type $(, $default)?);
                            all.push($crate::options::OptionSpec {
                                name: stringify!($field),
                                kind: $crate::options!(@kind $type $(, $kind)?),
                                default: $crate::options::Field::to_value(&default),
                                help: concat!($($help),+).trim_ascii(),
                                aliases: &[$($alias),*],
                            });
                        )*
                        all
                    });
                &ALL
            }

            fn from_given_or(
                given: &::std::collections::BTreeMap<String, $crate::Value>,
                default: Self,
            ) -> $crate::Result<Self> {
                let specs = <Self as $crate::options::Options>::specs();
                Ok(Self {
                    $( $part: $crate::options::Options::from_given_or(given, default.$part)?, )*
                    $( $field: $crate::options::value_of(specs, stringify!($field), given, default.$field)?, )*
                })
            }

            fn put(&self, into: &mut ::std::collections::BTreeMap<String, $crate::Value>) {
                let default = Self::default();
                $( $crate::options::Options::put(&self.$part, into); )*
                $(
                    if self.$field != default.$field {
                        into.insert(
                            stringify!($field).to_owned(),
                            $crate::options::Field::to_value(&self.$field),
                        );
                    }
                )*
            }
        }

        impl From<$name> for $whole {
            fn from(options: $name) -> Self {
                let mut whole = <$whole>::default();
                $crate::options::Options::put(&options, &mut whole.extra);
                whole
            }
        }
    };
    (@default $type:ty) => { <$type as Default>::default() };
    (@default $type:ty, $default:expr) => { $default };
    (@kind $type:ty) => { <$type as $crate::options::Field>::KIND };
    (@kind $type:ty, $kind:expr) => { $kind };
}

/// Declares the choices of an option as an enum. Texts after `|` are aliases.
#[macro_export]
macro_rules! choices {
    (
        $(#[$of_enum:meta])*
        $vis:vis enum $name:ident {
            $( $(#[$of_variant:meta])* $variant:ident = $text:literal $(| $alias:literal)* ),+ $(,)?
        }
    ) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $( $(#[$of_variant])* $variant, )+
        }

        impl $name {
            /// The choices.
            pub const CHOICES: &'static [$crate::options::Choice] =
                &[$( $crate::options::Choice { name: $text, aliases: &[$($alias),*] } ),+];

            /// The text of the choice.
            pub fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $text, )+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl $crate::options::Field for $name {
            const KIND: $crate::options::Kind = $crate::options::Kind::Choice(Self::CHOICES);

            fn from_value(value: $crate::Value) -> $crate::Result<Self> {
                match &value {
                    $( $crate::Value::Str(text) if text == $text => Ok(Self::$variant), )+
                    other => {
                        Err($crate::Error::invalid(format!("expected one of the choices, found {other:?}")))
                    }
                }
            }

            fn to_value(&self) -> $crate::Value {
                $crate::Value::from(self.name())
            }
        }
    };
}
