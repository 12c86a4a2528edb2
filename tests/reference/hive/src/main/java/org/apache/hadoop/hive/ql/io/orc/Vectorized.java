package org.apache.hadoop.hive.ql.io.orc;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatchCtx;
import org.apache.hadoop.hive.ql.metadata.VirtualColumn;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoFactory;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.Reporter;

/** Hive's reader of transactional tables by batches; its constructor is private to its package. */
public final class Vectorized {
  private Vectorized() {}

  /** The rows of a split: id, name, price. */
  public static List<Object[]> rows(InputSplit split, JobConf job) throws IOException {
    TypeInfo[] types = {TypeInfoFactory.longTypeInfo, TypeInfoFactory.stringTypeInfo, TypeInfoFactory.doubleTypeInfo};
    VectorizedRowBatchCtx context = new VectorizedRowBatchCtx(new String[] {"id", "name", "price"}, types, null, null, 0,
        0, new VirtualColumn[0], new String[0], null);
    VectorizedOrcAcidRowBatchReader reader =
        new VectorizedOrcAcidRowBatchReader((OrcSplit) split, job, Reporter.NULL, context);
    List<Object[]> rows = new ArrayList<>();
    VectorizedRowBatch batch = reader.createValue();
    while (reader.next(NullWritable.get(), batch)) {
      for (int i = 0; i < batch.size; i++) {
        int row = batch.selectedInUse ? batch.selected[i] : i;
        rows.add(new Object[] {value(batch.cols[0], row), value(batch.cols[1], row), value(batch.cols[2], row)});
      }
    }
    reader.close();
    return rows;
  }

  private static Object value(ColumnVector column, int row) {
    int at = column.isRepeating ? 0 : row;
    if (!column.noNulls && column.isNull[at]) {
      return null;
    }
    if (column instanceof LongColumnVector longs) {
      return longs.vector[at];
    }
    if (column instanceof DoubleColumnVector doubles) {
      return doubles.vector[at];
    }
    BytesColumnVector bytes = (BytesColumnVector) column;
    return new String(bytes.vector[at], bytes.start[at], bytes.length[at], StandardCharsets.UTF_8);
  }
}
