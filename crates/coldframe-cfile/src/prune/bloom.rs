//! Looks up keys in a bloom file.

use coldframe_core::io::check_range;
use coldframe_core::{Error, ErrorContext, Result};

use super::walk::Step;
use crate::layout::bloom::BloomBlock;
use crate::open::{CFile, Purpose};

/// Whether the bloom file may have `key`, which is in encoded form: `false` only if no block has the key.
pub fn might_contain(file: &CFile, key: &[u8]) -> Result<bool> {
    if Purpose::of(file.footer())? != Purpose::Bloom {
        return Err(Error::unsupported("a look-up by bloom filter in a CFile that is not a bloom file"));
    }
    let Some(root) = file.footer().value else { return Ok(true) };
    let find = || -> Result<bool> {
        let mut walk = file.walk(root)?;
        walk.seek(key)?;
        let Some(Step::Block(first, pointer)) = walk.step()? else { return Ok(false) };
        if first.as_slice() > key {
            return Ok(false);
        }
        check_range(&pointer.range(), file.source().len())?;
        file.format().limits.metadata("bloom block", pointer.size.into())?;
        let stored = file.source().read(pointer.range())?;
        let contents = file.format().open_owned(&stored, pointer.offset)?;
        Ok(BloomBlock::parse(&contents, pointer.offset)?.might_contain(key))
    };
    find().within(|| "bloom filter")
}
