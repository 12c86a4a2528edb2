//! The laws of damage, on files of each encoding.

use crate::support;

use std::sync::Arc;

use coldframe_cfile::layout::types::{Compression, Encoding, KuduType};
use coldframe_cfile::write::Options;
use coldframe_cfile::{CFileFormat, CFileTable};
use coldframe_core::{Format, OpenOptions, Source, TableFile, Value};
use coldframe_testing::laws::{AllowedLoss, Damaged, Moved, Subject, Units};
use support::{column, open, write};

fn open_with_ordinals(source: Source) -> coldframe_core::Result<Arc<dyn TableFile>> {
    let extra = [("ordinal".to_owned(), Value::Bool(true))].into();
    CFileFormat.open(&source, &OpenOptions { extra, ..OpenOptions::default() })
}

/// The data blocks and their rows.
fn units(table: &CFileTable) -> Units {
    let blocks = table.file().blocks(0..u64::MAX).unwrap();
    Units::new(blocks.iter().map(|b| {
        let rows = usize::try_from(b.rows.end - b.rows.start).unwrap();
        (b.pointer.range(), rows)
    }))
}

fn subject(name: &str, data_type: KuduType, encoding: Encoding, nulls: usize, checksums: bool) -> Subject {
    let options = Options {
        encoding: Some(encoding),
        codec: if nulls > 0 { Compression::Lz4 } else { Compression::None },
        block_size: 512,
        checksums,
        ..Options::default()
    };
    let bytes = write(&column(data_type, 900, nulls, 3), nulls > 0, &options);
    let units = units(&open(&bytes).unwrap());
    let allowed_loss = move |damaged: &Damaged| {
        // Blocks are located by offset only, and the index is a block as well. So if bytes are moved, the
        // whole file may be lost.
        if damaged.moves() {
            AllowedLoss::file()
        } else {
            units.allowed_loss(damaged, AllowedLoss::file(), Moved::Lost)
        }
    };
    let subject = Subject::new(name, bytes, open_with_ordinals).unit(allowed_loss);
    if checksums { subject.counted() } else { subject }
}

#[test]
fn damage_loses_at_most_one_block() {
    subject("int64 plain", KuduType::Int64, Encoding::Plain, 0, true).obey();
    subject("int32 bit shuffle", KuduType::Int32, Encoding::BitShuffle, 5, true).obey();
    subject("string dict", KuduType::String, Encoding::Dict, 3, true).obey();
    subject("binary prefix", KuduType::Binary, Encoding::Prefix, 0, true).obey();
    subject("bool rle", KuduType::Bool, Encoding::Rle, 4, true).obey();
}
