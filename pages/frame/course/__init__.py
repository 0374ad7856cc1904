"""A teacher's course: one link with views, tasks and questions."""
