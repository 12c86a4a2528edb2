"""Where a location of a metastore lies below the root of a source."""

from __future__ import annotations

from pathlib import Path

import pytest

from coldframe.pipeline.source.locations import Root


@pytest.mark.parametrize(
    ("root", "location", "below"),
    [
        ("/wh", "/wh/t", "t"),
        ("/wh", "file:/wh/t", "t"),
        ("/wh", "file:///wh/t/", "t"),
        ("/wh", "file://localhost/wh//t", "t"),
        ("/wh", "/wh", ""),
        ("/wh", "/whole/t", None),
        ("/wh", "hdfs://nn/wh/t", None),
        ("/wh", "", None),
        ("/wh", None, None),
        ("/wh", "file:/wh/t/p=a%2Fb c", "t/p=a%2Fb c"),
        ("/w%20h", "file:/w h/t", None),
        ("/", "file:/wh/t", "wh/t"),
        ("hdfs://nn/wh", "hdfs://nn/wh/t", "t"),
        ("hdfs://nn/wh", "hdfs://NN:8020/wh/t", "t"),
        ("hdfs://nn:8020/wh", "hdfs://nn:9000/wh/t", None),
        ("hdfs://nn/wh", "hdfs://other/wh/t", None),
        ("hdfs:///wh", "hdfs://nn:8020/wh/t", "t"),
        ("hdfs://nn/wh", "hdfs:///wh/t", "t"),
        ("hdfs://nn/wh", "hdfs:/wh/t", "t"),
        ("hdfs://nn/wh", "/wh/t", "t"),
        ("hdfs://nn/wh", "file:/wh/t", None),
        ("s3://b/wh", "s3a://b/wh/t/p=x%2Fy", "t/p=x%2Fy"),
        ("s3a://b", "s3n://b/t", "t"),
        ("s3://b/wh", "s3://c/wh/t", None),
        ("s3://b/wh", "/wh/t", None),
        ("gs://b/wh", "gcs://b/wh/t", "t"),
    ],
)
def test_locations_below_a_root_get_relative_paths(
    root: str, location: str | None, below: str | None
) -> None:
    assert Root(root).relative(location) == below


def test_hive_may_name_a_directory_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert Root(str(tmp_path / "real")).relative(f"file:{tmp_path}/link/t/p=1") == "t/p=1"
