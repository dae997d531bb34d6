"""The tests: a package of its own, because others install one of that name too."""
