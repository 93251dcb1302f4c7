"""Sample submissions, as a class would hand them in: small edits of the reference, written out by `make samples`."""
