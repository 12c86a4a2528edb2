//! Whether days of a file may be in another calendar than the one in which they are read.

use coldframe_core::Notice;

use crate::layout::proto::{self, ColumnStatistics};
use crate::open::Shape;

/// First day of the Gregorian calendar, 1582-10-15.
const REFORM: i32 = -141_427;
/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Whether the statistics of a column state a day before 1582-10-15.
fn is_old(stats: &ColumnStatistics) -> bool {
    if let Some(of) = &stats.date_statistics {
        return of.minimum.is_some_and(|day| day < REFORM);
    }
    let Some(of) = &stats.timestamp_statistics else { return false };
    let smallest = [of.minimum_utc, of.minimum].into_iter().flatten().min();
    smallest.is_some_and(|time| time < i64::from(REFORM) * DAY)
}

/// A notice for a file with days before 1582-10-15 whose calendar nothing states. Statistics show whether
/// there are such days.
pub(crate) fn ambiguous(shape: &Shape) -> Option<Notice> {
    if !shape.quirks.ambiguous_calendar {
        return None;
    }
    let stated = shape.tree.columns().iter().zip(&shape.tail.footer.statistics);
    let old = stated.filter(|(_, stats)| proto::statistics(stats).is_some_and(|stats| is_old(&stats)));
    let columns: Vec<String> = old.map(|(column, _)| format!("`{}`", column.path)).collect();
    if columns.is_empty() {
        return None;
    }
    Some(Notice::AmbiguousCalendar(format!(
        "the file does not state the calendar of the days before 1582-10-15 in {}: they are read as hybrid \
         (Julian), as Hive up to 3.0 and Spark 2 wrote them; if Hive 3.1 wrote the file, set \
         calendar=\"proleptic\"; calendar=\"hybrid\" silences this warning",
        columns.join(", ")
    )))
}
