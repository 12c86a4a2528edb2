//! Applies column types that the user declares, where the file's types are missing or unwanted.
//!
//! | file | declared | why |
//! |---|---|---|
//! | string, varchar, char | binary | Hive wrote bytes that are not UTF-8: the reader returns them unchanged |
//! | decimal without precision (Hive 0.11) | decimal(p,s) | one type for all files of a table |
//!
//! Columns are matched by name; columns that are not declared keep their types. Any other change of type is
//! an error, unless the schema is the table's ([`Declares::Table`]): a table may have columns that were added
//! later, and types that changed since. With a table's schema, Hive's old names `_col0`, `_col1` .. are
//! matched by position, and a column whose types do not fit keeps the file's type. Files of Hive's tables
//! ([`Declares::Hive`]) take the names, too: see [`hive`].

mod hive;
mod types;

use coldframe_core::{Error, Limits, Result, SchemaSpec};

pub(crate) use hive::conversions;
pub(crate) use types::types_of;

use crate::layout::proto;
use crate::layout::types::Kind;
use crate::options::Declares;

/// Replaces the types of a file by the declared ones. `converts`: whether the columns of a Hive table are converted later.
pub(crate) fn declare(
    footer: &mut proto::Footer,
    spec: &SchemaSpec,
    declares: Declares,
    converts: bool,
    limits: &Limits,
) -> Result<()> {
    let declared = types_of(spec, limits)?;
    match declares {
        Declares::File => declare_columns(&mut footer.types, &declared),
        Declares::Table => {
            take_of_table(&mut footer.types, 0, &declared, 0);
            Ok(())
        }
        Declares::Hive => hive::take_names(footer, &declared, converts).map_err(|e| e.within("schema")),
    }
}

/// Changes the types of the columns that are declared.
fn declare_columns(types: &mut [proto::Type], declared: &[proto::Type]) -> Result<()> {
    let (Some(root), Some(names)) = (types.first().cloned(), declared.first()) else { return Ok(()) };
    for (name, of) in names.field_names.iter().zip(&names.subtypes) {
        let place = root.field_names.iter().position(|own| own == name);
        let Some(at) = place.and_then(|place| root.subtypes.get(place)) else {
            let own = root.field_names.join(", ");
            return Err(Error::schema(format!("expected one of the file's columns ({own}), found `{name}`"))
                .within("schema"));
        };
        declare_type(types, *at, declared, *of)
            .map_err(|e| e.within(format!("column `{name}`")).within("schema"))?;
    }
    Ok(())
}

/// Applies a table's type to a file's type, including nested types.
fn take_of_table(types: &mut [proto::Type], at: u32, declared: &[proto::Type], of: u32) {
    let (Some(own), Some(want)) = (types.get_mut(at as usize), declared.get(of as usize)) else { return };
    if take(own, want) || own.kind != want.kind {
        return;
    }
    let (own, by_position) = (own.clone(), at == 0 && are_placeholders(&own.field_names));
    for (position, child) in own.subtypes.iter().enumerate().filter(|(_, child)| **child > at) {
        let same =
            |name: &String| own.field_names.get(position).is_some_and(|n| n.eq_ignore_ascii_case(name));
        let place = match own.field_names.is_empty() || by_position {
            true => Some(position),
            false => want.field_names.iter().position(same),
        };
        if let Some(of) = place.and_then(|place| want.subtypes.get(place)) {
            take_of_table(types, *child, declared, *of);
        }
    }
}

/// Whether the columns have the names that Hive wrote before 2.0: each is `_col` and a number, of any order. Hive then
/// matches columns by position.
pub fn are_placeholders<'a>(names: impl IntoIterator<Item = &'a String>) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    names.into_iter().all(|name| name.strip_prefix("_col").is_some_and(is_number))
}

/// Uses a declared type where the file's own type states less; returns whether it did.
fn take(own: &mut proto::Type, want: &proto::Type) -> bool {
    let kinds = (own.kind.and_then(Kind::from_number), want.kind.and_then(Kind::from_number));
    match kinds {
        (Some(Kind::String | Kind::Varchar | Kind::Char), Some(Kind::Binary)) => {
            (own.kind, own.maximum_length) = (want.kind, None);
            true
        }
        (Some(Kind::Decimal), Some(Kind::Decimal)) if own.precision() == 0 => {
            (own.precision, own.scale) = (want.precision, want.scale);
            true
        }
        _ => false,
    }
}

/// Declares one type and its nested types, or fails if they differ.
fn declare_type(types: &mut [proto::Type], at: u32, declared: &[proto::Type], of: u32) -> Result<()> {
    let Some(want) = declared.get(of as usize) else { return Ok(()) };
    // Mistakes in a file's own types are reported by the type tree.
    let Some(own) = types.get_mut(at as usize) else { return Ok(()) };
    if take(own, want) {
        return Ok(());
    }
    let kinds = (own.kind.and_then(Kind::from_number), want.kind.and_then(Kind::from_number));
    let digits = |t: &proto::Type| (t.precision(), t.scale());
    let alike = kinds.0 == kinds.1
        && own.subtypes.len() == want.subtypes.len()
        && own.field_names == want.field_names
        && (kinds.0 != Some(Kind::Decimal) || digits(own) == digits(want));
    if !alike {
        let name = |kind: Option<Kind>| kind.map_or("an unknown type", Kind::name);
        return Err(Error::schema(format!(
            "expected {}, as the file has it, found {}; only text may be declared as binary, and only decimals \
             without precision may get one",
            name(kinds.0),
            name(kinds.1)
        )));
    }
    let children: Vec<(u32, u32)> = own.subtypes.iter().copied().zip(want.subtypes.iter().copied()).collect();
    // Children come after their parents, so that no file causes an endless loop.
    let below = |(child, _): &&(u32, u32)| *child > at;
    children.iter().filter(below).try_for_each(|(child, of)| declare_type(types, *child, declared, *of))
}
