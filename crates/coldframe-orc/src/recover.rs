//! Finds the stripes of a file without its tail, by their footers.
//!
//! ```text
//! | "ORC" | index, data | footer | index, data | footer | ..           each footer lists the streams in front of it
//!         ^ start = position of the footer - lengths of its streams
//! ```
//!
//! The tail lists the stripes. Without the tail, a stripe footer is recognised by its content: as many
//! encodings as the schema has columns, and stream lengths that lead back to the end of the previous stripe,
//! where the row index of the root begins. The row index of the root counts the rows. The other contents of
//! the tail come from an intact file of the same table (`schema_from`), or from the user's schema. With a
//! schema, codec and writer come from a neighbouring file with the same columns; without such a file, the
//! codec is detected. The remains of the tail after the last stripe may prove how many stripes the file had:
//! by the footer's list, or the statistics of each stripe. If neither the list nor the statistics remain,
//! more stripes may have followed, and a plain read fails there.
//!
//! A file that was flushed and appended to contains earlier tails; recovery starts with the stripes of the
//! last intact tail.

mod footers;
mod remains;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::io::Folder;
use coldframe_core::{Damage, Error, Limits, ReadAt, Result};
use coldframe_encoding::Cursor;
use coldframe_encoding::codec::{Algorithm, Decompressor};
use coldframe_encoding::limits::message::check;
use prost::Message;

use crate::declared;
use crate::layout::compression::{ChunkHeader, Compression, HEADER};
use crate::layout::proto::{
    self, ColumnStatistics, Footer, PostScript, RowIndex, StripeFooter, StripeInformation,
};
use crate::layout::stripe::StreamKind;
use crate::layout::tail::{MAGIC, Tail};
use crate::layout::types::Kind;
use crate::open::{Front, read_tail};
use crate::options::{Declares, Options};

use self::footers::{begins_with_literal, may_inflate_to, plain_footer};

/// Number of bytes that are searched at a time; a footer may extend [`REACH`] bytes beyond them.
const WINDOW: u64 = 16 << 20;
/// See [`WINDOW`].
const REACH: u64 = 1 << 20;
/// Maximum length of a postscript.
const POSTSCRIPT: usize = 255;
/// The block size if it is unknown: the length of a chunk has 23 bits.
const LARGEST_BLOCK: u64 = 8 << 20;
/// Maximum number of streams of a column in a stripe, and of bytes of a stream's entry.
const STREAMS: usize = 16;
/// See [`STREAMS`].
const LONGEST_STREAM: usize = 24;
/// Maximum number of neighbouring files that are opened.
const CANDIDATES: usize = 16;
/// Maximum number of chunks of a stripe's footer.
const FOOTER_CHUNKS: usize = 16;

/// The result of a recovery.
#[derive(Clone, Debug)]
pub(crate) struct Recovered {
    /// A tail that lists the recovered stripes.
    pub(crate) tail: Tail,
    /// Losses outside the stripes; empty if a proof shows that no stripe is missing.
    pub(crate) lost: Vec<Damage>,
    /// What proves that no stripe is missing; `None` without a proof.
    pub(crate) proof: Option<&'static str>,
}

/// The known contents of the lost tail.
#[derive(Clone, Debug)]
struct KnownTail {
    postscript: PostScript,
    footer: Footer,
}

/// Searches `source` for stripes. The types come from the user's schema, or from the file `schema_from` in
/// `siblings`.
pub(crate) fn recover(
    source: &Arc<dyn ReadAt>,
    options: &Options,
    schema_from: Option<&str>,
    siblings: Option<&dyn Folder>,
) -> Result<Recovered> {
    let (schema, limits) = (options.declared.as_ref(), &options.limits);
    if let Some(tail) = inner_tail(source, limits)? {
        let source = source.as_ref();
        let mut known = KnownTail { postscript: tail.postscript.clone(), footer: tail.footer.clone() };
        if let Some(spec) = schema {
            declared::declare(&mut known.footer, spec, options.declares, options.converts, limits)?;
        }
        let end = tail.postscript_bytes.end + 1;
        return search(source, known, tail.footer.stripes.clone(), end, limits);
    }
    let source = source.as_ref();
    let schema = schema.filter(|_| options.declares == Declares::File);
    let types = schema.map(|spec| declared::types_of(spec, limits)).transpose()?;
    let beside = match (schema_from, siblings) {
        (Some(name), Some(folder)) => {
            Some(read_tail(folder.open(name)?.as_ref(), limits).map_err(|e| e.in_file(name))?)
        }
        (Some(_), None) => {
            return Err(Error::invalid("option `schema_from`: expected a file in a folder, found no folder"));
        }
        // The codec and the writer come from a file with the same columns. Without a schema it is unknown
        // which files belong to this table.
        (None, Some(folder)) => match types.as_deref() {
            Some(types) => whole_files(folder, limits)?
                .into_iter()
                .map(|(_, tail)| tail)
                .find(|tail| has_columns(types, tail)),
            None => return Err(schema_missing(&whole_files(folder, limits)?)),
        },
        (None, None) => None,
    };
    let start = MAGIC.len() as u64;
    match (types, beside) {
        (types, Some(tail)) => {
            let known = KnownTail { postscript: tail.postscript, footer: cleared(tail.footer, types) };
            search(source, known, Vec::new(), start, limits)
        }
        (Some(types), None) => {
            let footer = cleared(Footer::default(), Some(types));
            let postscript = detect_codec(source, &footer, limits)?;
            search(source, KnownTail { postscript, footer }, Vec::new(), start, limits)
        }
        (None, None) => Err(schema_missing(&[])),
    }
}

/// A footer without stripes and statistics.
fn cleared(footer: Footer, types: Option<Vec<proto::Type>>) -> Footer {
    Footer {
        header_length: Some(MAGIC.len() as u64),
        content_length: None,
        stripes: Vec::new(),
        types: types.unwrap_or(footer.types),
        metadata: Vec::new(),
        number_of_rows: None,
        statistics: Vec::new(),
        row_index_stride: None,
        writer: footer.writer,
        // The keys of stripes are in the tail, which is lost.
        encryption: None,
        calendar: footer.calendar,
        software_version: footer.software_version,
    }
}

/// The first intact files in `folder`, with their names.
fn whole_files(folder: &dyn Folder, limits: &Limits) -> Result<Vec<(String, Tail)>> {
    let mut files = Vec::new();
    for entry in folder.list("")?.into_iter().filter(|e| !e.is_folder && e.len > 0) {
        // Files that are not ORC files, or not intact, are skipped.
        let Ok(tail) = folder.open(&entry.path).and_then(|file| read_tail(file.as_ref(), limits)) else {
            continue;
        };
        if !tail.footer.types.is_empty() {
            files.push((entry.path, tail));
        }
        if files.len() == CANDIDATES {
            break;
        }
    }
    Ok(files)
}

/// Whether a file has these columns, by name and type.
fn has_columns(types: &[proto::Type], tail: &Tail) -> bool {
    let alike = |(a, b): (&proto::Type, &proto::Type)| {
        (a.kind, &a.subtypes, &a.field_names) == (b.kind, &b.subtypes, &b.field_names)
    };
    types.len() == tail.footer.types.len() && types.iter().zip(&tail.footer.types).all(alike)
}

/// The error if the user states no columns. A guess from a file of another table would give wrong names and
/// values, and nothing in the stripes would show that.
fn schema_missing(beside: &[(String, Tail)]) -> Error {
    let names: Vec<&str> = beside.iter().map(|(name, _)| name.as_str()).collect();
    let beside = if names.is_empty() {
        String::new()
    } else {
        format!("; whole files beside it: {}", names.join(", "))
    };
    Error::invalid(format!(
        "expected the schema of a file without a tail (`schema`), or the name of a whole file of its table (`schema_from`){beside}"
    ))
}

/// The last intact tail that is not at the file's end.
fn inner_tail(source: &Arc<dyn ReadAt>, limits: &Limits) -> Result<Option<Tail>> {
    let finder = memchr::memmem::FinderRev::new(MAGIC);
    let mut end = source.len();
    while end > 0 {
        let start = end.saturating_sub(WINDOW);
        let bytes = source.read(start..(end + POSTSCRIPT as u64).min(source.len()))?;
        for at in finder.rfind_iter(&bytes) {
            let after = at + MAGIC.len();
            let Some(length) = bytes.get(after) else { continue };
            let begins = after.checked_sub(usize::from(*length));
            if begins.is_none_or(|b| b > at) && start > 0 {
                continue;
            }
            let cut = Front { source: source.clone(), len: start + after as u64 + 1 };
            if let Ok(tail) = read_tail(&cut, limits)
                && !tail.footer.types.is_empty()
                && cut.len < source.len()
            {
                return Ok(Some(tail));
            }
        }
        end = start;
    }
    Ok(None)
}

/// The codec that decodes the first stripe footer of the file.
fn detect_codec(source: &dyn ReadAt, footer: &Footer, limits: &Limits) -> Result<PostScript> {
    const BROTLI: u32 = 6;
    let mut best: Option<(u64, PostScript)> = None;
    for kind in 0..=BROTLI {
        let postscript = PostScript {
            compression: Some(kind),
            compression_block_size: Some(LARGEST_BLOCK.min(limits.max_block_bytes)),
            version: vec![0, 12],
            writer_version: Some(9),
            magic: Some("ORC".to_owned()),
            ..PostScript::default()
        };
        let places = match &best {
            // No bytes mark the start of a Brotli chunk, so Brotli is tried at every offset, and only if no
            // other codec fits.
            Some(_) if kind == BROTLI => break,
            // A footer without a codec may be the content of an uncompressed chunk, after its header.
            Some((at, best)) if best.compression() == 0 => at.saturating_sub(HEADER as u64)..*at,
            Some((at, _)) => MAGIC.len() as u64..*at,
            None => MAGIC.len() as u64..source.len(),
        };
        let compression = Compression::new(&postscript, limits)?;
        let mut search = Search::new(source, compression, &footer.types, limits);
        if let Some(stripe) = search.next(MAGIC.len() as u64, places)? {
            best = Some((stripe.footer.start, postscript));
        }
    }
    best.map(|(_, postscript)| postscript)
        .ok_or_else(|| Error::corrupt("expected the footer of a stripe, found none").within("recovery"))
}

/// Searches for stripes from `from` on, and adds them to the known stripes.
fn search(
    source: &dyn ReadAt,
    known: KnownTail,
    mut stripes: Vec<StripeInformation>,
    from: u64,
    limits: &Limits,
) -> Result<Recovered> {
    let KnownTail { postscript, mut footer } = known;
    let compression = Compression::new(&postscript, limits)?;
    let mut search = Search::new(source, compression, &footer.types, limits);
    let (mut at, mut lost, mut stride) = (from, Vec::new(), footer.row_index_stride.map_or(0, u64::from));
    while let Some(stripe) = search.next(at, at..source.len())? {
        if stripe.start > at {
            lost.push(unknown(at..stripe.start));
        }
        stripes.push(StripeInformation {
            offset: Some(stripe.start),
            index_length: Some(stripe.index_length),
            data_length: Some(stripe.footer.start - stripe.start - stripe.index_length),
            footer_length: Some(stripe.footer.end - stripe.footer.start),
            number_of_rows: Some(stripe.rows),
            ..StripeInformation::default()
        });
        stride = stride.max(stripe.stride);
        at = stripe.footer.end;
    }
    let rest = remains::remains(source, at, compression, search.columns, |root| search.rows(root), limits)?;
    let proof = proof_of_stripes(rest, &mut stripes, &mut lost);
    if proof.is_none() {
        lost.push(if at < source.len() { unknown(at..source.len()) } else { cut_off(at) });
    }
    let rows = stripes.iter().try_fold(0u64, |sum, s| sum.checked_add(s.number_of_rows()));
    footer.number_of_rows =
        Some(rows.ok_or_else(|| Error::corrupt("expected at most 2^64 rows, found more"))?);
    footer.row_index_stride = u32::try_from(stride).ok();
    footer.stripes = stripes;
    footer.content_length = Some(at);
    let end = source.len();
    let tail = Tail {
        postscript: PostScript { metadata_length: None, stripe_statistics_length: None, ..postscript },
        compression,
        footer,
        stripe_statistics_bytes: end..end,
        metadata_bytes: end..end,
        footer_bytes: end..end,
        postscript_bytes: end..end,
        file_len: end,
    };
    Ok(Recovered { tail, lost, proof })
}

/// What proves that the file had no stripes other than `stripes`; `None` without a proof. A footer's list
/// replaces `stripes`: the scan reports damage in the listed stripes, with their rows.
fn proof_of_stripes(
    rest: remains::Remains,
    stripes: &mut Vec<StripeInformation>,
    lost: &mut Vec<Damage>,
) -> Option<&'static str> {
    let place = |s: &StripeInformation| {
        (s.offset(), s.index_length(), s.data_length(), s.footer_length(), s.number_of_rows())
    };
    if let Some((listed, rows)) = rest.listed {
        let sum = listed.iter().fold(0u64, |sum, s| sum.saturating_add(s.number_of_rows()));
        let holds_all = stripes.iter().all(|stripe| listed.iter().any(|s| place(s) == place(stripe)));
        if holds_all && sum == rows {
            *stripes = listed;
            lost.clear();
            return Some("the footer");
        }
    }
    let same_rows = rest.rows.iter().copied().eq(stripes.iter().map(StripeInformation::number_of_rows));
    if same_rows && rest.ended && !stripes.is_empty() {
        lost.clear();
        return Some("the statistics of stripes");
    }
    None
}

fn unknown(bytes: Range<u64>) -> Damage {
    Damage {
        bytes,
        rows_lost: None,
        structure: "recovery".to_owned(),
        reason: "expected a stripe or the list of stripes in the file's tail, found neither: rows may be lost here".to_owned(),
    }
}

fn cut_off(end: u64) -> Damage {
    Damage {
        bytes: end..end,
        rows_lost: None,
        structure: "recovery".to_owned(),
        reason: "expected the list of stripes in the file's tail, found the end of the file: more stripes may have followed".to_owned(),
    }
}

/// A recovered stripe.
#[derive(Clone, Debug)]
struct RecoveredStripe {
    start: u64,
    index_length: u64,
    footer: Range<u64>,
    rows: u64,
    /// The numbers of rows of the stripe's row groups.
    stride: u64,
}

struct Search<'a> {
    source: &'a dyn ReadAt,
    compression: Compression,
    /// The codec for footers, with a small block size: footers are short, so that a wrong candidate costs
    /// little.
    footers: Compression,
    columns: usize,
    /// Whether the root is a struct: its statistics count all rows.
    root_is_struct: bool,
    limits: &'a Limits,
    /// The last bytes that were read, with their start: consecutive stripes are often in the same bytes.
    cached: (u64, Bytes),
}

impl<'a> Search<'a> {
    fn new(
        source: &'a dyn ReadAt,
        compression: Compression,
        types: &[proto::Type],
        limits: &'a Limits,
    ) -> Self {
        let root_is_struct = types.first().is_some_and(|root| root.kind() == Kind::Struct.number());
        let columns = types.len();
        let longest = columns.saturating_mul(STREAMS * LONGEST_STREAM).saturating_add(64 << 10);
        let footers = Compression { block_size: compression.block_size.min(longest), ..compression };
        Self { source, compression, footers, columns, root_is_struct, limits, cached: (0, Bytes::new()) }
    }

    /// The bytes from `start` to [`REACH`] after the end of the window, and that end.
    fn window(&mut self, start: u64, end: u64) -> Result<(Bytes, u64)> {
        let (cached_from, cached) = &self.cached;
        let cached_end = cached_from.saturating_add(cached.len() as u64);
        let whole = cached_end == self.source.len();
        let searched = if whole { cached_end } else { cached_end.saturating_sub(REACH) };
        if *cached_from <= start && start < searched {
            let from = usize::try_from(start - cached_from).unwrap_or(usize::MAX).min(cached.len());
            return Ok((cached.slice(from..), searched.min(end)));
        }
        let window_end = (start + WINDOW).min(end);
        let bytes = self.source.read(start..(start + WINDOW + REACH).min(self.source.len()))?;
        self.cached = (start, bytes.clone());
        Ok((bytes, window_end))
    }

    /// The first stripe that begins at or after `from` and whose footer begins in `places`.
    fn next(&mut self, from: u64, places: Range<u64>) -> Result<Option<RecoveredStripe>> {
        let mut codec = Decompressor::new();
        let mut message = Vec::new();
        let Range { mut start, end } = places;
        while start < end {
            let (bytes, window_end) = self.window(start, end)?;
            let places = usize::try_from(window_end - start).unwrap_or(usize::MAX).min(bytes.len());
            for place in 0..places {
                let rest = bytes.get(place..).unwrap_or_default();
                if !self.may_be_footer(rest) {
                    continue;
                }
                let Some((footer, length)) = self.footer(rest, &mut codec, &mut message) else { continue };
                let at = start + place as u64;
                if let Some(stripe) = self.stripe(&footer, from, at..at + length)? {
                    return Ok(Some(stripe));
                }
            }
            start = window_end;
        }
        Ok(None)
    }

    /// A quick test of the first bytes: a footer begins with the length of its first stream's entry.
    fn may_be_footer(&self, rest: &[u8]) -> bool {
        const ENTRY: u8 = 0x0a;
        if self.compression.algorithm == Algorithm::None {
            return matches!(rest, [ENTRY, 2..=20, 0x08, ..]);
        }
        let Some((header, rest)) = rest.split_first_chunk::<HEADER>() else { return false };
        let header = ChunkHeader::new(*header);
        let Some(stored) = rest.get(..header.length) else { return false };
        if header.original {
            return stored.first() == Some(&ENTRY) && header.length <= self.footers.block_size;
        }
        match self.compression.algorithm {
            Algorithm::Zstd => stored.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]),
            Algorithm::Lz4 => match stored {
                // A literal comes first: its length is in the token's upper half.
                [token, ENTRY, ..] => *token >= 0x10 && *token < 0xf0,
                [0xf0..=0xff, _, ENTRY, ..] => true,
                _ => false,
            },
            Algorithm::Snappy => begins_with_literal(stored, ENTRY),
            Algorithm::Lzo => match stored {
                // A literal comes first: its length is in the first byte, or in the bytes after a 0.
                [18..=255 | 1..=15, ENTRY, ..] => true,
                [0, rest @ ..] => {
                    let zeros = rest.iter().take(64).take_while(|byte| **byte == 0).count();
                    rest.get(zeros + 1) == Some(&ENTRY)
                }
                _ => false,
            },
            Algorithm::Deflate => may_inflate_to(stored, ENTRY),
            _ => header.length >= 4,
        }
    }

    /// The footer at the start of `rest`, and its stored length.
    fn footer(
        &self,
        rest: &[u8],
        codec: &mut Decompressor,
        message: &mut Vec<u8>,
    ) -> Option<(StripeFooter, u64)> {
        if self.compression.algorithm == Algorithm::None {
            let length = plain_footer(rest, self.columns)?;
            let footer = self.decoded(rest.get(..length)?)?;
            return Some((footer, length as u64));
        }
        message.clear();
        let mut chunks = Cursor::new(rest, 0);
        for _ in 0..FOOTER_CHUNKS {
            let chunk = self.footers.stored(&mut chunks).ok()?;
            self.footers.decompress(codec, &chunk, message).ok()?;
            if message.first() != Some(&0x0a) {
                return None;
            }
            // If a message is truncated between two fields, it can be decoded, but it lacks encodings.
            if let Some(footer) = self.decoded(message)
                && footer.columns.len() >= self.columns
            {
                return Some((footer, (rest.len() - chunks.remaining()) as u64));
            }
        }
        None
    }

    /// Decodes a footer; `None` if the bytes are no footer, or if it would take more memory than a file of
    /// this length justifies.
    fn decoded(&self, message: &[u8]) -> Option<StripeFooter> {
        check::<StripeFooter>(message, self.limits, self.source.len()).ok()?;
        StripeFooter::decode(message).ok()
    }

    /// The number of rows of a row group, from the root's statistics. The statistics omit the nulls of a root
    /// that is not a struct.
    fn rows(&self, root: &ColumnStatistics) -> Option<u64> {
        root.number_of_values.filter(|_| self.root_is_struct || root.has_null == Some(false))
    }

    /// The stripe that `footer` describes, if it is plausible.
    fn stripe(&self, footer: &StripeFooter, from: u64, place: Range<u64>) -> Result<Option<RecoveredStripe>> {
        if footer.columns.len() != self.columns || footer.streams.is_empty() {
            return Ok(None);
        }
        let columns = u32::try_from(self.columns).unwrap_or(u32::MAX);
        let (mut sum, mut index_length) = (0u64, 0u64);
        let mut root_index = None;
        for stream in &footer.streams {
            let length = stream.length();
            let kind = StreamKind::from_number(stream.kind());
            if stream.column() >= columns || sum.checked_add(length).is_none_or(|s| s > place.start) {
                return Ok(None);
            }
            if kind == Some(StreamKind::RowIndex) && stream.column() == 0 {
                root_index = Some(sum..sum + length);
            }
            if kind.is_some_and(StreamKind::is_index) {
                index_length += length;
            }
            sum += length;
        }
        let Some(start) = place.start.checked_sub(sum).filter(|s| *s >= from) else { return Ok(None) };
        // Without the root's index the number of rows is unknown, and nothing confirms the stripe.
        let Some(index) = root_index.filter(|i| i.end - i.start <= REACH) else { return Ok(None) };
        let stored = self.source.read(start + index.start..start + index.end)?;
        let Ok(message) =
            self.compression.message(&stored, start + index.start, self.limits, self.source.len())
        else {
            return Ok(None);
        };
        let Ok(index) = proto::decode::<RowIndex>("row index", message, self.limits, self.source.len())
        else {
            return Ok(None);
        };
        let counts: Option<Vec<u64>> =
            index.entry.iter().map(|e| self.rows(e.statistics.as_ref()?)).collect();
        let Some(counts) = counts.filter(|c| !c.is_empty()) else { return Ok(None) };
        let Some(rows) = counts.iter().try_fold(0u64, |sum, n| sum.checked_add(*n)) else { return Ok(None) };
        let stride = counts.first().copied().unwrap_or(0);
        Ok(Some(RecoveredStripe { start, index_length, footer: place, rows, stride }))
    }
}
