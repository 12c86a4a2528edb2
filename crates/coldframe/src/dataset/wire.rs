//! Plans as bytes: a plan is made in one process and read in another, by Rust, Python or the JVM.
//!
//! ```text
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
mod write;

pub use read::Bound;

use coldframe_core::{Error, Result};
use prost::Message;

use super::plan::{Plan, Split};

const MAGIC: &[u8; 4] = b"CFPL";
const VERSION: u8 = 2;
/// Length of the magic, the version and the checksum.
const HEADER: usize = 9;

impl Plan {
    /// The plan as bytes. An error if a split belongs to an object of this process, which cannot be sent.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let message = write::plan(self)?;
        let mut bytes = Vec::with_capacity(HEADER + message.encoded_len());
        bytes.extend_from_slice(MAGIC);
        bytes.push(VERSION);
        let body = message.encode_to_vec();
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    /// Parses [`Plan::to_bytes`]. `bound`: the objects of this process that the plan needs, and that cannot be sent as bytes.
    pub fn from_bytes(bytes: &[u8], bound: &Bound) -> Result<Self> {
        read::plan(&message(bytes)?, bound).map_err(|e| e.within("plan"))
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

fn message(bytes: &[u8]) -> Result<message::Plan> {
    let (Some(header), Some(body)) = (bytes.get(..HEADER), bytes.get(HEADER..)) else {
        return Err(refused("expected the header of a plan, found fewer bytes"));
    };
    let (magic, version, stored) = match header {
        [a, b, c, d, version, stored @ ..] => ([*a, *b, *c, *d], *version, stored),
        _ => return Err(refused("expected the header of a plan")),
    };
    if &magic != MAGIC {
        return Err(refused(format!("expected the magic \"CFPL\", found \"{}\"", magic.escape_ascii())));
    }
    if version != VERSION {
        let what = format!("a plan of version {version}; this build reads version {VERSION}");
        return Err(Error::unsupported(what));
    }
    if stored != crc32c::crc32c(body).to_le_bytes() {
        return Err(refused("the bytes of a plan were changed: their CRC-32C differs"));
    }
    message::check(body)?;
    message::Plan::decode(body).map_err(|e| refused(format!("not a plan: {e}")))
}

#[cold]
fn refused(what: impl Into<String>) -> Error {
    Error::corrupt(what)
}

#[cfg(test)]
mod tests;
