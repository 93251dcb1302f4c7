"""The handout to read: a set of HTML pages that needs no network and no script, and one document for the PDF."""

from grader.handout.web.links import PageError
from grader.handout.web.printed import print_document
from grader.handout.web.site import Site, build_site

__all__ = ["PageError", "Site", "build_site", "print_document"]
