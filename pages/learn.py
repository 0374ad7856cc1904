"""Learn: lessons on real runs, from a dot product to what is asked in interviews."""

from pages.frame.beside.course_builder import compose, offer_changes
from pages.frame.beside.learn import present_lessons, present_station, show_foot, show_lessons, show_station
from pages.frame.course.course import show_overview
from pages.frame.open_page import open_page
from pages.frame.questions.opened_station import current_station
from pages.widgets.controls import link_token
from pages.widgets.present import presents

run = open_page(__file__)
found = current_station()
if presents():
    present_station(run, *found) if found else present_lessons()
else:
    if found:
        show_station(run, *found)
    elif show_overview():
        offer_changes()
    else:
        show_lessons()
        compose()
    show_foot(run)
    link_token()
