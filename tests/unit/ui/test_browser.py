"""The explorer's page in a real browser: what is shown, by mouse and by keyboard, and that it can be read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lancepart as lp
from lancepart.ui.explorer import Explorer
from lancepart.ui.server import Server
from tests.support.browser import Browser, browser
from tests.support.explored import serving, warehouse
from tests.support.metadata_only import many_partitions
from tests.support.waiting import until

pytestmark = pytest.mark.slow

ENTER, RIGHT, DOWN, LEFT = "\ue007", "\ue014", "\ue015", "\ue012"
PICTURES = Path(__file__).parents[3] / "build" / "ui"
WRONG = "nothing"
VIEWS = ("partitions", "rows", "snapshots", "schema", "indices", "health")
SETTLED = "document.querySelector('[role=tab]') && !document.querySelector('.wait')"
UNNAMED = """return [...document.querySelectorAll('button, input, select, canvas, a')]
  .filter((each) => each.checkVisibility() && !(each.innerText || each.ariaLabel || each.labels?.length))
  .map((each) => each.outerHTML)"""
LEVEL = (
    "return [...document.querySelectorAll('.tree [aria-level=\"2\"]')].map((each) => [each.ariaLabel, each.className])"
)
UNREADABLE = (Path(__file__).parents[2] / "support" / "contrast.js").read_text()


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    with browser() as found:
        found.size(1440, 1100)
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("explored")
    warehouse(root)
    with serving(Explorer(str(root))) as found:
        yield found


def opened(page: Browser, server: Server, view: str, table: str = "shop.events") -> None:
    page.go("about:blank")
    page.go(f"{server.url}#/t/{table}/{view}")
    page.wait(view, SETTLED)


def refuse_noise(page: Browser, server: Server) -> None:
    """No script failed, no policy was violated, and nothing came from elsewhere.

    The browser reports each request that a wrong filter makes fail, some of them late.
    """
    noise = [each for each in page.console() if each["level"] in ("SEVERE", "WARNING")]
    assert [each for each in noise if f"where={WRONG}" not in each["message"]] == []
    loaded = page.run("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert [each for each in loaded if not each.startswith(server.url)] == []


def test_a_filter_lights_up_what_is_kept(page: Browser, server: Server) -> None:
    page.go(server.url)
    page.wait("the first table", f"{SETTLED} && document.querySelector('canvas')")
    assert page.text("h1") == "shop.events"
    assert page.run("return document.querySelector('nav a[aria-current]').innerText") == "events"
    page.type("#where", "tenant = 'birch'")
    page.press(ENTER)
    page.wait("the plan", f"document.querySelector('#kept') && {SETTLED}")
    assert " partitions are read" in page.text("#kept")
    rows = page.run(LEVEL)
    assert {"kept" if "birch" in label else "dropped" for label, _ in rows} == {"kept", "dropped"}
    assert all(("kept" in look) == ("birch" in label) for label, look in rows)
    page.picture(PICTURES / "filter.png")
    page.run(f"const box = document.querySelector('#where'); box.value = '{WRONG} = 1'; box.form.requestSubmit()")
    page.wait("the error", "document.querySelector('.error')")
    assert WRONG in page.text(".error")
    assert "Failed to load resource" in until(page.console)[0]["message"]
    refuse_noise(page, server)


def test_the_tree_and_the_tabs_go_by_keyboard(page: Browser, server: Server) -> None:
    opened(page, server, "partitions")
    page.run("document.querySelector('.tree [tabindex=\"0\"]').focus()")
    page.press(DOWN)
    assert "tenant acme" in page.run("return document.activeElement.ariaLabel")
    page.press(RIGHT)
    page.wait("the months", "document.activeElement.nextElementSibling.childElementCount > 0")
    page.press(RIGHT)
    assert page.run("return document.activeElement.ariaLevel") == "3"
    page.press(LEFT)
    assert "tenant acme" in page.run("return document.activeElement.ariaLabel")
    page.run("document.querySelector('canvas').focus()")
    page.press(RIGHT, RIGHT)
    assert page.text(".legend .one").startswith("tenant=acme / day_month=2")
    page.run("document.querySelector('#tab-partitions').focus()")
    page.press(RIGHT)
    page.wait("the next tab", "document.activeElement.id === 'tab-rows'")
    assert page.run("return document.activeElement.ariaSelected") == "true"
    refuse_noise(page, server)


def test_the_left_key_goes_up_from_any_depth(page: Browser, tmp_path: Path) -> None:
    names = [f"c{level}" for level in range(9)]
    lp.create_table_from(tmp_path / "deep", pa.table({name: [1] for name in names}), partition_by=names)
    with serving(Explorer(str(tmp_path / "deep"))) as server:
        opened(page, server, "partitions", table=".")
        page.run("document.querySelector('.tree [tabindex=\"0\"]').focus()")
        for level in range(2, 11):
            page.press(RIGHT)
            page.wait(
                "the next level",
                "[...document.querySelectorAll('[role=treeitem]')].at(-1).ariaLevel === arguments[0]",
                str(level),
            )
            page.run("[...document.querySelectorAll('[role=treeitem]')].at(-1).focus()")
        page.press(LEFT)
        assert page.run("return document.activeElement.ariaLevel") == "9"


def test_search_neighbours_and_images(page: Browser, server: Server) -> None:
    opened(page, server, "rows")
    page.type("#query", "red fox")
    page.press(ENTER)
    page.wait("matches", "document.querySelector('#view h2')?.innerText === 'Best matches'")
    page.click(".near")
    page.wait("neighbours", "document.querySelector('#view h2')?.innerText.startsWith('Neighbours')")
    assert page.run("return document.querySelector('tbody td').innerText") == "0"
    assert page.run("return document.querySelectorAll('svg.spark path').length") == 10
    opened(page, server, "rows")
    page.wait("an image", "[...document.querySelectorAll('img.thumb')].some((each) => each.naturalWidth === 24)")
    page.picture(PICTURES / "rows.png")
    refuse_noise(page, server)


def test_two_snapshots_are_compared_and_an_old_one_opened(page: Browser, server: Server) -> None:
    opened(page, server, "snapshots")
    page.wait("the newest two", "document.querySelector('#diff')")
    page.run("[...document.querySelectorAll('input[name=from]')].at(-1).click()")
    page.run("[...document.querySelectorAll('button')].find((each) => each.innerText === 'Compare').click()")
    page.wait("the difference", "document.querySelector('#diff')?.innerText.includes('channel added')")
    page.picture(PICTURES / "snapshots.png")
    page.run("[...document.querySelectorAll('tbody a')].at(-2).click()")
    page.wait("the past", f"document.querySelector('.past') && {SETTLED}")
    assert "as it was at snapshot" in page.text(".past")
    refuse_noise(page, server)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_view_has_names_and_contrast(server: Server, dark: bool) -> None:
    with browser(dark=dark) as page:
        page.size(1440, 1100)
        for view in VIEWS:
            opened(page, server, view)
            assert page.run("return matchMedia('(prefers-color-scheme: dark)').matches") is dark
            page.picture(PICTURES / f"{'dark' if dark else 'light'}-{view}.png")
            assert page.run(UNREADABLE) == [], view
            unnamed = page.run(UNNAMED)
            assert unnamed == [], view
            assert page.run("return document.documentElement.scrollWidth <= innerWidth"), view
        refuse_noise(page, server)


def test_a_telephone_shows_everything_without_scrolling_sideways(server: Server) -> None:
    with browser() as page:
        page.phone()
        for view in VIEWS:
            opened(page, server, view)
            page.picture(PICTURES / f"phone-{view}.png")
            assert page.run("return document.documentElement.scrollWidth") == 390, view
            names = page.run("return [...document.querySelectorAll('#tables a')].map((each) => each.innerText)")
            assert names == ["events", "orders"]
            held = page.run(
                "const side = document.querySelector('.side').getBoundingClientRect();"
                "return [...document.querySelectorAll('#tables a')].every("
                "(each) => each.getBoundingClientRect().bottom <= side.bottom)"
            )
            assert held, view
        refuse_noise(page, server)


def test_names_and_values_are_text_whatever_they_hold(page: Browser, tmp_path: Path) -> None:
    attack = '"><img src=x onerror="window.ran=1"><script>window.ran=1</script>'
    large = 2**53 + 1
    data = pa.table(
        {
            "id": [large] * 3,
            "price": [1234567.89] * 3,
            attack: [attack] * 3,
            "part": [attack, "NULL", None],
            "constructor": ["one"] * 3,
            "__proto__": ["two"] * 3,
            "inside": [{attack: attack}] * 3,
            "picture": [b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.ran=1'/>"] * 3,
        }
    )
    db = lp.connect(tmp_path)
    db.create_namespace([attack.replace("/", "")])
    table = db.create_table([attack.replace("/", ""), "v1.0"], data.schema, ["part"])
    table.append(data)
    table.append(data)
    with serving(Explorer(str(tmp_path))) as server:
        page.go("about:blank")
        page.go(server.url)
        page.wait("the table", SETTLED)
        name = page.run("return location.hash.split('/')[2]")
        for view in VIEWS:
            page.run("location.hash = arguments[0]", f"#/t/{name}/{view}")
            page.wait(view, f"document.querySelector('#tab-{view}[aria-selected=true]') && {SETTLED}")
            assert page.run("return document.querySelector('.error')?.innerText ?? null") is None, view
            if view == "rows":
                heads = page.run("return [...document.querySelectorAll('th')].map((each) => each.firstChild.data)")
                assert heads == data.schema.names
                cells = page.run("return [...document.querySelectorAll('tbody td')].map((each) => each.innerText)")
                assert {str(large), "1234567.89", attack, "one", "two"} <= set(cells)
            if view == "snapshots":
                page.run(
                    "[...document.querySelectorAll('button')].find((each) => /changed/.test(each.innerText)).click()"
                )
                page.wait("rows that changed", "document.querySelectorAll('#diff table').length === 2")
                assert str(large) in page.text("#diff")
            assert (
                page.run("return [window.ran ?? null, document.querySelector('#main img, #main script')]") == [None] * 2
            )
        page.go("about:blank")
        page.go(f"{server.url}#/t/%E0%A4%A/constructor")
        page.wait("a table in place of a malformed address", SETTLED)
        refuse_noise(page, server)


def test_a_million_partitions_open_and_are_paged(page: Browser, tmp_path: Path) -> None:
    many_partitions(tmp_path / "many", 1_000_000)
    with serving(Explorer(str(tmp_path / "many"))) as server:
        spent = {}
        for turn in ("first", "again"):
            page.go("about:blank")
            start = time.monotonic()
            page.go(server.url)
            page.wait("the map", f"document.querySelector('canvas') && {SETTLED}", seconds=120)
            spent[turn] = round(time.monotonic() - start, 2)
        assert page.run("return document.querySelectorAll('.tree [role=treeitem]').length") <= 60
        page.click(".more button")
        page.wait("the next page", "document.querySelectorAll('.tree [aria-level=\"2\"]').length === 100")
        page.type("#where", "city = 'city-0777777'")
        page.press(ENTER)
        page.wait("the plan", f"document.querySelector('#kept') && {SETTLED}")
        assert page.text("#kept").startswith("1 of 1,000,000 partitions are read")
        page.picture(PICTURES / "many.png")
        for view in ("indices", "health"):
            start = time.monotonic()
            page.go(f"{server.url}#/t/./{view}")
            page.wait(view, f"document.querySelector('#tab-{view}[aria-selected=true]') && {SETTLED}", seconds=120)
            spent[view] = round(time.monotonic() - start, 2)
        assert "1,000,000 partitions" in page.text("#view")
        sizes = page.run("return performance.getEntriesByType('resource').map((each) => each.encodedBodySize)")
        assert max(sizes) < 1 << 20
        assert spent["again"] < spent["first"]
        print(f"seconds: {spent}")
        refuse_noise(page, server)
