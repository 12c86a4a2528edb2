//! HFile as one of the formats.

use std::sync::Arc;

use coldframe_core::format::check_options;
use coldframe_core::{Format, OpenOptions, OptionDoc, Result, Source, TableFile};

use crate::block::{BlockType, MAGIC_LEN};
use crate::file::HFile;
use crate::options::OPEN_OPTIONS;
use crate::trailer;

/// HFile.
#[derive(Clone, Copy, Debug, Default)]
pub struct HFileFormat;

impl Format for HFileFormat {
    fn name(&self) -> &'static str {
        "hfile"
    }

    fn probe(&self, head: &[u8], tail: &[u8]) -> bool {
        let magic = head.first_chunk::<MAGIC_LEN>().and_then(BlockType::from_magic);
        magic.is_some() || trailer::probe(tail)
    }

    fn open(&self, source: &Source, options: &OpenOptions) -> Result<Arc<dyn TableFile>> {
        check_options(self.name(), &options.extra, OPEN_OPTIONS)?;
        Ok(Arc::new(HFile::open(source, options)?))
    }

    fn open_options(&self) -> &'static [OptionDoc] {
        OPEN_OPTIONS
    }
}
