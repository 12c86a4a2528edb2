package org.apache.hudi.io.storage;

import org.apache.hadoop.hbase.CellComparatorImpl;

/** The comparator that Hudi's files name, so that HBase reads them too. In Hudi, too, this comparator has HBase's own order. */
public class HoodieHBaseKVComparator extends CellComparatorImpl {}
