//! Generates damage: each kind of change at each boundary that `inspect` shows, and bit flips at regular
//! distances.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use coldframe_core::Node;

use crate::mutate::spread;

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Some bits of one byte are flipped; this is the mask.
    Flip(u8),
    /// One byte is incremented.
    Grow,
    /// Bytes are set to zero.
    Zero,
    /// Bytes are set to 0xff, which is the largest unsigned number and the signed number -1.
    Ones,
    /// Bytes are removed; what follows moves towards the start.
    Remove,
    /// One byte is repeated; what follows moves towards the end.
    Repeat,
    /// The file is cut off.
    Cut,
}

/// A change of a healthy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The kind of change.
    pub kind: Kind,
    /// The bytes of the healthy file that are changed. For a cut, all bytes from there to the end.
    pub bytes: Range<u64>,
    /// The path of the leaf in the layout in which the change begins.
    pub leaf: String,
}

impl Damaged {
    /// Whether the bytes after the change have moved or are gone.
    pub fn moves(&self) -> bool {
        matches!(self.kind, Kind::Remove | Kind::Repeat | Kind::Cut)
    }

    /// The damaged file.
    pub fn apply(&self, whole: &[u8]) -> Bytes {
        let [start, end] = [self.bytes.start, self.bytes.end].map(|at| usize::try_from(at).unwrap());
        let mut bytes = whole.to_vec();
        match self.kind {
            Kind::Flip(mask) => bytes[start] ^= mask,
            Kind::Grow => bytes[start] = bytes[start].wrapping_add(1),
            Kind::Zero => bytes[start..end].fill(0),
            Kind::Ones => bytes[start..end].fill(0xff),
            Kind::Remove => drop(bytes.drain(start..end)),
            Kind::Repeat => bytes.insert(start, whole[start]),
            Kind::Cut => bytes.truncate(start),
        }
        bytes.into()
    }
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} at {}..{} in {}", self.kind, self.bytes.start, self.bytes.end, self.leaf)
    }
}

/// The leaves of a tree, with full names from the root down.
pub fn leaves(tree: &Node) -> Vec<(String, Range<u64>)> {
    let (mut all, mut open) = (Vec::new(), vec![(tree, String::new())]);
    while let Some((node, name)) = open.pop() {
        if node.children.is_empty() {
            all.push((name, node.bytes.clone()));
            continue;
        }
        for child in node.children.iter().rev() {
            let name = if name.is_empty() { child.name.clone() } else { format!("{name}: {}", child.name) };
            open.push((child, name));
        }
    }
    all.retain(|(_, bytes)| !bytes.is_empty());
    all
}

/// About `most` changes of a file with this layout; each of them changes its bytes. If there are more, it
/// selects some of each kind of change for each kind of leaf, the same on each run.
pub fn made(tree: &Node, whole: &[u8], most: usize) -> Vec<Damaged> {
    let leaves = leaves(tree);
    let mut kinds: BTreeMap<(String, String), Vec<Damaged>> = BTreeMap::new();
    let mut add = |change: Damaged| {
        let leaf: String = change.leaf.chars().filter(|c| !c.is_ascii_digit()).collect();
        let kind = if matches!(change.kind, Kind::Flip(_)) {
            "Flip".to_owned()
        } else {
            format!("{:?}", change.kind)
        };
        kinds.entry((leaf, kind)).or_default().push(change);
    };
    for (leaf, bytes) in &leaves {
        let change = |kind, bytes: Range<u64>| Damaged { kind, bytes, leaf: leaf.clone() };
        let (start, last) = (bytes.start, bytes.end - 1);
        let mask = [0x01, 0x80, 0xff, 0x10][usize::try_from(start % 4).unwrap()];
        for (kind, at) in [
            (Kind::Flip(mask), start),
            (Kind::Flip(mask.rotate_left(1)), last),
            (Kind::Grow, start),
            (Kind::Grow, (start + 3).min(last)),
            (Kind::Repeat, start),
            (Kind::Remove, start),
            (Kind::Remove, last),
        ] {
            add(change(kind, at..at + 1));
        }
        let head = start..bytes.end.min(start + 8);
        add(change(Kind::Ones, head.clone()));
        add(change(Kind::Zero, head));
        add(change(Kind::Zero, bytes.clone()));
        add(change(Kind::Remove, bytes.clone()));
        add(change(Kind::Cut, start..whole.len() as u64));
    }
    for (i, at) in spread(whole.len(), most / 3).enumerate() {
        let at = at as u64;
        let leaf = leaves.partition_point(|(_, b)| b.end <= at);
        let leaf = leaves.get(leaf).map_or(String::new(), |(name, _)| name.clone());
        add(Damaged { kind: Kind::Flip([0xff, 0x01, 0x80, 0x20][i % 4]), bytes: at..at + 1, leaf });
    }
    let mut all = fair(kinds.into_values().collect(), most);
    all.retain(|change| change.apply(whole) != whole);
    all
}

/// Selects about `most` changes in total: from each group in turn, and evenly spread within each group.
fn fair(groups: Vec<Vec<Damaged>>, most: usize) -> Vec<Damaged> {
    let (mut left, mut chosen) = (most, Vec::new());
    let mut groups: Vec<_> = groups.into_iter().filter(|g| !g.is_empty()).collect();
    groups.sort_by_key(Vec::len);
    let count = groups.len();
    for (i, group) in groups.into_iter().enumerate() {
        let share = (left / (count - i)).max(1);
        let mut places: Vec<usize> = spread(group.len(), share).collect();
        places.dedup();
        left = left.saturating_sub(places.len());
        chosen.extend(places.into_iter().map(|p| group[p].clone()));
    }
    chosen.sort_by_key(|d| (d.bytes.start, d.bytes.end));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_every_kind_of_change_at_every_kind_of_leaf() {
        let mut tree = Node::new("file", 0..100);
        for (name, bytes) in [("header", 0..10), ("block 0", 10..50), ("block 1", 50..90), ("tail", 90..100)]
        {
            tree.push(Node::new(name, bytes));
        }
        let whole: Vec<u8> = (1..=100).collect();
        let all = made(&tree, &whole, 10_000);
        assert_eq!(all, made(&tree, &whole, 10_000));
        let has = |leaf: &str, kind: Kind| all.iter().any(|d| d.leaf == leaf && d.kind == kind);
        for leaf in ["header", "block 0", "block 1", "tail"] {
            for kind in [Kind::Grow, Kind::Zero, Kind::Ones, Kind::Remove, Kind::Repeat, Kind::Cut] {
                assert!(has(leaf, kind), "{leaf} {kind:?}");
            }
        }
        let few = made(&tree, &whole, 40);
        assert!(few.len() < 80, "{}", few.len());
        assert!(few.iter().any(|d| d.leaf == "tail" && d.kind == Kind::Cut));
        let cut = Damaged { kind: Kind::Cut, bytes: 3..100, leaf: String::new() };
        assert_eq!(cut.apply(&whole).as_ref(), [1, 2, 3]);
        let again = Damaged { kind: Kind::Repeat, bytes: 1..2, leaf: String::new() };
        assert_eq!(again.apply(&whole[..3]).as_ref(), [1, 2, 2, 3]);
    }
}
