//! Checks that `inspect` accounts for every byte.

use coldframe_core::Node;

/// Panics if the children of a node leave a gap in the node or overlap, down to the leaves.
pub fn assert_tiled(node: &Node) {
    let mut at = node.bytes.start;
    for child in &node.children {
        assert_eq!(child.bytes.start, at, "`{}` in `{}` {:?}", child.name, node.name, node.bytes);
        assert!(child.bytes.start < child.bytes.end, "`{}` {:?} is empty", child.name, child.bytes);
        assert_tiled(child);
        at = child.bytes.end;
    }
    if !node.children.is_empty() {
        assert_eq!(at, node.bytes.end, "parts of `{}` {:?}", node.name, node.bytes);
    }
}
