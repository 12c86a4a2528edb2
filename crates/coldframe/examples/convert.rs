//! Copies the rows of a file into an ORC file that appears only once it is complete.
//!
//! ```text
//! cargo run --example convert -- old.orc new.orc
//! ```

#![expect(clippy::print_stdout, reason = "the program is there to print")]

use std::collections::BTreeMap;

use coldframe::hive::{self, Codec};
use coldframe::store::Mode;
use coldframe::{Dest, OpenOptions, Scan, TableScan, WriteOptions, open, write_file};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(source), Some(dest)) = (arguments.next(), arguments.next()) else {
        return Err("usage: convert SOURCE DEST".into());
    };
    let file = open(&source, None, &OpenOptions::new())?;
    let splits = file.whole()?;
    let mut rows = TableScan::try_new(file, Scan::default(), splits)?;
    let options = hive::WriteOptions { codec: Codec::Zlib, stripe_rows: 100_000, ..Default::default() };
    let dest = Dest::new(&dest, &BTreeMap::new(), Mode::New)?;
    let written = write_file(&mut rows, &dest, "orc", &WriteOptions::from(options), |_| Ok(()))?;
    println!("{} rows, {} bytes", written.rows, written.bytes);
    Ok(())
}
