"""Has Spark and Iceberg's Java library write tests/data/iceberg: tables, and what they read from each snapshot.

python make.py ICEBERG_JAR DIR              tables.tar.gz, truth.json
python make.py ICEBERG_JAR DIR defaults_within        defaults_within.tar.gz, defaults_within.json
"""

import base64
import datetime as dt
import decimal
import gzip
import hashlib
import io
import json
import math
import shutil
import sys
import tarfile
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path("/tmp/coldframe-iceberg")
WAREHOUSE = ROOT / "warehouse"


def main(jar, out, only=None):
    shutil.rmtree(ROOT, ignore_errors=True)
    spark = session(jar)
    if only == "defaults_within":
        rows = defaults_within(spark)
        spark.stop()
        pack(Path(out) / "defaults_within.tar.gz")
        (Path(out) / "defaults_within.json").write_text(json.dumps(rows, indent=0, sort_keys=True) + "\n")
        return
    truth = {}
    for make in (evolved, partitions, imported, positions, equality, vectors, defaults, mixed):
        make(spark)
        truth[make.__name__] = snapshots(spark, f"w.t.{make.__name__}")
    defaults(spark, "defaults_orc", "orc")
    generic(spark)
    truth["generic"] = {"current": generic_rows(spark)}
    spark.stop()
    Path(out).mkdir(parents=True, exist_ok=True)
    pack(Path(out) / "tables.tar.gz")
    (Path(out) / "truth.json").write_text(json.dumps(truth, indent=0, sort_keys=True) + "\n")


def session(jar):
    made = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", jar)
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.w", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.w.type", "hadoop")
        .config("spark.sql.catalog.w.warehouse", str(WAREHOUSE))
        .config("spark.sql.catalog.w.cache-enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def create(spark, name, columns, how="", **properties):
    table_properties = {
        "format-version": "2",
        "write.format.default": "orc",
        "write.metadata.compression-codec": "none",
    }
    table_properties |= {key.replace("_", "."): value for key, value in properties.items()}
    clauses = ", ".join(f"'{key}' = '{value}'" for key, value in table_properties.items())
    spark.sql(f"create table w.t.{name} ({columns}) using iceberg {how} tblproperties ({clauses})")


def evolved(spark):
    """Columns renamed, moved, widened, dropped, and added again under the name of a dropped column."""
    create(
        spark,
        "evolved",
        "id int, name string, price decimal(9,2), score float, day date, at timestamp, wall timestamp_ntz, raw binary, "
        "flag boolean, big bigint, s struct<a: int, b: string, gone: int>, l array<struct<x: int, y: string>>, "
        "m map<string, struct<u: int, v: double>>, old string",
    )
    spark.sql(
        "insert into w.t.evolved values "
        "(1, 'one', 1.25, 1.5, date'2020-02-29', timestamp'2020-02-29 12:00:00.123456', timestamp_ntz'1969-12-31 23:59:59.999999', "
        "x'00ff', true, 9000000000, named_struct('a', 1, 'b', 'x', 'gone', 7), array(named_struct('x', 1, 'y', 'p'), null), "
        "map('k', named_struct('u', 1, 'v', 0.5)), 'old'), "
        "(2, null, null, float('nan'), date'0001-01-01', timestamp'1900-01-01 00:00:00', null, null, null, null, null, null, null, null)"
    )
    for change in (
        "rename column name to title",
        "alter column id type bigint",
        "alter column price type decimal(20,2)",
        "alter column score type double",
        "rename column s.a to first",
        "drop column s.gone",
        "add column s.gone string",
        "rename column l.element.x to z",
        "add column l.element.w int",
        "add column m.value.t string first",
        "rename column m.value.u to uu",
        "drop column old",
        "alter column title first",
    ):
        spark.sql(f"alter table w.t.evolved {change}")
    spark.sql(
        "insert into w.t.evolved values "
        "('three', 3000000000, 123456789012.34, 1e300, date'2021-01-01', timestamp'2021-01-01 00:00:00', timestamp_ntz'2021-01-01 00:00:00', "
        "x'', false, 1, named_struct('first', 2, 'b', 'y', 'gone', 'text'), array(named_struct('z', 2, 'y', 'q', 'w', 3)), "
        "map('k', named_struct('t', 'text', 'uu', 4, 'v', 1.5)))"
    )
    spark.sql("alter table w.t.evolved add column old bigint after id")
    spark.sql("alter table w.t.evolved add column name string")
    spark.sql(
        "insert into w.t.evolved values ('four', 4, 44, null, 0.25, null, null, null, null, true, null, null, null, null, 'again')"
    )


def partitions(spark):
    """Hidden partitions of every transform, of which one is dropped later; names that must be
    escaped, nulls.
    """
    create(
        spark,
        "partitions",
        "id bigint, region string, at timestamp, n int, word string",
        "partitioned by (region, days(at), bucket(4, n), truncate(2, word))",
    )
    rows = [
        (at, region, f"timestamp'20{10 + at}-0{1 + at % 9}-1{at % 10} 0{at % 10}:30:00'", n, f"'{word}{at}'")
        for at, (region, n, word) in enumerate(
            [
                ("'eu/1'", 1, "alpha"),
                ("'a=b'", -5, "beta"),
                ("null", "null", "al"),
                ("'eu/1'", 99, "gamma"),
                ("''", 7, "b"),
            ]
        )
    ]
    values = ", ".join(f"({at}, {region}, {time}, {n}, {word})" for at, region, time, n, word in rows)
    spark.sql(
        f"insert into w.t.partitions values {values}, (5, 'eu/1', timestamp'1969-12-31 01:00:00', 3, null)"
    )
    spark.sql("alter table w.t.partitions drop partition field region")
    spark.sql("alter table w.t.partitions replace partition field days(at) with months(at)")
    spark.sql(
        "insert into w.t.partitions values (6, 'eu/1', timestamp'2012-03-12 00:00:00', 1, 'alpha6'), (7, null, null, null, null)"
    )


def imported(spark):
    """Files of Hive's kind, without ids, whose partition is in the path alone."""
    folder = ROOT / "hive"
    spark.sql(
        "select cast(id as int) id, concat('n', id) name, named_struct('a', cast(id as int), 'b', 'x') s, "
        "if(id % 2 = 0, 'even', null) kind from range(4)"
    ).repartition(1).write.partitionBy("kind").orc(str(folder))
    create(
        spark,
        "imported",
        "id int, name string, s struct<a: int, b: string>, kind string",
        "partitioned by (kind)",
    )
    spark.sql(f"call w.system.add_files(table => 't.imported', source_table => '`orc`.`{folder}`')")
    spark.sql("alter table w.t.imported rename column name to title")
    spark.sql("alter table w.t.imported alter column id type bigint")
    spark.sql("alter table w.t.imported rename column s.b to bb")
    spark.sql("alter table w.t.imported add column name string")
    spark.sql("insert into w.t.imported values (9, 'nine', named_struct('a', 9, 'bb', 'y'), 'even', 'new')")


def positions(spark):
    """Deleted by position: one row, many rows, twice, rows of an updated file, a whole file."""
    create(
        spark,
        "positions",
        "id bigint, part string, v double",
        "partitioned by (part)",
        write_delete_mode="merge-on-read",
        write_update_mode="merge-on-read",
    )
    spark.sql("insert into w.t.positions select id, if(id < 2000, 'a', 'b'), id / 4 from range(3000)")
    spark.sql("delete from w.t.positions where id in (0, 1, 1999, 2000, 2999) or id between 500 and 900")
    spark.sql("delete from w.t.positions where id % 7 = 3")
    spark.sql("insert into w.t.positions values (0, 'a', -1), (5000, null, null)")
    spark.sql("update w.t.positions set v = -2 where id = 8 or id = 5000")


def equality(spark):
    """Deleted by values, as Flink does: by one column and by two, null and NaN, in one partition and in all."""
    create(spark, "equality", "id int, k string, v double", "partitioned by (k)")
    spark.sql(
        "insert into w.t.equality values (1, 'a', 1.0), (2, 'a', double('nan')), (3, 'b', null), (1, 'b', 1.0), (4, null, 4.0), (5, 'a', 0.0)"
    )
    delete_equal(spark, "equality", ["id"], [{"id": 1}], {"k": "a"})  # of partition a alone
    delete_equal(spark, "equality", ["id", "v"], [{"id": 2, "v": math.nan}, {"id": 5, "v": 1.0}], {"k": "a"})
    spark.sql("insert into w.t.equality values (1, 'a', 10.0)")  # newer than the delete: it stays
    delete_equal(spark, "equality", ["v"], [{"v": None}], {"k": "b"})
    spark.sql("alter table w.t.equality rename column v to value")
    spark.sql("alter table w.t.equality drop partition field k")
    delete_equal(spark, "equality", ["id"], [{"id": 4}], {})  # of all partitions: its spec has none
    spark.sql("insert into w.t.equality values (4, 'c', 5.0)")
    delete_equal(spark, "equality", ["value"], [{"value": 10.0}], {}, "PARQUET")


def vectors(spark):
    """Deletion vectors of format version 3: arrays, runs and bits, replaced by larger vectors."""
    create(
        spark,
        "vectors",
        "id bigint, v string",
        **{"format-version": "3"},
        write_delete_mode="merge-on-read",
    )
    spark.sql("insert into w.t.vectors select id, cast(id % 10 as string) from range(0, 200000, 1, 1)")
    spark.sql("delete from w.t.vectors where id = 70000 or id = 199999")
    spark.sql("delete from w.t.vectors where id between 1000 and 60000 or (id > 131072 and id % 3 = 0)")
    spark.sql("insert into w.t.vectors values (1, 'x'), (2, null)")
    spark.sql("delete from w.t.vectors where id = 1")


def defaults(spark, name="defaults", format="parquet"):
    """Columns with a default value for the files that were there before. Iceberg reads default values only from Parquet."""
    create(spark, name, "id int, s struct<a: int>", **{"format-version": "3", "write.format.default": format})
    spark.sql(f"insert into w.t.{name} values (1, named_struct('a', 1)), (2, null)")
    table, types = java_table(spark, name), spark._jvm.org.apache.iceberg.types.Types
    literal = spark._jvm.org.apache.iceberg.expressions.Expressions.lit
    change = table.updateSchema()
    change = change.addColumn("n", types.IntegerType.get(), None, literal(42))
    change = change.addColumn("t", types.StringType.get(), None, literal("text"))
    day = literal("2020-02-29").to(types.DateType.get())
    change.addColumn("d", types.DateType.get(), None, day).commit()
    spark.sql(f"insert into w.t.{name} values (3, null, 1, null, null)")


def defaults_within(spark):
    """Fields of structs with a default value, in columns, lists and maps. The rows are the rows that Spark
    reads from Parquet.
    """
    for name, format in (("within", "parquet"), ("within_orc", "orc")):
        create(
            spark,
            name,
            "id int, s struct<a: int>, l array<struct<x: int>>, m map<string, struct<u: int>>, d struct<e: struct<f: int>>",
            **{"format-version": "3", "write.format.default": format},
        )
        spark.sql(
            f"insert into w.t.{name} values "
            "(1, named_struct('a', 1), array(named_struct('x', 1), null), map('k', named_struct('u', 1)), "
            "named_struct('e', named_struct('f', 1))), "
            "(2, null, null, null, null), "
            "(3, named_struct('a', null), array(), map(), named_struct('e', null))"
        )
        table, types = java_table(spark, name), spark._jvm.org.apache.iceberg.types.Types
        literal = spark._jvm.org.apache.iceberg.expressions.Expressions.lit
        day = literal("2020-02-29").to(types.DateType.get())
        change = table.updateSchema()
        change = change.addColumn("s", "b", types.IntegerType.get(), None, literal(7))
        change = change.addColumn("s", "c", types.IntegerType.get())
        change = change.addColumn("l", "y", types.StringType.get(), None, literal("why"))
        change = change.addColumn("m", "v", types.LongType.get(), None, literal(5).to(types.LongType.get()))
        change.addColumn("d.e", "g", types.DateType.get(), None, day).commit()
        spark.sql(
            f"insert into w.t.{name} values "
            "(4, named_struct('a', 4, 'b', null, 'c', 4), array(named_struct('x', 4, 'y', 'z')), "
            "map('k', named_struct('u', 4, 'v', null)), named_struct('e', named_struct('f', 4, 'g', date'2021-01-01')))"
        )
    rows = [row.asDict(recursive=True) for row in spark.sql("select * from w.t.within").collect()]
    return sorted((known(row) for row in rows), key=lambda row: row["id"])


def mixed(spark):
    """ORC and Parquet in one table, both with deletes."""
    create(spark, "mixed", "id int, v string", write_delete_mode="merge-on-read")
    spark.sql("insert into w.t.mixed values (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql("alter table w.t.mixed set tblproperties ('write.format.default' = 'parquet')")
    spark.sql("insert into w.t.mixed values (4, 'd'), (5, 'e'), (6, 'f')")
    spark.sql("alter table w.t.mixed rename column v to w")
    spark.sql("alter table w.t.mixed alter column id type bigint")
    spark.sql("delete from w.t.mixed where id in (2, 5)")
    delete_equal(spark, "mixed", ["w"], [{"w": "f"}, {"w": "c"}], {})


def generic(spark):
    """Types that Spark does not have, by Iceberg's generic writer."""
    jvm, iceberg = spark._jvm, spark._jvm.org.apache.iceberg
    types, uuid = iceberg.types.Types, jvm.java.util.UUID
    kinds = [
        types.NestedField.required(1, "id", types.IntegerType.get()),
        types.NestedField.optional(2, "time", types.TimeType.get()),
        types.NestedField.optional(3, "uuid", types.UUIDType.get()),
        types.NestedField.optional(4, "fixed", types.FixedType.ofLength(3)),
        types.NestedField.optional(5, "times", types.ListType.ofOptional(6, types.TimeType.get())),
    ]
    schema = iceberg.Schema(spark.sparkContext._gateway.jvm.java.util.ArrayList(kinds))
    properties = jvm.java.util.HashMap()
    properties.put("write.format.default", "orc")
    catalog = iceberg.hadoop.HadoopTables(spark._jsc.hadoopConfiguration())
    table = catalog.create(
        schema, iceberg.PartitionSpec.unpartitioned(), properties, str(WAREHOUSE / "t" / "generic")
    )
    factory = iceberg.data.GenericAppenderFactory(schema)
    place = table.locationProvider().newDataLocation("generic.orc")
    writer = factory.newDataWriter(plain(spark, table, place), iceberg.FileFormat.ORC, None)
    some = jvm.java.time.LocalTime.parse("23:59:59.999999")
    record = iceberg.data.GenericRecord.create(schema)
    record.setField("id", 1)
    record.setField("time", some)
    record.setField("uuid", uuid.fromString("00112233-4455-6677-8899-aabbccddeeff"))
    record.setField("fixed", b"\x00\x01\xff")
    record.setField("times", jvm.java.util.ArrayList([some, None]))
    writer.write(record)
    record = iceberg.data.GenericRecord.create(schema)
    record.setField("id", 2)
    writer.write(record)
    writer.close()
    table.newAppend().appendFile(writer.toDataFile()).commit()


def generic_rows(spark):
    catalog = spark._jvm.org.apache.iceberg.hadoop.HadoopTables(spark._jsc.hadoopConfiguration())
    table = catalog.load(str(WAREHOUSE / "t" / "generic"))
    rows = []
    records = spark._jvm.org.apache.iceberg.data.IcebergGenerics.read(table).build().iterator()
    while records.hasNext():
        record = records.next()
        times = record.getField("times")
        fixed = record.getField("fixed")
        rows.append(
            {
                "id": record.getField("id"),
                "time": text(record.getField("time")),
                "uuid": text(record.getField("uuid")),
                "fixed": None if fixed is None else base64.b64encode(bytes(fixed)).decode(),
                "times": None if times is None else [text(time) for time in times],
            }
        )
    return rows


def text(value):
    return None if value is None else value.toString()


def java_table(spark, name):
    return spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        spark._jsparkSession, f"w.t.{name}"
    )


def plain(spark, table, place):
    encrypted = spark._jvm.org.apache.iceberg.encryption.EncryptedFiles
    return encrypted.plainAsEncryptedOutput(table.io().newOutputFile(place))


def delete_equal(spark, name, columns, rows, partition, format="ORC"):
    """Commits one file of equality deletes."""
    iceberg, table = spark._jvm.org.apache.iceberg, java_table(spark, name)
    schema = table.schema().select(spark._jvm.java.util.ArrayList(columns))
    ids = spark.sparkContext._gateway.new_array(spark._jvm.int, len(columns))
    for at, column in enumerate(columns):
        ids[at] = schema.findField(column).fieldId()
    key = None
    if partition:
        key = iceberg.PartitionKey(table.spec(), table.schema())
        record = iceberg.data.GenericRecord.create(table.schema())
        for column, value in partition.items():
            record.setField(column, value)
        key.partition(record)
    factory = iceberg.data.GenericAppenderFactory(table.schema(), table.spec(), ids, schema, None)
    place = table.locationProvider().newDataLocation(f"equal-{len(list(table.snapshots()))}.{format.lower()}")
    writer = factory.newEqDeleteWriter(plain(spark, table, place), getattr(iceberg.FileFormat, format), key)
    for row in rows:
        record = iceberg.data.GenericRecord.create(schema)
        for column, value in row.items():
            record.setField(column, value)
        writer.write(record)
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def snapshots(spark, name):
    """What Spark reads from the table now, and from each of its snapshots; when each snapshot was current."""
    versions = {"current": rows_of(spark.sql(f"select * from {name}"))}
    for number, time in spark.sql(
        f"select snapshot_id, made_current_at from {name}.history order by 2"
    ).collect():
        at = round(time.replace(tzinfo=dt.timezone.utc).timestamp() * 1000)
        versions[str(number)] = {
            "at": at,
            "rows": rows_of(spark.sql(f"select * from {name} version as of {number}")),
        }
    return versions


def rows_of(frame):
    return shortened(frame.toArrow())


def shortened(table):
    """The rows, sorted; many rows are reduced to their number and digest. The tests have the same function."""
    if table.num_rows > 10000:
        table = table.group_by("v").aggregate([("id", "sum"), ("id", "count")]).sort_by("v")
    rows = sorted((known(row) for row in table.to_pylist()), key=json.dumps)
    if len(rows) < 100:
        return rows
    return [len(rows), hashlib.sha256(json.dumps(rows).encode()).hexdigest()]


def known(value):
    """A value in the form that JSON gives it. The tests convert what coldframe reads in the same way."""
    if isinstance(value, dict):
        return {key: known(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [known(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, (decimal.Decimal, dt.date, dt.time)):
        return str(value)
    return value


def pack(path):
    """Packs the tables without Hadoop's checksum files; equal files give equal bytes."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file in sorted(ROOT.rglob("*")):
            if file.is_file() and not file.name.endswith(".crc"):
                entry = tarfile.TarInfo(str(file.relative_to(ROOT)))
                entry.size = file.stat().st_size
                tar.addfile(entry, io.BytesIO(file.read_bytes()))
    path.write_bytes(gzip.compress(raw.getvalue(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
