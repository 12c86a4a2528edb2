//! The types of a file from the schema that the user gives.
//!
//! ```text
//! list  = field ("," field)*          field = name [":"] type
//! type  = name | name "(" n ["," n] ")" | array<type> | map<type,type> | struct<name:type,..> | uniontype<type,..>
//! ```
//!
//! Hive's column language, with the names that ORC uses to print its types. Names may be in backquotes.

use coldframe_core::{Error, Limits, Result, SchemaSpec};

use crate::layout::proto;
use crate::layout::types::Kind;

/// The types of a schema, the root first.
pub(crate) fn types_of(spec: &SchemaSpec, limits: &Limits) -> Result<Vec<proto::Type>> {
    match spec {
        SchemaSpec::Arrow(schema) => crate::write::types_of(schema),
        SchemaSpec::Ddl(text) => {
            let mut parser = Parser { rest: text, types: vec![typed(Kind::Struct)], limits };
            parser.fields(0, 1).and_then(|()| parser.end()).map_err(|e| e.within("schema"))?;
            Ok(parser.types)
        }
    }
}

fn typed(kind: Kind) -> proto::Type {
    proto::Type { kind: Some(kind.number()), ..proto::Type::default() }
}

struct Parser<'a> {
    rest: &'a str,
    types: Vec<proto::Type>,
    limits: &'a Limits,
}

impl<'a> Parser<'a> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn takes(&mut self, c: char) -> bool {
        self.blanks();
        self.rest.strip_prefix(c).map(|rest| self.rest = rest).is_some()
    }

    fn expect(&mut self, c: char) -> Result<()> {
        if self.takes(c) { Ok(()) } else { Err(self.unexpected(&format!("`{c}`"))) }
    }

    fn unexpected(&self, expected: &str) -> Error {
        let found: String = self.rest.chars().take(20).collect();
        Error::schema(format!("expected {expected}, found `{found}`"))
    }

    fn end(&mut self) -> Result<()> {
        self.blanks();
        if self.rest.is_empty() { Ok(()) } else { Err(self.unexpected("the end")) }
    }

    fn name(&mut self) -> Result<&'a str> {
        self.blanks();
        if let Some(quoted) = self.rest.strip_prefix('`') {
            let (name, rest) =
                quoted.split_once('`').ok_or_else(|| self.unexpected("a closing backquote"))?;
            self.rest = rest;
            return Ok(name);
        }
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '.';
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            return Err(self.unexpected("a name"));
        }
        self.rest = rest;
        Ok(name)
    }

    fn number(&mut self) -> Result<u32> {
        let name = self.name()?;
        name.parse().map_err(|_| Error::schema(format!("expected a number, found `{name}`")))
    }

    /// Adds named types to the struct `parent`.
    fn fields(&mut self, parent: usize, depth: u64) -> Result<()> {
        loop {
            let name = self.name()?;
            self.takes(':');
            self.child(parent, depth)?;
            if let Some(parent) = self.types.get_mut(parent) {
                parent.field_names.push(name.to_owned());
            }
            if !self.takes(',') {
                return Ok(());
            }
        }
    }

    /// Adds a type to `parent`.
    fn child(&mut self, parent: usize, depth: u64) -> Result<()> {
        self.limits.depth("a schema", depth + 1)?;
        let id = self.types.len();
        let number =
            u32::try_from(id).map_err(|_| Error::schema("expected at most 2^32 types, found more"))?;
        if let Some(parent) = self.types.get_mut(parent) {
            parent.subtypes.push(number);
        }
        let name = self.name()?.to_ascii_lowercase();
        let kind = match name.as_str() {
            "boolean" => Kind::Boolean,
            "tinyint" => Kind::Byte,
            "smallint" => Kind::Short,
            "int" | "integer" => Kind::Int,
            "bigint" => Kind::Long,
            "float" => Kind::Float,
            "double" => Kind::Double,
            "string" => Kind::String,
            "binary" => Kind::Binary,
            "timestamp" => self.timestamp(),
            "date" => Kind::Date,
            "decimal" => Kind::Decimal,
            "varchar" => Kind::Varchar,
            "char" => Kind::Char,
            "array" => Kind::List,
            "map" => Kind::Map,
            "struct" => Kind::Struct,
            "uniontype" => Kind::Union,
            "geometry" => Kind::Geometry,
            "geography" => Kind::Geography,
            other => return Err(Error::schema(format!("expected a type of Hive's, found `{other}`"))),
        };
        self.types.push(typed(kind));
        self.parameters(id, kind, depth + 1)
    }

    /// `timestamp with local time zone` is a type of its own.
    fn timestamp(&mut self) -> Kind {
        self.blanks();
        let words = ["with", "local", "time", "zone"];
        let mut rest = self.rest;
        for word in words {
            rest = rest.trim_start();
            match rest.get(..word.len()).filter(|w| w.eq_ignore_ascii_case(word)) {
                Some(_) => rest = rest.get(word.len()..).unwrap_or_default(),
                None => return Kind::Timestamp,
            }
        }
        self.rest = rest;
        Kind::TimestampInstant
    }

    fn parameters(&mut self, id: usize, kind: Kind, depth: u64) -> Result<()> {
        match kind {
            Kind::Decimal => {
                let (mut precision, mut scale) = (10, 0);
                if self.takes('(') {
                    precision = self.number()?;
                    scale = if self.takes(',') { self.number()? } else { 0 };
                    self.expect(')')?;
                }
                self.set(id, |t| (t.precision, t.scale) = (Some(precision), Some(scale)));
                Ok(())
            }
            Kind::Varchar | Kind::Char => {
                self.expect('(')?;
                let length = self.number()?;
                self.set(id, |t| t.maximum_length = Some(length));
                self.expect(')')
            }
            Kind::List => {
                self.expect('<')?;
                self.child(id, depth)?;
                self.expect('>')
            }
            Kind::Map => {
                self.expect('<')?;
                self.child(id, depth)?;
                self.expect(',')?;
                self.child(id, depth)?;
                self.expect('>')
            }
            Kind::Union => {
                self.expect('<')?;
                self.child(id, depth)?;
                while self.takes(',') {
                    self.child(id, depth)?;
                }
                self.expect('>')
            }
            Kind::Struct => {
                self.expect('<')?;
                if self.takes('>') {
                    return Ok(());
                }
                self.fields(id, depth)?;
                self.expect('>')
            }
            _ => Ok(()),
        }
    }

    fn set(&mut self, id: usize, change: impl FnOnce(&mut proto::Type)) {
        if let Some(stated) = self.types.get_mut(id) {
            change(stated);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::types::TypeTree;

    fn parse(text: &str) -> Result<Vec<proto::Type>> {
        types_of(&SchemaSpec::Ddl(text.to_owned()), &Limits::default())
    }

    #[test]
    fn a_list_of_columns_is_a_tree() {
        let text = "id bigint, `a b` array<struct<x:int,y:decimal(5,2)>>, m map<string,char(3)>,\
                    t timestamp with local time zone, u uniontype<int,string>, ts timestamp";
        let types = parse(text).unwrap();
        let tree = TypeTree::new(&types, &Limits::default()).unwrap();
        let kinds: Vec<&str> = tree.columns().iter().map(|c| c.kind.name()).collect();
        assert_eq!(
            kinds.join(" "),
            "struct bigint array struct int decimal map string char timestamp with local time zone \
             uniontype int string timestamp"
        );
        assert_eq!(tree.get(5).unwrap().path, "a b.item.y");
        assert_eq!((types[5].precision(), types[5].scale(), types[8].maximum_length()), (5, 2, 3));
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        for (text, expected) in [
            ("a", "expected a name, found ``"),
            ("a int b", "expected the end, found `b`"),
            ("a array<int", "expected `>`, found ``"),
            ("a number", "expected a type of Hive's, found `number`"),
            ("a char(x)", "expected a number, found `x`"),
        ] {
            let e = parse(text).unwrap_err().to_string();
            assert!(e.contains(expected), "{text}: {e}");
        }
        let deep = format!("a {}int{}", "array<".repeat(100_000), ">".repeat(100_000));
        assert!(parse(&deep).unwrap_err().to_string().contains("max_depth"));
    }
}
