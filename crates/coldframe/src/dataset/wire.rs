//! Definitions of tables and plans as bytes: they are made in one process and read in another, by Rust, Python or the JVM.
//!
//! ```text
//! "CFTD" | version, 1 byte | CRC-32C of what follows, 4 bytes | protobuf message `TableDef`
//! "CFPL" | version, 1 byte | CRC-32C of what follows, 4 bytes | protobuf message `Plan`
//!                                                               openings, tables (schema as Arrow IPC) and files once each,
//!                                                               splits that refer to them by index
//! ```
//! The bytes contain the options of stores and the keys of encrypted files, so they are secret too.
//! Other versions are errors. The bytes are untrusted: counts and indexes are checked against the lists, and no message may
//! take more memory than its length justifies.

mod arrow;
mod message;
mod predicate;
mod read;
mod read_parts;
mod table_def;
mod write;
mod write_parts;

pub use read_parts::Bound;

use coldframe_core::{Error, Result};
use coldframe_encoding::limits::message::Shaped;
use prost::Message;

use super::plan::{Plan, Split};
use super::table_def::TableDef;

/// A kind of content, and the version that this build writes and reads.
struct Kind {
    magic: [u8; 4],
    version: u8,
    /// What it is, for errors.
    name: &'static str,
}

const PLAN: Kind = Kind { magic: *b"CFPL", version: 3, name: "a plan" };
const TABLE: Kind = Kind { magic: *b"CFTD", version: 1, name: "a table's definition" };
/// Length of the magic, the version and the checksum.
const HEADER: usize = 9;

impl TableDef {
    /// The definition as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(TABLE.framed(&table_def::to_message(self)?))
    }

    /// Parses [`TableDef::to_bytes`]. `bound`: the objects of this process that the definition needs, and that cannot be
    /// sent as bytes.
    pub fn from_bytes(bytes: &[u8], bound: &Bound) -> Result<Self> {
        table_def::from_message(&TABLE.message(bytes)?, bound).map_err(|e| e.within("a table's definition"))
    }
}

impl Plan {
    /// The plan as bytes. An error if a split belongs to an object of this process, which cannot be sent.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(PLAN.framed(&write::plan(self)?))
    }

    /// Parses [`Plan::to_bytes`]. `bound`: the objects of this process that the plan needs, and that cannot be sent as bytes.
    pub fn from_bytes(bytes: &[u8], bound: &Bound) -> Result<Self> {
        read::plan(&PLAN.message(bytes)?, bound).map_err(|e| e.within("plan"))
    }
}

impl Split {
    /// The split as bytes: a plan with this split only.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let schema = arrow_schema::Schema::empty().into();
        Plan { schema, scan: coldframe_core::Scan::default(), splits: vec![self.clone()] }.to_bytes()
    }

    /// Parses [`Split::to_bytes`].
    pub fn from_bytes(bytes: &[u8], bound: &Bound) -> Result<Self> {
        let mut plan = Plan::from_bytes(bytes, bound)?;
        match (plan.splits.pop(), plan.splits.is_empty()) {
            (Some(split), true) => Ok(split),
            _ => Err(refused("expected a plan of one split")),
        }
    }
}

impl Kind {
    fn framed(&self, message: &impl Message) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + message.encoded_len());
        bytes.extend_from_slice(&self.magic);
        bytes.push(self.version);
        let body = message.encode_to_vec();
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    fn message<M: Message + Default + Shaped>(&self, bytes: &[u8]) -> Result<M> {
        let (name, magic) = (self.name, self.magic.escape_ascii());
        let (Some(header), Some(body)) = (bytes.get(..HEADER), bytes.get(HEADER..)) else {
            return Err(refused(format!("expected the header of {name}, found fewer bytes")));
        };
        let (start, version, stored) = match header {
            [a, b, c, d, version, stored @ ..] => ([*a, *b, *c, *d], *version, stored),
            _ => return Err(refused(format!("expected the header of {name}"))),
        };
        if start != self.magic {
            let start = start.escape_ascii();
            return Err(refused(format!("expected the magic \"{magic}\", found \"{start}\"")));
        }
        if version != self.version {
            let what = format!("{name} of version {version}; this build reads version {}", self.version);
            return Err(Error::unsupported(what));
        }
        if stored != crc32c::crc32c(body).to_le_bytes() {
            return Err(refused(format!("the bytes of {name} were changed: their CRC-32C differs")));
        }
        message::check::<M>(body)?;
        M::decode(body).map_err(|e| refused(format!("not {name}: {e}")))
    }
}

#[cold]
fn refused(what: impl Into<String>) -> Error {
    Error::corrupt(what)
}

#[cfg(test)]
mod tests;
