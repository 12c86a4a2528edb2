//! The layout of a data directory: its files end to end, in the order of their paths.

use coldframe_core::{Damage, Node, Result};

use super::table::KuduTable;

/// Each file as a part.
pub(super) fn folder(table: &KuduTable) -> Result<Node> {
    let mut at = 0;
    let mut files = Vec::new();
    let mut open = vec![String::new()];
    while let Some(path) = open.pop() {
        for entry in table.folder().list(&path)?.into_iter().rev() {
            if entry.is_folder { open.push(entry.path) } else { files.push(entry) }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut root = Node::new("Kudu data directory", 0..0);
    for file in files {
        root.push(Node::new(file.path, at..at + file.len));
        at += file.len;
    }
    root.bytes = 0..at;
    Ok(root)
}

/// Containers of blocks whose metadata cannot be read.
pub(super) fn damage(table: &KuduTable) -> Result<Vec<Damage>> {
    let mut all = Vec::new();
    for server in table.servers() {
        all.extend(server.store.containers()?.damage.iter().cloned());
    }
    Ok(all)
}
