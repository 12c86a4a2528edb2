//! A Redfile as a table.

use std::any::Any;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::{
    Checksums, Damage, Divided, Error, Node, Notice, OnError, OpenOptions, Plan, PlanRequest, Proof, ReadAt,
    Result, Source, Split, TableFile, Value,
};

use crate::layout::dialect::Dialect;
use crate::layout::footer::MAGIC;
use crate::open::footer::{self, Footer};
use crate::open::groups::Group;
use crate::open::{FooterContents, RawFile, summary};
use crate::options::Options;
use crate::recover::{Rebuilt, last_footer, rebuild};
use crate::scan::ScanContext;
use crate::scan::plan::GroupPlan;
use crate::{inspect, verify};

/// An open Redfile.
#[derive(Debug)]
pub struct RedFile {
    raw: Arc<RawFile>,
}

impl RedFile {
    /// Opens a file: reads its metadata.
    pub fn open(source: &Source, options: &OpenOptions) -> Result<Self> {
        let options = Options::new(options)?;
        let (bytes, siblings) = match source {
            Source::File { bytes, siblings, .. } => (bytes.clone(), siblings.clone()),
            Source::Folder { folder, .. } => (folder.open(summary::NAME)?, Some(folder.clone())),
        };
        let siblings = siblings.as_deref();
        let head = bytes.read(0..bytes.len().min(summary::PROBE_LEN))?;
        let raw = if !head.starts_with(MAGIC) && summary::probe(&head) {
            RawFile::of_summary(bytes.as_ref(), siblings, options)?
        } else {
            let contents = find_footer(&bytes, &options)?;
            RawFile::single(bytes, siblings, contents, options)?
        };
        Ok(Self { raw: Arc::new(raw) })
    }

    /// The row groups in order.
    pub fn groups(&self) -> &[Arc<Group>] {
        &self.raw.groups
    }

    /// The dialect, which is given by the user or detected from the file.
    pub fn dialect(&self) -> Result<Dialect> {
        self.raw.dialect()
    }
}

/// Finds the footer at the end. If it is damaged and recovery is requested, finds the last intact footer
/// before it, or reconstructs row groups from the pages.
fn find_footer(bytes: &Arc<dyn ReadAt>, options: &Options) -> Result<FooterContents> {
    let limits = &options.limits;
    let e = match footer::read(bytes.as_ref(), limits) {
        Ok(Footer { metadata, start, end }) => {
            return Ok(FooterContents { metadata, footer: Some(start..end), lost: None });
        }
        Err(e) if options.recover && e.is_confined() => e,
        Err(e) => return Err(e),
    };
    if let Some(Footer { metadata, start, end }) = last_footer(bytes.as_ref(), limits)? {
        let lost = std::iter::once(end..bytes.len()).collect();
        return Ok(FooterContents { metadata, footer: Some(start..end), lost: Some(lost) });
    }
    let Some(schema) = &options.schema else { return Err(e) };
    match rebuild(bytes, schema, options)? {
        Some(Rebuilt { metadata, lost }) => Ok(FooterContents { metadata, footer: None, lost: Some(lost) }),
        None => Err(e),
    }
}

impl TableFile for RedFile {
    fn format(&self) -> &'static str {
        "redfile"
    }

    fn schema(&self) -> &SchemaRef {
        &self.raw.schema.arrow
    }

    /// The sum over the groups: the number in the file overflows at 2^31.
    fn row_count(&self) -> Option<u64> {
        Some(self.raw.groups.iter().fold(0u64, |n, g| n.saturating_add(g.rows)))
    }

    fn metadata(&self) -> Result<Value> {
        inspect::metadata(&self.raw)
    }

    fn notices(&self) -> Result<Vec<Notice>> {
        let cut: Vec<Damage> = self.raw.cut_chunks().collect();
        let unreadable = Damage::notice(&cut);
        if !self.raw.ambiguous() {
            return Ok(unreadable.into_iter().collect());
        }
        let text = "the bytes do not determine the dialect of this Redfile; little endian is assumed \
         (dialect=\"redelm-a\" is big endian)";
        Ok([Notice::AmbiguousDialect(text.to_owned())].into_iter().chain(unreadable).collect())
    }

    fn splits(&self, target: u64) -> Result<Vec<Split>> {
        let mut splits = Vec::new();
        for (index, part) in self.raw.parts.iter().enumerate() {
            let number = u32::try_from(index).map_err(|_| Error::unsupported("a table of 2^32 files"))?;
            let groups: Vec<&Arc<Group>> = self.raw.groups.iter().filter(|g| g.part == index).collect();
            if groups.is_empty() && !(index == 0 && self.raw.groups.is_empty()) {
                continue;
            }
            let end = part.source.len();
            let (mut start, mut bytes, mut rows) = (0u64, 0u64, 0u64);
            for (group, can_begin) in groups.iter().zip(can_begin_split(&groups)) {
                let len = group.end.saturating_sub(group.start);
                // No split begins at the end of the file: a group there belongs to the last split, which has
                // no end.
                let new = can_begin && (start + 1..end).contains(&group.start);
                if bytes > 0 && new && bytes.saturating_add(len) > target {
                    splits.push(Split { part: number, range: start..group.start, rows: Some(rows) });
                    (start, bytes, rows) = (group.start, 0, 0);
                }
                bytes = bytes.saturating_add(len);
                rows = rows.saturating_add(group.rows);
            }
            // The last split has no end, so that it contains a group that is stated to begin after the end of
            // the file.
            splits.push(Split { part: number, range: start..end, rows: Some(rows) });
        }
        Ok(splits)
    }

    fn byte_split(&self, bytes: std::ops::Range<u64>) -> Result<Split> {
        if self.raw.parts.len() > 1 {
            return Err(Split::not_of_bytes());
        }
        Ok(Split { part: 0, range: bytes, rows: None })
    }

    fn decodes_views(&self) -> bool {
        true
    }

    fn plan(&self, request: &PlanRequest, split: &Split) -> Result<Box<dyn Plan>> {
        let scan = ScanContext::new(self.raw.clone(), request)?;
        let part = usize::try_from(split.part).unwrap_or(usize::MAX);
        let len = self.raw.parts.get(part).map_or(0, |p| p.source.len());
        let last = split.range.end >= len;
        let inside =
            |g: &&Arc<Group>| g.part == part && (split.range.contains(&g.start) || (last && g.start >= len));
        let groups = self.raw.groups.iter().filter(inside).cloned().collect();
        if part == 0 && split.range.start == 0 {
            for damage in verify::lost(&self.raw) {
                if request.scan.on_error == OnError::Raise {
                    return Err(damage.to_error());
                }
                request.damage.push(damage);
            }
        }
        Ok(Box::new(GroupPlan::new(scan, Divided::new(request, &request.decode)?, groups)))
    }

    fn inspect(&self) -> Result<Node> {
        inspect::tree(&self.raw)
    }

    fn proof(&self) -> Proof {
        // Pages may have checksums, but most pages have no checksums.
        Proof { checksums: Checksums::Some.if_compared(self.raw.options.verify), besides: &[] }
    }

    fn verify_structure(&self) -> Result<Vec<Damage>> {
        Ok(verify::lost(&self.raw))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// For each group, whether a split can begin with it: all earlier groups begin before it, and all later
/// groups after it. Rows are returned in the order of the footer, which may differ from their order in the
/// file, while splits are ranges of bytes.
fn can_begin_split(groups: &[&Arc<Group>]) -> Vec<bool> {
    let starts = || groups.iter().map(|g| g.start);
    let min_after = starts().rev().scan(u64::MAX, |min, start| {
        *min = (*min).min(start);
        Some(*min)
    });
    let mut min_after: Vec<u64> = min_after.collect();
    min_after.reverse();
    let max_before = starts().scan(None, |max, start| Some(std::mem::replace(max, (*max).max(Some(start)))));
    let around = max_before.zip(min_after);
    starts().zip(around).map(|(start, (before, min))| before < Some(start) && min == start).collect()
}
