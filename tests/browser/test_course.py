"""A course in Chromium: put together from views, walked by a student, and taken away as a file."""

import csv
import re

from pages.frame.bar.share import qr_code
from tests.browser.conftest import Visitor, query


def test_a_teacher_makes_a_course_and_a_student_answers_it(server: str, visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit(f"{server}/temperature?source=a+dog&layer=1&head=1")
    page.get_by_role("button", name="Share", exact=True).click()
    page.get_by_role("tab", name="In a course").click()
    page.get_by_role("button", name="Add to a course").click()
    page.get_by_text("Your course has 1 step").wait_for()
    page.keyboard.press("Escape")
    page.get_by_test_id("stTopNavSection").filter(has_text="Learn").click()
    page.get_by_test_id("stTopNavDropdownLink").filter(has_text="Learn").click()
    page.wait_for_url("**/learn**")
    visitor.settle()
    page.get_by_label("Address of a view").fill(f"{server}/masks?source=a+cat")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("2. Masks").wait_for()
    for label, text in (("What to do there", "Move τ to 5."), ("A question", "Which weight falls?")):
        page.get_by_label(re.compile(label)).first.fill(text)
        page.keyboard.press("Enter")
        visitor.settle()
    link = page.get_by_label("Link to the course").inner_text().strip()

    # Of the teacher, the student has the link alone.
    page.evaluate("localStorage.clear(), sessionStorage.clear()")
    visitor.visit(link)
    page.get_by_role("link", name="Start").click()
    page.wait_for_url("**/temperature**")
    visitor.settle()
    assert {"source": "a dog", "layer": "1", "head": "1"}.items() <= query(visitor).items()
    page.get_by_text("Move τ to 5.").wait_for()
    page.get_by_role("textbox", name="Answer to step 1").fill('=the "largest"')
    page.get_by_role("link", name="Next").click()
    page.wait_for_url("**/masks**")
    visitor.settle()
    page.get_by_role("link", name="All steps and my answers").click()
    page.wait_for_url("**/learn**")
    visitor.settle()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download answers").click()
    with open(saved.value.path(), encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    # A spreadsheet takes no answer for a formula.
    assert [(row["view"], row["question"], row["answer"]) for row in rows] == [
        ("Softmax and temperature", "Which weight falls?", '\'=the "largest"')
    ]


def test_the_link_of_a_course_is_copied_tried_and_scanned_as_any_other_and_its_page_has_its_title(
    server: str, visitor: Visitor
) -> None:
    page = visitor.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.visit(f"{server}/learn?course_title=Two+*looks*")
    page.get_by_text("For teachers").click()
    page.get_by_label("Address of a view").fill(f"{server}/masks?source=a+cat")
    page.get_by_role("button", name="Add", exact=True).click()
    link = page.get_by_label("Link to the course").inner_text().strip()
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == link
    page.get_by_text("Opens the course on a phone.").wait_for()
    with page.expect_download() as code:
        page.get_by_role("button", name="PNG").click()
    assert code.value.path().read_bytes() == qr_code(link)
    with page.context.expect_page() as tab:
        page.get_by_role("link", name="Try it").click()
    tab.value.get_by_role("heading", name="Two *looks*").wait_for()
    assert tab.value.url == link
    assert tab.value.title().startswith("Two *looks*")
    tab.value.close()
    page.context.clear_permissions()
