//! Options that are given as text before it is known which format they are for: on a command line, in Spark.

use coldframe_core::{CommonOptions, OptionSpec, Options as _, Result, Value};

use crate::formats;

/// What an option is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Opening.
    Open,
    /// Writing.
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

/// What the text of an option means: of a format that has it, or of any other. A folder may turn out to be a table of another format
/// than it was called, and a file is recognised later: whether such a value fits is seen when the file is opened. The text of an option
/// that no format has stays text.
pub fn parse_option(format: Option<&str>, side: Side, name: &str, text: &str) -> Result<Value> {
    let (own, others): (Vec<_>, Vec<_>) = formats().into_iter().partition(|one| Some(one.name()) == format);
    let common = CommonOptions::specs().iter().filter(|_| side == Side::Open);
    let mut own = own.iter().flat_map(|one| side.specs(one.as_ref())).chain(common);
    if let Some(spec) = own.find(|spec| spec.has_name(name)) {
        return spec.parse(text);
    }
    let mut others = others.iter().flat_map(|one| side.specs(one.as_ref()));
    others.find(|spec| spec.has_name(name)).map_or_else(|| Ok(Value::from(text)), |spec| spec.of_text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of an option is read before its format is known: formats that share a name must read it the same way.
    #[test]
    fn formats_do_not_disagree_on_what_the_text_of_an_option_means() {
        for side in [Side::Open, Side::Write] {
            let all: Vec<_> = formats().iter().map(|one| (one.name(), side.specs(one.as_ref()))).collect();
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
    fn every_option_of_a_format_has_help_and_a_name_of_its_own() {
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
    fn text_is_read_by_the_format_that_is_meant() {
        let open = |format, name, text| parse_option(format, Side::Open, name, text).unwrap();
        assert_eq!(open(Some("orc"), "recover", "true"), Value::Bool(true));
        assert_eq!(open(None, "timezone", "1"), Value::from("1"));
        assert_eq!(open(Some("cfile"), "wal", "false"), Value::Bool(false));
        assert_eq!(open(None, "max_block_bytes", "64m"), Value::Int(64 << 20));
        assert_eq!(open(None, "nobody_has_it", "true"), Value::from("true"));
        // The word of one format need not be a word of another.
        assert_eq!(open(None, "view", "latest"), Value::from("latest"));
        assert_eq!(parse_option(None, Side::Write, "codec", "gzip").unwrap(), Value::from("gzip"));
        assert_eq!(parse_option(Some("hfile"), Side::Write, "codec", "gzip").unwrap(), Value::from("gz"));
        assert!(parse_option(Some("hfile"), Side::Open, "view", "latest").is_err());
        let error = parse_option(None, Side::Write, "stripe_rows", "many").unwrap_err();
        assert_eq!(error.to_string(), "option `stripe_rows`: expected an integer, found \"many\"");
    }
}
