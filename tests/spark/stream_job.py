"""Streams a folder of files into Parquet, two files a batch, until all present files are read."""

from __future__ import annotations

import sys

import coldframe.spark
from coldframe.pipeline.session import start_session


def main(source: str, target: str, checkpoint: str) -> None:
    """Runs the stream."""
    spark = start_session("local[2]", conf={"spark.jars": coldframe.spark.jar()})
    reader = spark.readStream.format("coldframe").options(serde="binary", maxFilesPerTrigger="2")
    frame = reader.schema("a bigint, s string").load(source)
    query = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start(target).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:4])
