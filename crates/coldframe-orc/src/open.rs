//! Reads the tail, types and stripes of a file when it is opened, and other messages on demand.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use coldframe_core::{Damage, Error, ErrorContext, Limits, ReadAt, Result};
use coldframe_encoding::limits::message::Shaped;
use prost::Message;

use crate::layout::encryption::Encryption;
use crate::layout::proto::{self, ColumnarStripeStatistics, Metadata, StripeFooter};
use crate::layout::quirks::Quirks;
use crate::layout::stripe::{StreamKind, StreamPlace, Stripe, StripeLayout};
use crate::layout::tail::{End, GUESS, MAGIC, Tail};
use crate::layout::types::{Kind, TypeTree};
use crate::options::Options;
use crate::schema;

/// The maximum number of row groups of a stripe that are read one by one.
const MAX_ROW_GROUPS: usize = 1 << 24;

/// `Stream.Kind` of the encrypted statistics of a column in all stripes.
const STRIPE_STATISTICS: u32 = 100;

/// The statistics of an encrypted column in each stripe, as stored.
type OfEncrypted = (usize, Vec<Bytes>);

/// An open file.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The bytes of the file.
    pub(crate) source: Arc<dyn ReadAt>,
    /// Its tail.
    pub(crate) tail: Tail,
    /// Its types.
    pub(crate) tree: TypeTree,
    /// The file's types as an Arrow schema.
    pub(crate) schema: SchemaRef,
    /// The file's stripes in order.
    pub(crate) stripes: Vec<Stripe>,
    /// The keys of encrypted columns.
    pub(crate) encryption: Encryption,
    /// The deviations of the file's writer from the specification.
    pub(crate) quirks: Quirks,
    /// The user's options.
    pub(crate) options: Options,
    /// Losses that belong to no stripe: of a file without its tail, or of a file whose footer and stripes
    /// disagree about the row count. A read with `raise` fails; a read with `skip` or `null` records them.
    pub(crate) lost: Vec<Damage>,
    /// How the stripes were found, if the tail does not list them.
    pub(crate) recovered: Option<Recovery>,
    /// The statistics of stripes, once [`Self::stated`] has read them.
    of_stripes: OnceLock<Metadata>,
    /// The same of encrypted columns.
    of_encrypted: OnceLock<Vec<OfEncrypted>>,
}

/// How the stripes were found without a complete tail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    /// What proves that the file had no other stripes; `None` without a proof.
    pub(crate) proof: Option<&'static str>,
}

impl Shape {
    /// Opens a file with its tail, or with a reconstructed tail if its own tail is lost.
    pub(crate) fn new(
        source: Arc<dyn ReadAt>,
        tail: Tail,
        options: Options,
        lost: Vec<Damage>,
    ) -> Result<Self> {
        let within = || "footer";
        let tree =
            TypeTree::new(&tail.footer.types, &options.limits).at(tail.footer_bytes.start).within(within)?;
        let schema =
            schema::schema(&tree, &tail.footer, &options).at(tail.footer_bytes.start).within(within)?;
        let encryption = Encryption::new(&tail.footer, &tree.ends(), &|name| options.keys.get(name))?;
        // Detects a wrong key, with which the values would be random.
        encryption.file_statistics(&tail.footer, tail.compression, &options.limits, tail.file_len)?;
        let mut stripes: Vec<Stripe> = Vec::with_capacity(tail.footer.stripes.len());
        for info in &tail.footer.stripes {
            let stripe = Stripe::new(stripes.last(), info, tail.file_len).at(tail.footer_bytes.start)?;
            stripes.push(stripe);
        }
        let quirks = Quirks::new(&tail.footer, &tail.postscript, options.calendar.hybrid());
        let mut lost = lost;
        lost.extend(row_count_damage(&tail, &stripes));
        let of_stripes = OnceLock::new();
        Ok(Self {
            source,
            tail,
            tree,
            schema,
            stripes,
            encryption,
            quirks,
            options,
            lost,
            recovered: None,
            of_stripes,
            of_encrypted: OnceLock::new(),
        })
    }

    /// Number of rows of a row group; `None` without indexes.
    pub(crate) fn stride(&self) -> Option<u64> {
        self.tail.footer.row_index_stride.map(u64::from).filter(|stride| *stride > 0)
    }

    /// The row groups of a stripe; `None` without indexes, or if there are too many to be true.
    pub(crate) fn row_groups(&self, stripe: &Stripe) -> Option<usize> {
        let count = stripe.rows.div_ceil(self.stride()?);
        usize::try_from(count).ok().filter(|count| *count <= MAX_ROW_GROUPS)
    }

    /// Fails if the bytes of a stripe cannot hold its rows, or if there are more than the limit. Batches bound
    /// memory, so that stripes may have many rows: 50 million equal rows take a few kilobytes.
    pub(crate) fn check_rows(&self, stripe: &Stripe) -> Result<()> {
        let stored = stripe.footer.start - stripe.bytes.start;
        let limits = &self.options.limits;
        let most = self.tail.compression.most_values(stored).max(limits.max_unbacked_rows());
        let has_streams = self.tree.columns().iter().any(|column| column.kind != Kind::Struct);
        if has_streams && stripe.rows > most {
            let rows = stripe.rows;
            return Err(Error::corrupt(format!(
                "expected at most {most} rows in {stored} bytes, found {rows}"
            )));
        }
        if has_streams {
            limits.backed_rows("a stripe", stripe.rows).map(drop)
        } else {
            limits.unit_rows("a stripe without columns", stripe.rows).map(drop)
        }
    }

    /// The statistics of stripes; empty if the file has none.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        let (range, limits) = (self.tail.metadata_bytes.clone(), &self.options.limits);
        if range.is_empty() {
            return Ok(Metadata::default());
        }
        limits.metadata("the metadata", range.end - range.start).at(range.start)?;
        let stored = self.source.read(range.clone())?;
        let message = self
            .tail
            .compression
            .message(&stored, range.start, limits, self.tail.file_len)
            .within(|| "metadata")?;
        proto::decode("metadata", message, limits, self.tail.file_len).at(range.start)
    }

    /// What the file's metadata state of the columns of a stripe. The footer states the same of the only
    /// stripe of a file. Nothing if the statistics of stripes are wrong or damaged.
    pub(crate) fn stated(&self, stripe: &Stripe) -> Result<Vec<Bytes>> {
        if !self.quirks.merged_statistics {
            return Ok(Vec::new());
        }
        if self.stripes.len() == 1 && !self.tail.footer.statistics.is_empty() {
            return Ok(self.tail.footer.statistics.clone());
        }
        let metadata = match self.of_stripes.get() {
            Some(metadata) => metadata,
            None => {
                let read = match self.metadata() {
                    Err(e) if e.is_confined() => Metadata::default(),
                    metadata => metadata?,
                };
                self.of_stripes.get_or_init(|| read)
            }
        };
        let stripes = &metadata.stripe_stats;
        let of_stripe = stripes.get(stripe.number).filter(|_| stripes.len() == self.stripes.len());
        Ok(of_stripe.map(|of_stripe| of_stripe.col_stats.clone()).unwrap_or_default())
    }

    /// What is stated of the columns of a stripe that are encrypted, and that a key decrypts.
    pub(crate) fn stated_of_encrypted(&self, stripe: &Stripe) -> Result<Vec<(usize, Bytes)>> {
        if !self.quirks.merged_statistics {
            return Ok(Vec::new());
        }
        let stated = match self.of_encrypted.get() {
            Some(stated) => stated,
            None => {
                let read = match self.encrypted_metadata() {
                    Err(e) if e.is_confined() => Vec::new(),
                    stated => stated?,
                };
                self.of_encrypted.get_or_init(|| read)
            }
        };
        let of_all = stated.iter().filter(|(_, stripes)| stripes.len() == self.stripes.len());
        Ok(of_all.filter_map(|(id, stripes)| Some((*id, stripes.get(stripe.number)?.clone()))).collect())
    }

    /// The encrypted statistics of stripes that a key decrypts.
    pub(crate) fn encrypted_metadata(&self) -> Result<Vec<OfEncrypted>> {
        let (tail, limits) = (&self.tail, &self.options.limits);
        let mut at = tail.stripe_statistics_bytes.start;
        let mut all = Vec::new();
        for (number, variant) in tail.footer.encryption.iter().flat_map(|e| &e.variants).enumerate() {
            for stream in &variant.stripe_statistics {
                let start = at;
                at = at.saturating_add(stream.length());
                let column = usize::try_from(stream.column()).unwrap_or(usize::MAX);
                if self.encryption.variant_of(column) != Some(number) {
                    continue;
                }
                let stripes = tail.footer.stripes.len();
                let key = self.encryption.footer_stream_key(number, stripes, column, STRIPE_STATISTICS)?;
                let Some(key) = key else { continue };
                let within = || "encrypted stripe statistics";
                limits.metadata("the statistics of stripes", stream.length()).at(start).within(within)?;
                let mut stored = self.source.read(start..at).within(within)?.to_vec();
                key.decrypt(0, &mut stored)?;
                let message =
                    tail.compression.message(&stored, start, limits, tail.file_len).within(within)?;
                let own: ColumnarStripeStatistics =
                    proto::decode("encrypted stripe statistics", message, limits, tail.file_len).at(start)?;
                all.push((column, own.col_stats));
            }
        }
        Ok(all)
    }

    /// The contents of a stripe's footer.
    pub(crate) fn layout(&self, stripe: &Stripe) -> Result<StripeLayout> {
        stripe.check_budget(self.tail.file_len)?;
        let (range, limits) = (stripe.footer.clone(), &self.options.limits);
        limits.metadata("a stripe's footer", range.end - range.start).at(range.start)?;
        let stored = self.source.read(range.clone())?;
        let message = self
            .tail
            .compression
            .message(&stored, range.start, limits, self.tail.file_len)
            .within(|| "stripe footer")?;
        let footer: StripeFooter =
            proto::decode("stripe footer", message, limits, self.tail.file_len).at(range.start)?;
        StripeLayout::new(footer, stripe, self.tree.columns().len(), &self.encryption)
            .map_err(|e| e.within("stripe footer").at(range.start))
    }

    /// The messages of some index streams of a stripe, read together.
    pub(crate) fn index_streams<M: Message + Default + Shaped>(
        &self,
        stripe: &Stripe,
        places: &[&StreamPlace],
    ) -> Result<Vec<M>> {
        let limits = &self.options.limits;
        let ranges: Vec<_> = places.iter().map(|p| p.bytes.clone()).collect();
        for range in &ranges {
            limits.metadata("an index", range.end - range.start).at(range.start)?;
        }
        let stored = coldframe_core::io::read_coalesced(self.source.as_ref(), &ranges)?;
        let mut together = 0u64;
        let message = |(place, stored): (&&StreamPlace, Bytes)| {
            let stored = self.decrypted(stored, place, 0, stripe)?;
            let bytes =
                self.tail.compression.message(&stored, place.bytes.start, limits, self.tail.file_len)?;
            together = together.saturating_add(bytes.len() as u64);
            limits.decoded("the indexes of a stripe", together, self.tail.file_len)?;
            proto::decode("index", bytes, limits, self.tail.file_len).at(place.bytes.start)
        };
        places.iter().zip(stored).map(message).collect::<Result<_>>().map_err(|e| e.within(stripe.name()))
    }

    /// The row indexes of `columns`, or the fields of them that `M` decodes; `None` for a column without an
    /// index.
    pub(crate) fn row_indexes<M: Message + Default + Shaped>(
        &self,
        stripe: &Stripe,
        layout: &StripeLayout,
        columns: &[usize],
    ) -> Result<Vec<Option<M>>> {
        let place =
            |column: &usize| layout.stream(*column, StreamKind::RowIndex).filter(|p| !p.bytes.is_empty());
        let places: Vec<_> = columns.iter().filter_map(place).collect();
        let mut indexes = self.index_streams(stripe, &places)?.into_iter();
        Ok(columns.iter().map(|c| place(c).and_then(|_| indexes.next())).collect())
    }

    /// The decrypted bytes of a stream; `start` is the position of `stored` in the stream.
    pub(crate) fn decrypted(
        &self,
        stored: Bytes,
        place: &StreamPlace,
        start: u64,
        stripe: &Stripe,
    ) -> Result<Bytes> {
        let Some(variant) = place.variant else { return Ok(stored) };
        let key = self.encryption.stream_key(
            variant,
            stripe.number,
            stripe.encryption_number,
            place.column,
            place.kind,
        )?;
        let mut plain = stored.to_vec();
        key.decrypt(start, &mut plain)?;
        Ok(plain.into())
    }
}

/// The damage of a footer whose row count differs from the sum of the stripes. It is unknown which of the two
/// numbers is wrong.
fn row_count_damage(tail: &Tail, stripes: &[Stripe]) -> Option<Damage> {
    let rows = stripes.iter().fold(0u64, |n, s| n.saturating_add(s.rows));
    let footer_rows = tail.footer.number_of_rows.filter(|footer_rows| *footer_rows != rows)?;
    let e = Error::corrupt(format!("expected {footer_rows} rows, found stripes of {rows}")).within("footer");
    Some(Damage::from_error(&e, tail.footer_bytes.clone(), Some(footer_rows.saturating_sub(rows))))
}

/// Reads the tail of `source`.
pub(crate) fn read_tail(source: &dyn ReadAt, limits: &Limits) -> Result<Tail> {
    let len = source.len();
    if len == 0 {
        return Tail::of_nothing(limits);
    }
    let start = len.saturating_sub(GUESS);
    let last = source.read(start..len)?;
    let end = End::parse(&last, len, limits)?;
    if !end.has_magic && source.read(0..len.min(3))? != MAGIC {
        return Err(end.without_magic());
    }
    let stored = match end.footer_bytes.start.checked_sub(start).and_then(|s| usize::try_from(s).ok()) {
        Some(from) => {
            let to = usize::try_from(end.footer_bytes.end - start).unwrap_or(usize::MAX);
            last.slice(from.min(last.len())..to.min(last.len()))
        }
        None => source.read(end.footer_bytes.clone())?,
    };
    Tail::new(end, &stored, len, limits)
}

/// The first part of a file: the valid bytes of a file that is still being written, or that was appended to.
#[derive(Debug)]
pub struct Front {
    /// The file.
    pub source: Arc<dyn ReadAt>,
    /// How many bytes of the source are valid.
    pub len: u64,
}

impl ReadAt for Front {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().try_for_each(|range| coldframe_core::io::check_range(range, self.len))?;
        self.source.read_ranges(ranges)
    }

    fn worthwhile_gap(&self) -> u64 {
        self.source.worthwhile_gap()
    }
}
