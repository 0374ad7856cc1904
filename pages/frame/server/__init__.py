"""The process: its command line, its routes and files, and the HTML page that it sends."""
