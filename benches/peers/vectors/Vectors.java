package io.coldframe.spark;

import java.lang.management.ManagementFactory;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.apache.arrow.c.ArrowArray;
import org.apache.arrow.c.ArrowSchema;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarRow;
import org.apache.spark.unsafe.Platform;

/**
 * Sums of columns through the connector's NativeVector and through Spark's ArrowColumnVector, over the same memory: both get a batch
 * by Arrow's C data interface. Prints CPU seconds of the thread, including import and close.
 *
 * <p>java .. io.coldframe.spark.Vectors native|arrow COLUMN,.. BATCHES
 */
public final class Vectors {
  private static final int ROWS = 16384;
  private static final double WARM_UP = 0.4;
  private static final BufferAllocator ALLOCATOR = new RootAllocator();

  private Vectors() {}

  /** A kind of column: its vector, Spark's type of it, and the sum over a batch. */
  private enum Kind {
    LONG(DataTypes.LongType, Vectors::longs),
    DOUBLE(DataTypes.DoubleType, Vectors::doubles),
    DECIMAL_10(DataTypes.createDecimalType(10, 2), () -> decimals(10)),
    DECIMAL_38(DataTypes.createDecimalType(38, 2), () -> decimals(38)),
    STRING(DataTypes.StringType, Vectors::strings),
    LIST(DataTypes.createArrayType(DataTypes.LongType), Vectors::lists),
    STRUCT(new StructType().add("x", "bigint").add("y", "double"), Vectors::structs);

    final DataType type;
    final Supplier<FieldVector> made;

    Kind(DataType type, Supplier<FieldVector> made) {
      this.type = type;
      this.made = made;
    }

    /** Reads as the code that Spark generates: first whether the value is null, then the value. */
    double sum(ColumnVector column) {
      double sum = 0;
      long whole = 0;
      for (int row = 0; row < ROWS; row++) {
        if (column.isNullAt(row)) {
          continue;
        }
        switch (this) {
          case LONG:
            whole += column.getLong(row);
            break;
          case DOUBLE:
            sum += column.getDouble(row);
            break;
          case DECIMAL_10:
            whole += column.getDecimal(row, 10, 2).toUnscaledLong();
            break;
          case DECIMAL_38:
            whole += column.getDecimal(row, 38, 2).toJavaBigDecimal().unscaledValue().longValue();
            break;
          case STRING:
            whole += column.getUTF8String(row).hashCode();
            break;
          case LIST:
            ColumnarArray list = column.getArray(row);
            for (int at = 0; at < list.numElements(); at++) {
              whole += list.isNullAt(at) ? 0 : list.getLong(at);
            }
            break;
          default:
            ColumnarRow struct = column.getStruct(row);
            whole += struct.isNullAt(0) ? 0 : struct.getLong(0);
            sum += struct.isNullAt(1) ? 0 : struct.getDouble(1);
        }
      }
      return sum + whole;
    }
  }

  private static boolean isNull(int row) {
    return row % 10 == 3;
  }

  private static FieldVector longs() {
    BigIntVector vector = new BigIntVector("v", ALLOCATOR);
    vector.allocateNew(ROWS);
    for (int row = 0; row < ROWS; row++) {
      if (isNull(row)) {
        vector.setNull(row);
      } else {
        vector.set(row, row * 7L);
      }
    }
    vector.setValueCount(ROWS);
    return vector;
  }

  private static FieldVector doubles() {
    Float8Vector vector = new Float8Vector("v", ALLOCATOR);
    vector.allocateNew(ROWS);
    for (int row = 0; row < ROWS; row++) {
      if (isNull(row)) {
        vector.setNull(row);
      } else {
        vector.set(row, row / 4.0);
      }
    }
    vector.setValueCount(ROWS);
    return vector;
  }

  private static FieldVector decimals(int precision) {
    DecimalVector vector = new DecimalVector("v", ALLOCATOR, precision, 2);
    vector.allocateNew(ROWS);
    for (int row = 0; row < ROWS; row++) {
      if (isNull(row)) {
        vector.setNull(row);
      } else {
        vector.set(row, BigDecimal.valueOf(row * 31L, 2));
      }
    }
    vector.setValueCount(ROWS);
    return vector;
  }

  private static FieldVector strings() {
    VarCharVector vector = new VarCharVector("v", ALLOCATOR);
    vector.allocateNew(ROWS * 16L, ROWS);
    for (int row = 0; row < ROWS; row++) {
      if (isNull(row)) {
        vector.setNull(row);
      } else {
        vector.setSafe(row, ("value " + row % 997).getBytes(StandardCharsets.UTF_8));
      }
    }
    vector.setValueCount(ROWS);
    return vector;
  }

  private static FieldVector lists() {
    ListVector vector = ListVector.empty("v", ALLOCATOR);
    vector.addOrGetVector(FieldType.nullable(new ArrowType.Int(64, true)));
    BigIntVector values = (BigIntVector) vector.getDataVector();
    int at = 0;
    for (int row = 0; row < ROWS; row++) {
      if (isNull(row)) {
        vector.setNull(row);
        continue;
      }
      vector.startNewValue(row);
      for (int item = 0; item < 3; item++) {
        values.setSafe(at++, row + item);
      }
      vector.endValue(row, 3);
    }
    values.setValueCount(at);
    vector.setValueCount(ROWS);
    return vector;
  }

  private static FieldVector structs() {
    StructVector vector = StructVector.empty("v", ALLOCATOR);
    BigIntVector x = vector.addOrGet("x", FieldType.nullable(new ArrowType.Int(64, true)), BigIntVector.class);
    FieldType number = FieldType.nullable(new ArrowType.FloatingPoint(
        org.apache.arrow.vector.types.FloatingPointPrecision.DOUBLE));
    Float8Vector y = vector.addOrGet("y", number, Float8Vector.class);
    vector.allocateNew();
    for (int row = 0; row < ROWS; row++) {
      x.setSafe(row, row);
      y.setSafe(row, row / 8.0);
      if (isNull(row)) {
        vector.setNull(row);
      } else {
        vector.setIndexDefined(row);
      }
    }
    x.setValueCount(ROWS);
    y.setValueCount(ROWS);
    vector.setValueCount(ROWS);
    return vector;
  }

  /** What the native library's `layout` would write of an array of the C data interface. */
  private static void layout(long array, DataType type, List<Long> into) {
    long nulls = Platform.getLong(null, array + 8);
    long buffers = Platform.getLong(null, array + 40);
    long children = Platform.getLong(null, array + 48);
    into.add(nulls);
    into.add(nulls == 0 ? 0 : Platform.getLong(null, buffers));
    into.add(0L);
    into.add(type instanceof StructType ? 0 : Platform.getLong(null, buffers + 8));
    into.add(type == DataTypes.StringType ? Platform.getLong(null, buffers + 16) : 0);
    if (type instanceof ArrayType) {
      layout(Platform.getLong(null, children), ((ArrayType) type).elementType(), into);
    } else if (type instanceof StructType) {
      for (int at = 0; at < ((StructType) type).size(); at++) {
        layout(Platform.getLong(null, children + 8L * at), ((StructType) type).fields()[at].dataType(), into);
      }
    }
  }

  private static ColumnVector ours(ArrowArray array, DataType type) {
    List<Long> numbers = new ArrayList<>();
    layout(array.memoryAddress(), type, numbers);
    long[] layout = numbers.stream().mapToLong(Long::longValue).toArray();
    return new NativeVector(type, new NativeVector.Cursor(layout, 0), null);
  }

  /** CPU seconds for the batches, of a column. */
  private static double seconds(boolean isOurs, Kind kind, FieldVector vector, int batches, double expected) {
    long spent = 0;
    for (int batch = 0; batch < batches; batch++) {
      ArrowArray array = ArrowArray.allocateNew(ALLOCATOR);
      ArrowSchema schema = ArrowSchema.allocateNew(ALLOCATOR);
      Data.exportVector(ALLOCATOR, vector, null, array, schema);
      long before = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      ColumnVector column =
          isOurs
              ? ours(array, kind.type)
              : new ArrowColumnVector(Data.importVector(ALLOCATOR, array, schema, null));
      double sum = kind.sum(column);
      column.close();
      if (isOurs) {
        array.release();
        schema.release();
      }
      array.close();
      schema.close();
      spent += ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - before;
      if (sum != expected) {
        throw new AssertionError(kind + ": " + sum + ", expected " + expected);
      }
    }
    return spent / 1e9;
  }

  public static void main(String[] arguments) {
    boolean isOurs = arguments[0].equals("native");
    int batches = Integer.parseInt(arguments[2]);
    List<Kind> kinds = new ArrayList<>();
    for (String name : arguments[1].split(",")) {
      kinds.add(Kind.valueOf(name.toUpperCase()));
    }
    List<FieldVector> vectors = new ArrayList<>();
    double[] expected = new double[kinds.size()];
    for (Kind kind : kinds) {
      vectors.add(kind.made.get());
    }
    double[] best = new double[kinds.size()];
    Arrays.fill(best, Double.MAX_VALUE);
    for (int pass = 0; pass < 4; pass++) {
      for (int at = 0; at < kinds.size(); at++) {
        if (pass == 0) {
          expected[at] = kinds.get(at).sum(new ArrowColumnVector(vectors.get(at)));
        }
        int most = pass == 0 ? (int) (batches * WARM_UP) : batches;
        double seconds = seconds(isOurs, kinds.get(at), vectors.get(at), most, expected[at]);
        best[at] = pass == 0 ? best[at] : Math.min(best[at], seconds);
      }
    }
    for (int at = 0; at < kinds.size(); at++) {
      System.out.printf("%s %.4f%n", kinds.get(at).name().toLowerCase(), best[at]);
    }
  }
}
