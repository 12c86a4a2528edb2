//! How much memory a protobuf message takes once it is decoded, found before it is.
//!
//! ```text
//! field | tag << 3 | kind, varint | 0 varint | 1 eight bytes | 2 length varint, bytes | 5 four bytes |
//! ```
//!
//! An empty message in a list is two bytes of a file and a struct of two hundred in memory (`rowsets` of a super block), so that
//! the length of a metadata file does not bound what it becomes.

use coldframe_core::{Error, Limits, Result};
use coldframe_encoding::Cursor;

use crate::layout::proto::{
    ColumnData, ColumnIdentifier, ColumnSchema, Consensus, DeltaData, HashSchema, Partition, PartitionSchema,
    RaftConfig, RaftPeer, RangeSchema, RowSetData, Schema, SuperBlock,
};

/// A message: the struct that it becomes, and which of its fields are messages.
pub(crate) struct Shape {
    size: usize,
    messages: &'static [(u64, Shape)],
}

impl Shape {
    const fn of<M>(messages: &'static [(u64, Self)]) -> Self {
        Self { size: size_of::<M>(), messages }
    }
}

/// A message that files hold.
pub(crate) trait Shaped {
    /// What it is made of.
    const SHAPE: Shape;
}

const IDENTIFIERS: &[(u64, Shape)] = &[(1, Shape::of::<ColumnIdentifier>(&[]))];
const DELTAS: Shape = Shape::of::<DeltaData>(&[]);

impl Shaped for SuperBlock {
    const SHAPE: Shape = Shape::of::<Self>(&[
        (6, Shape::of::<RowSetData>(&[(3, Shape::of::<ColumnData>(&[])), (4, DELTAS), (5, DELTAS)])),
        (8, Shape::of::<Schema>(&[(1, Shape::of::<ColumnSchema>(&[]))])),
        (13, Shape::of::<Partition>(&[])),
        (
            14,
            Shape::of::<PartitionSchema>(&[
                (1, Shape::of::<HashSchema>(IDENTIFIERS)),
                (2, Shape::of::<RangeSchema>(IDENTIFIERS)),
            ]),
        ),
    ]);
}

impl Shaped for Consensus {
    const SHAPE: Shape =
        Shape::of::<Self>(&[(1, Shape::of::<RaftConfig>(&[(3, Shape::of::<RaftPeer>(&[]))]))]);
}

/// An error if a message would become more than metadata may be.
pub(crate) fn check<M: Shaped>(message: &[u8], limits: &Limits) -> Result<()> {
    let size = decoded_size(message, &M::SHAPE).map_err(|e| e.within("protobuf message"))?;
    limits.metadata("a metadata file, decoded", size).map(drop)
}

/// About how many bytes `message` becomes: its structs, and its own bytes for all that they hold.
fn decoded_size(message: &[u8], shape: &Shape) -> Result<u64> {
    let mut cursor = Cursor::new(message, 0);
    let mut size = (shape.size + message.len()) as u64;
    while !cursor.is_empty() {
        let key = cursor.uleb128()?;
        match key & 7 {
            0 => {
                cursor.uleb128()?;
            }
            1 => cursor.skip(8)?,
            2 => {
                let length = cursor.uleb128()?;
                let bytes = cursor.take(usize::try_from(length).unwrap_or(usize::MAX))?;
                if let Some((_, inner)) = shape.messages.iter().find(|(tag, _)| *tag == key >> 3) {
                    size = size.saturating_add(decoded_size(bytes, inner)?);
                }
            }
            5 => cursor.skip(4)?,
            kind => return Err(Error::corrupt(format!("expected a field, found the kind {kind}"))),
        }
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[test]
    fn empty_messages_count_as_what_they_become() {
        let block = SuperBlock {
            rowsets: vec![
                RowSetData { columns: vec![ColumnData::default(); 10], ..Default::default() };
                1000
            ],
            ..Default::default()
        };
        let bytes = block.encode_to_vec();
        let structs = 1000 * size_of::<RowSetData>() + 10_000 * size_of::<ColumnData>();
        let found = usize::try_from(decoded_size(&bytes, &SuperBlock::SHAPE).unwrap()).unwrap();
        assert!((structs..structs + 4 * bytes.len()).contains(&found), "{found} of {structs}");
        let limits = Limits { max_metadata_bytes: 10 * bytes.len() as u64, ..Limits::default() };
        let e = check::<SuperBlock>(&bytes, &limits).unwrap_err();
        assert!(e.to_string().contains("max_metadata_bytes"), "{e}");
        check::<SuperBlock>(&bytes, &Limits::default()).unwrap();
    }

    #[test]
    fn fields_of_every_kind_are_passed_over() {
        let message = [0x08, 0x96, 1, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0x1a, 2, 7, 7, 0x25, 0, 0, 0, 0];
        assert_eq!(
            decoded_size(&message, &Consensus::SHAPE).unwrap(),
            (size_of::<Consensus>() + message.len()) as u64
        );
        for cut in [1, 2, 6, 13, 15, 19] {
            assert!(decoded_size(&message[..cut], &Consensus::SHAPE).is_err(), "{cut}");
        }
        assert!(decoded_size(&[0x0b], &Consensus::SHAPE).is_err());
    }
}
