//! How a Hudi table is opened.

use coldframe_core::options::{Options as _, Time};
use coldframe_core::{Error, Result};

use crate::data::view::{Shown, instant};

coldframe_core::choices! {
    /// Which rows of a Hudi table are read.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum TableView {
        /// The latest state.
        #[default]
        Snapshot = "snapshot",
        /// The base files without the logs over them.
        ReadOptimized = "read_optimized",
        /// The rows that were written in a range of instants.
        Incremental = "incremental",
    }
}

coldframe_core::choices! {
    /// The version of Hudi whose rules of merging apply, for tables that versions read differently.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum HudiReader {
        /// The rules of the Hudi version to which the table's version belongs.
        #[default]
        Table = "table",
        /// The rules of Hudi 1.x.
        New = "1.x",
    }
}

coldframe_core::options! {
    /// How a Hudi table is opened.
    pub struct OpenOptions for coldframe_core::OpenOptions {
        /// "snapshot" (default): the latest state; "read_optimized": the base files without the logs over them;
        /// "incremental": the rows written after `begin` and up to `end`, as of `end`
        view: TableView;
        /// an instant of the timeline, or a date and time: the state, and the columns, as of then
        as_of: Option<Time>;
        /// for view="incremental": the instant after which rows were written; for table versions 8 and 9 a time of
        /// completion
        begin: Option<Time>;
        /// for view="incremental": the last instant, or time of completion, that counts; default: the latest
        end: Option<Time>;
        /// true opens the table's metadata table, `.hoodie/metadata`
        metadata: bool;
        /// whose rules apply where versions of Hudi read one table differently: "table" (default), those of the Hudi that
        /// the table's version belongs to (versions below 8: 0.15), or "1.x"
        hudi_reader: HudiReader;
        /// true treats as damage what seems to be missing, such as commits that the timeline has lost. Default: a warning
        complete: bool;
        /// the directory where the source of a bootstrapped table lies now, if it was moved
        bootstrap_base: Option<String>;
    }
}

impl OpenOptions {
    /// The view.
    pub(crate) fn shown(&self) -> Result<Shown> {
        let time = |name: &str, of: &Option<Time>| match of {
            Some(Time::Text(text)) => instant(name, text).map(Some),
            Some(Time::Number(number)) => instant(name, &number.to_string()).map(Some),
            None => Ok(None),
        };
        let (as_of, begin, end) =
            (time("as_of", &self.as_of)?, time("begin", &self.begin)?, time("end", &self.end)?);
        match (self.view, as_of, begin, end) {
            (TableView::Incremental, None, Some(begin), end) => Ok(Shown::Incremental { begin, end }),
            (TableView::Incremental, None, None, _) => {
                Err(Error::invalid("view=\"incremental\": expected the option `begin`"))
            }
            (TableView::Incremental, Some(_), ..) => {
                Err(Error::invalid("option `as_of`: it is not for view=\"incremental\", which has `end`"))
            }
            (TableView::Snapshot, as_of, None, None) => Ok(Shown::Snapshot { as_of }),
            (TableView::ReadOptimized, as_of, None, None) => Ok(Shown::ReadOptimized { as_of }),
            _ => Err(Error::invalid("options `begin` and `end`: they are only for view=\"incremental\"")),
        }
    }

    /// Reads the options that were given.
    pub(crate) fn given(options: &coldframe_core::OpenOptions) -> Result<Self> {
        if options.schema.is_some() {
            return Err(Error::unsupported("a schema for a Hudi table, which has its own"));
        }
        Self::read("hudi", &options.extra)
    }
}
