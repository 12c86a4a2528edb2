//! What `verify` checks in a file: data that each format supplies, and a description of it.

/// Which stored bytes have checksums. A checksum detects even a change after which the bytes still decode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checksums {
    /// No bytes have checksums.
    #[default]
    None,
    /// Some parts have checksums, others may have none.
    Some,
    /// All bytes that hold values have checksums.
    All,
    /// The file has checksums, but was opened without comparing them.
    Ignored,
}

impl Checksums {
    /// `self` if checksums are compared; otherwise `Ignored` if the file has checksums.
    #[must_use]
    pub fn if_compared(self, compared: bool) -> Self {
        if compared || self == Self::None { self } else { Self::Ignored }
    }

    /// The name in Python.
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
            Self::Ignored => "checksums are stored but were not compared, as requested",
        }
    }
}

/// The checks behind a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The checksums of the file.
    pub checksums: Checksums,
    /// What is checked besides checksums: fields stored twice, structures that no scan reads.
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
