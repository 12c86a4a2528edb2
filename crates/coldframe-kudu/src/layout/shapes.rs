//! The size in memory of messages with repeated parts. An empty rowset of a super block takes two bytes in
//! the file, but a struct of two hundred bytes in memory.

use coldframe_encoding::limits::message::{Shape, Shaped};

use super::proto::{
    ColumnData, ColumnIdentifier, ColumnSchema, Consensus, DeltaData, HashSchema, Partition, PartitionSchema,
    RaftConfig, RaftPeer, RangeSchema, RangeWithHashes, RowSetData, Schema, SuperBlock, TransactionEntry,
};

const IDENTIFIERS: &[(u64, Shape)] = &[(1, Shape::of::<ColumnIdentifier>(&[]))];
const DELTAS: Shape = Shape::of::<DeltaData>(&[]);

impl Shaped for SuperBlock {
    const SHAPE: Shape = Shape::of::<Self>(&[
        (6, Shape::of::<RowSetData>(&[(3, Shape::of::<ColumnData>(&[])), (4, DELTAS), (5, DELTAS)])),
        (8, Shape::of::<Schema>(&[(1, Shape::of::<ColumnSchema>(&[]))])),
        (13, Shape::of::<Partition>(&[])),
        (20, Shape::of::<TransactionEntry>(&[])),
        (
            14,
            Shape::of::<PartitionSchema>(&[
                (1, Shape::of::<HashSchema>(IDENTIFIERS)),
                (2, Shape::of::<RangeSchema>(IDENTIFIERS)),
                (5, Shape::of::<RangeWithHashes>(&[(2, Shape::of::<HashSchema>(IDENTIFIERS))])),
            ]),
        ),
    ]);
}

impl Shaped for Consensus {
    const SHAPE: Shape =
        Shape::of::<Self>(&[(1, Shape::of::<RaftConfig>(&[(3, Shape::of::<RaftPeer>(&[]))]))]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_core::Limits;
    use coldframe_encoding::limits::message::check;
    use prost::Message;

    #[test]
    fn empty_messages_count_with_their_size_in_memory() {
        let rowset = RowSetData { columns: vec![ColumnData::default(); 10], ..Default::default() };
        let block = SuperBlock { rowsets: vec![rowset; 1000], ..Default::default() };
        let bytes = block.encode_to_vec();
        let structs = (1000 * size_of::<RowSetData>() + 10_000 * size_of::<ColumnData>()) as u64;
        let of = |max: u64| Limits { max_metadata_bytes: max * 8, ..Limits::default() };
        let e = check::<SuperBlock>(&bytes, &of(structs), 0).unwrap_err();
        assert!(e.to_string().contains("max_metadata_bytes"), "{e}");
        check::<SuperBlock>(&bytes, &of(structs + 8 * bytes.len() as u64), 0).unwrap();
    }
}
