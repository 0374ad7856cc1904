"""Learn: ten lessons on real runs, from recurrence to today's models."""

from pages.frame.course import show_overview
from pages.frame.course_builder import compose, offer_changes
from pages.frame.learn import show_foot, show_lessons, show_station
from pages.frame.open_page import open_page
from pages.frame.stations import current_station

run = open_page(__file__)
found = current_station()
if found:
    show_station(run, *found)
elif show_overview():
    offer_changes()
else:
    show_lessons()
    compose()
show_foot(run)
