//! Opens a file and prints its columns and its first rows as CSV.
//!
//! ```text
//! cargo run --example print_file -- events.orc
//! cargo run --example print_file -- old.rc "id bigint, name string" binary
//! ```

#![expect(clippy::print_stdout, reason = "the program is there to print")]

use coldframe::{OpenOptions, Scan, open};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: print_file FILE [COLUMNS SERDE]")?;
    let mut options = OpenOptions::new();
    // An RCFile does not store the names and types of its columns.
    if let Some(columns) = arguments.next() {
        options = options.schema_ddl(columns);
    }
    if let Some(serde) = arguments.next() {
        options = options.option("serde", serde);
    }
    let file = open(&path, None, &options)?;
    println!("{path}: {}, {:?} rows", file.table.format(), file.table.row_count());
    for field in file.table.schema().fields() {
        println!("  {}: {}", field.name(), field.data_type());
    }
    let scan = Scan { limit: Some(10), ..Scan::default() };
    let mut left = 10;
    for split in file.whole()? {
        let mut reader = file.scan(&scan, &split)?;
        while let (true, Some(batch)) = (left > 0, reader.next_batch()?) {
            for row in 0..batch.num_rows().min(left) {
                let cells = batch
                    .columns()
                    .iter()
                    .map(|column| arrow_cast::display::array_value_to_string(column, row));
                println!("{}", cells.collect::<Result<Vec<_>, _>>()?.join(","));
            }
            left = left.saturating_sub(batch.num_rows());
        }
    }
    Ok(())
}
