"""What the tests of the product share."""

pytest_plugins = ["pytester"]
