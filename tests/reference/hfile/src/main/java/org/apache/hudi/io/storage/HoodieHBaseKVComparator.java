package org.apache.hudi.io.storage;

import org.apache.hadoop.hbase.CellComparatorImpl;

/** The comparator that Hudi's files name, so that HBase reads them too. In Hudi it is HBase's own order as well. */
public class HoodieHBaseKVComparator extends CellComparatorImpl {}
