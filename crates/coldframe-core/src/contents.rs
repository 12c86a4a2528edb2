//! What could be read from a source beside what a request takes: for whoever asks whether the source may be deleted.

/// Something that lies in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// What it is: `table`, `snapshot`, `versions`, `archive` ...
    pub kind: &'static str,
    /// What it is a part of, as the options of the format name that; empty for the whole source.
    pub of: String,
    /// The same for people.
    pub name: String,
    /// Whether a reader of the engine may be shown it. Else only files hold it.
    pub visible: bool,
    /// Whether the request reads all of it; `None` where only reading tells.
    pub taken: Option<bool>,
    /// How much there is of it, where that is cheap to say.
    pub count: Option<u64>,
    /// What `count` counts.
    pub unit: &'static str,
    /// Bytes of its files, where that is cheap to say.
    pub bytes: Option<u64>,
    /// A sentence on it.
    pub note: String,
}

impl Content {
    /// Something visible that `of` has.
    pub fn new(kind: &'static str, of: impl Into<String>, taken: Option<bool>) -> Self {
        let of = of.into();
        let name = of.clone();
        let (count, unit, bytes, note) = (None, "", None, String::new());
        Self { kind, of, name, visible: true, taken, count, unit, bytes, note }
    }

    /// With a name for people.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// With how much there is of it.
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
