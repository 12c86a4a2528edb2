//! Stores the tree of types as a list: a column for each type, numbered in pre-order.
//!
//! ```text
//! struct<a:int,b:list<string>,c:double>      0 struct | 1 a int | 2 b list | 3 b.item string | 4 c double
//! ```
//!
//! ORC specification v1, "Schema". The Arrow form is in [`crate::schema`].

use coldframe_encoding::{Error, Limits, Result};

use super::proto;

/// `Type.Kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the specification's")]
#[non_exhaustive]
pub enum Kind {
    Boolean,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    String,
    Binary,
    Timestamp,
    List,
    Map,
    Struct,
    Union,
    Decimal,
    Date,
    Varchar,
    Char,
    TimestampInstant,
    Geometry,
    Geography,
}

/// The kinds in the order of their numbers.
const KINDS: [Kind; 21] = [
    Kind::Boolean,
    Kind::Byte,
    Kind::Short,
    Kind::Int,
    Kind::Long,
    Kind::Float,
    Kind::Double,
    Kind::String,
    Kind::Binary,
    Kind::Timestamp,
    Kind::List,
    Kind::Map,
    Kind::Struct,
    Kind::Union,
    Kind::Decimal,
    Kind::Date,
    Kind::Varchar,
    Kind::Char,
    Kind::TimestampInstant,
    Kind::Geometry,
    Kind::Geography,
];

impl Kind {
    /// The kind with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        usize::try_from(number).ok().and_then(|n| KINDS.get(n)).copied()
    }

    /// Its number.
    pub fn number(self) -> u32 {
        KINDS.iter().position(|k| *k == self).and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX)
    }

    /// Approximate minimum memory of a value in bytes: an offset if it has no fixed length.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Boolean | Self::Byte | Self::Struct | Self::Union => 1,
            Self::Short => 2,
            Self::Long | Self::Double | Self::Timestamp | Self::TimestampInstant => 8,
            Self::Decimal => 16,
            _ => 4,
        }
    }

    /// The kind's name in a type's text, as in Hive.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Byte => "tinyint",
            Self::Short => "smallint",
            Self::Int => "int",
            Self::Long => "bigint",
            Self::Float => "float",
            Self::Double => "double",
            Self::String => "string",
            Self::Binary => "binary",
            Self::Timestamp => "timestamp",
            Self::List => "array",
            Self::Map => "map",
            Self::Struct => "struct",
            Self::Union => "uniontype",
            Self::Decimal => "decimal",
            Self::Date => "date",
            Self::Varchar => "varchar",
            Self::Char => "char",
            Self::TimestampInstant => "timestamp with local time zone",
            Self::Geometry => "geometry",
            Self::Geography => "geography",
        }
    }
}

/// A column: one type of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Its number.
    pub(crate) id: usize,
    /// Its type.
    pub(crate) kind: Kind,
    /// The numbers of the column's children.
    pub(crate) children: Vec<usize>,
    /// The names of the children, for a struct.
    pub(crate) field_names: Vec<String>,
    /// Whether it is inside a list or map, so that its number of values may differ from the number of rows.
    pub(crate) repeated: bool,
    /// The number after that of the last column that is nested in this one.
    pub(crate) end: usize,
    /// The dotted path from the root, for messages.
    pub(crate) path: String,
    /// The length of char and varchar.
    pub(crate) maximum_length: Option<u32>,
    /// The precision of decimals; 0 in Hive 0.11.
    pub(crate) precision: u32,
    /// The scale of decimals.
    pub(crate) scale: u32,
    /// The user's attributes.
    pub(crate) attributes: Vec<(String, String)>,
    /// Coordinate system of geometry and geography.
    pub(crate) crs: Option<String>,
    /// The algorithm that interpolates the edges of a geography.
    pub(crate) algorithm: Option<u32>,
}

/// The columns of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeTree {
    columns: Vec<Column>,
}

impl TypeTree {
    /// Checks that the types are a tree in pre-order.
    pub(crate) fn new(types: &[proto::Type], limits: &Limits) -> Result<Self> {
        // The root of a table is not one of its columns.
        limits.columns("the footer's list of types", types.len().saturating_sub(1) as u64)?;
        let mut columns = Vec::with_capacity(types.len());
        for (id, stored) in types.iter().enumerate() {
            let column = to_column(id, stored).map_err(|e| e.within(format!("type {id}")))?;
            if column.children.iter().any(|c| *c <= id || *c >= types.len()) {
                let message =
                    format!("expected children in {}..{}, found {:?}", id + 1, types.len(), column.children);
                return Err(Error::corrupt(message).within(format!("type {id}")));
            }
            columns.push(column);
        }
        let mut tree = Self { columns };
        if !tree.columns.is_empty() {
            let end = tree.place(0, String::new(), false, 1, limits)?;
            if end != tree.columns.len() {
                let message = format!("expected a tree of {} types, found one of {end}", tree.columns.len());
                return Err(Error::corrupt(message));
            }
        }
        Ok(tree)
    }

    /// Sets the path and the end of column `id`.
    fn place(
        &mut self,
        id: usize,
        path: String,
        repeated: bool,
        depth: u64,
        limits: &Limits,
    ) -> Result<usize> {
        limits.depth("the tree of types", depth)?;
        let Some(column) = self.columns.get_mut(id) else { return Ok(id) };
        column.path.clone_from(&path);
        column.repeated = repeated;
        let (kind, children) = (column.kind, column.children.clone());
        let names = column.field_names.clone();
        let mut next = id + 1;
        for (place, child) in children.into_iter().enumerate() {
            if child != next {
                let message = format!("expected types in pre-order, child {next}, found {child}");
                return Err(Error::corrupt(message).within(format!("type {id}")));
            }
            let step = match kind {
                Kind::Struct => names.get(place).cloned().unwrap_or_default(),
                Kind::List => "item".to_owned(),
                Kind::Map => if place == 0 { "key" } else { "value" }.to_owned(),
                _ => format!("_union_{place}"),
            };
            let below = path_below(&path, step);
            next = self.place(
                child,
                below,
                repeated || matches!(kind, Kind::List | Kind::Map),
                depth + 1,
                limits,
            )?;
        }
        if let Some(column) = self.columns.get_mut(id) {
            column.end = next;
        }
        Ok(next)
    }

    /// All columns by their numbers.
    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// One column.
    pub(crate) fn get(&self, id: usize) -> Option<&Column> {
        self.columns.get(id)
    }

    /// Sets the scale of a decimal that states no scale.
    pub(crate) fn set_scale(&mut self, id: usize, scale: u32) {
        if let Some(column) = self.columns.get_mut(id) {
            column.scale = scale;
        }
    }

    /// The first type; `None` if there is no type.
    pub(crate) fn root(&self) -> Option<&Column> {
        self.columns.first()
    }

    /// Approximate memory of one row of a column in bytes, with nested columns but without the elements of
    /// lists and maps.
    pub(crate) fn row_bytes(&self, id: usize) -> u64 {
        let Some(column) = self.get(id) else { return 0 };
        let own = column.kind.bytes();
        match column.kind {
            Kind::List | Kind::Map => own,
            _ => column.children.iter().map(|id| self.row_bytes(*id)).fold(own, u64::saturating_add),
        }
    }

    /// For each column, the column after the last column inside it.
    pub(crate) fn ends(&self) -> Vec<usize> {
        self.columns.iter().map(|c| c.end).collect()
    }
}

/// Longest path of a column in bytes: each nested column repeats its parent's path, so a long name would be
/// stored many times.
const LONGEST_PATH: usize = 256;

/// The path of a child, shortened in the middle if it is too long: it is only for display.
fn path_below(path: &str, step: String) -> String {
    let whole = if path.is_empty() { step } else { format!("{path}.{step}") };
    if whole.len() <= LONGEST_PATH {
        return whole;
    }
    let half = LONGEST_PATH / 2 - 2;
    let is_boundary = |at: &usize| whole.is_char_boundary(*at);
    let front = (0..=half).rev().find(is_boundary).unwrap_or(0);
    let back = (whole.len() - half..whole.len()).find(is_boundary).unwrap_or(whole.len());
    format!("{}\u{2026}{}", whole.get(..front).unwrap_or_default(), whole.get(back..).unwrap_or_default())
}

fn to_column(id: usize, stored: &proto::Type) -> Result<Column> {
    let number = stored.kind.unwrap_or(0);
    let kind = Kind::from_number(number).ok_or_else(|| Error::unsupported(format!("ORC type {number}")))?;
    let children: Vec<usize> =
        stored.subtypes.iter().map(|c| usize::try_from(*c).unwrap_or(usize::MAX)).collect();
    let fits = match kind {
        Kind::Struct => children.len() == stored.field_names.len(),
        Kind::List => children.len() == 1,
        Kind::Map => children.len() == 2,
        // Tags are bytes, and signed in Arrow. A union without types could have no value.
        Kind::Union => (1..=127).contains(&children.len()),
        _ => children.is_empty(),
    };
    if !fits {
        return Err(Error::corrupt(format!(
            "expected the children of a {}, found {} with {} names",
            kind.name(),
            children.len(),
            stored.field_names.len()
        )));
    }
    let pair = |p: &proto::StringPair| (p.key().to_owned(), p.value().to_owned());
    Ok(Column {
        id,
        kind,
        children,
        field_names: stored.field_names.clone(),
        repeated: false,
        end: id + 1,
        path: String::new(),
        maximum_length: stored.maximum_length,
        precision: stored.precision.unwrap_or(0),
        scale: stored.scale.unwrap_or(0),
        attributes: stored.attributes.iter().map(pair).collect(),
        crs: stored.crs.clone(),
        algorithm: stored.algorithm,
    })
}
