//! Writes CFiles: one column each, as Kudu writes the columns of a rowset.
//!
//! ```text
//! file  | header | data block, full index block .. | positional index | [value index] | [dictionary] | footer |
//! block | [rows varint | bitmap length varint | bitmap] | encoded values | [CRC-32C] |        compressed as a whole
//! ```
//! A block ends with the value that makes it as large as the block size. Nulls take no bytes, but a block has
//! at most `MAX_ROWS` rows. A dictionary that is as large as the block size is closed, and all later blocks
//! contain values. A block that compresses to more than nine tenths of its size is stored uncompressed. Tests
//! compare the files with the output of `kudu fs dump cfile`. (`cfile_writer.cc`.)

mod column;
mod encode;
mod index;
mod options;
mod values;

use std::io::Write;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use coldframe_core::{BatchWriter, Error, ErrorContext, Result};
use coldframe_encoding::checksum::crc32c;
use coldframe_encoding::codec::Compressor;
use prost::Message;

pub use self::options::Options;

use self::column::{ColumnBuffer, Finished};
use self::index::IndexBuilder;
use crate::layout::block::BlockPointer;
use crate::layout::footer::CHECKSUM_FEATURE;
use crate::layout::proto::{self, BTreeInfo, CFileFooter, MetadataPair};
use crate::layout::types::{Compression, Encoding, KuduType, MAGIC_V2, Physical};
use crate::prune::key;

/// Maximum rows of a block, even if it is not full.
const MAX_ROWS: usize = 1 << 20;

/// Writes one file.
pub struct Writer {
    sink: Sink,
    /// The column's name, for errors: the file does not store it.
    name: String,
    column: ColumnBuffer,
    data_type: KuduType,
    nullable: bool,
    rows: u64,
    positional: IndexBuilder,
    value: Option<IndexBuilder>,
    min_key: Option<Vec<u8>>,
    max_key: Option<Vec<u8>>,
}

/// Where blocks are written.
struct Sink {
    out: Box<dyn Write + Send>,
    position: u64,
    codec: Compression,
    checksums: bool,
    compressor: Compressor,
}

impl Sink {
    fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Writes a block, compressed and with its checksum.
    fn block(&mut self, contents: &[u8]) -> Result<BlockPointer> {
        let offset = self.position;
        let mut stored = Vec::new();
        if self.codec == Compression::None {
            stored.extend_from_slice(contents);
        } else {
            let size =
                u32::try_from(contents.len()).map_err(|_| Error::unsupported("a block of 4 GiB or more"))?;
            stored.extend(size.to_le_bytes());
            self.compressor.compress(self.codec.algorithm(), None, contents, &mut stored)?;
            if (stored.len() - 4).saturating_mul(10) > contents.len().saturating_mul(9) {
                stored.truncate(4);
                stored.extend_from_slice(contents);
            }
        }
        if self.checksums {
            stored.extend(crc32c(&stored).to_le_bytes());
        }
        self.raw(&stored)?;
        // The footer stores the size of a block as a signed 32-bit integer.
        let size = i32::try_from(stored.len()).map_err(|_| Error::unsupported("a block of 2 GiB or more"))?;
        Ok(BlockPointer { offset, size: size.unsigned_abs() })
    }
}

impl Writer {
    /// Writes the header.
    pub fn new(out: Box<dyn Write + Send>, schema: &SchemaRef, options: &Options) -> Result<Self> {
        let [field] = schema.fields().iter().collect::<Vec<_>>()[..] else {
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            return Err(Error::unsupported(format!(
                "a CFile of {} columns ({}); a CFile has one column",
                names.len(),
                names.join(", ")
            )));
        };
        let data_type =
            type_of(field.data_type(), options.data_type).within(|| format!("column `{}`", field.name()))?;
        let encoding = encoding_of(data_type, options.encoding)?;
        if options.value_index && (field.is_nullable() || !has_key(data_type)) {
            return Err(Error::unsupported(format!(
                "a value index over a nullable column or a column of {data_type}"
            )));
        }
        let mut sink = Sink {
            out,
            position: 0,
            codec: options.codec,
            checksums: options.checksums,
            compressor: Compressor::new(),
        };
        let mut header = MAGIC_V2.to_vec();
        header.extend(0u32.to_le_bytes());
        if options.checksums {
            header.extend(crc32c(&header).to_le_bytes());
        }
        sink.raw(&header)?;
        Ok(Self {
            sink,
            name: field.name().clone(),
            column: ColumnBuffer::new(
                data_type.physical(),
                encoding,
                field.is_nullable(),
                options.block_size,
            ),
            data_type,
            nullable: field.is_nullable(),
            rows: 0,
            positional: IndexBuilder::new(),
            value: options.value_index.then(IndexBuilder::new),
            min_key: None,
            max_key: None,
        })
    }

    /// Encodes the keys of values, which must be in ascending order; records the first and the last key of
    /// the file.
    fn keys(&mut self, values: &ArrayRef) -> Result<Vec<Vec<u8>>> {
        let mut keys: Vec<Vec<u8>> = Vec::with_capacity(values.len());
        for i in 0..values.len() {
            let key = key::encode(self.data_type, values, i);
            let key = key.ok_or_else(|| {
                Error::schema("expected no nulls in a column with a value index, found a null")
            })?;
            if keys.last().or(self.max_key.as_ref()).is_some_and(|last| *last >= key) {
                return Err(Error::schema(format!(
                    "expected ascending values for a value index, found row {} not above the previous row",
                    self.rows + i as u64
                )));
            }
            self.min_key.get_or_insert_with(|| key.clone());
            keys.push(key);
        }
        self.max_key = keys.last().cloned().or(self.max_key.take());
        Ok(keys)
    }

    /// Adds values of the file's type.
    fn append(&mut self, values: &ArrayRef) -> Result<()> {
        if !self.nullable && values.null_count() > 0 {
            let row = (0..values.len()).find(|i| values.is_null(*i)).unwrap_or(0) as u64;
            return Err(Error::schema(format!(
                "expected no nulls in a column that is not nullable, found a null in row {}",
                self.rows + row
            )));
        }
        if self.rows + values.len() as u64 > u64::from(u32::MAX) {
            return Err(Error::unsupported("a CFile of 2^32 values or more"));
        }
        let mut from = 0;
        while from < values.len() {
            let n = self.column.room(values, from, MAX_ROWS)?;
            let part = values.slice(from, n);
            let keys = if self.value.is_some() { self.keys(&part)? } else { Vec::new() };
            let full = self.column.append(&part, &keys, &mut self.sink.compressor)?;
            self.rows += n as u64;
            from += n;
            for block in full {
                self.put(block)?;
            }
        }
        Ok(())
    }

    /// Writes a block and its entries in the indexes.
    fn put(&mut self, block: Finished) -> Result<()> {
        let to = self.sink.block(&block.bytes)?;
        let sink = &mut self.sink;
        self.positional.add(&block.ordinal.to_be_bytes(), to, &mut |bytes| sink.block(bytes))?;
        if let (Some(index), Some((before, first))) = (&mut self.value, block.keys) {
            let sink = &mut self.sink;
            index.add(separator(&before, &first), to, &mut |bytes| sink.block(bytes))?;
        }
        Ok(())
    }
}

/// The shortest prefix of `first` that is greater than `before`.
fn separator<'a>(before: &[u8], first: &'a [u8]) -> &'a [u8] {
    let shared = before.iter().zip(first).take_while(|(a, b)| a == b).count();
    first.get(..=shared).unwrap_or(first)
}

fn has_key(data_type: KuduType) -> bool {
    !matches!(
        data_type,
        KuduType::Float | KuduType::Double | KuduType::Bool | KuduType::IsDeleted | KuduType::Int128
    )
}

/// Kudu's type for an Arrow type, or the requested type if it can hold the values.
fn type_of(arrow: &DataType, asked: Option<KuduType>) -> Result<KuduType> {
    let own = match arrow {
        DataType::Boolean => KuduType::Bool,
        DataType::Int8 => KuduType::Int8,
        DataType::Int16 => KuduType::Int16,
        DataType::Int32 => KuduType::Int32,
        DataType::Int64 => KuduType::Int64,
        DataType::UInt8 => KuduType::UInt8,
        DataType::UInt16 => KuduType::UInt16,
        DataType::UInt32 => KuduType::UInt32,
        DataType::UInt64 => KuduType::UInt64,
        DataType::Float32 => KuduType::Float,
        DataType::Float64 => KuduType::Double,
        DataType::Date32 => KuduType::Date,
        DataType::Timestamp(..) => KuduType::UnixtimeMicros,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => KuduType::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            KuduType::Binary
        }
        DataType::Decimal128(_, scale @ ..0) => {
            return Err(Error::unsupported(format!("a CFile of decimals with the scale {scale}")));
        }
        DataType::Decimal128(1..=9, _) => KuduType::Decimal32,
        DataType::Decimal128(10..=18, _) => KuduType::Decimal64,
        DataType::Decimal128(..) => KuduType::Decimal128,
        DataType::Dictionary(_, value) => return type_of(value, asked),
        other => return Err(Error::unsupported(format!("a CFile of Arrow's {other}"))),
    };
    let Some(asked) = asked.filter(|asked| *asked != own) else { return Ok(own) };
    let decimal = |t: KuduType| matches!(t, KuduType::Decimal32 | KuduType::Decimal64 | KuduType::Decimal128);
    let fits = match (own, asked) {
        (KuduType::String, KuduType::Varchar) | (KuduType::Bool, KuduType::IsDeleted) => true,
        (a, KuduType::Int128) if decimal(a) => true,
        (a, b) if decimal(a) && decimal(b) => a.number() < b.number(),
        _ => false,
    };
    if fits {
        return Ok(asked);
    }
    Err(Error::unsupported(format!("a CFile of {asked} from Arrow's {arrow}")))
}

/// The requested encoding if the type has it, else the type's default.
fn encoding_of(data_type: KuduType, asked: Option<Encoding>) -> Result<Encoding> {
    let all: &[Encoding] = match data_type.physical() {
        Physical::Bool => &[Encoding::Rle, Encoding::Plain],
        Physical::Binary => &[Encoding::Dict, Encoding::Plain, Encoding::Prefix],
        Physical::Fixed(16) => &[Encoding::BitShuffle, Encoding::Plain],
        Physical::Fixed(_) => match data_type {
            KuduType::Float | KuduType::Double => &[Encoding::BitShuffle, Encoding::Plain],
            KuduType::UInt32 => {
                &[Encoding::BitShuffle, Encoding::Plain, Encoding::Rle, Encoding::GroupVarint]
            }
            _ => &[Encoding::BitShuffle, Encoding::Plain, Encoding::Rle],
        },
    };
    match (asked, all) {
        (None, [own, ..]) => Ok(*own),
        (Some(asked), all) if all.contains(&asked) => Ok(asked),
        (asked, _) => Err(Error::unsupported(format!("{} of {data_type}", asked.map_or("", Encoding::name)))),
    }
}

impl BatchWriter for Writer {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(values) = batch.columns().first() else { return Ok(()) };
        let (data_type, name) = (self.data_type, self.name.clone());
        values::each_piece(values, data_type, &mut |piece| self.append(piece))
            .map_err(|e| e.within(format!("column `{name}`")))
    }

    fn finish(mut self: Box<Self>) -> Result<u64> {
        for block in self.column.finish(&mut self.sink.compressor)? {
            self.put(block)?;
        }
        let this = *self;
        let mut sink = this.sink;
        let info =
            |to: BlockPointer| -> Result<BTreeInfo> { Ok(BTreeInfo { root_block: Some(message(to)?) }) };
        let positional = this.positional.finish(&mut |bytes| sink.block(bytes))?;
        let value = match this.value {
            Some(index) => Some(info(index.finish(&mut |bytes| sink.block(bytes))?)?),
            None => None,
        };
        let dictionary = this.column.dictionary_block().map(|bytes| sink.block(&bytes)).transpose()?;
        let pair = |key: &str, value: Option<Vec<u8>>| {
            value.map(|value| MetadataPair { key: key.as_bytes().to_vec(), value })
        };
        let footer = CFileFooter {
            data_type: Some(this.data_type.number()),
            encoding: Some(this.column.encoding().number()),
            num_values: Some(i64::try_from(this.rows).unwrap_or(i64::MAX)),
            posidx_info: Some(info(positional)?),
            validx_info: value,
            compression: Some(sink.codec.number()),
            metadata: pair("min_key", this.min_key)
                .into_iter()
                .chain(pair("max_key", this.max_key))
                .collect(),
            is_type_nullable: Some(this.nullable),
            dict_block_ptr: dictionary.map(message).transpose()?,
            incompatible_features: Some(if sink.checksums { CHECKSUM_FEATURE } else { 0 }),
            compatible_features: None,
            is_type_array: None,
        };
        let mut tail = footer.encode_to_vec();
        let len = u32::try_from(tail.len()).map_err(|_| Error::unsupported("a footer of 4 GiB or more"))?;
        tail.extend_from_slice(MAGIC_V2);
        tail.extend(len.to_le_bytes());
        if sink.checksums {
            sink.raw(&crc32c(&tail).to_le_bytes())?;
        }
        sink.raw(&tail)?;
        sink.out.flush()?;
        Ok(sink.position)
    }
}

fn message(to: BlockPointer) -> Result<proto::BlockPointer> {
    let offset = i64::try_from(to.offset).map_err(|_| Error::unsupported("a file of 2^63 bytes or more"))?;
    let size = i32::try_from(to.size).map_err(|_| Error::unsupported("a block of 2 GiB or more"))?;
    Ok(proto::BlockPointer { offset: Some(offset), size: Some(size) })
}
