//! Checks one damaged file against the laws.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use coldframe_core::options::Strings;
use coldframe_core::types::views;
use coldframe_core::{Damage, Error, ErrorKind, OnError, Result, Scan, TableFile};

use super::allowed_loss::AllowedLoss;
use crate::layout;
use crate::rows::{self, Outcome, as_text};

/// The contents of the healthy file.
pub(crate) struct Truth {
    pub(crate) rows: Vec<String>,
    pub(crate) schema: arrow_schema::SchemaRef,
    /// For each column, whether its printed value is either complete or null. A nested column may lose only a
    /// part.
    flat: Vec<bool>,
}

impl Truth {
    pub(crate) fn new(batch: &RecordBatch) -> Self {
        Self {
            rows: as_text(batch),
            schema: batch.schema(),
            flat: batch.schema().fields().iter().map(|f| !f.data_type().is_nested()).collect(),
        }
    }

    /// Whether `got` is the row `of`, except that some values are null.
    fn is_nulled(&self, got: &str, of: &str) -> bool {
        let (got, of) = (got.split('\u{1}'), of.split('\u{1}'));
        got.zip(of).zip(&self.flat).all(|((g, o), flat)| g == o || g == "\u{0}" || !flat)
    }
}

/// The violations, by kind.
#[derive(Default)]
pub(crate) struct Complaints(BTreeMap<String, Vec<String>>);

impl Complaints {
    /// How many violations of each kind are shown.
    const SHOWN: usize = 3;

    pub(crate) fn add(&mut self, what: &str, complaint: &str) {
        let kind: String = complaint.chars().take(60).filter(|c| !c.is_ascii_digit()).take(36).collect();
        self.0.entry(kind).or_default().push(format!("{what}: {complaint}"));
    }

    pub(crate) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for all in self.0.values() {
            for complaint in all.iter().take(Self::SHOWN) {
                writeln!(text, "- {complaint}").unwrap();
            }
            if all.len() > Self::SHOWN {
                writeln!(text, "  ... and {} like it", all.len() - Self::SHOWN).unwrap();
            }
        }
        text
    }
}

/// The result of a read under `skip` or `null`.
struct Salvaged {
    rows: Vec<String>,
    damage: Vec<Damage>,
}

/// The results of reading a table with each `on_error`.
struct Reads {
    raised: Option<Outcome>,
    skipped: Salvaged,
    nulled: Salvaged,
}

/// Properties of a file that the laws depend on.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Whether a checksum covers all values.
    pub(crate) summed: bool,
    /// Whether each record states its number of rows.
    pub(crate) counted: bool,
    /// Whether the file is one of several that make the table.
    pub(crate) folder: bool,
    /// Split sizes.
    pub(crate) targets: Vec<u64>,
}

/// Checks one damaged file against the laws (with `AllowedLoss::none()`, a healthy file).
pub(crate) struct Judge<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) truth: &'a Truth,
    pub(crate) allowed: AllowedLoss,
    pub(crate) what: String,
    pub(crate) complaints: &'a mut Complaints,
}

impl Judge<'_> {
    fn complain(&mut self, complaint: impl AsRef<str>) {
        self.complaints.add(&self.what, complaint.as_ref());
    }

    /// Opens the file and checks all laws.
    pub(crate) fn run(&mut self, opened: Result<Arc<dyn TableFile>>, len: u64) {
        match opened {
            Ok(table) => self.table(table.as_ref(), len),
            Err(e) if !self.allowed.fatal => self.complain(format!("cannot be opened: {e}")),
            Err(e) if !e.is_damage() && !self.may_end(&e) => {
                self.complain(format!("opening fails with an error that is not damage: {e}"));
            }
            Err(_) => {}
        }
    }

    /// Checks an open table against the laws that can be checked without the healthy file.
    pub(crate) fn any(&mut self, table: &dyn TableFile, len: u64) {
        self.layout(table, len);
        if let Some(read) = self.reads(table, len) {
            self.splits(table, OnError::Skip, &read.skipped);
            self.splits(table, OnError::Null, &read.nulled);
        }
    }

    /// Checks an open table against all laws.
    fn table(&mut self, table: &dyn TableFile, len: u64) {
        self.layout(table, len);
        let other = *table.schema() != self.truth.schema;
        if other && !self.allowed.fatal {
            self.complain("another schema");
        }
        let Some(read) = self.reads(table, len) else { return };
        if !other {
            if let Some(raised) = read.raised.as_ref().filter(|_| self.rules.summed) {
                self.raised_is_true(raised);
            }
            self.only_the_unit_is_lost("skip", &read.skipped, |got, of| got == of);
            let truth = self.truth;
            self.only_the_unit_is_lost("null", &read.nulled, |got, of| truth.is_nulled(got, of));
            self.losses_are_records("skip", &read.skipped);
            self.losses_are_records("null", &read.nulled);
        }
        self.splits(table, OnError::Skip, &read.skipped);
        self.splits(table, OnError::Null, &read.nulled);
    }

    /// Reads the whole table with each `on_error`; `None` if a read under `skip` or `null` failed.
    fn reads(&mut self, table: &dyn TableFile, len: u64) -> Option<Reads> {
        let raised = self.read(table, OnError::Raise);
        let skipped = self.salvage(table, OnError::Skip, len);
        let nulled = self.salvage(table, OnError::Null, len);
        let (skipped, nulled) = (skipped?, nulled?);
        if let Some(e) = raised.as_ref().and_then(|r| r.error.as_ref())
            && (skipped.damage.is_empty() || nulled.damage.is_empty())
        {
            self.complain(format!("an error without a record of it: {e}"));
        }
        self.null_keeps_what_skip_keeps(&skipped, &nulled);
        self.views_are_the_same(table, &skipped);
        Some(Reads { raised, skipped, nulled })
    }

    /// Checks that each byte belongs to one leaf, and that `verify` returns no error. The metadata may be
    /// damaged.
    fn layout(&mut self, table: &dyn TableFile, len: u64) {
        match table.inspect() {
            Ok(tree) if self.rules.folder => drop(tree),
            Ok(tree) => {
                if tree.bytes != (0..len) {
                    self.complain(format!("inspect covers {:?} of {len} bytes", tree.bytes));
                }
                layout::assert_tiled(&tree);
            }
            Err(e) => self.complain(format!("inspect: {e}")),
        }
        let described = table.metadata().and_then(|_| table.statistics());
        if let Err(e) = described
            && (!e.is_confined() || self.allowed == AllowedLoss::none())
        {
            self.complain(format!("metadata or statistics: {e}"));
        }
        if let Err(e) = coldframe_core::scan::verify(table, |_| Ok(()))
            && !self.may_end(&e)
        {
            self.complain(format!("verify: {e}"));
        }
    }

    fn read(&mut self, table: &dyn TableFile, on_error: OnError) -> Option<Outcome> {
        let outcome = rows::read(table, on_error);
        if let Err(e) = &outcome
            && (on_error != OnError::Raise || !e.is_damage())
            && !self.may_end(e)
        {
            self.complain(format!("{on_error:?} cannot start: {e}"));
        }
        outcome.ok()
    }

    /// Whether a read may fail with the error: damage may turn a file into an unsupported file, or into one that
    /// asks for more than a limit.
    fn may_end(&self, e: &Error) -> bool {
        self.allowed.fatal && (e.is_limit() || matches!(e.kind(), ErrorKind::Unsupported(_)))
    }

    fn salvage(&mut self, table: &dyn TableFile, on_error: OnError, len: u64) -> Option<Salvaged> {
        let outcome = self.read(table, on_error)?;
        if let Some(e) = outcome.error {
            if !self.may_end(&e) {
                self.complain(format!("{on_error:?} ends with: {e}"));
            }
            return None;
        }
        for record in &outcome.damage {
            let bytes = &record.bytes;
            if !self.rules.folder && (bytes.start > bytes.end || bytes.end > len) {
                self.complain(format!("{on_error:?}: a record of bytes {bytes:?} in a file of {len}"));
            }
            if record.structure.is_empty() || record.reason.is_empty() {
                self.complain(format!("{on_error:?}: a record without structure or reason: {record:?}"));
            }
        }
        Some(Salvaged { rows: as_text(&outcome.batch), damage: outcome.damage })
    }

    /// Checks that the rows before an error are the first rows of the file or, if there is no error, all
    /// rows.
    fn raised_is_true(&mut self, raised: &Outcome) {
        let got = as_text(&raised.batch);
        let silent = self.allowed.silent;
        if !self.truth.rows.starts_with(&got) {
            self.complain("raise: wrong rows before the error");
        } else if raised.error.is_none() && got.len() < self.truth.rows.len() && !silent {
            self.complain(format!("raise: {} of {} rows and no error", got.len(), self.truth.rows.len()));
        }
    }

    /// Law: only rows of the unit are missing, and each returned row exists in the healthy file.
    fn only_the_unit_is_lost(&mut self, mode: &str, got: &Salvaged, same: impl Fn(&str, &str) -> bool) {
        let truth = &self.truth.rows;
        let end = self.allowed.rows.end.min(truth.len());
        let start = self.allowed.rows.start.min(end);
        let (kept, behind) = (start + truth.len() - end, truth.len() - end);
        if got.rows.len() < kept {
            let lost = truth.len() - got.rows.len();
            let text = format!("{mode} loses {lost} rows, {} may be lost; {}", end - start, summary(got));
            return self.complain(text);
        }
        let middle = &got.rows[start..got.rows.len() - behind];
        let is_true =
            got.rows[..start] == truth[..start] && got.rows[got.rows.len() - behind..] == truth[end..];
        if !is_true {
            let text = format!("{mode} loses or changes rows outside of {start}..{end}; {}", summary(got));
            return self.complain(text);
        }
        if middle.len() > end - start {
            let text =
                format!("{mode} returns {} rows where {} were; {}", middle.len(), end - start, summary(got));
            return self.complain(text);
        }
        if !self.rules.summed {
            return;
        }
        let mut rest = truth[start..end].iter();
        if let Some(made_up) = middle.iter().find(|row| !rest.any(|of| same(row, of))) {
            let text = format!("{mode} returns a row that does not exist: {made_up:?}; {}", summary(got));
            self.complain(text);
        }
    }

    /// Law: every loss has a record, and every record has a loss. If a record has no number of rows, it may
    /// be that no row was lost, except if the format always knows the number. Numbers are compared if a
    /// checksum covers the values.
    fn losses_are_records(&mut self, mode: &str, got: &Salvaged) {
        let missing = self.truth.rows.len().saturating_sub(got.rows.len()) as u64;
        if missing > 0 && got.damage.is_empty() && !self.allowed.silent {
            return self.complain(format!("{mode} loses {missing} rows without a record"));
        }
        let all_known = got.damage.iter().all(|d| d.rows_lost.is_some());
        if self.rules.counted && !all_known {
            return self.complain(format!("{mode}: a record without a number of rows; {}", summary(got)));
        }
        if self.allowed.fatal || self.allowed.silent || !self.rules.summed {
            return;
        }
        let recorded: u64 = got.damage.iter().filter_map(|d| d.rows_lost).sum();
        if recorded > missing || (all_known && recorded != missing) {
            self.complain(format!(
                "{mode}: {missing} rows are missing, {recorded} recorded; {}",
                summary(got)
            ));
        }
    }

    /// Law: null keeps at least the rows that skip keeps.
    fn null_keeps_what_skip_keeps(&mut self, skipped: &Salvaged, nulled: &Salvaged) {
        let mut rest = nulled.rows.iter();
        let gone = skipped.rows.iter().position(|row| !rest.any(|r| r == row));
        if let Some(row) = gone {
            let (skip, null) = (skipped.rows.len(), nulled.rows.len());
            let text = format!(
                "null ({null} rows) lacks the row {row} of skip ({skip} rows); skip {}; null {}",
                summary(skipped),
                summary(nulled)
            );
            self.complain(text);
        }
    }

    /// Law: views have the same values and losses.
    fn views_are_the_same(&mut self, table: &dyn TableFile, plain: &Salvaged) {
        if views::laid_out(table.schema(), Strings::View) == *table.schema() {
            return;
        }
        let scan = Scan { on_error: OnError::Skip, strings: Some(Strings::View), ..Scan::default() };
        match rows::scan(table, &scan, None) {
            Ok(Outcome { error: None, batch, damage }) => {
                let viewed = Salvaged { rows: as_text(&batch), damage };
                // Reasons are not compared, as they may state another number of bytes, since views do not
                // copy a dictionary's entries.
                let lost = |of: &Salvaged| -> Vec<_> {
                    of.damage.iter().map(|d| (d.bytes.clone(), d.rows_lost, d.structure.clone())).collect()
                };
                if viewed.rows != plain.rows || lost(&viewed) != lost(plain) {
                    self.complain(format!("views: {}; plain: {}", summary(&viewed), summary(plain)));
                }
            }
            Ok(Outcome { error: Some(e), .. }) | Err(e) => self.complain(format!("views end with: {e}")),
        }
    }

    /// Law: all splits together have the rows and losses of the whole scan.
    fn splits(&mut self, table: &dyn TableFile, on_error: OnError, whole: &Salvaged) {
        for target in self.rules.targets.clone() {
            let splits = match table.splits(target) {
                Ok(splits) => splits,
                Err(e) => {
                    self.complain(format!("splits of {target} bytes: {e}"));
                    continue;
                }
            };
            let scan = Scan { on_error, ..Scan::default() };
            let mut parts = Salvaged { rows: Vec::new(), damage: Vec::new() };
            for split in &splits {
                match rows::scan(table, &scan, Some(split)) {
                    Ok(Outcome { error: None, batch, damage }) => {
                        parts.rows.extend(as_text(&batch));
                        parts.damage.extend(damage);
                    }
                    Ok(Outcome { error: Some(e), .. }) | Err(e) => {
                        self.complain(format!("{on_error:?}, {split:?} of {target} bytes ends with: {e}"));
                    }
                }
            }
            if parts.rows != whole.rows {
                self.complain(format!(
                    "{on_error:?}: {} splits of {target} bytes give {} rows, the whole scan {}; splits {}; whole {}",
                    splits.len(),
                    parts.rows.len(),
                    whole.rows.len(),
                    summary(&parts),
                    summary(whole),
                ));
            }
            let known = |of: &Salvaged| of.damage.iter().map(|d| d.rows_lost).sum::<Option<u64>>();
            if let (Some(split), Some(all)) = (known(&parts), known(whole))
                && split != all
            {
                let text =
                    format!("{on_error:?}: splits of {target} bytes lose {split} rows, the whole scan {all}");
                self.complain(text);
            }
        }
    }
}

/// Prints the records in short form.
fn summary(got: &Salvaged) -> String {
    let mut text = format!("{} records", got.damage.len());
    for d in got.damage.iter().take(3) {
        write!(text, " [{:?} lost {:?} {}: {}]", d.bytes, d.rows_lost, d.structure, d.reason).unwrap();
    }
    text
}
