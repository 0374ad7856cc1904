"""What is chosen goes along from page to page, into the address, and back."""

from urllib.parse import quote

import pytest

from tests.browser.conftest import Visitor, heading_of, query, wait_for_query, wait_for_query_to_have

CHOSEN = {"source": "A dog & a cat.", "layer": "1", "head": "2", "tau": "2"}
OFF = '[["HeadGate",{"gate":0.0,"kind":"encoder_self","layer":1,"head":2}]]'


def follow(visitor: Visitor, link: str, title: str) -> None:
    visitor.page.get_by_test_id("stPageLink").get_by_text(link, exact=True).click()
    arrive(visitor, title)


def arrive(visitor: Visitor, title: str) -> None:
    visitor.page.get_by_role("heading", name=heading_of(title)).wait_for()
    visitor.settle()


def test_from_a_head_to_its_steps_and_to_the_model_without_it_and_back(server: str, visitor: Visitor) -> None:
    visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.visit(f"{server}/heads_and_layers?layer=1&head=2&tau=2")
    follow(visitor, "This head, step by step", "Queries, keys and values")
    for step in "23":
        visitor.page.get_by_role("button", name="Next").click()
        wait_for_query_to_have(visitor, step=step)
    sentence = visitor.page.get_by_role("textbox", name="Source sentence")
    sentence.fill(CHOSEN["source"])
    sentence.press("Enter")
    wait_for_query(visitor, CHOSEN | {"step": "3"})
    # Back undoes a step; what was typed stays.
    visitor.page.go_back()
    wait_for_query(visitor, CHOSEN | {"step": "2"})
    assert visitor.page.get_by_role("slider", name="Step").input_value() == "2"
    assert sentence.input_value() == CHOSEN["source"]
    follow(visitor, "What if this head were off?", "What if")
    wait_for_query(visitor, CHOSEN | {"changes": OFF})
    visitor.page.get_by_text("1. In encoder self-attention, layer 1, head 2, z is set to 0.").wait_for()
    visitor.page.go_back()
    arrive(visitor, "Queries, keys and values")
    wait_for_query(visitor, CHOSEN | {"step": "2"})
    visitor.page.go_back()
    wait_for_query(visitor, CHOSEN)
    visitor.page.get_by_role("heading", name=heading_of("Queries, keys and values")).wait_for()
    visitor.page.go_back()
    arrive(visitor, "Heads and layers")
    wait_for_query(visitor, CHOSEN)
    visitor.page.go_forward()
    arrive(visitor, "Queries, keys and values")
    wait_for_query(visitor, CHOSEN)
    visitor.page.get_by_role("button", name="Share", exact=True).click()
    visitor.page.get_by_role("button", name="Copy link").click()
    visitor.page.get_by_role("button", name="Copied").wait_for()
    assert visitor.page.evaluate("navigator.clipboard.readText()") == visitor.page.url


def test_on_the_way_to_another_page_the_address_stays_and_a_sentence_that_is_being_typed_goes_along(
    server: str, visitor: Visitor
) -> None:
    """What the next page writes into the address before its path is there is not left on the page before."""
    visitor.visit(f"{server}/masks?layer=1")
    # The run that Back asks for draws the field, and what was typed before would be replaced.
    with visitor.rerun():
        left = visitor.page.evaluate(
            """() => {
              const link = document.body.appendChild(document.createElement("a"));
              link.click();
              history.pushState({}, "", "?changes=of+the+next+page");
              history.pushState({}, "", "/what_if?changes=of+the+next+page");
              return new Promise((arrived) => {
                addEventListener("popstate", () => arrived(location.pathname + location.search), { once: true });
                history.back();
              });
            }"""
        )
    assert left == "/masks?layer=1"
    visitor.page.get_by_role("textbox", name="Source sentence").fill("A cat sleeps.")
    follow(visitor, "Mask or unmask single cells and rerun the model", "What if")
    visitor.page.wait_for_url(f"{server}/what_if?*")
    wait_for_query_to_have(visitor, source="A cat sleeps.", layer="1")
    visitor.page.go_back()
    arrive(visitor, "Masks")
    wait_for_query(visitor, {"source": "A cat sleeps.", "layer": "1"})


def test_a_card_opens_its_page_with_the_sentence_that_is_being_typed_and_with_a_key_in_a_window_of_its_own(
    server: str, visitor: Visitor
) -> None:
    visitor.visit(server)
    page, sentence = visitor.page, visitor.page.get_by_role("textbox", name="Source sentence")
    card = page.locator(".cards a[data-page=positional_encoding]")
    card.scroll_into_view_if_needed()
    sentence.fill(CHOSEN["source"])
    card.click()
    arrive(visitor, "Positions")
    wait_for_query(visitor, {"source": CHOSEN["source"]})
    page.go_back()
    arrive(visitor, "Translate")
    with page.context.expect_page() as opened:
        card.click(modifiers=["ControlOrMeta"])
    assert opened.value.url.endswith("/positional_encoding")
    opened.value.close()
    assert card.is_visible(), "the page that was open stays"


def test_back_returns_to_the_tab_before(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/masks")
    for title in ("Padding", "Lift the causal mask"):
        visitor.page.get_by_role("tab", name=title).click()
        wait_for_query(visitor, {"part": title})
    visitor.page.go_back()
    visitor.page.get_by_role("tab", name="Padding", selected=True).wait_for()
    wait_for_query(visitor, {"part": "Padding"})


@pytest.mark.parametrize("link", ["[data-testid=stPageLink-NavLink]", "[data-testid=stTopNavDropdownLink]"])
def test_a_link_that_takes_the_focus_from_a_field_and_is_followed_at_once_opens_its_page(
    server: str, visitor: Visitor, link: str
) -> None:
    """On a phone a tap is all of this in one moment, before any timer; a busy browser makes it so for a mouse."""
    visitor.visit(f"{server}/masks?layer=1")
    visitor.page.get_by_test_id("stTopNavSection").first.click()
    visitor.page.get_by_role("textbox", name="Source sentence").focus()
    visitor.page.evaluate(
        """link => {
          document.execCommand("insertText", false, "A cat sleeps.");
          document.activeElement.blur();
          document.querySelector(link).click();
        }""",
        link,
    )
    visitor.page.wait_for_function("!location.pathname.endsWith('/masks')")
    visitor.settle()
    assert not visitor.page.url.split("?")[0].endswith("/masks")
    assert "A cat sleeps." in visitor.page.get_by_role("textbox", name="Source sentence").input_value()


LATE_WRITE = """address => {
  const write = history.replaceState;
  history.replaceState = (...args) => {
    history.replaceState = write;
    history.replaceState(...args);
    setTimeout(() => history.pushState({}, "", address));
  };
}"""
"""After the next choice, the address that an earlier run had begun with, as its last messages write it."""


def test_what_was_typed_stays_in_the_address_although_an_earlier_run_writes_its_own(
    server: str, visitor: Visitor
) -> None:
    visitor.visit(f"{server}/masks?source=a+dog&head=1")
    visitor.page.evaluate(LATE_WRITE, visitor.page.url)
    box = visitor.page.get_by_role("textbox", name="Source sentence")
    with visitor.rerun():
        box.fill("a cat")
        box.press("Control+Enter")
    assert query(visitor) == {"source": "a cat", "head": "1"}


def test_a_reset_takes_back_what_was_chosen_on_every_page(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/what_if?layer=1&changes={quote(OFF)}")
    visitor.page.get_by_text("1. In encoder self-attention, layer 1, head 2").wait_for()
    follow(visitor, "This head, step by step", "Queries, keys and values")
    visitor.page.get_by_role("button", name="Next").click()
    wait_for_query_to_have(visitor, step="2")
    visitor.page.get_by_test_id("stSidebar").get_by_role("button", name="Reset").click()
    visitor.page.wait_for_function("location.search === ''")
    visitor.settle()
    assert visitor.page.get_by_role("slider", name="Step").input_value() == "1"
    follow(visitor, "This head among all others", "Heads and layers")
    visitor.page.go_back()
    arrive(visitor, "Queries, keys and values")
    wait_for_query(visitor, {})


def test_shift_and_an_arrow_choose_layer_and_head_but_not_while_somebody_types(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/masks")
    visitor.page.get_by_role("textbox", name="Source sentence").press("Shift+ArrowDown")
    visitor.page.get_by_role("heading", name=heading_of("Masks")).click()
    visitor.page.keyboard.press("Shift+ArrowUp")
    for key in ("Shift+ArrowDown", "Shift+ArrowRight", "Shift+ArrowRight"):
        visitor.page.keyboard.press(key)
    wait_for_query(visitor, {"layer": "1", "head": "2"})
    visitor.page.get_by_test_id("stSidebar").get_by_role("radio", name="Cross").click()
    wait_for_query(visitor, {"kind": "Cross", "layer": "1", "head": "2"})
    assert visitor.page.locator("[data-testid=stTopNavSection][data-current]").inner_text() == "Attention"
    assert visitor.page.get_by_role("slider", name="Head").get_attribute("aria-valuetext") == "2"


@pytest.mark.parametrize("page", ["continue_text", "fill_in"])
def test_the_first_head_of_a_model_of_one_text_is_in_no_link_and_the_first_layer_is(
    page: str, shipped_server: str, visitor: Visitor
) -> None:
    """What the sidebar begins with follows from the model; a link names what somebody chose."""
    visitor.visit(f"{shipped_server}/{page}")

    sidebar = visitor.page.get_by_test_id("stSidebar")

    def place() -> list[str]:
        sliders = (sidebar.get_by_role("slider", name=name) for name in ("Layer", "Head"))
        return [slider.get_attribute("aria-valuetext") for slider in sliders]

    begins = place()
    assert begins != ["0", "0"]
    assert not {"layer", "head"} & query(visitor).keys()
    with visitor.rerun():
        sidebar.get_by_role("slider", name="Layer").press("Home")
    visitor.page.wait_for_url("**layer=0**")
    visitor.visit(visitor.page.url)
    assert place() == ["0", begins[1]]
    with visitor.rerun():
        sidebar.get_by_role("button", name="Reset").click()
    visitor.visit(f"{shipped_server}/{page}")
    assert place() == begins
