//! The footer: the file's metadata as plain structs, read from and written as thrift.
//!
//! ```text
//! FileMetaData   | 1 version = 1 | 2 schema | 3 num_rows | 4 row_groups | 5 key_value_metadata |
//! SchemaElement  | 1 type | 2 repetition | 3 name | 4 children: i32 or list<i32> | 5 converted_type |
//! RowGroup       | 1 columns | 2 total_byte_size | 3 num_rows |
//! ColumnChunk    | 1 file_path | 2 file_offset | 3 meta_data |
//! ColumnMetaData | 1 type | 2 encodings | 3 path_in_schema | 4 codec | 5 num_values | 6 total_uncompressed_size
//!                | 7 total_compressed_size | 8 data_page_offset | 9 index_page_offset | 10 key_value_metadata |
//! KeyValue       | 1 key | 2 value |
//! ```
//!
//! Source: `redfile.thrift` as published with the format's README, and what its one writer wrote. Field 4 of an element
//! was first a list of the children's indexes, later their number.

use coldframe_encoding::{Error, Limits, Result};

use crate::layout::thrift::{Field, Reader, ThriftType, Writer};

/// The type of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// Booleans.
    Boolean,
    /// 32-bit integers.
    Int32,
    /// 64-bit integers.
    Int64,
    /// Values of 96 bits.
    Int96,
    /// IEEE 754, 32 bits.
    Float,
    /// IEEE 754, 64 bits.
    Double,
    /// Bytes of any length.
    ByteArray,
}

impl Type {
    const ALL: [Self; 7] =
        [Self::Boolean, Self::Int32, Self::Int64, Self::Int96, Self::Float, Self::Double, Self::ByteArray];

    /// The number in the file.
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The name in the thrift definition.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::Int32 => "INT32",
            Self::Int64 => "INT64",
            Self::Int96 => "INT96",
            Self::Float => "FLOAT",
            Self::Double => "DOUBLE",
            Self::ByteArray => "BYTE_ARRAY",
        }
    }

    fn from_code(code: i32) -> Result<Self> {
        from_table(Self::ALL, code, "a type of 0 to 6")
    }
}

/// How often a value occurs in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Repetition {
    /// Once.
    Required,
    /// Once or not at all.
    Optional,
    /// Any number of times.
    Repeated,
}

impl Repetition {
    /// The number in the file.
    pub fn code(self) -> i32 {
        self as i32
    }

    fn from_code(code: i32) -> Result<Self> {
        from_table([Self::Required, Self::Optional, Self::Repeated], code, "a repetition of 0 to 2")
    }
}

fn from_table<T: Copy, const N: usize>(all: [T; N], code: i32, what: &str) -> Result<T> {
    let value = usize::try_from(code).ok().and_then(|i| all.get(i)).copied();
    value.ok_or_else(|| Error::corrupt(format!("expected {what}, found {code}")))
}

/// The compression of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// No compression.
    Uncompressed,
    /// Snappy in Hadoop's framing.
    Snappy,
    /// A gzip member.
    Gzip,
    /// LZO in Hadoop's framing.
    Lzo,
    /// A codec with an unknown number.
    Unknown(i32),
}

impl Codec {
    /// The number in the file.
    pub fn code(self) -> i32 {
        match self {
            Self::Uncompressed => 0,
            Self::Snappy => 1,
            Self::Gzip => 2,
            Self::Lzo => 3,
            Self::Unknown(code) => code,
        }
    }

    fn from_code(code: i32) -> Self {
        match code {
            0 => Self::Uncompressed,
            1 => Self::Snappy,
            2 => Self::Gzip,
            3 => Self::Lzo,
            other => Self::Unknown(other),
        }
    }

    /// The name in the thrift definition.
    pub fn name(self) -> String {
        match self {
            Self::Uncompressed => "UNCOMPRESSED".to_owned(),
            Self::Snappy => "SNAPPY".to_owned(),
            Self::Gzip => "GZIP".to_owned(),
            Self::Lzo => "LZO".to_owned(),
            Self::Unknown(code) => code.to_string(),
        }
    }
}

/// The number of the encoding PLAIN.
pub const PLAIN: i32 = 0;
/// The number of the encoding GROUP_VAR_INT.
pub const GROUP_VAR_INT: i32 = 1;

/// The converted type of text.
pub const CONVERTED_UTF8: i32 = 0;
/// The converted type of a group around a repeated group of keys and values.
pub const CONVERTED_MAP: i32 = 1;
/// The converted type of the repeated group inside a map.
pub const CONVERTED_MAP_KEY_VALUE: i32 = 2;
/// The converted type of a list: a group around a repeated group around elements. This type is from Parquet;
/// no writer of Redfiles used it at the time.
pub const CONVERTED_LIST: i32 = 3;

/// How an element lists its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Children {
    /// The element has no children: it is a leaf.
    #[default]
    None,
    /// This number of the following elements are children, each followed by its own descendants.
    Count(i32),
    /// The indexes of the element's children in the list of elements.
    Indices(Vec<i32>),
}

/// A node of the schema tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaElement {
    /// The element's type; groups have none.
    pub physical_type: Option<Type>,
    /// How often the element occurs in its parent; may be absent for the root.
    pub repetition: Option<Repetition>,
    /// The element's name.
    pub name: String,
    /// The element's children.
    pub children: Children,
    /// What the type represents.
    pub converted_type: Option<i32>,
}

/// A key with or without a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyValue {
    /// The key: UTF-8, except if it is damaged.
    pub key: Vec<u8>,
    /// The value.
    pub value: Option<Vec<u8>>,
}

/// The pages of one leaf in one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMetaData {
    /// The leaf's type.
    pub physical_type: Type,
    /// The encodings that the chunk's pages use.
    pub encodings: Vec<i32>,
    /// The leaf's names, starting at the root's child.
    pub path_in_schema: Vec<String>,
    /// The compression of the chunk's pages.
    pub codec: Codec,
    /// The number of values, including nulls.
    pub num_values: i64,
    /// The size of the pages before compression.
    pub total_uncompressed_size: i64,
    /// The size of the pages in the file.
    pub total_compressed_size: i64,
    /// The offset of the header of the chunk's first data page.
    pub data_page_offset: i64,
    /// The offset of the chunk's index pages.
    pub index_page_offset: Option<i64>,
    /// User metadata.
    pub key_value_metadata: Vec<KeyValue>,
}

/// Where a column chunk is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnChunk {
    /// The file that holds the chunk, if it is another file.
    pub file_path: Option<String>,
    /// The offset of the chunk's metadata in that file; old writers store the offset of the first page.
    pub file_offset: i64,
    /// A copy of the metadata.
    pub meta_data: Option<ColumnMetaData>,
}

/// Rows whose columns are stored together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowGroup {
    /// The column chunks, one for each leaf.
    pub columns: Vec<ColumnChunk>,
    /// The total size in bytes; old writers store 0.
    pub total_byte_size: i64,
    /// Number of rows.
    pub num_rows: i64,
}

/// The footer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileMetaData {
    /// The format's version: 1.
    pub version: i32,
    /// The tree, root first.
    pub schema: Vec<SchemaElement>,
    /// Number of rows in the file, as the writer added it up; the sum may have overflowed at 2^31.
    pub num_rows: i64,
    /// The row groups in file order.
    pub row_groups: Vec<RowGroup>,
    /// The user's metadata.
    pub key_value_metadata: Vec<KeyValue>,
}

fn required<T>(value: Option<T>, name: &str, r: &Reader<'_>) -> Result<T> {
    value.ok_or_else(|| Error::corrupt(format!("expected a field {name}, found none")).at(r.offset()))
}

impl FileMetaData {
    /// Parses `bytes`, which are at `offset` in the file.
    pub fn parse(bytes: &[u8], offset: u64, limits: &Limits) -> Result<Self> {
        let mut reader = Reader::new(bytes, offset, limits);
        let metadata = Self::decode(&mut reader)?;
        reader.cursor().finish()?;
        Ok(metadata)
    }

    /// Decodes the structure. Bytes after the struct are ignored.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self> {
        let (mut version, mut num_rows, mut schema, mut row_groups) = (None, None, None, None);
        let mut key_value_metadata = Vec::new();
        r.structure(|r, f| {
            match f.id {
                1 => version = Some(r.i32(f)?),
                2 => schema = Some(r.list(f, ThriftType::Struct, |r, _| SchemaElement::decode(r))?),
                3 => num_rows = Some(r.i64(f)?),
                4 => row_groups = Some(r.list(f, ThriftType::Struct, |r, _| RowGroup::decode(r))?),
                5 => key_value_metadata = key_values(r, f)?,
                _ => r.skip(f)?,
            }
            Ok(())
        })?;
        Ok(Self {
            version: required(version, "version", r)?,
            schema: required(schema, "schema", r)?,
            num_rows: required(num_rows, "num_rows", r)?,
            row_groups: required(row_groups, "row_groups", r)?,
            key_value_metadata,
        })
    }

    /// Encodes the footer as Thrift.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.structure(|w| {
            w.i32(1, self.version);
            w.list(2, ThriftType::Struct, &self.schema, |w, e| e.encode(w));
            w.i64(3, self.num_rows);
            w.list(4, ThriftType::Struct, &self.row_groups, |w, g| g.encode(w));
            put_key_values(w, 5, &self.key_value_metadata);
        });
        w.finish()
    }
}

impl SchemaElement {
    fn decode(r: &mut Reader<'_>) -> Result<Self> {
        let (mut element, mut name) = (Self::default(), None);
        r.structure(|r, f| {
            let at = r.offset();
            match f.id {
                1 => element.physical_type = Some(Type::from_code(r.i32(f)?).map_err(|e| e.at(at))?),
                2 => element.repetition = Some(Repetition::from_code(r.i32(f)?).map_err(|e| e.at(at))?),
                3 => name = Some(r.text(f)?),
                4 if f.kind == ThriftType::List => {
                    element.children = Children::Indices(r.list(f, ThriftType::I32, |r, f| r.i32(f))?);
                }
                4 => element.children = Children::Count(r.i32(f)?),
                5 => element.converted_type = Some(r.i32(f)?),
                _ => r.skip(f)?,
            }
            Ok(())
        })?;
        element.name = required(name, "name", r)?;
        Ok(element)
    }

    fn encode(&self, w: &mut Writer) {
        w.structure(|w| {
            if let Some(physical) = self.physical_type {
                w.i32(1, physical.code());
            }
            if let Some(repetition) = self.repetition {
                w.i32(2, repetition.code());
            }
            w.binary(3, self.name.as_bytes());
            match &self.children {
                Children::None => {}
                Children::Count(n) => w.i32(4, *n),
                Children::Indices(places) => w.list(4, ThriftType::I32, places, |w, i| w.element_i32(*i)),
            }
            if let Some(converted) = self.converted_type {
                w.i32(5, converted);
            }
        });
    }
}

impl RowGroup {
    fn decode(r: &mut Reader<'_>) -> Result<Self> {
        let (mut columns, mut total_byte_size, mut num_rows) = (None, 0, None);
        r.structure(|r, f| {
            match f.id {
                1 => columns = Some(r.list(f, ThriftType::Struct, |r, _| ColumnChunk::decode(r))?),
                2 => total_byte_size = r.i64(f)?,
                3 => num_rows = Some(r.i64(f)?),
                _ => r.skip(f)?,
            }
            Ok(())
        })?;
        Ok(Self {
            columns: required(columns, "columns", r)?,
            total_byte_size,
            num_rows: required(num_rows, "num_rows", r)?,
        })
    }

    fn encode(&self, w: &mut Writer) {
        w.structure(|w| {
            w.list(1, ThriftType::Struct, &self.columns, |w, c| c.encode(w));
            w.i64(2, self.total_byte_size);
            w.i64(3, self.num_rows);
        });
    }
}

impl ColumnChunk {
    fn decode(r: &mut Reader<'_>) -> Result<Self> {
        let (mut chunk, mut file_offset) = (Self::default(), None);
        r.structure(|r, f| {
            match f.id {
                1 => chunk.file_path = Some(r.text(f)?),
                2 => file_offset = Some(r.i64(f)?),
                3 if f.kind == ThriftType::Struct => chunk.meta_data = Some(ColumnMetaData::decode(r)?),
                _ => r.skip(f)?,
            }
            Ok(())
        })?;
        chunk.file_offset = required(file_offset, "file_offset", r)?;
        Ok(chunk)
    }

    fn encode(&self, w: &mut Writer) {
        w.structure(|w| {
            if let Some(path) = &self.file_path {
                w.binary(1, path.as_bytes());
            }
            w.i64(2, self.file_offset);
            if let Some(metadata) = &self.meta_data {
                w.struct_field(3, |w| metadata.put_fields(w));
            }
        });
    }
}

impl ColumnMetaData {
    /// Decodes the structure. Bytes after the struct are ignored.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self> {
        let (mut physical_type, mut encodings, mut path, mut codec) = (None, Vec::new(), None, None);
        let (mut num_values, mut uncompressed, mut compressed) = (None, 0, 0);
        let (mut data_page_offset, mut index_page_offset, mut key_value_metadata) = (None, None, Vec::new());
        r.structure(|r, f| {
            let at = r.offset();
            match f.id {
                1 => physical_type = Some(Type::from_code(r.i32(f)?).map_err(|e| e.at(at))?),
                2 => encodings = r.list(f, ThriftType::I32, |r, f| r.i32(f))?,
                3 => path = Some(r.list(f, ThriftType::Binary, |r, f| r.text(f))?),
                4 => codec = Some(Codec::from_code(r.i32(f)?)),
                5 => num_values = Some(r.i64(f)?),
                6 => uncompressed = r.i64(f)?,
                7 => compressed = r.i64(f)?,
                8 => data_page_offset = Some(r.i64(f)?),
                9 => index_page_offset = Some(r.i64(f)?),
                10 => key_value_metadata = key_values(r, f)?,
                _ => r.skip(f)?,
            }
            Ok(())
        })?;
        Ok(Self {
            physical_type: required(physical_type, "type", r)?,
            encodings,
            path_in_schema: required(path, "path_in_schema", r)?,
            codec: required(codec, "codec", r)?,
            num_values: required(num_values, "num_values", r)?,
            total_uncompressed_size: uncompressed,
            total_compressed_size: compressed,
            data_page_offset: required(data_page_offset, "data_page_offset", r)?,
            index_page_offset,
            key_value_metadata,
        })
    }

    /// Encodes the metadata as Thrift, to be written after the chunk.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.structure(|w| self.put_fields(w));
        w.finish()
    }

    fn put_fields(&self, w: &mut Writer) {
        w.i32(1, self.physical_type.code());
        w.list(2, ThriftType::I32, &self.encodings, |w, e| w.element_i32(*e));
        w.list(3, ThriftType::Binary, &self.path_in_schema, |w, name| w.element_binary(name.as_bytes()));
        w.i32(4, self.codec.code());
        w.i64(5, self.num_values);
        w.i64(6, self.total_uncompressed_size);
        w.i64(7, self.total_compressed_size);
        w.i64(8, self.data_page_offset);
        if let Some(offset) = self.index_page_offset {
            w.i64(9, offset);
        }
        put_key_values(w, 10, &self.key_value_metadata);
    }
}

fn key_values(r: &mut Reader<'_>, field: Field) -> Result<Vec<KeyValue>> {
    r.list(field, ThriftType::Struct, |r, _| {
        let mut pair = KeyValue::default();
        r.structure(|r, f| {
            match f.id {
                1 => pair.key = r.binary(f)?.to_vec(),
                2 => pair.value = Some(r.binary(f)?.to_vec()),
                _ => r.skip(f)?,
            }
            Ok(())
        })?;
        Ok(pair)
    })
}

/// Writes a list; an empty list is left out, as in the reference.
fn put_key_values(w: &mut Writer, id: i16, pairs: &[KeyValue]) {
    if pairs.is_empty() {
        return;
    }
    w.list(id, ThriftType::Struct, pairs, |w, pair| {
        w.structure(|w| {
            w.binary(1, &pair.key);
            if let Some(value) = &pair.value {
                w.binary(2, value);
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> FileMetaData {
        let element = |name: &str, physical, repetition, children, converted_type| SchemaElement {
            physical_type: physical,
            repetition,
            name: name.to_owned(),
            children,
            converted_type,
        };
        let metadata = ColumnMetaData {
            physical_type: Type::ByteArray,
            encodings: vec![PLAIN],
            path_in_schema: vec!["g".to_owned(), "x".to_owned()],
            codec: Codec::Unknown(9),
            num_values: 3,
            total_uncompressed_size: 4,
            total_compressed_size: 5,
            data_page_offset: 6,
            index_page_offset: Some(7),
            key_value_metadata: vec![KeyValue { key: b"k".to_vec(), value: None }],
        };
        FileMetaData {
            version: 1,
            schema: vec![
                element("m", None, None, Children::Count(1), None),
                element("g", None, Some(Repetition::Repeated), Children::Indices(vec![2]), None),
                element("x", Some(Type::ByteArray), Some(Repetition::Optional), Children::None, Some(0)),
            ],
            num_rows: 2,
            row_groups: vec![RowGroup {
                columns: vec![ColumnChunk {
                    file_path: Some("part".to_owned()),
                    file_offset: 4,
                    meta_data: Some(metadata),
                }],
                total_byte_size: 0,
                num_rows: 2,
            }],
            key_value_metadata: vec![KeyValue { key: b"a".to_vec(), value: Some(vec![0xff]) }],
        }
    }

    #[test]
    fn encoded_metadata_is_parsed_to_the_same_metadata() {
        let bytes = sample().encode();
        assert_eq!(FileMetaData::parse(&bytes, 0, &Limits::default()).unwrap(), sample());
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let bytes = sample().encode();
        for n in 0..bytes.len() {
            assert!(FileMetaData::parse(&bytes[..n], 0, &Limits::default()).is_err());
            for flip in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[n] ^= flip;
                let _ = FileMetaData::parse(&damaged, 0, &Limits::default());
            }
        }
        let e = FileMetaData::parse(&[0x15, 2, 0], 40, &Limits::default()).unwrap_err();
        assert_eq!(e.to_string(), "byte 43: expected a field schema, found none");
    }
}
