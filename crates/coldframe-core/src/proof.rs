//! What `verify` checks in a file: data per format, and the only place for its wording.

/// Checksums over stored bytes, which detect a change that still decodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// The file has none.
    #[default]
    None,
    /// Parts of it may have none.
    Some,
    /// Everything that holds values has one.
    All,
    /// They are stored but not compared, because the file was opened that way.
    Ignored,
}

impl Checksums {
    /// These, unless checksums are not to be compared.
    #[must_use]
    pub fn if_compared(self, compared: bool) -> Self {
        if compared || self == Self::None { self } else { Self::Ignored }
    }

    /// Its name for Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Some => "some",
            Self::All => "all",
            Self::Ignored => "ignored",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::None => "no checksums are stored, so a change that still decodes goes unnoticed",
            Self::Some => {
                "checksums where they are stored; elsewhere a change that still decodes goes unnoticed"
            }
            Self::All => "all checksums",
            Self::Ignored => "checksums are stored but were not compared, as asked for",
        }
    }
}

/// What a report without damage is based on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Checksums over its bytes.
    pub checksums: Checksums,
    /// What else is compared: fields stored twice, structures that no scan reads.
    pub besides: &'static [&'static str],
}

impl Proof {
    /// What was checked, for display.
    pub fn text(&self) -> String {
        let besides = self.besides.iter().flat_map(|check| [", ", check]).collect::<String>();
        format!("decoding of every value{besides}; {}", self.checksums.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_describes_the_checksums() {
        let proof = Proof { checksums: Checksums::None, besides: &["counts of rows", "ends of streams"] };
        let text = proof.text();
        assert!(text.starts_with("decoding of every value, counts of rows, ends of streams; no checksums"));
        assert_eq!(Checksums::None.if_compared(false), Checksums::None);
        assert_eq!(Checksums::All.if_compared(false), Checksums::Ignored);
    }
}
