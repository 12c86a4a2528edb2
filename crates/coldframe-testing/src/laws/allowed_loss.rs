//! The maximum that may be lost through damage: the smallest unit of a format, as its tests define it.

use std::ops::Range;

use coldframe_core::{Node, Value};

use super::damage::Damaged;

/// The maximum that may be lost through one damaged place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedLoss {
    /// The rows of the healthy file that may be missing. Without checksums they may also be wrong.
    pub rows: Range<usize>,
    /// Whether the file may fail to open, or be opened as something else. It is then unknown what is lost.
    pub fatal: bool,
    /// Whether the loss may be undetected: for example, a cut between two units is no damage if the format
    /// has no end marker.
    pub silent: bool,
}

impl AllowedLoss {
    /// No row may be lost.
    pub fn none() -> Self {
        Self::rows(0..0)
    }

    /// These rows may be lost.
    pub fn rows(rows: Range<usize>) -> Self {
        Self { rows, fatal: false, silent: false }
    }

    /// All rows may be lost, and the file may fail to open.
    pub fn file() -> Self {
        Self { rows: 0..usize::MAX, fatal: true, silent: false }
    }

    /// Both losses together, including the rows between them.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let rows = match (self.rows.is_empty(), other.rows.is_empty()) {
            (_, true) => self.rows,
            (true, _) => other.rows,
            _ => self.rows.start.min(other.rows.start)..self.rows.end.max(other.rows.end),
        };
        Self { rows, fatal: self.fatal || other.fatal, silent: self.silent || other.silent }
    }

    /// The same loss, possibly without a record.
    #[must_use]
    pub fn silent(self) -> Self {
        Self { silent: true, ..self }
    }

    /// The same loss, and the file may fail to open.
    #[must_use]
    pub fn fatal(self) -> Self {
        Self { fatal: true, ..self }
    }
}

/// The independent parts of a file, and the rows in each part.
#[derive(Clone, Debug, Default)]
pub struct Units(Vec<(Range<u64>, Range<usize>)>);

impl Units {
    /// Parts in row order: their bytes and their number of rows.
    pub fn new(parts: impl IntoIterator<Item = (Range<u64>, usize)>) -> Self {
        let mut first = 0;
        Self(
            parts
                .into_iter()
                .map(|(bytes, rows)| {
                    first += rows;
                    (bytes, first - rows..first)
                })
                .collect(),
        )
    }

    /// The nodes whose names begin with `name`, in file order. The detail `detail` has their number of rows.
    pub fn named(tree: &Node, name: &str, detail: &str) -> Self {
        let (mut parts, mut open) = (Vec::new(), vec![tree]);
        while let Some(node) = open.pop() {
            if node.name.starts_with(name) {
                let rows = node.detail.iter().find(|(key, _)| key == detail).map(|(_, value)| value);
                let Some(Value::Int(rows)) = rows else { panic!("`{}` without {detail}", node.name) };
                parts.push((node.bytes.clone(), usize::try_from(*rows).unwrap()));
            } else {
                open.extend(node.children.iter().rev());
            }
        }
        assert!(!parts.is_empty(), "no node named {name}");
        Self::new(parts)
    }

    /// The parts.
    pub fn parts(&self) -> &[(Range<u64>, Range<usize>)] {
        &self.0
    }

    /// The rows of all parts that `bytes` touches, and the rows between them.
    pub fn rows(&self, bytes: &Range<u64>) -> Range<usize> {
        let mut touched = self.0.iter().filter(|(b, _)| b.start < bytes.end && bytes.start < b.end);
        let Some((_, first)) = touched.next() else { return 0..0 };
        let (mut start, mut end) = (first.start, first.end);
        for (_, rows) in touched {
            (start, end) = (start.min(rows.start), end.max(rows.end));
        }
        start..end
    }

    /// The units that the damage touches, plus `elsewhere` if it begins outside all units. `moved`: what
    /// happens to the units after the change if their bytes have moved.
    pub fn allowed_loss(&self, damaged: &Damaged, elsewhere: AllowedLoss, moved: Moved) -> AllowedLoss {
        let start = damaged.bytes.start;
        let inside = self.0.iter().any(|(bytes, _)| bytes.contains(&start));
        let mut bytes = damaged.bytes.clone();
        if damaged.moves() && moved == Moved::Lost {
            bytes.end = u64::MAX;
        }
        let loss = AllowedLoss::rows(self.rows(&bytes));
        if inside { loss } else { loss.and(elsewhere) }
    }
}

/// What happens to units that moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Units are kept: a reader finds them by markers.
    Kept,
    /// Units are lost: a reader finds them only by position.
    Lost,
}
