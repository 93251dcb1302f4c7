"""`make mistakes`: each classic mistake as a submission, and the first line that its student reads."""
