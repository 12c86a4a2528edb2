//! RCFile as one of the formats.

use std::io::Write;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::format::check_options;
use coldframe_core::options::{integer, text};
use coldframe_core::{
    BatchWriter, Capabilities, Error, Format, OpenOptions, OptionDoc, Result, Source, TableFile, WriteOptions,
};
use coldframe_encoding::codec::Algorithm;
use coldframe_encoding::codec::hadoop::HadoopCodec;

use crate::hive_type::ddl;
use crate::layout::header::{Header, Magic};
use crate::options::{self, OPEN_OPTIONS};
use crate::table::RcFile;
use crate::write;

/// Hive RCFile.
#[derive(Clone, Copy, Debug, Default)]
pub struct RcFileFormat;

const WRITE_OPTIONS: &[OptionDoc] = &[
    options::SERDE,
    options::SERDE_PROPERTIES,
    options::HIVE_VERSION,
    options::TIMEZONE,
    OptionDoc {
        name: "schema",
        help: "Hive column types such as \"id bigint, name varchar(20)\" where they are not those the Arrow types give",
    },
    OptionDoc {
        name: "codec",
        help: "none (default), zlib, deflate (the same, under Hadoop's other name), gzip, bzip2, snappy, lz4, zstd, lzo, or the class name of a Hadoop codec",
    },
    OptionDoc { name: "compression_level", help: "level of the codec; default the codec's own" },
    OptionDoc { name: "header", help: "\"RCF1\" (default) or \"SEQ6\" (Hive before 0.9)" },
    OptionDoc { name: "row_group_bytes", help: "bytes of cells after which a row group ends; default 4 MiB" },
    OptionDoc { name: "record_interval", help: "most rows of a row group; default no limit" },
    OptionDoc { name: "metadata", help: "further entries of the header's metadata" },
    OptionDoc { name: "sync_seed", help: "makes the sync marker, and so the file, reproducible" },
];

impl Format for RcFileFormat {
    fn name(&self) -> &'static str {
        "rcfile"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            needs_schema: true,
            written: true,
            endings: &["rc", "rcfile"],
            unit_option: Some("timestamp_unit"),
            ..Capabilities::default()
        }
    }

    fn probe(&self, head: &[u8], _tail: &[u8]) -> bool {
        Header::probe(head)
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        check_options(self.name(), &options.extra, OPEN_OPTIONS)?;
        Ok(Arc::new(RcFile::open(source, options)?))
    }

    fn create(
        &self,
        sink: Box<dyn Write + Send>,
        schema: &SchemaRef,
        options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        check_options(self.name(), &options.extra, WRITE_OPTIONS)?;
        Ok(Box::new(write::Writer::new(sink, schema, write_options(options)?)?))
    }

    fn open_options(&self) -> &'static [OptionDoc] {
        OPEN_OPTIONS
    }

    fn write_options(&self) -> &'static [OptionDoc] {
        WRITE_OPTIONS
    }
}

fn write_options(options: &WriteOptions) -> Result<write::WriteOptions> {
    let extra = &options.extra;
    let mut to = write::WriteOptions { serde_options: options::serde_options(extra)?, ..Default::default() };
    if let Some(serde) = text(extra, "serde")? {
        to.serde = options::parse_serde(serde)?;
    }
    if let Some(columns) = text(extra, "schema")? {
        let columns = ddl::parse_columns(columns, &to.serde_options.limits)?;
        to.types = Some(columns.into_iter().map(|(_, t)| t).collect());
    }
    to.codec = text(extra, "codec")?.map(parse_codec).transpose()?.flatten();
    to.compression_level = integer(extra, "compression_level")?;
    if to.compression_level.is_some() && to.codec.is_none() {
        return Err(Error::invalid("option `compression_level` needs a `codec`"));
    }
    match text(extra, "header")? {
        None | Some("RCF1") => {}
        Some("SEQ6") => to.header = Magic::Seq6,
        Some(other) => {
            return Err(Error::invalid(format!(
                "option `header`: expected \"RCF1\" or \"SEQ6\", found {other:?}"
            )));
        }
    }
    if let Some(bytes) = integer(extra, "row_group_bytes")? {
        to.row_group_bytes = bytes;
    }
    if let Some(rows) = integer(extra, "record_interval")? {
        to.record_interval = rows;
        if rows == 0 {
            return Err(Error::invalid("option `record_interval` must be at least 1"));
        }
    }
    to.metadata = options::properties(extra, "metadata")?;
    to.sync_seed = integer(extra, "sync_seed")?;
    Ok(to)
}

fn parse_codec(name: &str) -> Result<Option<HadoopCodec>> {
    if name.contains('.') {
        return HadoopCodec::from_class_name(name).map(Some);
    }
    match name.to_ascii_lowercase().parse::<Algorithm>()? {
        Algorithm::None => Ok(None),
        // What Hadoop calls deflate has the wrapper of zlib.
        Algorithm::Deflate => {
            HadoopCodec::from_class_name("org.apache.hadoop.io.compress.DeflateCodec").map(Some)
        }
        algorithm => HadoopCodec::from_algorithm(algorithm).map(Some),
    }
}
