package io.coldframe.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Mistakes that Spark's own readers and writers report while planning, as the same exceptions. Spark's own methods make them,
 * so each release has its conditions. Where a release lacks the method, the exception is ours.
 */
final class SparkErrors {
  private static final String NAME = "coldframe";

  private SparkErrors() {}

  /** {@code PATH_NOT_FOUND}. */
  static RuntimeException noPath(String path, RuntimeException ours) {
    return made("Compilation", "dataPathNotExistError", ours, path);
  }

  /** {@code UNABLE_TO_INFER_SCHEMA}. */
  static RuntimeException noColumns(RuntimeException ours) {
    return made("Compilation", "dataSchemaNotSpecifiedError", ours, NAME);
  }

  /** The error of a time in an option that is none. */
  static RuntimeException noTime(String option, String text, RuntimeException ours) {
    return made("Compilation", "invalidTimestampProvidedForStrategyError", ours, option, text);
  }

  /** The error of {@code save()} without a path. */
  static RuntimeException noTarget(RuntimeException ours) {
    return made("Execution", "dataPathNotSpecifiedError", ours);
  }

  /** Fails if the user's columns have a name twice, or a type that no file has. */
  static void check(StructType user) {
    checkNames(user, SQLConf.get().caseSensitiveAnalysis());
    for (StructField field : user.fields()) {
      if (!isStored(field.dataType())) {
        String message = "column " + field.name() + ": Spark's type " + field.dataType().simpleString() + "; no file has values of this type";
        throw made("Compilation", "dataTypeUnsupportedByDataSourceError", new io.coldframe.UnsupportedError(message), NAME, field);
      }
    }
  }

  private static void checkNames(DataType type, boolean isSensitive) {
    if (type instanceof ArrayType) {
      checkNames(((ArrayType) type).elementType(), isSensitive);
    } else if (type instanceof MapType) {
      checkNames(((MapType) type).keyType(), isSensitive);
      checkNames(((MapType) type).valueType(), isSensitive);
    } else if (type instanceof StructType) {
      Set<String> names = new HashSet<>();
      for (StructField field : ((StructType) type).fields()) {
        String name = isSensitive ? field.name() : field.name().toLowerCase(Locale.ROOT);
        if (!names.add(name)) {
          throw made("Compilation", "columnAlreadyExistsError", new io.coldframe.SchemaError("two columns are called " + name), name);
        }
        checkNames(field.dataType(), isSensitive);
      }
    }
  }

  /** Whether files can have values of a type. */
  static boolean isStored(DataType type) {
    if (type instanceof ArrayType) {
      return isStored(((ArrayType) type).elementType());
    }
    if (type instanceof MapType) {
      return isStored(((MapType) type).keyType()) && isStored(((MapType) type).valueType());
    }
    if (type instanceof StructType) {
      for (StructField field : ((StructType) type).fields()) {
        if (!isStored(field.dataType())) {
          return false;
        }
      }
    }
    return !type.typeName().equals("variant") && !type.typeName().equals("interval");
  }

  /** Spark's exception, which has ours as a suppressed one; or ours. */
  private static RuntimeException made(String group, String name, RuntimeException ours, Object... arguments) {
    try {
      Class<?> errors = Class.forName("org.apache.spark.sql.errors.Query" + group + "Errors$");
      Object instance = errors.getField("MODULE$").get(null);
      for (Method method : errors.getMethods()) {
        if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
          Throwable sparks = (Throwable) method.invoke(instance, arguments);
          sparks.addSuppressed(ours);
          SparkErrors.<RuntimeException>raise(sparks);
        }
      }
    } catch (ClassNotFoundException | NoSuchFieldException | IllegalAccessException | InvocationTargetException e) {
      ours.addSuppressed(e);
    }
    return ours;
  }

  /** Throws any exception: those of Spark are checked ones for javac, but no method of Scala declares them. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> void raise(Throwable any) throws E {
    throw (E) any;
  }
}
