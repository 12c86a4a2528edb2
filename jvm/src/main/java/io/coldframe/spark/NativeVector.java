package io.coldframe.spark;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column whose values are in the memory of the native library, in Arrow's layout. One class serves all
 * types, so that the JIT compiler can inline calls of {@code getLong} and the other getters.
 */
final class NativeVector extends ColumnVector {
  /** The number of decimal digits that fit in a long. */
  private static final int LONG_DIGITS = 18;

  /** Reads the numbers that the library's {@code layout.rs} has written. */
  static final class Cursor {
    private final long[] layout;
    private int at;

    Cursor(long[] layout, int at) {
      this.layout = layout;
      this.at = at;
    }

    private long take() {
      return layout[at++];
    }
  }

  private static final NativeVector[] NONE = {};

  private final NativeBatch batch;
  private final int nulls;
  private final long validity;
  private final long validityBit;
  /** The address of the values, or of the offsets. */
  private final long data;
  /** The first bit of booleans, or the address of the bytes of texts. */
  private final long more;
  private final NativeVector[] children;
  private boolean closed;

  /** A column of a batch; {@code batch} is null for nested columns. */
  NativeVector(DataType type, Cursor cursor, NativeBatch batch) {
    super(type);
    this.batch = batch;
    nulls = (int) Math.min(cursor.take(), Integer.MAX_VALUE);
    validity = cursor.take();
    validityBit = cursor.take();
    data = cursor.take();
    more = cursor.take();
    children = children(type, cursor);
  }

  private static NativeVector[] children(DataType type, Cursor cursor) {
    if (type instanceof ArrayType) {
      return new NativeVector[] {new NativeVector(((ArrayType) type).elementType(), cursor, null)};
    }
    if (type instanceof MapType) {
      NativeVector keys = new NativeVector(((MapType) type).keyType(), cursor, null);
      return new NativeVector[] {keys, new NativeVector(((MapType) type).valueType(), cursor, null)};
    }
    if (type instanceof StructType) {
      StructField[] fields = ((StructType) type).fields();
      NativeVector[] all = new NativeVector[fields.length];
      for (int at = 0; at < all.length; at++) {
        all[at] = new NativeVector(fields[at].dataType(), cursor, null);
      }
      return all;
    }
    return NONE;
  }

  @Override
  public void close() {
    if (!closed && batch != null) {
      closed = true;
      batch.closeColumn();
    }
  }

  @Override
  public boolean hasNull() {
    return nulls > 0;
  }

  @Override
  public int numNulls() {
    return nulls;
  }

  private static boolean bit(long address, long at) {
    return (Platform.getByte(null, address + (at >> 3)) >> (at & 7) & 1) != 0;
  }

  @Override
  public boolean isNullAt(int row) {
    // If there are nulls but no bitmap, all values are null.
    return nulls > 0 && (validity == 0 || !bit(validity, validityBit + row));
  }

  @Override
  public boolean getBoolean(int row) {
    return bit(data, more + row);
  }

  @Override
  public byte getByte(int row) {
    return Platform.getByte(null, data + row);
  }

  @Override
  public short getShort(int row) {
    return Platform.getShort(null, data + ((long) row << 1));
  }

  @Override
  public int getInt(int row) {
    return Platform.getInt(null, data + ((long) row << 2));
  }

  @Override
  public long getLong(int row) {
    return Platform.getLong(null, data + ((long) row << 3));
  }

  @Override
  public float getFloat(int row) {
    return Platform.getFloat(null, data + ((long) row << 2));
  }

  @Override
  public double getDouble(int row) {
    return Platform.getDouble(null, data + ((long) row << 3));
  }

  @Override
  public UTF8String getUTF8String(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = getInt(row);
    return UTF8String.fromAddress(null, more + start, getInt(row + 1) - start);
  }

  @Override
  public byte[] getBinary(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = getInt(row);
    byte[] bytes = new byte[getInt(row + 1) - start];
    Platform.copyMemory(null, more + start, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
    return bytes;
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    if (isNullAt(row)) {
      return null;
    }
    long at = data + ((long) row << 4);
    long low = Platform.getLong(null, at);
    if (precision <= LONG_DIGITS) {
      return Decimal.createUnsafe(low, precision, scale);
    }
    long high = Platform.getLong(null, at + 8);
    byte[] bytes = new byte[16];
    for (int i = 0; i < 8; i++) {
      bytes[i] = (byte) (high >>> (56 - 8 * i));
      bytes[8 + i] = (byte) (low >>> (56 - 8 * i));
    }
    return Decimal.apply(new BigDecimal(new BigInteger(bytes), scale), precision, scale);
  }

  @Override
  public ColumnarArray getArray(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = getInt(row);
    return new ColumnarArray(children[0], start, getInt(row + 1) - start);
  }

  @Override
  public ColumnarMap getMap(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = getInt(row);
    return new ColumnarMap(children[0], children[1], start, getInt(row + 1) - start);
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return children[ordinal];
  }
}
