//! Finds a block's bytes by its id.
//!
//! ```text
//! file block manager | data/<byte 2>/<byte 3>/<byte 4>/<id, 16 decimal digits>    bytes 0 and 1: which data directory
//! log block manager  | data/<uuid>.data                                   blocks, each starting at a multiple of 4096
//!                    | data/<uuid>.metadata                               container of records: CREATE | DELETE a block
//! ... `logr`         | data/rdb/..                                        the same records in RocksDB (`logr.rs`)
//! ```
//!
//! Bytes of the id are counted from the most significant byte (`file_block_manager.cc`,
//! `log_block_manager.cc`). A deleted block becomes a hole in the file, or its bytes stay where they are.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use coldframe_core::io::Folder;
use coldframe_core::{Error, Fault, Limits, ReadAt, Result};

use crate::layout::container::{MAGIC, Records, decode, whole_file};
use crate::layout::proto::BlockRecord;
use crate::store::crypt::{Expected, HEADER, Section, ServerKeys, decrypted_block};
use crate::store::logr;
use crate::store::rocks::Reading;
use crate::store::roots::{BlockManager, DATABASE, DataDir, join};

/// Opens the blocks of one server.
#[derive(Debug)]
pub(crate) struct BlockStore {
    folder: Arc<dyn Folder>,
    /// The name of the opened folder, for errors.
    root: Arc<str>,
    dirs: Vec<DataDir>,
    keys: ServerKeys,
    checked: bool,
    limits: Limits,
    /// The index of the containers, built when a block is first requested.
    containers: Mutex<Option<Arc<Containers>>>,
}

/// The live blocks of all log block containers of a server.
#[derive(Debug, Default)]
pub(crate) struct Containers {
    blocks: HashMap<u64, Extent>,
    /// Paths of the containers without their extensions.
    files: Vec<String>,
    /// Containers whose metadata cannot be read to the end, and databases that cannot be read.
    pub(crate) faults: Vec<Fault>,
}

#[derive(Clone, Debug)]
struct Extent {
    container: usize,
    bytes: Range<u64>,
}

/// An open block.
pub(crate) struct OpenBlock {
    /// The block's decrypted bytes.
    pub(crate) bytes: Arc<dyn ReadAt>,
    /// The path of the file that holds the block, relative to the opened folder.
    pub(crate) path: String,
    /// The offset of the block in that file.
    pub(crate) offset: u64,
}

impl BlockStore {
    /// Creates a store of the blocks in `dirs`. Reads nothing yet.
    pub(crate) fn new(
        (folder, root): (Arc<dyn Folder>, Arc<str>),
        dirs: Vec<DataDir>,
        keys: ServerKeys,
        checked: bool,
        limits: Limits,
    ) -> Self {
        Self { folder, root, dirs, keys, checked, limits, containers: Mutex::new(None) }
    }

    /// The path of a file below the opened folder, as errors state it.
    pub(crate) fn full_path(&self, path: &str) -> String {
        join(&self.root, path)
    }

    /// The server's data directories.
    pub(crate) fn dirs(&self) -> &[DataDir] {
        &self.dirs
    }

    /// Opens the block with this id.
    pub(crate) fn open(&self, id: u64) -> Result<OpenBlock> {
        if self.dirs.iter().any(|d| d.manager.has_containers())
            && let Some(block) = self.open_in_container(id)?
        {
            return Ok(block);
        }
        for dir in self.directories_of(id) {
            let path = join(&dir.path, &file_path(id));
            match self.folder.open(&path) {
                Ok(file) => {
                    let (file, offset) = decrypted_block(file, &self.keys, &Expected::cfile(HEADER))?;
                    let bytes = Section::of(file.clone(), &(offset..file.len()))?;
                    return Ok(OpenBlock { bytes, path, offset });
                }
                Err(e) if e.is_not_found() => {}
                Err(e) => return Err(e),
            }
        }
        let among: Vec<&str> = self.dirs.iter().map(|d| d.path.as_str()).collect();
        Err(Error::corrupt(format!(
            "expected block {id} in the data directories ({}), found none",
            if among.is_empty() { "there are none".to_owned() } else { among.join(", ") }
        )))
    }

    /// Fails if a block is missing or ends after its container's file. `lengths`: of the files in the data directories.
    pub(crate) fn check_presence(&self, id: u64, lengths: &HashMap<String, u64>) -> Result<()> {
        let containers = self.containers()?;
        let Some(place) = containers.blocks.get(&id) else {
            return match self.open(id)?.bytes.is_empty() {
                true => Err(Error::corrupt("expected a block, found no bytes")),
                false => Ok(()),
            };
        };
        let path = format!("{}.data", containers.files.get(place.container).map_or("", String::as_str));
        let expected = place.bytes.end;
        let actual = match lengths.get(&path) {
            None => "none".to_owned(),
            Some(len) if *len < expected => format!("{len} bytes"),
            Some(_) => return Ok(()),
        };
        Err(Error::corrupt(format!("expected a file {path} of at least {expected} bytes, found {actual}")))
    }

    /// The lengths of the files in data directories with containers, by path.
    pub(crate) fn lengths(&self) -> Result<HashMap<String, u64>> {
        let mut lengths = HashMap::new();
        for dir in self.dirs.iter().filter(|dir| dir.manager.has_containers()) {
            let files = self.folder.list(&dir.path)?.into_iter().filter(|entry| !entry.is_folder);
            lengths.extend(files.map(|entry| (entry.path, entry.len)));
        }
        Ok(lengths)
    }

    /// The directories that keep one file per block, beginning with the one that the block's id names.
    fn directories_of(&self, id: u64) -> impl Iterator<Item = &DataDir> {
        let index = usize::try_from(id >> 48).unwrap_or(usize::MAX);
        let named = move |d: &&DataDir| d.all_uuids.get(index) == Some(&d.uuid);
        let files = || self.dirs.iter().filter(|d| d.manager == BlockManager::File);
        files().filter(named).chain(files().filter(move |d| !named(d)))
    }

    fn open_in_container(&self, id: u64) -> Result<Option<OpenBlock>> {
        let containers = self.containers()?;
        let Some(place) = containers.blocks.get(&id) else {
            return match containers.faults.first() {
                Some(fault) if self.dirs.iter().all(|d| d.manager.has_containers()) => {
                    let e = fault.to_error();
                    Err(e.within(format!("block {id}, which no readable record creates")))
                }
                _ => Ok(None),
            };
        };
        let container = containers.files.get(place.container).map(String::as_str).unwrap_or_default();
        let path = format!("{container}.data");
        let file = self.folder.open(&path).map_err(Error::of_named_file);
        let file = file.map_err(|e| e.within(format!("block {id}")).in_file(self.full_path(&path)))?;
        let (file, _) = decrypted_block(file, &self.keys, &Expected::cfile(place.bytes.start))?;
        let bytes = Section::of(file, &place.bytes)
            .map_err(|e| e.within(format!("block {id}")).in_file(self.full_path(&path)))?;
        Ok(Some(OpenBlock { bytes, path, offset: place.bytes.start }))
    }

    /// The index of the containers; reads it on first use.
    pub(crate) fn containers(&self) -> Result<Arc<Containers>> {
        let mut held = self.containers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(containers) = held.as_ref() {
            return Ok(containers.clone());
        }
        let mut all = Containers::default();
        for dir in &self.dirs {
            match dir.manager {
                BlockManager::File => {}
                BlockManager::Log => {
                    for entry in self.folder.list(&dir.path)? {
                        if let Some(path) = entry.path.strip_suffix(".metadata") {
                            self.read_container(path, &mut all)?;
                        }
                    }
                }
                BlockManager::LogRocks => self.read_database(&dir.path, &mut all)?,
            }
        }
        let all = Arc::new(all);
        *held = Some(all.clone());
        Ok(all)
    }

    /// Adds the live blocks of a data directory with a database, and records the parts that cannot be read.
    fn read_database(&self, path: &str, all: &mut Containers) -> Result<()> {
        let reading = Reading { checked: self.checked, limits: self.limits };
        let database = match logr::Blocks::read(self.folder.as_ref(), path, reading) {
            Ok(database) => database,
            Err(e) if Fault::is(&e) => {
                let e = e.within(self.full_path(&join(path, DATABASE)));
                all.faults.push(Fault::from_error(&e, 0..0, None));
                return Ok(());
            }
            Err(e) => return Err(e.in_file(self.full_path(&join(path, DATABASE)))),
        };
        all.faults.extend(database.damage.iter().cloned().map(Fault::from));
        let before = all.files.len();
        let (files, blocks) = database.live(path);
        all.files.extend(files);
        all.blocks
            .extend(blocks.map(|(id, n, bytes)| (id, Extent { container: before.saturating_add(n), bytes })));
        Ok(())
    }

    /// Adds the live blocks of one container. A part that cannot be read is recorded; the records before it
    /// are valid.
    fn read_container(&self, path: &str, all: &mut Containers) -> Result<()> {
        let metadata = format!("{path}.metadata");
        let stored = self.folder.open(&metadata)?;
        let len = stored.len();
        match self.read_metadata(stored, path, all) {
            Err(e) if Fault::is(&e) => {
                let e = e.within(metadata);
                let at = e.offset().unwrap_or(0);
                all.faults.push(Fault::from_error(&e, at..len.max(at), None));
                Ok(())
            }
            read => read.map_err(|e| e.in_file(self.full_path(&metadata))),
        }
    }

    fn read_metadata(&self, stored: Arc<dyn ReadAt>, path: &str, all: &mut Containers) -> Result<()> {
        // The super blocks have already shown which key is right.
        let (file, start) = decrypted_block(stored, &self.keys, &Expected::start(&[MAGIC]))?;
        let file = Section::of(file.clone(), &(start..file.len()))?;
        let container = all.files.len();
        all.files.push(path.to_owned());
        if file.is_empty() {
            return Ok(()); // the server stopped while it created the container
        }
        let bytes = whole_file(file.as_ref(), &self.limits)?;
        self.read_records(&bytes, container, all)
    }

    fn read_records(&self, bytes: &[u8], container: usize, all: &mut Containers) -> Result<()> {
        let mut records = Records::open(bytes, self.checked)?;
        while let Some(message) = records.next_bytes()? {
            let record: BlockRecord = decode(message)?;
            let id = record.block_id.and_then(|b| b.id);
            let id =
                id.ok_or_else(|| Error::corrupt("expected a block's number in the record, found none"))?;
            match record.op_type {
                BlockRecord::CREATE => {
                    let bytes = record.bytes()?;
                    all.blocks.insert(id, Extent { container, bytes });
                }
                BlockRecord::DELETE => {
                    all.blocks.remove(&id);
                }
                n => return Err(Error::corrupt(format!("expected CREATE (1) or DELETE (2), found {n}"))),
            }
        }
        Ok(())
    }
}

/// The path of a block of the file block manager, relative to the data directory.
fn file_path(id: u64) -> String {
    let [_, _, a, b, c, ..] = id.to_be_bytes();
    format!("{a:02x}/{b:02x}/{c:02x}/{id:016}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_block_gives_its_path() {
        assert_eq!(file_path(0x0001_0203_0405_0607), "02/03/04/0283686952306183");
        assert_eq!(file_path(7), "00/00/00/0000000000000007");
    }
}
