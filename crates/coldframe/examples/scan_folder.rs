//! Reads a folder's files as one table and counts the rows that pass a filter.
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
    let (mut batches, mut count) = (0, 0);
    let mut rows = wanted.read()?;
    while let Some(batch) = rows.next_batch()? {
        batches += 1;
        count += batch.num_rows();
    }
    println!("{count} rows in {batches} batches");
    Ok(())
}
