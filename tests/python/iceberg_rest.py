"""An Iceberg REST catalog on the loopback, over an SQL catalog, with the calls that PyIceberg makes."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote


class RestCatalog:
    """The server; it runs within its `with` block."""

    def __init__(self, folder: Path) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        properties = {"uri": f"sqlite:///{folder}/rest.db", "warehouse": f"file://{folder}/warehouse"}
        self.catalog = SqlCatalog("behind", **properties)
        lock, catalog = threading.Lock(), self.catalog

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                with lock:
                    status, content = answer(catalog, self.command, self.path, self._content())
                body = b"" if self.command == "HEAD" or content is None else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_HEAD = _answer

            def _content(self) -> Any:
                length = int(self.headers.get("Content-Length") or 0)
                return json.loads(self.rfile.read(length)) if length else None

            def log_message(self, *_: object) -> None:
                """Logs nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> RestCatalog:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def answer(catalog: Any, method: str, path: str, content: Any) -> tuple[int, Any]:
    """The status and the content of the answer."""
    from pyiceberg.exceptions import (
        CommitFailedException,
        NamespaceAlreadyExistsError,
        NoSuchNamespaceError,
        NoSuchTableError,
        TableAlreadyExistsError,
    )

    parts = [unquote(part) for part in path.partition("?")[0].strip("/").split("/")[1:]]
    try:
        return 200, _respond(catalog, method, parts, content)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        return 404, _error(error, 404)
    except (CommitFailedException, NamespaceAlreadyExistsError, TableAlreadyExistsError) as error:
        return 409, _error(error, 409)


def _error(error: Exception, code: int) -> Any:
    return {"error": {"message": str(error), "type": type(error).__name__, "code": code}}


def _respond(catalog: Any, method: str, parts: list[str], content: Any) -> Any:
    if parts == ["config"]:
        return {"defaults": {}, "overrides": {}}
    if parts == ["namespaces"]:
        if method == "POST":
            catalog.create_namespace(tuple(content["namespace"]), content.get("properties") or {})
            return {"namespace": content["namespace"], "properties": {}}
        return {"namespaces": [list(name) for name in catalog.list_namespaces()]}
    namespace = tuple(parts[1].split("\x1f"))
    if len(parts) == 2:
        return {
            "namespace": list(namespace),
            "properties": dict(catalog.load_namespace_properties(namespace)),
        }
    if len(parts) == 3 and method == "POST":
        return _table(_create(catalog, namespace, content))
    if method == "POST":
        return _table(_commit(catalog, (*namespace, parts[3]), content))
    return _table(catalog.load_table((*namespace, parts[3])))


def _create(catalog: Any, namespace: tuple[str, ...], content: Any) -> Any:
    from pyiceberg.catalog.rest import CreateTableRequest

    request = CreateTableRequest.model_validate(content)
    create = catalog._create_staged_table if request.stage_create else catalog.create_table
    return create(
        (*namespace, request.name),
        request.table_schema,
        request.location,
        request.partition_spec,
        properties=request.properties,
    )


def _commit(catalog: Any, name: tuple[str, ...], content: Any) -> Any:
    from pyiceberg.table import CommitTableRequest

    request = CommitTableRequest.model_validate({**content, "identifier": _identifier(name)})
    # A table that was only staged is made by its first commit.
    catalog.commit_table(SimpleNamespace(name=lambda: name), request.requirements, request.updates)
    return catalog.load_table(name)


def _identifier(name: tuple[str, ...]) -> Any:
    return {"namespace": list(name[:-1]), "name": name[-1]}


def _table(table: Any) -> Any:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }
