//! What to read, as plain data: a request, and the splits that answer it.
//!
//! ```text
//! driver    dataset ──▶ Plan { scan, splits } ──▶ bytes ──┐
//!                                                         │ (see `wire`)
//! executor  Python, JVM, Rust      rows ◀── Split ◀───────┘
//! ```
//!
//! A split holds everything needed to open its file: the path, how it is opened, and what is known about the
//! file from the listing or an earlier opening.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use coldframe_core::io::Identity;
use coldframe_core::{Piece, Result, Scan, Source};

use super::fragment::Fragment;
use super::opening::Opening;
use super::storage::{os_path, shown_path};
use crate::File;

/// A file of a plan, shared by its splits.
#[derive(Clone)]
pub struct SplitFile {
    /// The path or URL, as text (see [`super::storage`]).
    pub path: String,
    /// How it is opened. The format is known if the file was opened for the plan.
    pub opening: Arc<Opening>,
    /// The identity of the file from a listing or from opening it. It is an error if the file has changed
    /// since.
    pub known: Option<Identity>,
    /// The bytes that were read when the file was opened.
    pub recorded: Arc<Vec<Piece>>,
    /// How the file maps to a table of many files, if it belongs to one.
    pub fragment: Option<Fragment>,
    /// The source, if it is an object of this process; the path is then only a name for messages.
    pub source: Option<Source>,
}

impl SplitFile {
    /// Opens the file. `own`: bytes that planning already read for the split to be read, in addition to those
    /// of the file.
    pub fn open(&self, own: &[Piece]) -> Result<File> {
        let rows = self.fragment.as_ref().and_then(|fragment| fragment.rows);
        let open = |known: Option<&Identity>| {
            let source = match &self.source {
                Some(source) => source.clone(),
                None => self.opening.storage.source(&os_path(&self.path), known)?,
            };
            self.opening.open_stated(source, self.recorded.iter().chain(own).cloned().collect(), rows)
        };
        // A length of a table's metadata, and not of a listing, may be wrong: the number of rows decides.
        let is_stated = |known: &Identity| rows.is_some() && known.modified.is_none() && known.etag.is_none();
        match open(self.known.as_ref()) {
            Err(_) if self.known.as_ref().is_some_and(is_stated) => open(None),
            opened => opened,
        }
    }
}

impl fmt::Debug for SplitFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitFile")
            .field("path", &shown_path(&self.path))
            .field("opening", &self.opening)
            .field("known", &self.known)
            .field("recorded", &self.recorded.len())
            .finish_non_exhaustive()
    }
}

/// The part of a file that a split covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A split of the file as the format defines it.
    Cut(coldframe_core::Split),
    /// One of several equal shares of the file's splits. The reader of a share divides the file into splits
    /// of about `target` bytes; every reader does this in the same way.
    Share {
        /// The number of the share, from 0.
        number: u64,
        /// The number of shares.
        of: u64,
        /// Bytes per split.
        target: u64,
    },
}

/// A part of a table that one task reads.
#[derive(Clone, Debug)]
pub struct Split {
    /// The file that the split is a part of.
    pub file: Arc<SplitFile>,
    /// The part of the file that the split covers.
    pub part: Part,
    /// For a folder that is one table: the bytes that planning read for this split.
    pub own: Vec<Piece>,
}

impl Split {
    /// All splits of the open file `opened`, of about `target` bytes each. `file`: what these splits have in
    /// common.
    pub fn of(file: SplitFile, opened: &File, target: u64) -> Result<Vec<Self>> {
        let cut = opened.table.splits(target).map_err(|e| opened.named(e))?;
        Self::of_cut(file, opened, cut)
    }

    /// These splits of an open file, as the format defines them.
    pub(super) fn of_cut(
        file: SplitFile,
        opened: &File,
        cut: Vec<coldframe_core::Split>,
    ) -> Result<Vec<Self>> {
        let recorded = opened.table.recorded(&cut).map_err(|e| opened.named(e))?;
        let file = Arc::new(file);
        let of = |(cut, own)| Self { file: file.clone(), part: Part::Cut(cut), own };
        Ok(cut.into_iter().zip(recorded).map(of).collect())
    }

    /// The length of the split's file in bytes; `None` if the split is a part of a folder that is one table.
    pub fn file_bytes(&self) -> Option<u64> {
        self.file.known.as_ref().map(|known| known.len)
    }

    /// Opens the split's file to read the rows of this split only; other rows of a folder may not be readable
    /// then.
    pub fn open(&self) -> Result<File> {
        self.file.open(&self.own)
    }

    /// If this split is a share, opens its file and returns the splits of the share; otherwise returns only
    /// the split itself.
    pub fn cut(&self) -> Result<Vec<Self>> {
        let Part::Share { number, of, target } = self.part else { return Ok(vec![self.clone()]) };
        let opened = self.file.open(&[])?;
        let opening =
            Opening { format: Some(opened.table.format().to_owned()), ..(*self.file.opening).clone() };
        let file = SplitFile {
            opening: Arc::new(opening),
            recorded: opened.recorded.clone(),
            known: opened.identity.clone(),
            ..(*self.file).clone()
        };
        let all = Self::of(file, &opened, target)?;
        let share = share(number, of, all.len());
        Ok(all.into_iter().skip(share.start).take(share.len()).collect())
    }

    /// Opens the split's file, and returns the format's splits that this split consists of.
    pub(super) fn open_cut(&self) -> Result<(File, Vec<coldframe_core::Split>)> {
        let file = self.open()?;
        let cut = match &self.part {
            Part::Cut(cut) => vec![cut.clone()],
            Part::Share { number, of, target } => {
                let all = file.table.splits(*target).map_err(|e| file.named(e))?;
                let share = share(*number, *of, all.len());
                all.into_iter().skip(share.start).take(share.len()).collect()
            }
        };
        Ok((file, cut))
    }
}

/// Which of a file's `count` splits are in share `number` of `of`.
fn share(number: u64, of: u64, count: usize) -> Range<usize> {
    let at = |number: u64| {
        let at = count as u128 * u128::from(number) / u128::from(of.max(1));
        usize::try_from(at).map_or(count, |at| at.min(count))
    };
    at(number)..at(number.saturating_add(1))
}

/// A request to a table, and the splits that together answer it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The schema of the returned batches.
    pub schema: SchemaRef,
    /// The request; its filter is bound to the table's columns.
    pub scan: Scan,
    /// The splits, in the order of the rows.
    pub splits: Vec<Split>,
}

/// The cost of opening one more file when small splits are packed into one task: the value that Spark uses.
pub const OPEN_COST: u64 = 4 << 20;

/// Groups consecutive splits, whose sizes are `sizes`, into groups of about `target` bytes each.
pub fn pack(sizes: impl IntoIterator<Item = u64>, target: u64) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut room = 0;
    for (at, size) in sizes.into_iter().enumerate() {
        let cost = size.saturating_add(OPEN_COST);
        match groups.last_mut().filter(|_| cost <= room) {
            Some(group) => group.end = at + 1,
            None => {
                groups.push(at..at + 1);
                room = target.saturating_add(OPEN_COST);
            }
        }
        room = room.saturating_sub(cost);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_splits_share_a_task() {
        let packed = |sizes: &[u64], target| {
            let groups = pack(sizes.iter().copied(), target).into_iter();
            groups.map(|group| (group.start, group.end)).collect::<Vec<_>>()
        };
        assert_eq!(packed(&[1, 2, 3], 128 << 20), [(0, 3)]);
        assert_eq!(packed(&[1, 2, 3], 1), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(packed(&[64 << 20, 64 << 20, 1], 128 << 20), [(0, 1), (1, 3)]);
        assert_eq!(packed(&[u64::MAX, 1, u64::MAX], 1 << 20), [(0, 1), (1, 2), (2, 3)]);
        assert!(packed(&[], 1).is_empty());
    }
}
