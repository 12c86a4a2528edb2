package io.coldframe.spark;

import io.coldframe.UnsupportedError;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;

/** Rows as bytes for the native library. {@code rows.rs} defines the bytes. */
final class RowBytes {
  private static final int DECIMAL_BYTES = 16;
  /** The most digits of a decimal that Spark holds in a long. */
  private static final int DIGITS_OF_LONG = 18;

  /** Writes the value at a position of a row or array, which is not null. */
  private interface Cell {
    void put(SpecializedGetters from, int at);
  }

  private final Cell[] cells;
  private ByteBuffer buffer = ByteBuffer.allocate(1 << 16).order(ByteOrder.LITTLE_ENDIAN);
  private int count;

  RowBytes(StructType schema) {
    cells = cells(schema);
  }

  void add(InternalRow row) {
    for (int at = 0; at < cells.length; at++) {
      put(row, at, cells[at]);
    }
    count++;
  }

  /** The number of rows. */
  int count() {
    return count;
  }

  /** The number of bytes. */
  int size() {
    return buffer.position();
  }

  /** The rows since the last call. */
  byte[] take() {
    byte[] taken = Arrays.copyOf(buffer.array(), buffer.position());
    buffer.clear();
    count = 0;
    return taken;
  }

  private void put(SpecializedGetters from, int at, Cell cell) {
    boolean isNull = from.isNullAt(at);
    room(1).put((byte) (isNull ? 0 : 1));
    if (!isNull) {
      cell.put(from, at);
    }
  }

  /** The buffer, with room for more bytes. */
  private ByteBuffer room(int more) {
    if (buffer.remaining() < more) {
      long wanted = Math.max(2L * buffer.capacity(), (long) buffer.position() + more);
      int capacity = (int) Math.min(wanted, Integer.MAX_VALUE - 8);
      ByteBuffer larger = ByteBuffer.allocate(capacity).order(ByteOrder.LITTLE_ENDIAN);
      buffer.flip();
      buffer = larger.put(buffer);
    }
    return buffer;
  }

  private Cell[] cells(StructType schema) {
    return Arrays.stream(schema.fields()).map(field -> cell(field.dataType())).toArray(Cell[]::new);
  }

  private Cell cell(DataType type) {
    if (type instanceof DecimalType) {
      return decimal((DecimalType) type);
    }
    if (type instanceof ArrayType) {
      Cell item = cell(((ArrayType) type).elementType());
      return (from, at) -> items(from.getArray(at), item);
    }
    if (type instanceof MapType) {
      Cell key = cell(((MapType) type).keyType());
      Cell value = cell(((MapType) type).valueType());
      return (from, at) -> pairs(from.getMap(at), key, value);
    }
    if (type instanceof StructType) {
      Cell[] fields = cells((StructType) type);
      return (from, at) -> {
        InternalRow row = from.getStruct(at, fields.length);
        for (int field = 0; field < fields.length; field++) {
          put(row, field, fields[field]);
        }
      };
    }
    return plain(type);
  }

  /** Some of these types are not in the oldest Spark, so they are known by their names. */
  private Cell plain(DataType type) {
    switch (type.getClass().getSimpleName().replace("$", "")) {
      case "BooleanType":
        return (from, at) -> room(1).put((byte) (from.getBoolean(at) ? 1 : 0));
      case "ByteType":
        return (from, at) -> room(1).put(from.getByte(at));
      case "ShortType":
        return (from, at) -> room(2).putShort(from.getShort(at));
      case "IntegerType":
      case "DateType":
      case "YearMonthIntervalType":
        return (from, at) -> room(4).putInt(from.getInt(at));
      case "LongType":
      case "TimestampType":
      case "TimestampNTZType":
      case "DayTimeIntervalType":
      case "TimeType":
        return (from, at) -> room(8).putLong(from.getLong(at));
      case "FloatType":
        return (from, at) -> room(4).putFloat(from.getFloat(at));
      case "DoubleType":
        return (from, at) -> room(8).putDouble(from.getDouble(at));
      case "StringType":
      case "CharType":
      case "VarcharType":
        return (from, at) -> bytes(from.getUTF8String(at).getBytes());
      case "BinaryType":
        return (from, at) -> bytes(from.getBinary(at));
      case "NullType":
        return (from, at) -> {};
      default:
        throw new UnsupportedError("writing values of the type " + type.simpleString());
    }
  }

  private void bytes(byte[] value) {
    room(4 + value.length).putInt(value.length).put(value);
  }

  private Cell decimal(DecimalType type) {
    int precision = type.precision();
    int scale = type.scale();
    return (from, at) -> {
      Decimal value = from.getDecimal(at, precision, scale);
      ByteBuffer into = room(DECIMAL_BYTES);
      if (precision <= DIGITS_OF_LONG) {
        long unscaled = value.toUnscaledLong();
        into.putLong(unscaled).putLong(unscaled >> 63);
        return;
      }
      byte[] digits = value.toJavaBigDecimal().unscaledValue().toByteArray();
      byte sign = (byte) (digits[0] >> 7);
      for (int index = 0; index < DECIMAL_BYTES; index++) {
        int place = digits.length - 1 - index;
        into.put(place >= 0 ? digits[place] : sign);
      }
    };
  }

  private void items(ArrayData items, Cell item) {
    room(4).putInt(items.numElements());
    for (int at = 0; at < items.numElements(); at++) {
      put(items, at, item);
    }
  }

  private void pairs(MapData pairs, Cell key, Cell value) {
    room(4).putInt(pairs.numElements());
    for (int at = 0; at < pairs.numElements(); at++) {
      put(pairs.keyArray(), at, key);
      put(pairs.valueArray(), at, value);
    }
  }
}
