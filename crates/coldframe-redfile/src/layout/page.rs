//! The header of a page.
//!
//! ```text
//! PageHeader     | 1 type | 2 uncompressed_page_size | 3 compressed_page_size | 4 crc | 5 DataPageHeader |
//! DataPageHeader | 1 num_values | 2 encoding |
//! ```
//!
//! The header is followed by as many bytes as field 3 states. A page of another type than 0 has no values and
//! is skipped.

use coldframe_encoding::{Error, Limits, Result};

use crate::layout::thrift::Reader;

/// The type of pages that hold values.
pub(crate) const DATA_PAGE: i32 = 0;

/// What the header of a data page states about its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DataPage {
    /// The number of values, including nulls.
    pub(crate) num_values: usize,
    /// The encoding of the values.
    pub(crate) encoding: i32,
}

/// A page's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHeader {
    /// The type of the page.
    pub(crate) page_type: i32,
    /// The size of the page before compression.
    pub(crate) uncompressed: usize,
    /// The size of the page in the file.
    pub(crate) compressed: usize,
    /// The CRC-32 of the page's bytes in the file.
    pub(crate) crc: Option<u32>,
    /// What the header states about values; present for data pages.
    pub(crate) data: Option<DataPage>,
    /// The size of the header itself.
    pub(crate) len: usize,
}

impl PageHeader {
    /// Parses the header at the start of `bytes`, which are at `offset` in the file.
    pub(crate) fn parse(bytes: &[u8], offset: u64, limits: &Limits) -> Result<Self> {
        Self::decode(&mut Reader::new(bytes, offset, limits))
    }

    /// Decodes a header. Bytes after the struct are ignored.
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self> {
        let offset = r.offset();
        let (mut page_type, mut uncompressed, mut compressed) = (None, None, None);
        let (mut crc, mut data) = (None, None);
        r.structure(|r, f| {
            match f.id {
                1 => page_type = Some(r.i32(f)?),
                2 => uncompressed = Some(size(r.i32(f)?, "an uncompressed size")?),
                3 => compressed = Some(size(r.i32(f)?, "a compressed size")?),
                4 => crc = Some(r.i32(f)?.cast_unsigned()),
                5 => {
                    let mut page = DataPage::default();
                    r.struct_field(f, |r, f| {
                        match f.id {
                            1 => page.num_values = size(r.i32(f)?, "a number of values")?,
                            2 => page.encoding = r.i32(f)?,
                            _ => r.skip(f)?,
                        }
                        Ok(())
                    })?;
                    data = Some(page);
                }
                _ => r.skip(f)?,
            }
            Ok(())
        })
        .map_err(|e| e.at(offset))?;
        let (Some(page_type), Some(uncompressed), Some(compressed)) = (page_type, uncompressed, compressed)
        else {
            return Err(Error::corrupt("expected a type and two sizes, found fewer fields").at(offset));
        };
        if page_type == DATA_PAGE && data.is_none() {
            return Err(Error::corrupt("expected a data page's header, found none").at(offset));
        }
        let len = usize::try_from(r.offset() - offset).unwrap_or(usize::MAX);
        Ok(Self { page_type, uncompressed, compressed, crc, data, len })
    }
}

fn size(n: i32, what: &str) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::corrupt(format!("expected {what} of 0 or more, found {n}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_data_pages_and_other_pages_are_parsed() {
        let limits = Limits::default();
        let bytes = [0x15, 0, 0x15, 32, 0x15, 32, 0x2c, 0x15, 4, 0x15, 0, 0, 0, 0xaa];
        let page = PageHeader::parse(&bytes, 0, &limits).unwrap();
        assert_eq!((page.len, page.compressed, page.crc), (13, 16, None));
        assert_eq!(page.data, Some(DataPage { num_values: 2, encoding: 0 }));
        let index = PageHeader::parse(&[0x15, 2, 0x15, 0, 0x15, 0, 0x3c, 0, 0], 0, &limits).unwrap();
        assert_eq!((index.page_type, index.data), (1, None));
        let e = PageHeader::parse(&[0x15, 0, 0x15, 1, 0x15, 0, 0], 7, &limits).unwrap_err();
        assert_eq!(e.to_string(), "byte 7: expected an uncompressed size of 0 or more, found -1");
    }
}
