"""Learn: ten lessons on real runs, from recurrence to today's models."""

from model.analysis.view_arrays import head_arrays
from pages.frame.course import show_overview
from pages.frame.open_page import open_page
from pages.frame.stations import current_station
from pages.parts.course import compose, offer_changes
from pages.parts.learn import show_lessons, show_station
from pages.widgets.export import export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call

view = open_page(__file__)
found = current_station()
if found:
    show_station(view, *found)
elif show_overview():
    offer_changes()
else:
    show_lessons()
    compose()
export(view, f"learn-{view.place.slug}", Call(head_arrays, view.attention, view.head, ("scaled", "mask", "pattern")))
proof_strip(view)
