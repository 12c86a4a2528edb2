package io.coldframe.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;

/**
 * The files that this connector writes, as one of Spark's own formats. So Spark itself partitions the rows, and its committer
 * publishes the files: tasks write below {@code _temporary}, which readers ignore, and the commit renames. Spark finds this
 * class by its name. It reads nothing.
 */
public final class WrittenFiles implements FileFormat {
  /** Options of {@code load()}, of Spark and of Hadoop, which the native library does not know as options of a file. */
  private static final List<String> OTHERS =
      Arrays.asList(
          "format", "columns", "filter", "split_bytes", "batch_rows", "damage", "unify", "mergeschema", "mode", "paths",
          "pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore", "ignoremissingfiles",
          "ignorecorruptfiles", "partitionoverwritemode", "maxrecordsperfile", "__partition_columns");

  private static final List<String> OF_HADOOP = Arrays.asList("fs.", "dfs.", "mapreduce.", "mapred.", "hadoop.");

  @Override
  public Option<StructType> inferSchema(
      SparkSession session, scala.collection.immutable.Map<String, String> options, scala.collection.Seq<FileStatus> files) {
    return Option.empty();
  }

  /** The same for Scala 2.13, whose {@code Seq} is this one. */
  public Option<StructType> inferSchema(
      SparkSession session,
      scala.collection.immutable.Map<String, String> options,
      scala.collection.immutable.Seq<FileStatus> files) {
    return Option.empty();
  }

  /** The native library judges the other types, when the first file is tried. No format has {@code void}. */
  @Override
  public boolean supportDataType(DataType type) {
    return SparkErrors.isStored(type) && !type.typeName().equals("void");
  }

  /** The name of the source in Spark's errors. */
  @Override
  public String toString() {
    return "coldframe";
  }

  @Override
  public OutputWriterFactory prepareWrite(
      SparkSession session, Job job, scala.collection.immutable.Map<String, String> options, StructType schema) {
    Map<String, String> given = new HashMap<>();
    for (scala.collection.Iterator<Tuple2<String, String>> all = options.iterator(); all.hasNext(); ) {
      Tuple2<String, String> option = all.next();
      given.put(option._1(), option._2());
    }
    return new Factory(request(given, schema));
  }

  private static byte[] request(Map<String, String> given, StructType schema) {
    Map<String, String> options = ColdframeSource.lower(given);
    options.keySet().removeIf(name -> OTHERS.contains(name) || OF_HADOOP.stream().anyMatch(name::startsWith));
    return Json.bytes("{\"options\":" + Json.object(options) + ",\"schema\":" + schema.json() + "}");
  }

  private static final class Factory extends OutputWriterFactory {
    private static final long serialVersionUID = 1L;

    private final byte[] request;
    private final String ending;

    Factory(byte[] request) {
      this.request = request;
      NativeLibrary.load();
      ending = new String(NativeFile.check(request), StandardCharsets.UTF_8);
    }

    @Override
    public String getFileExtension(TaskAttemptContext context) {
      return ending;
    }

    @Override
    public OutputWriter newInstance(String path, StructType schema, TaskAttemptContext context) {
      return new WrittenFile(path, schema, request, context);
    }
  }
}
