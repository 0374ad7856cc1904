"""The page on decoding in Chromium: the tree's numbers, clicks and keys, short and long sentences, links."""

import re
from urllib.parse import urlencode

from playwright.sync_api import expect

from model.checkpoints.translator import Translator
from model.generation.beam_tree import BeamTree, beam_tree
from model.network.config import EOS
from tests.browser.conftest import Visitor, query
from viz.tokens import labels

SOURCE = "a dog and a cat"
NODE = ".beam_tree .stage .node[data-node]"


def page(server: str, **query: str) -> str:
    return f"{server}/decoding?{urlencode({'source': SOURCE} | query)}"


def search(translator: Translator, beam_size: int) -> tuple[BeamTree, list[str]]:
    """The tree that the page shows, and the labels of its nodes."""
    tree = beam_tree(translator.model, [*translator.tokenizer.encode(SOURCE), EOS], beam_size)
    return tree, labels(translator.tokenizer.tokens([node.token for node in tree.nodes]))


def node(visitor: Visitor, number: int):
    return visitor.page.locator(f"{NODE}[data-node='{number}']")


def said(visitor: Visitor) -> str:
    return visitor.page.locator(".beam_tree .tip").inner_text()


def number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def test_a_link_shows_the_searchs_own_tree_and_clicks_and_keys_walk_along_it(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    asked = {"part": "Beam", "decoding-beam": "3", "decoding-step": "2"}
    visitor.visit(page(server, **asked))
    tree, names = search(translator, 3)
    node(visitor, 0).wait_for()
    assert visitor.page.locator(NODE).count() == len(tree.nodes)
    assert visitor.page.locator(f"{NODE}.pruned").count() == sum(n.fate == "pruned" for n in tree.nodes)
    for place in (0, 7, tree.ends[0]):
        label = node(visitor, place).get_attribute("aria-label")
        assert label.startswith(f"Step {tree.nodes[place].step}: {names[place]}. ")
        assert f"of the prefix {number(tree.nodes[place].log_probability, 5)}" in label
    order = [tree.ends[i] for i in tree.ranking(0.6)]
    lit = visitor.page.locator(f"{NODE}.winner").evaluate_all("nodes => nodes.map(node => Number(node.dataset.node))")
    assert sorted(lit) == list(tree.path(order[0]))
    assert {key: value for key, value in query(visitor).items() if key in asked} == {
        key: value for key, value in asked.items() if key != "part" or key in query(visitor)
    }
    first, second = [place for place, found in enumerate(tree.nodes) if found.step == 1][:2]
    parent = tree.nodes[first].parent
    node(visitor, second).hover()
    assert said(visitor).startswith(f"Step 1: {names[second]}. ")
    visitor.page.locator(".beam_tree .step", has_text=re.compile("^step 1$")).click()
    visitor.page.wait_for_function("new URLSearchParams(location.search).get('decoding-step') === '1'")
    visitor.settle()
    node(visitor, first).focus()
    visitor.page.keyboard.press("ArrowLeft")
    assert said(visitor).startswith(f"Step 0: {names[parent]}. ")
    visitor.page.keyboard.press("ArrowDown")
    assert said(visitor).startswith(f"Step 0: {names[parent + 1]}. ")
    node(visitor, order[2]).click()
    chosen = visitor.page.get_by_role("combobox", name="back-pointers")
    visitor.page.wait_for_function(
        "box => (box.value + box.closest('[data-testid=stSelectbox]').innerText).includes('3. ')",
        arg=chosen.element_handle(),
    )
    visitor.settle()
    visitor.page.get_by_label("pruned ones").uncheck()
    assert visitor.page.locator(f"{NODE}.pruned").count() == 0


def test_the_tree_of_a_long_sentence_scrolls_to_the_chosen_step(server: str, visitor: Visitor) -> None:
    ends = {"decoding-beam": "8", "decoding-alpha": "2.0"}
    visitor.visit(page(server, source="A dog runs. " * 13, part="Beam", **ends))
    node(visitor, 15).wait_for()
    steps = visitor.page.locator(".beam_tree .step").count()
    slider = visitor.page.get_by_role("slider", name=re.compile("^Step, 0 to"))
    slider.press("End")
    visitor.page.wait_for_function("Number(new URLSearchParams(location.search).get('decoding-step')) > 0")
    visitor.settle()
    step = int(query(visitor)["decoding-step"])
    now = visitor.page.locator(".beam_tree .step.now")
    expect(now).to_have_text(f"step {min(step, steps - 1)}")
    inside = now.evaluate(
        """step => { const [a, b] = [step, step.closest('.stage')].map(node => node.getBoundingClientRect());
            return a.left >= b.left - 1 && a.right <= b.right + 1; }"""
    )
    assert inside
