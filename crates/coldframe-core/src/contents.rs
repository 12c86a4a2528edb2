//! What a source contains besides what a request reads: needed to decide whether the source may be deleted.

/// One part of a source's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// What it is: `table`, `snapshot`, `versions`, `archive` ...
    pub kind: &'static str,
    /// What it belongs to, in the terms of the format's options; empty for the whole source.
    pub of: String,
    /// The same for display.
    pub name: String,
    /// Whether the engine can show it to a reader. Otherwise only files hold it.
    pub visible: bool,
    /// Whether the request reads all of it; `None` if only reading can tell.
    pub taken: Option<bool>,
    /// The amount, if it is cheap to determine.
    pub count: Option<u64>,
    /// What `count` counts.
    pub unit: &'static str,
    /// Bytes of its files, if cheap to determine.
    pub bytes: Option<u64>,
    /// A sentence on it.
    pub note: String,
}

impl Content {
    /// A visible part of `of`.
    pub fn new(kind: &'static str, of: impl Into<String>, taken: Option<bool>) -> Self {
        let of = of.into();
        let name = of.clone();
        let (count, unit, bytes, note) = (None, "", None, String::new());
        Self { kind, of, name, visible: true, taken, count, unit, bytes, note }
    }

    /// With a name for display.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// With the amount.
    #[must_use]
    pub fn counted(self, count: u64, unit: &'static str) -> Self {
        Self { count: Some(count), unit, ..self }
    }

    /// With the bytes of its files.
    #[must_use]
    pub fn sized(self, bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..self }
    }

    /// With a sentence.
    #[must_use]
    pub fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// As something that only files hold.
    #[must_use]
    pub fn hidden(self) -> Self {
        Self { visible: false, ..self }
    }
}
