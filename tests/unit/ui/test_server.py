"""The explorer over HTTP: what it answers, and what it refuses."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import lance
import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.errors import InvalidInputError, LanceNamespaceError
from lancepart.layout import leaves
from lancepart.report.leaf_frame import LeafFrame, _measured
from lancepart.ui.about import LOOKED_INTO
from lancepart.ui.api import ROUTES
from lancepart.ui.explorer import Explorer
from lancepart.ui.guard import Guard
from lancepart.ui.server import Server
from tests.support.explored import serving, warehouse
from tests.support.metadata_only import many_partitions

TOKEN = "a-token-of-enough-letters"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("explored")
    warehouse(found)
    return found


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Server]:
    with serving(Explorer(str(root))) as found:
        yield found


def fetch(url: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes, Any]:
    sent = {key.replace("_", "-"): value for key, value in headers.items()}
    request = urllib.request.Request(url, method=method, headers=sent)
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=20) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def raw(server: Server, request: str, headers: str) -> int:
    """The status of a request that is sent as it stands."""
    with socket.create_connection(server.server_address[:2], timeout=20) as line:
        line.sendall(f"{request} HTTP/1.0\r\n{headers}\r\n\r\n".encode())
        return int(line.makefile("rb").readline().split()[1])


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *given: Any) -> None:
        return None


def ask(server: Server, name: str, code: int = 200, table: str = "shop.events", **params: object) -> Any:
    status, body, _ = fetch(f"{server.url}api/{name}?{urlencode({'table': table, **params})}")
    assert status == code, body
    return json.loads(body)


def test_the_tables_of_a_warehouse(server: Server) -> None:
    assert ask(server, "tables")["tables"] == ["shop.events", "shop.orders"]
    assert ask(server, "tables", contains="ORD")["tables"] == ["shop.orders"]
    assert ask(server, "tables", limit=1, offset=1)["tables"] == ["shop.orders"]


def test_a_table_is_described(server: Server, root: Path) -> None:
    table = lp.connect(root).table("shop.events")
    found = ask(server, "table")
    assert (found["rows"], found["version"]) == (table.count_rows(), table.version)
    assert found["partition_by"] == ["tenant", "month(day)", "bucket(2, id)"]
    assert {each["name"]: each["kind"] for each in found["columns"]}["embedding"] == "vector"
    assert ask(server, "table", version="first")["rows"] == 200


def test_the_tree_goes_down_to_the_leaves_page_by_page(server: Server) -> None:
    tops = ask(server, "tree")["nodes"]
    assert [each["name"] for each in tops] == ["spec v1", "spec v2"]
    tenants = ask(server, "tree", spec=1, path="[]")
    assert [each["name"] for each in tenants["nodes"]] == ["acme", "birch", "cedar", "dune"]
    assert sum(each["rows"] for each in tenants["nodes"]) == tops[0]["rows"]
    months = ask(server, "tree", spec=1, path='["acme"]', limit=2, offset=1)
    assert ([each["name"] for each in months["nodes"]], months["total"]) == (["2", "3"], 3)
    assert all(each["leaf"] for each in months["nodes"])
    largest = ask(server, "tree", spec=1, path="[]", sort="rows")["nodes"]
    assert [each["rows"] for each in largest] == sorted((each["rows"] for each in largest), reverse=True)


def test_a_filter_shows_what_is_kept_and_dropped(server: Server, root: Path) -> None:
    where = "tenant = 'birch'"
    wanted = len(lp.connect(root).table("shop.events").scan(where).plan().leaves)
    plan = ask(server, "plan", where=where)
    assert (plan["kept"], 0 < plan["rows"] < plan["of_rows"]) == (wanted, True)
    assert any("tenant" in reason for reason in plan["specs"][0]["reasons"])
    cells = ask(server, "map", where=where)["cells"]
    assert (len(cells), sum(each[2] for each in cells)) == (plan["of"], wanted)
    nodes = ask(server, "tree", spec=1, path="[]", where=where)["nodes"]
    assert [(each["name"], bool(each["kept"])) for each in nodes][:2] == [("birch", True), ("acme", False)]
    wrong = ask(server, "plan", 400, where="tenantt = 'x'")["error"]
    assert "tenantt" in wrong
    assert "did you mean 'tenant'" in wrong


def test_skew_has_bars_and_the_largest(server: Server) -> None:
    found = ask(server, "skew", measure="rows")
    assert found["bars"] == sorted(found["bars"], reverse=True)
    assert found["top"][0]["size"] == found["largest"] == found["bars"][0]
    assert found["top"][0]["name"].startswith("tenant=acme / day_month=")


def test_snapshots_come_in_pages_and_two_are_compared(server: Server) -> None:
    newest = ask(server, "snapshots", limit=3)
    older = ask(server, "snapshots", limit=100, before=newest["next"])
    whole = ask(server, "snapshots", limit=100)
    assert newest["snapshots"] + older["snapshots"] == whole["snapshots"]
    assert {"append", "delete", "define"} <= {each["operation"] for each in whole["snapshots"]}
    assert [each["version"] for each in whole["snapshots"] if each["tags"] == ["first"]]
    found = ask(server, "diff", **{"from": "first", "to": whole["latest"]})
    assert [(each["kind"], each["name"]) for each in found["columns"]] == [("renamed", "comment"), ("added", "channel")]
    assert found["partition_by"][0] != found["partition_by"][1]
    assert found["counts"]["added"] > 0
    assert found["counts"]["changed"] > 0
    gone = next(each for each in found["leaves"] if each["name"].startswith("tenant=dune"))
    assert (gone["rows"][1], gone["delta"]) == (0, -gone["rows"][0])
    rows = ask(server, "changes", **{"from": "first", "to": whole["latest"], "limit": 5})["rows"]
    assert len(rows) == 5
    assert "photo" not in rows[0]


def test_snapshots_of_a_table_without_partitions_are_compared(tmp_path: Path) -> None:
    table = lp.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]))
    empty = table.version
    table.append([{"id": 1}])
    with serving(Explorer(table.root)) as server:
        found = ask(server, "diff", table=".", **{"from": empty, "to": table.version})
    assert [(each["name"], each["kind"], each["delta"]) for each in found["leaves"]] == [("all rows", "added", 1)]


def test_the_history_of_the_definition(server: Server) -> None:
    found = ask(server, "schema")
    assert found["current_spec"] == 2
    assert [each["columns"] for each in found["history"]][1][0]["kind"] == "renamed"
    assert found["history"][0]["partition_by"] == ["tenant", "month(day)", "bucket(2, id)"]


@pytest.mark.slow
def test_indices_and_health_name_what_to_run(server: Server, root: Path) -> None:
    found = ask(server, "indices")["indices"]
    assert [(each["name"], each["columns"]) for each in found] == [("id_idx", ["id"])]
    assert found[0]["indexed_rows"] == found[0]["rows"]
    runs = [each["run"] for each in ask(server, "health")["findings"]]
    assert f"lancepart rewrite {root}:shop.events" in runs


def test_rows_neighbours_and_images(server: Server) -> None:
    found = ask(server, "rows", limit=4, where="photo IS NOT NULL")
    row = found["rows"][0]
    assert row["photo"]["image"] == "image/png"
    assert row["embedding"]["length"] == len(row["embedding"]["points"]) == 8
    near = ask(server, "search", like=row["_rowid"], column="embedding", k=3, version=found["version"])["rows"]
    assert (near[0]["id"], near[0]["_distance"], len(near)) == (row["id"], 0, 3)
    by_text = ask(server, "search", q="fox", column="comment", k=2)["rows"]
    assert all("fox" in each["comment"] for each in by_text)
    assert all("fox" in each["comment"] for each in ask(server, "search", q="fox", k=2)["rows"])
    by_vector = ask(server, "search", q=json.dumps([0.1] * 8), k=2)["rows"]
    assert by_vector[0]["_distance"] <= by_vector[1]["_distance"]
    params = urlencode({"table": "shop.events", "row": row["_rowid"], "column": "photo"})
    status, data, headers = fetch(f"{server.url}api/image?{params}")
    assert (status, data[:4], headers["Content-Type"]) == (200, b"\x89PNG", "image/png")
    assert "no list of numbers" in ask(server, "search", 400, q="[1, x]")["error"]


def test_what_is_missing_or_wrong_is_named(server: Server) -> None:
    assert "nothing" in ask(server, "table", 404, table="shop.nothing")["error"]
    assert "99999" in ask(server, "table", 404, version=99999)["error"]
    row = ask(server, "rows", limit=1)["rows"][0]["_rowid"]
    for name, params, word in (
        ("tree", {"spec": 9}, "spec version 9"),
        ("tree", {"spec": 1, "path": "{}"}, "JSON list"),
        ("tree", {"spec": "x"}, "whole number"),
        ("skew", {"measure": "weight"}, "measure"),
        ("rows", {"limit": "-1"}, "whole number"),
        ("image", {"row": row, "column": "id"}, "no image"),
        ("search", {}, "'q'"),
    ):
        assert word in ask(server, name, 400, **params)["error"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_but_get_is_answered(server: Server, method: str) -> None:
    status, _, headers = fetch(f"{server.url}api/tables", method=method)
    assert status == 501
    assert not [key for key in headers if key.lower().startswith("access-control")]


def test_another_name_or_another_site_is_refused(server: Server) -> None:
    port = server.server_address[1]
    assert fetch(f"{server.url}api/tables", Host=f"evil.example:{port}")[0] == 403
    assert fetch(server.url, Host="evil.example")[0] == 403
    assert fetch(f"{server.url}api/tables", Host=f"localhost:{port}")[0] == 200
    assert fetch(f"{server.url}api/tables", Sec_Fetch_Site="cross-site")[0] == 403
    assert fetch(f"{server.url}api/tables", Sec_Fetch_Site="same-origin")[0] == 200
    assert raw(server, "GET /api/tables", f"sec-fetch-site: cross-site\r\nHost: localhost:{port}") == 403
    assert raw(server, "GET http://[", f"Host: localhost:{port}") == 400


def test_the_page_is_its_own_and_refers_to_nothing_else(server: Server) -> None:
    for path, (data, _) in server.pages.items():
        status, body, headers = fetch(server.url.rstrip("/") + path)
        assert (status, body) == (200, data)
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        text = data.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text
        assert "https:" not in text
    for path in ("../server.py", "static/app.js", "%2e%2e/server.py", "api/", "api/../index.html"):
        assert fetch(f"{server.url}{path}")[0] == 404


def test_elsewhere_than_on_loopback_a_token_is_needed(root: Path) -> None:
    with pytest.raises(InvalidInputError, match="token"):
        Server(Explorer(str(root)), host="0.0.0.0")
    with pytest.raises(InvalidInputError, match="at least 16"):
        Guard(host="0.0.0.0", token="short")
    with serving(Explorer(str(root)), host="0.0.0.0", token=TOKEN) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        for path in ("", "app.js", "api/tables", "api/tables?token=wrong-wrong-wrong-wrong"):
            assert fetch(f"{url}{path}")[0] == 401
        status, _, headers = fetch(f"{url}?token={TOKEN}")
        assert (status, headers["Location"]) == (303, "/")
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert fetch(f"{url}api/tables", Cookie=cookie.partition(";")[0])[0] == 200
        assert fetch(f"{url}api/tables", Authorization=f"Bearer {TOKEN}")[0] == 200
        assert fetch(f"{url}api/tables", Authorization=f"Bearer {TOKEN}", Host="evil.example")[0] == 403
        assert TOKEN not in repr(server.guard)


@pytest.mark.parametrize("token", ["k3+/Zm9vYmFy/w==+base64", 'all of: "it"; a=b, & #%25 \\'])
def test_a_token_of_any_characters_lets_in(root: Path, token: str) -> None:
    with serving(Explorer(str(root)), token=token) as server:
        status, _, headers = fetch(f"{server.url}?{urlencode({'token': token})}")
        assert status == 303
        kept = headers["Set-Cookie"].partition(";")[0]
        assert fetch(f"{server.url}api/tables", Cookie=kept)[0] == 200
        assert fetch(f"{server.url}api/tables", Cookie=f"{kept}x")[0] == 401


def test_two_explorers_of_one_host_keep_their_tokens_apart(root: Path) -> None:
    with (
        serving(Explorer(str(root)), token=f"{TOKEN}-1") as one,
        serving(Explorer(str(root)), token=f"{TOKEN}-2") as two,
    ):
        kept = [
            fetch(f"{server.url}?token={server.guard.token}")[2]["Set-Cookie"].partition(";")[0]
            for server in (one, two)
        ]
        assert kept[0].partition("=")[0] != kept[1].partition("=")[0]
        for server in (one, two):
            assert fetch(f"{server.url}api/tables", Cookie="; ".join(kept))[0] == 200


def test_the_body_of_a_request_is_no_request(server: Server) -> None:
    host = f"Host: localhost:{server.server_address[1]}"
    inner = f"GET /app.js HTTP/1.1\r\n{host}\r\n\r\n"
    for length in (f"Content-Length: {len(inner)}", "Transfer-Encoding: chunked"):
        with socket.create_connection(server.server_address[:2], timeout=20) as line:
            line.sendall(f"GET /icon.svg HTTP/1.1\r\n{host}\r\n{length}\r\n\r\n{inner}".encode())
            assert line.makefile("rb").read().count(b"HTTP/1.1 200") == 1


@pytest.mark.skipif(not socket.has_ipv6, reason="the machine has no IPv6")
def test_it_listens_on_loopback_of_the_sixth_version(root: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("the machine has no loopback address of IPv6")
    with serving(Explorer(str(root)), host="::1") as server:
        assert server.url.startswith("http://[::1]:")
        assert fetch(f"{server.url}api/tables")[0] == 200


def test_values_that_scripts_have_no_numbers_for_are_exact(tmp_path: Path) -> None:
    large = 2**53 + 1
    data = pa.table({"id": [large, 7], "part": ["a", "b"], "inside": [{"id": large}, None], "raw": [b"x", b"y"]})
    table = lp.create_table_from(tmp_path / "t", data, partition_by=["part"])
    start = table.version
    table.append(data)
    with serving(Explorer(table.root)) as server:
        rows = ask(server, "rows", table=".", where=f"id = {large}")["rows"]
        assert [(row["id"], row["inside"]) for row in rows] == [(str(large), {"id": str(large)})] * 2
        found = ask(server, "changes", table=".", **{"from": start, "to": table.version})
    assert {row["id"] for row in found["rows"]} == {str(large), 7}
    assert set(found["columns"]) == set(found["rows"][0])


def test_an_unexpected_error_says_nothing_of_the_inside(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> Any:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setitem(ROUTES, "tables", fail)  # type: ignore[arg-type]
    assert ask(server, "tables", 500)["error"] == "RuntimeError: the log of the server says more"


@pytest.mark.slow
def test_the_root_may_be_a_table_itself_of_any_layout(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.string())])
    data = pa.table({"id": range(4), "region": ["eu", "us", "eu", None]}, schema=schema)
    for layout in ("manifest", "hive"):
        table = lp.create_table(tmp_path / layout, schema, ["region"], layout=layout)
        table.append(data)
        with serving(Explorer(str(tmp_path / layout))) as server:
            assert ask(server, "tables", table=".")["tables"] == ["."]
            assert ask(server, "table", table=".")["rows"] == 4
            names = [each["name"] for each in ask(server, "tree", table=".", spec=1, path="[]")["nodes"]]
            assert sorted(names) == ["NULL", "eu", "us"]
            assert ask(server, "plan", table=".", where="region IS NULL")["kept"] == 1
            assert len(ask(server, "health", table=".")["findings"]) == (layout == "hive")
    with pytest.raises(LanceNamespaceError, match="nowhere"):
        Explorer(str(tmp_path / "nowhere"))
    lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / "plain.lance"))
    with pytest.raises(LanceNamespaceError, match="is a plain Lance table"):
        Explorer(str(tmp_path / "plain.lance"))


@pytest.mark.slow
def test_many_partitions_come_in_bounded_pages(tmp_path: Path) -> None:
    table = many_partitions(tmp_path / "many", 3_000)
    with serving(Explorer(table.root)) as server:
        about = ask(server, "table", table=".")
        assert about["rows"] == table.describe().rows
        page = ask(server, "tree", table=".", spec=1, path="[]", limit=10_000, offset=2_900)
        assert ([each["name"] for each in page["nodes"]][-1], page["total"]) == ("city-0002999", 3_000)
        assert len(ask(server, "tree", table=".", spec=1, path="[]", limit=10_000)["nodes"]) == 500
        found = ask(server, "map", table=".", where="city < 'city-0000100'")
        assert len(found["cells"]) <= 2_400
        assert (sum(each[0] for each in found["cells"]), sum(each[2] for each in found["cells"])) == (3_000, 100)
        assert len(ask(server, "skew", table=".")["bars"]) <= 200


@pytest.mark.slow
def test_no_page_makes_a_value_of_every_leaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = many_partitions(tmp_path / "many", 3_000)
    made: list[int] = []
    whole = leaves.manifest_leaves

    def counted(snapshot: Any, spec: Any, rows: pa.Table, metadata: Any) -> Any:
        made.append(rows.num_rows)
        return whole(snapshot, spec, rows, metadata)

    monkeypatch.setattr(leaves, "manifest_leaves", counted)
    with serving(Explorer(table.root)) as server:
        for path in ("table", "tree", "map", "skew", "indices", "health"):
            ask(server, path, table=".")
        found = ask(server, "plan", table=".", where="city >= 'city-0000100'")
        assert (found["kept"], found["of"], found["specs"][0]["kept"]) == (2_900, 3_000, 2_900)
        page = ask(server, "tree", table=".", spec=1, path="[]", where="city < 'city-0000100'")
        assert sum(each["kept"] for each in page["nodes"]) == 100

    assert sum(made) <= 2 * LOOKED_INTO


def test_sizes_that_the_manifest_does_not_tell_are_measured(root: Path) -> None:
    table = lp.connect(root).table("shop.events")
    told = LeafFrame.of(table)
    parts = [_measured(table, spec).sort_by("object_id") for spec in table.specs]
    for spec, measured in zip(told.specs, parts, strict=True):
        assert spec.leaves.sort_by("object_id").select(measured.schema.names).equals(measured)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("repeat('x', 1000000000)", "repeat(…), whose cost has no bound".encode()),
        ("`repeat`('x', 9)", b"whose cost has no bound"),
        ("'(' || \"repeat\"\u00a0('x', 9)", b"whose cost has no bound"),
        ("repeat/**/('x', 9)", b"has a comment"),
        ("repeat -- a\n('x', 9)", b"has a comment"),
        ("lpad('x', 20000000, 'y')", b"whose cost has no bound"),
        ("$$'$$ || repeat('x', 9) || $$'$$", b"prefix"),
        ("$$x$$", b"no $ outside"),
        ("E'\\'' || repeat('x', 9) || ''", b"unclosed"),
    ],
)
@pytest.mark.parametrize("route", ["rows", "plan", "tree"])
def test_a_filter_without_a_bound_on_its_cost_is_refused(server: Server, call: str, said: bytes, route: str) -> None:
    query = urlencode({"table": "shop.events", "where": f"'x' = {call}"})
    status, body, _ = fetch(f"{server.url}api/{route}?{query}")

    assert status == 400
    assert said.decode() in json.loads(body)["error"]


def test_filters_that_people_type_are_evaluated(server: Server) -> None:
    for where in ("tenant IN ('a', 'b') AND (id > 1 OR NOT (id = 7))", "year(day) >= 2020", "lower(tenant) LIKE 'a%'"):
        assert ask(server, "plan", where=where)["kept"] is not None, where
