package io.coldframe.spark;

import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The column {@code _metadata}, as in Spark's own sources of files: the file that each row comes from. */
final class FileMetadata {
  static final String NAME = "_metadata";

  private static final StructType TYPE =
      new StructType()
          .add("file_path", DataTypes.StringType, false)
          .add("file_name", DataTypes.StringType, false)
          .add("file_size", DataTypes.LongType, true)
          .add("file_block_start", DataTypes.LongType, false)
          .add("file_block_length", DataTypes.LongType, true)
          .add("file_modification_time", DataTypes.TimestampType, true);

  private FileMetadata() {}

  /** The metadata columns of a table; none if a column of the files has this name. */
  static MetadataColumn[] columns(StructType schema) {
    MetadataColumn column =
        new MetadataColumn() {
          @Override
          public String name() {
            return NAME;
          }

          @Override
          public DataType dataType() {
            return TYPE;
          }

          @Override
          public boolean isNullable() {
            return false;
          }
        };
    return isIn(schema) ? new MetadataColumn[0] : new MetadataColumn[] {column};
  }

  private static boolean isIn(StructType schema) {
    for (String name : schema.fieldNames()) {
      if (name.equalsIgnoreCase(NAME)) {
        return true;
      }
    }
    return false;
  }

  /** Where the metadata are among the columns of a scan; -1 if they are not asked for. */
  static int index(StructType required, StructType schema) {
    String[] names = required.fieldNames();
    for (int at = 0; at < names.length && !isIn(schema); at++) {
      if (names[at].equals(NAME)) {
        return at;
      }
    }
    return -1;
  }

  /** The columns without the one at an index. */
  static StructType without(StructType required, int index) {
    StructType others = new StructType();
    StructField[] fields = required.fields();
    for (int at = 0; at < fields.length; at++) {
      others = at == index ? others : others.add(fields[at]);
    }
    return others;
  }

  /** The metadata of rows of one file, with the fields that the query needs. */
  static ConstantColumnVector vector(StructType type, SourceFile file, int rows) {
    ConstantColumnVector whole = new ConstantColumnVector(rows, type);
    whole.setNotNull();
    StructField[] fields = type.fields();
    for (int at = 0; at < fields.length; at++) {
      whole.setChild(at, field(fields[at], file, rows));
    }
    return whole;
  }

  private static ConstantColumnVector field(StructField field, SourceFile file, int rows) {
    ConstantColumnVector made = new ConstantColumnVector(rows, field.dataType());
    switch (field.name()) {
      case "file_path":
        // Encoded as in a URL, but with one slash for local files.
        made.setUtf8String(UTF8String.fromString(file.url.replaceFirst("^file:///", "file:/")));
        break;
      case "file_name":
        made.setUtf8String(UTF8String.fromString(file.url.substring(file.url.lastIndexOf('/') + 1)));
        break;
      case "file_size":
        put(made, file.size, 1);
        break;
      case "file_block_start":
        put(made, file.start, 1);
        break;
      case "file_block_length":
        put(made, file.length < 0 ? file.size : file.length, 1);
        break;
      default:
        put(made, file.modified, 1000); // microseconds
    }
    return made;
  }

  private static void put(ConstantColumnVector into, long value, long unit) {
    if (value < 0) {
      into.setNull();
    } else {
      into.setLong(value * unit);
    }
  }
}
