//! Hudi's metadata table: base HFiles and the log files over them.
