"""Questions about the run on screen, and which station of which lesson is open."""
