//! The compiled part of the Python package: handles, errors, Arrow capsules. The logic of the formats is in
//! the other crates.

mod allocator;
mod capsule;
mod cfile;
mod convert;
mod dataset;
mod deletes;
mod error;
mod file;
mod filesystem;
mod fingerprint;
mod folder;
mod hfile;
mod hudi;
mod keys;
mod literal;
mod load;
mod lookups;
mod metastore;
mod notice;
mod opening;
mod options;
mod predicate;
mod printed;
mod rows;
mod scan;
mod shape;
mod source;
mod split;
mod storage;
mod store;
mod strings;
mod trace;
mod types;
mod value;
mod write;

use coldframe::{Capabilities, CommonOptions, Options as _};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The name of the format with these bytes; None if no format matches.
#[pyfunction]
#[pyo3(signature = (source, storage_options=None, known=None))]
fn detect(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    storage_options: Option<std::collections::BTreeMap<String, String>>,
    known: Option<store::Known>,
) -> PyResult<Option<&'static str>> {
    let source = source::from_python(source, &storage_options.unwrap_or_default(), known)?;
    let format = py.detach(|| coldframe::detect(&source)).map_err(error::to_python)?;
    Ok(format.map(|f| f.name()))
}

/// Every format: the options of its reader and writer, and its capabilities.
#[pyfunction]
fn formats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for format in coldframe::formats() {
        let whole = PyDict::new(py);
        let open = format.open_options().iter().chain(CommonOptions::specs());
        whole.set_item("open", options::declared(py, open)?)?;
        whole.set_item("write", options::declared(py, format.write_options())?)?;
        whole.set_item("capabilities", capabilities(py, format.capabilities())?)?;
        all.set_item(format.name(), whole)?;
    }
    Ok(all)
}

fn capabilities(py: Python<'_>, of: Capabilities) -> PyResult<Bound<'_, PyDict>> {
    let Capabilities {
        keys,
        seek,
        lookup,
        might_contain,
        needs_schema,
        folders,
        tables,
        written,
        endings,
        empty_files,
        tables_of,
        folder_option,
        side_by_side,
        input_formats,
        unit_option,
        zone_option,
        row_numbers_option,
    } = of;
    let dict = PyDict::new(py);
    dict.set_item("keys", keys)?;
    dict.set_item("seek", seek)?;
    dict.set_item("lookup", lookup)?;
    dict.set_item("might_contain", might_contain)?;
    dict.set_item("needs_schema", needs_schema)?;
    dict.set_item("folders", folders)?;
    dict.set_item("tables", tables)?;
    dict.set_item("written", written)?;
    dict.set_item("endings", endings)?;
    dict.set_item("empty_files", empty_files)?;
    dict.set_item("tables_of", tables_of)?;
    dict.set_item("folder_option", folder_option)?;
    dict.set_item("side_by_side", side_by_side)?;
    dict.set_item("input_formats", input_formats)?;
    dict.set_item("unit_option", unit_option)?;
    dict.set_item("zone_option", zone_option)?;
    dict.set_item("row_numbers_option", row_numbers_option)?;
    Ok(dict)
}

#[pymodule(gil_used = false)]
fn _coldframe(module: &Bound<'_, PyModule>) -> PyResult<()> {
    allocator::keep_memory();
    trace::from_environment();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("HIVE_NULL", coldframe::dataset::partition::HIVE_NULL)?;
    error::add_to(module.py(), module)?;
    add_files(module)?;
    add_stores(module)?;
    add_types(module)?;
    add_lookups(module)?;
    add_migration(module)?;
    metastore::add_to(module)?;
    module.add_function(wrap_pyfunction!(trace::set_trace, module)?)?;
    add_classes(module)
}

/// Adds formats, open files, tables of many files, and writing.
fn add_files(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(detect, module)?)?;
    module.add_function(wrap_pyfunction!(formats, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::find_files, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::foreign_files, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::managed_by, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::stop_reading, module)?)?;
    module.add_function(wrap_pyfunction!(options::parse_option, module)?)?;
    module.add_function(wrap_pyfunction!(load::load_options, module)?)?;
    module.add_function(wrap_pyfunction!(load::save_options, module)?)?;
    module.add_function(wrap_pyfunction!(file::open_file, module)?)?;
    module.add_function(wrap_pyfunction!(split::splits_of, module)?)?;
    module.add_function(wrap_pyfunction!(split::plan_to_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(split::plan_from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(split::pack_sizes, module)?)?;
    module.add_function(wrap_pyfunction!(write::write, module)?)?;
    module.add_function(wrap_pyfunction!(write::write_partitioned, module)?)?;
    module.add_function(wrap_pyfunction!(write::escaped, module)?)?;
    module.add_function(wrap_pyfunction!(write::folder_of, module)?)?;
    module.add_function(wrap_pyfunction!(folder::tables, module)?)?;
    module.add_function(wrap_pyfunction!(folder::shared_of_tables, module)?)?;
    module.add_function(wrap_pyfunction!(folder::contents, module)?)?;
    module.add_function(wrap_pyfunction!(folder::unclaimed, module)?)?;
    Ok(())
}

/// Adds stores and paths.
fn add_stores(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(source::local_path, module)?)?;
    module.add_function(wrap_pyfunction!(store::shown_path, module)?)?;
    module.add_function(wrap_pyfunction!(store::shown_text, module)?)?;
    module.add_function(wrap_pyfunction!(store::store_schemes, module)?)?;
    module.add_function(wrap_pyfunction!(store::store_options, module)?)?;
    module.add_function(wrap_pyfunction!(store::resolved_options, module)?)?;
    Ok(())
}

/// Adds conversions of schemas and batches to other types.
fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(shape::conform_batch, module)?)?;
    module.add_function(wrap_pyfunction!(shape::pruned, module)?)?;
    module.add_function(wrap_pyfunction!(shape::with_fields, module)?)?;
    module.add_function(wrap_pyfunction!(shape::unified, module)?)?;
    module.add_function(wrap_pyfunction!(strings::requested_strings, module)?)?;
    module.add_function(wrap_pyfunction!(strings::without_views, module)?)?;
    module.add_function(wrap_pyfunction!(types::plain_type, module)?)?;
    module.add_function(wrap_pyfunction!(types::plain_schema, module)?)?;
    module.add_function(wrap_pyfunction!(types::type_shape, module)?)?;
    module.add_function(wrap_pyfunction!(types::parse_columns, module)?)?;
    module.add_function(wrap_pyfunction!(types::print_columns, module)?)?;
    Ok(())
}

/// Adds operations of some formats: look-ups by key, and Hudi's metadata.
fn add_lookups(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(hfile::hfile_get, module)?)?;
    module.add_function(wrap_pyfunction!(hfile::hfile_get_many, module)?)?;
    module.add_function(wrap_pyfunction!(hfile::hfile_scan, module)?)?;
    module.add_function(wrap_pyfunction!(hudi::hudi_partitions, module)?)?;
    module.add_function(wrap_pyfunction!(hudi::hudi_files, module)?)?;
    module.add_function(wrap_pyfunction!(hudi::hudi_column_stats, module)?)?;
    module.add_function(wrap_pyfunction!(hudi::hudi_prune, module)?)?;
    module.add_function(wrap_pyfunction!(hudi::hudi_locate, module)?)?;
    module.add_function(wrap_pyfunction!(cfile::seek_ordinal, module)?)?;
    module.add_function(wrap_pyfunction!(cfile::lookup_value, module)?)?;
    module.add_function(wrap_pyfunction!(cfile::might_contain_key, module)?)?;
    module.add_function(wrap_pyfunction!(lookups::might_contain, module)?)?;
    Ok(())
}

/// Adds operations of a migration.
fn add_migration(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fingerprint::hash_rows, module)?)?;
    module.add_function(wrap_pyfunction!(convert::convert, module)?)?;
    module.add_function(wrap_pyfunction!(convert::decode, module)?)?;
    Ok(())
}

fn add_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<store::PyStore>()?;
    module.add_class::<store::PyListing>()?;
    module.add_class::<store::PyUpload>()?;
    module.add_class::<store::PyStoreFile>()?;
    module.add_class::<store::PyEntry>()?;
    module.add_class::<file::RawFile>()?;
    module.add_class::<opening::RawOpening>()?;
    module.add_class::<dataset::RawDataset>()?;
    module.add_class::<deletes::RawPositions>()?;
    module.add_class::<split::RawSplit>()?;
    module.add_class::<rows::RawTableRows>()?;
    module.add_class::<scan::RawScan>()?;
    module.add_class::<scan::RawBatch>()?;
    module.add_class::<fingerprint::RawFingerprint>()?;
    module.add_class::<fingerprint::RawObserved>()?;
    module.add_class::<fingerprint::RawWitness>()?;
    module.add_class::<convert::RawShape>()?;
    module.add_class::<convert::RawDecoded>()?;
    module.add_class::<convert::RawTarget>()?;
    module.add_class::<hfile::RawCells>()?;
    module.add_class::<hfile::RawRows>()?;
    module.add_class::<predicate::PyCalls>()?;
    module.add_class::<predicate::PyCondition>()?;
    module.add_class::<predicate::PyPredicate>()?;
    Ok(())
}
