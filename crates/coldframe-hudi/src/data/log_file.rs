//! A log file by itself: its blocks, without the rows of its table.
//!
//! Its records change rows of a base file, and other logs and the timeline say which of them count. So only the layout is
//! shown.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use coldframe_core::{
    Checksums, Error, Node, OpenOptions, Plan, PlanRequest, Proof, ReadAt, Result, Split, TableFile, Value,
};

use crate::log::{self, Block, BlockKind};

/// An open log file.
#[derive(Debug)]
pub(crate) struct LogFile {
    len: u64,
    blocks: Vec<Block>,
    schema: SchemaRef,
}

impl LogFile {
    /// Whether these are the first bytes of a log file.
    pub(crate) fn probe(head: &[u8]) -> bool {
        head.starts_with(log::MAGIC)
    }

    /// Reads the blocks of a log file.
    pub(crate) fn open(file: &dyn ReadAt, options: &OpenOptions) -> Result<Self> {
        let len = file.len();
        if !Self::probe(&file.read(0..len.min(log::MAGIC.len() as u64))?) {
            return Err(Error::invalid(
                "expected the directory of a Hudi table or one of its logs, found another file",
            ));
        }
        options.limits.block("a log file", len)?;
        let blocks = log::blocks(&file.read(0..len)?, &options.limits);
        Ok(Self { len, blocks, schema: Arc::new(Schema::empty()) })
    }
}

fn no_rows() -> Error {
    Error::unsupported(
        "rows of a log of a Hudi table by itself: they change rows of other files; open the table's directory",
    )
}

impl TableFile for LogFile {
    fn format(&self) -> &'static str {
        "hudi"
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn row_count(&self) -> Option<u64> {
        None
    }

    fn metadata(&self) -> Result<Value> {
        let blocks = self.blocks.iter().map(|block| {
            Value::map([
                ("kind", Value::from(block.kind.name())),
                ("offset", block.bytes.start.into()),
                ("length", (block.bytes.end - block.bytes.start).into()),
                ("instant", Value::from(block.instant().map(str::to_owned))),
                ("rolls_back", Value::from(block.target().map(str::to_owned))),
                ("schema", Value::from(block.schema().map(str::to_owned))),
            ])
        });
        Ok(Value::map([("format", Value::from("hudi log")), ("blocks", Value::List(blocks.collect()))]))
    }

    fn splits(&self, _target: u64) -> Result<Vec<Split>> {
        Ok(vec![Split { part: 0, range: 0..self.len, rows: None }])
    }

    fn byte_split(&self, _bytes: Range<u64>) -> Result<Split> {
        Err(no_rows())
    }

    fn plan(&self, _request: &PlanRequest, _split: &Split) -> Result<Box<dyn Plan>> {
        Err(no_rows())
    }

    fn inspect(&self) -> Result<Node> {
        let corrupt = self.blocks.iter().filter(|block| block.kind == BlockKind::Corrupt).count();
        let mut node = Node::new("hudi log", 0..self.len).with("incomplete blocks", corrupt);
        for block in &self.blocks {
            node.push(log::node(block, 0));
        }
        node.fill_gaps("unknown");
        Ok(node)
    }

    fn proof(&self) -> Proof {
        Proof { checksums: Checksums::None, besides: &[] }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
