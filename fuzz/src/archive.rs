//! Encodes a directory as one input of a fuzz target.
//!
//! ```text
//! archive  | file | file | ...
//! file     | length of the path u8 | path | piece | piece | ... | 0 0
//! piece    | bytes u16 le | zeros u16 le | bytes |            "zeros" many zeros follow the bytes and are not stored
//! ```
//! Any bytes are a valid archive; what is incomplete at the end is ignored. Kudu's containers are mostly
//! padding, so runs of zeros are encoded as their number.

use bytes::Bytes;
use coldframe_testing::folder::MemoryFolder;

/// The maximum length of a file, however many zeros it states.
const MAX_LEN: usize = 4 << 20;
/// The maximum number of files.
const MAX_FILES: usize = 4096;

fn take<'a>(rest: &mut &'a [u8], n: usize) -> &'a [u8] {
    let (head, tail) = rest.split_at(n.min(rest.len()));
    *rest = tail;
    head
}

fn short(rest: &mut &[u8]) -> usize {
    take(rest, 2).iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
}

/// The files of an archive.
pub fn unpack(mut rest: &[u8]) -> MemoryFolder {
    let mut folder = MemoryFolder::default();
    while let [len, tail @ ..] = rest
        && folder.files.len() < MAX_FILES
    {
        rest = tail;
        let path = String::from_utf8_lossy(take(&mut rest, usize::from(*len))).into_owned();
        let mut content = Vec::new();
        loop {
            let (bytes, zeros) = (short(&mut rest), short(&mut rest));
            content.extend_from_slice(take(&mut rest, bytes));
            if bytes + zeros == 0 || content.len() + zeros > MAX_LEN {
                break;
            }
            content.resize(content.len() + zeros, 0);
        }
        folder.files.insert(path, Bytes::from(content));
    }
    folder
}

/// A directory as an archive.
pub fn pack(folder: &MemoryFolder) -> Vec<u8> {
    let mut out = Vec::new();
    for (path, content) in &folder.files {
        out.push(u8::try_from(path.len()).expect("a short path"));
        out.extend_from_slice(path.as_bytes());
        let mut rest = &content[..];
        while !rest.is_empty() {
            // A piece ends where eight zeros begin.
            let bytes = rest.windows(8).position(|w| w == [0; 8]).unwrap_or(rest.len()).min(0xffff);
            let zeros = rest[bytes..].iter().take(0xffff).take_while(|b| **b == 0).count();
            out.extend(u16::try_from(bytes).unwrap().to_le_bytes());
            out.extend(u16::try_from(zeros).unwrap().to_le_bytes());
            out.extend_from_slice(&rest[..bytes]);
            rest = &rest[bytes + zeros..];
        }
        out.extend([0; 4]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_unpacked_to_what_was_packed() {
        let mut long = vec![7; 100_000];
        long[500..70_000].fill(0);
        let folder = MemoryFolder::default().with("a/b", long).with("c", vec![0; 9]).with("empty", vec![]);
        let packed = pack(&folder);
        assert!(packed.len() < 31_000);
        assert_eq!(unpack(&packed).files, folder.files);
        for cut in 0..packed.len().min(2000) {
            unpack(&packed[..cut]);
        }
    }
}
