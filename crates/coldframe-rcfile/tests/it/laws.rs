//! Tests the laws of every format for RCFile: damage loses at most a row group, and all of it is recorded.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use coldframe_core::{Format, Node, OpenOptions, Result, Source, TableFile};
use coldframe_rcfile::RcFileFormat;
use coldframe_testing::fixture::{self, Fixture};
use coldframe_testing::laws::{self, AllowedLoss, Damaged, Kind, Moved, Subject, Units};

fn fixture(name: &str) -> Fixture {
    let all = fixture::manifest(&fixture::data().join("rcfile/files/MANIFEST.json"));
    all.into_iter().find(|f| f.name() == name).unwrap()
}

fn opener(options: OpenOptions) -> impl Fn(Source) -> Result<Arc<dyn TableFile>> + Send + Sync + 'static {
    move |source| RcFileFormat.open(&source, &options)
}

/// The unit is the row group: markers and the lengths of groups lead to the next group. If a group is longer or shorter
/// than it states, the next group may be lost with it, except if a marker precedes the next group. The start
/// of a group also proves the end of the previous group, if checksums do not prove it already. Nothing states
/// where a file ends: a file that is cut between two groups is just shorter. `heads` are the markers, record
/// headers and keys of the groups.
fn unit(units: Units, heads: Vec<Range<u64>>) -> impl Fn(&Damaged) -> AllowedLoss {
    move |damaged| {
        let mut loss = units.allowed_loss(damaged, AllowedLoss::file(), Moved::Kept);
        if damaged.moves() {
            let next = units.parts().iter().find(|(_, rows)| rows.start == loss.rows.end);
            loss.rows.end = next.map_or(loss.rows.end, |(_, rows)| rows.end);
        }
        let touches = |head: &&Range<u64>| {
            damaged.bytes.start < head.end
                && (damaged.bytes.end > head.start || damaged.bytes.start == head.start)
        };
        if let Some(head) = heads.iter().find(touches) {
            let before = units.parts().iter().find(|(bytes, _)| bytes.end == head.start);
            loss.rows.start = before.map_or(loss.rows.start, |(_, rows)| rows.start.min(loss.rows.start));
        }
        let at_start = units.parts().iter().any(|(bytes, _)| bytes.start == damaged.bytes.start);
        if damaged.kind == Kind::Cut && at_start { loss.silent() } else { loss }
    }
}

/// What precedes the columns of a group.
fn head(group: &Node) -> Range<u64> {
    let key = group.children.iter().find(|node| node.name == "key buffer").unwrap();
    group.bytes.start..key.bytes.end
}

fn obey(name: &str, summed: bool) {
    let case = fixture(name);
    let subject = Subject::new(name, case.bytes(), opener(case.options()));
    let subject = if summed { subject } else { subject.unsummed() };
    let tree = subject.tree();
    let units = Units::named(&tree, "row group", "rows");
    assert!(units.parts().len() > 3, "{name}");
    let groups = tree.children.iter().filter(|node| node.name.starts_with("row group") && !summed);
    let heads = groups.map(head).collect();
    subject.unit(unit(units, heads)).obey();
}

#[test]
fn damage_loses_only_its_row_group_with_a_checksum() {
    obey("binary_groups_zlib.rc", true);
}

#[test]
fn damage_loses_only_its_row_group_without_a_checksum() {
    obey("text_groups.rc", false);
}

/// Files of many groups, and the same bytes with wrong record headers.
#[test]
fn work_grows_as_the_file_does() {
    let whole = fixture("text_groups.rc").bytes();
    let open = laws::opener(opener(OpenOptions::default()));
    let file = RcFileFormat.open(&fixture::source(whole.clone()), &OpenOptions::default()).unwrap();
    let header = file.inspect().unwrap().children.first().unwrap().bytes.end;
    let (header, groups) = whole.split_at(usize::try_from(header).unwrap());
    let twins = |groups: &[u8]| -> Vec<Bytes> {
        let base = (1 << 20) / groups.len();
        [base, 2 * base, 4 * base].map(|n| [header, &groups.repeat(n)].concat().into()).to_vec()
    };
    laws::assert_linear("many groups", &twins(groups), &open);
    laws::assert_bounded("many groups", &twins(groups)[0], &open);
    // Each record header states one byte too many, so that no group is self-consistent.
    let mut hostile = groups.to_vec();
    for at in 16..hostile.len() {
        if hostile[at - 16..at] == header[header.len() - 16..] {
            hostile[at + 3] ^= 1;
        }
    }
    laws::assert_linear("no group reads", &twins(&hostile), &open);
    laws::assert_bounded("no group reads", &twins(&hostile)[0], &open);
}
