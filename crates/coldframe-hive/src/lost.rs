//! Lost files of a table, and the rows in doubt: rows that the lost files may have deleted or replaced.
//!
//! A file of deletes, and before Hive 3 any delta, holds events of rows in other files. These rows are in the
//! same bucket and were written up to the file's last write (`OrcRawRecordMerger` looks for the events of a
//! bucket only in the files of that bucket). If such events are lost, each of these rows may have been
//! deleted or replaced. Under `raise` that is an error; otherwise these rows are not returned, but recorded
//! as lost. Rows of other buckets and of later writes are not in doubt.
//!
//! ```text
//! base_5/bucket_00000          in doubt
//! base_5/bucket_00001          known
//! delta_6_6/bucket_00000       in doubt
//! delete_delta_7_7/bucket_00000   lost
//! delta_8_8/bucket_00000       known
//! ```

use coldframe_core::{Error, Fault, OnError};

use crate::events::{Doubt, Events, bucket_of_property};
use crate::part::OpenFile;
use crate::state::{DataFile, Role};

/// The rows that may have been deleted or replaced if events of `data` are lost. `events`: the events that
/// could be read.
fn doubt(data: &DataFile, events: Option<&Events>) -> Doubt {
    let own = events.is_none_or(|events| events.properties().all(|p| bucket_of_property(p) == data.bucket));
    Doubt { bucket: Some(data.bucket).filter(|_| own), up_to: data.last_write }
}

/// A file that cannot be opened, or whose events cannot all be read.
#[derive(Clone, Debug)]
pub(crate) struct LostFile {
    pub(crate) data: DataFile,
    /// The reason, with the file's name.
    pub(crate) fault: Fault,
    /// The rows that the fault leaves in doubt.
    pub(crate) doubt: Option<Doubt>,
    /// The file, if it can be opened.
    part: Option<OpenFile>,
}

impl LostFile {
    /// A file that cannot be opened.
    pub(crate) fn unopened(data: DataFile, error: Error, splits_updates: bool) -> Self {
        let error = error.within(data.path.clone());
        let fault = Fault::from_error(&error, 0..data.len, None);
        let can_uncover = data.last_write > 0 && data.can_uncover(splits_updates);
        Self { doubt: can_uncover.then(|| doubt(&data, None)), data, fault, part: None }
    }

    /// A file whose events end in an error; `events` are the events read before the error.
    pub(crate) fn events_of(part: &OpenFile, error: Error, events: &Events) -> Self {
        let error = error.within(part.data.path.clone());
        let at = error.offset().unwrap_or_default();
        Self {
            data: part.data.clone(),
            fault: Fault::from_error(&error, at..at, None),
            doubt: part.data.can_uncover(part.splits_updates).then(|| doubt(&part.data, Some(events))),
            part: Some(part.clone()),
        }
    }

    /// The fault as an error of the original kind.
    pub(crate) fn to_error(&self) -> Error {
        let again = |part: &OpenFile| part.read_events(OnError::Raise, &mut Events::default()).err();
        let met = self.part.as_ref().and_then(again);
        met.unwrap_or_else(|| self.fault.to_error()).in_file(self.data.path.clone())
    }

    /// Whether rows of the file itself are lost, and not only its events.
    pub(crate) fn has_rows(&self) -> bool {
        self.part.is_none() && self.data.role == Role::Rows
    }
}
