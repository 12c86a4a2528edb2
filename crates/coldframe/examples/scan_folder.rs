//! Reads the files of a folder as one table, those rows that pass a filter, and counts them.
//!
//! ```text
//! cargo run --example scan_folder -- warehouse/events "dt >= '2014-01-01'"
//! ```

#![expect(clippy::print_stdout, reason = "the program is there to print")]

use coldframe::scan;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: scan_folder FOLDER [FILTER]")?;
    let mut wanted = scan(&folder)?;
    if let Some(filter) = arguments.next() {
        wanted = wanted.filter(filter.as_str());
    }
    let (mut batches, mut rows) = (0, 0);
    let mut found = wanted.read()?;
    while let Some(batch) = found.next_batch()? {
        batches += 1;
        rows += batch.num_rows();
    }
    println!("{rows} rows in {batches} batches");
    Ok(())
}
