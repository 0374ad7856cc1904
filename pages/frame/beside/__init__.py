"""What some pages have beside their views, because it moves from page to page or opens another run."""
