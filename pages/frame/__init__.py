"""What stands around every page: menu, sidebar, address, tour, proof strip."""
