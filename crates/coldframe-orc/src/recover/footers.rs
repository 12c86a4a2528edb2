//! Recognises a stripe footer by its first bytes, and finds its end in a file without a codec.

use coldframe_encoding::Cursor;
use prost::Message;

use super::STREAMS;
use crate::layout::proto;

/// Whether a snappy block may begin with a literal whose first byte is `first`, by the tag after the
/// content's length.
pub(super) fn begins_with_literal(block: &[u8], first: u8) -> bool {
    let length = block.iter().take(5).take_while(|byte| **byte >= 0x80).count() + 1;
    let Some([tag, rest @ ..]) = block.get(length..) else { return false };
    let more = usize::from(tag >> 2).saturating_sub(59);
    tag & 3 == 0 && rest.get(more) == Some(&first)
}

/// Whether deflated bytes may begin with `first`, by the header of the first block.
pub(super) fn may_inflate_to(stored: &[u8], first: u8) -> bool {
    let [head, next, ..] = *stored else { return false };
    match head >> 1 & 3 {
        0 => match *stored {
            [_, a, b, c, d, byte, ..] => (a, b) == (!c, !d) && byte == first,
            _ => false,
        },
        // Fixed codes: 8 bits from 0x30 on for the bytes below 0x90, most significant bit first.
        1 => {
            let code = first.wrapping_add(0x30).reverse_bits();
            (u16::from(head) | u16::from(next) << 8) >> 3 & 0xff == u16::from(code)
        }
        // Dynamic codes: at most 286 for literals and lengths, 30 for distances.
        2 => head >> 3 <= 29 && next & 31 <= 29,
        _ => false,
    }
}

/// The length of a footer that is delimited only by its fields: streams, `columns` encodings, zone, variants.
pub(super) fn plain_footer(bytes: &[u8], columns: usize) -> Option<usize> {
    let (mut at, mut last, mut encodings) = (Cursor::new(bytes, 0), 1, 0);
    let mut streams = columns.saturating_mul(STREAMS).saturating_add(64);
    let mut end = None;
    while let Some(tag) = at.rest().first() {
        let field = tag >> 3;
        let in_order = field >= last && (1..=4).contains(&field) && tag & 7 == 2;
        if !in_order || (field == 3 && last == 3) {
            break;
        }
        at.skip(1).ok()?;
        let length = usize::try_from(at.uleb128().ok()?).ok()?;
        let Ok(content) = at.take(length) else { break };
        match field {
            1 => {
                proto::Stream::decode(content).ok()?;
                streams = streams.checked_sub(1)?;
            }
            2 => {
                proto::ColumnEncoding::decode(content).ok()?;
                encodings += 1;
            }
            3 => _ = std::str::from_utf8(content).ok()?,
            _ => {
                if proto::StripeEncryptionVariant::decode(content).is_err() {
                    break;
                }
            }
        }
        last = field;
        if encodings >= columns && field >= 2 {
            end = Some(bytes.len() - at.remaining());
        }
        if encodings > columns {
            return None;
        }
    }
    end.filter(|_| encodings == columns)
}
