//! HFile of HBase and of Hudi.
