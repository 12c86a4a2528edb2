//! The layout of a table, as if its store files were one file: one after another, region by region, each with
//! the layout of an HFile.

use coldframe_core::{Damage, Fault, Node, Result, TableFile};

use crate::open::OpenTable;

/// A node per region, with its store files inside.
pub(crate) fn table(table: &OpenTable) -> Result<Node> {
    let mut root = Node::new("HBase table", 0..0).with("table", table.shared.table.to_string());
    let mut at = 0;
    for region in &table.regions {
        let open = table.shared.open(region)?;
        let mut node = Node::new(format!("region {}", region.encoded), at..at);
        for Damage { structure, reason, .. } in open.damaged.iter().map(|file| &file.fault.damage) {
            node = node.with("damage", format!("{structure}: {reason}"));
        }
        for file in &open.files {
            let family = table.shared.families.get(file.family).map_or("", |f| f.name.as_str());
            let mut tree = match file.hfile.inspect() {
                Err(e) if Fault::is(&e) => {
                    Node::new("", 0..file.raw().source().len()).with("damage", e.to_string())
                }
                tree => tree.map_err(|e| file.named(e))?,
            };
            shift(&mut tree, at);
            tree.name.clone_from(&file.path);
            tree = tree.with("family", family).with("sequence id", file.sequence_id);
            at = tree.bytes.end;
            node.push(tree);
        }
        node.bytes.end = at;
        root.push(node);
    }
    root.bytes = 0..at;
    Ok(root)
}

fn shift(node: &mut Node, by: u64) {
    node.bytes = node.bytes.start.saturating_add(by)..node.bytes.end.saturating_add(by);
    node.children.iter_mut().for_each(|child| shift(child, by));
}
