"""Whether two locations name the same file. This module does not need PyIceberg.

Deletes name data files by their locations, and different writers may spell the same location differently:

    s3://lake/x          s3a://lake/x       the same: three names of one store
    hdfs://nn:8020/x     hdfs:/x, /x        the same: the default name node
    hdfs://nn:8020/x     hdfs://ha/x        perhaps the same: the name of a service and one of its hosts
"""

from __future__ import annotations

import re

from coldframe.errors import unsupported

_LOCATION = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(?://([^/]*))?(/.*|$)")
_ALIKE = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}


def _parts(location: str) -> tuple[str, str, str]:
    match = _LOCATION.match(location)
    if match is None:
        return "", "", location
    scheme = match[1].lower()
    return _ALIKE.get(scheme, scheme), match[2] or "", re.sub(r"/+", "/", match[3])


def below_store(location: str) -> str:
    """The part of a location that is equal for all names of a file."""
    return _parts(location)[2]


def is_same_file(named: str, path: str) -> bool:
    """Whether a location in a delete names the data file at `path`. Raises UnsupportedError if this is
    uncertain.
    """
    if named == path:
        return True
    (scheme, store, below), (own_scheme, own_store, own_below) = _parts(named), _parts(path)
    if below != own_below:
        return False
    schemes, stores = {scheme, own_scheme} - {""}, {store, own_store} - {""}
    if len(schemes) < 2 and len(stores) < 2:
        return True
    raise unsupported(
        f"deletes of rows of {named}, beside the data file {path}: whether these are the same file is unknown"
    )
