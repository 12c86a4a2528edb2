//! Options given as text, on a command line or in Spark, before the format is known.

use coldframe_core::{CommonOptions, OptionSpec, Options as _, Result, Value};

use crate::formats;

/// What an option applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Side {
    /// Opening files.
    Open,
    /// Writing files.
    Write,
}

impl Side {
    pub(crate) fn specs(self, format: &dyn coldframe_core::Format) -> &'static [OptionSpec] {
        match self {
            Self::Open => format.open_options(),
            Self::Write => format.write_options(),
        }
    }
}

/// Parses the text of an option as the named format declares it. If that format does not declare the option,
/// the declaration of another format applies. Whether the value fits is checked when the file is opened: a
/// folder may turn out to be a table of another format, and a file's format may be detected only then. An
/// option that no format declares stays text.
pub fn parse_option(format: Option<&str>, side: Side, name: &str, text: &str) -> Result<Value> {
    let (own, others): (Vec<_>, Vec<_>) = formats().into_iter().partition(|f| Some(f.name()) == format);
    let common = CommonOptions::specs().iter().filter(|_| side == Side::Open);
    let mut own = own.iter().flat_map(|f| side.specs(f.as_ref())).chain(common);
    if let Some(spec) = own.find(|spec| spec.has_name(name)) {
        return spec.parse(text);
    }
    let mut others = others.iter().flat_map(|f| side.specs(f.as_ref()));
    others.find(|spec| spec.has_name(name)).map_or_else(|| Ok(Value::from(text)), |spec| spec.of_text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of an option is read before its format is known: formats with an option of the same name must
    /// parse its text in the same way.
    #[test]
    fn formats_parse_options_of_the_same_name_alike() {
        for side in [Side::Open, Side::Write] {
            let all: Vec<_> =
                formats().iter().map(|format| (format.name(), side.specs(format.as_ref()))).collect();
            for (format, specs) in &all {
                for (other_format, others) in &all {
                    for (spec, other) in specs.iter().flat_map(|s| others.iter().map(move |o| (s, o))) {
                        let shared = spec.has_name(other.name);
                        assert!(
                            !shared || spec.kind.parses_text_like(other.kind),
                            "{format} and {other_format} differ in `{}`: {:?}, {:?}",
                            spec.name,
                            spec.kind,
                            other.kind
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn every_option_has_help_and_a_unique_name() {
        for format in formats() {
            for side in [Side::Open, Side::Write] {
                let common: &[OptionSpec] = if side == Side::Open { CommonOptions::specs() } else { &[] };
                let mut names: Vec<&str> = Vec::new();
                for spec in side.specs(format.as_ref()).iter().chain(common) {
                    assert!(
                        !spec.help.is_empty() && !spec.help.contains("  "),
                        "{}: {:?}",
                        spec.name,
                        spec.help
                    );
                    names.extend(std::iter::once(spec.name).chain(spec.aliases.iter().copied()));
                }
                let count = names.len();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), count, "{}: {names:?}", format.name());
            }
        }
    }

    #[test]
    fn the_named_format_parses_the_text() {
        let open = |format, name, text| parse_option(format, Side::Open, name, text).unwrap();
        assert_eq!(open(Some("orc"), "recover", "true"), Value::Bool(true));
        assert_eq!(open(None, "timezone", "1"), Value::from("1"));
        assert_eq!(open(Some("cfile"), "wal", "false"), Value::Bool(false));
        assert_eq!(open(None, "max_block_bytes", "64m"), Value::Int(64 << 20));
        assert_eq!(open(None, "nobody_has_it", "true"), Value::from("true"));
        // A value may be valid in one format only.
        assert_eq!(open(None, "view", "latest"), Value::from("latest"));
        assert_eq!(parse_option(None, Side::Write, "codec", "gzip").unwrap(), Value::from("gzip"));
        assert_eq!(parse_option(Some("hfile"), Side::Write, "codec", "gzip").unwrap(), Value::from("gz"));
        assert!(parse_option(Some("hfile"), Side::Open, "view", "latest").is_err());
        let error = parse_option(None, Side::Write, "stripe_rows", "many").unwrap_err();
        assert_eq!(error.to_string(), "option `stripe_rows`: expected an integer, found \"many\"");
    }
}
