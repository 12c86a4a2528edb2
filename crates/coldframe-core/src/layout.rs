//! The tree that `inspect` returns: for each byte of a file, the structure that it belongs to.

use std::ops::Range;

use crate::Value;

/// A named range of a file's bytes. Children lie inside their parent, in file order, without overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The structure's name in the format's own terms: `header`, `row group`, `key buffer`.
    pub name: String,
    /// Its bytes.
    pub bytes: Range<u64>,
    /// Further properties of the structure.
    pub detail: Vec<(String, Value)>,
    /// The parts of the structure.
    pub children: Vec<Node>,
}

impl Node {
    /// A node without details and parts.
    pub fn new(name: impl Into<String>, bytes: Range<u64>) -> Self {
        Self { name: name.into(), bytes, detail: Vec::new(), children: Vec::new() }
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.detail.push((key.into(), value.into()));
        self
    }

    /// Adds a part; an empty part is ignored.
    pub fn push(&mut self, child: Node) {
        if !child.bytes.is_empty() {
            self.children.push(child);
        }
    }

    /// Adds nodes called `name` for the bytes that no part covers, so that each byte belongs to a
    /// leaf.
    pub fn fill_gaps(&mut self, name: &str) {
        let mut at = self.bytes.start;
        let mut filled = Vec::with_capacity(self.children.len());
        for child in self.children.drain(..) {
            if at < child.bytes.start {
                filled.push(Node::new(name, at..child.bytes.start));
            }
            at = at.max(child.bytes.end);
            filled.push(child);
        }
        if at < self.bytes.end {
            filled.push(Node::new(name, at..self.bytes.end));
        }
        self.children = filled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_get_a_name() {
        let mut root = Node::new("file", 0..10);
        root.push(Node::new("header", 0..3));
        root.push(Node::new("nothing", 3..3));
        root.push(Node::new("block", 5..8));
        root.fill_gaps("unknown");
        let parts: Vec<_> = root.children.iter().map(|n| (n.name.as_str(), n.bytes.clone())).collect();
        assert_eq!(parts, [("header", 0..3), ("unknown", 3..5), ("block", 5..8), ("unknown", 8..10)]);
    }
}
