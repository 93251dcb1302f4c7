"""`python -m grader.handout`."""

from grader.handout.cli import handout

if __name__ == "__main__":
    handout(prog_name="python -m grader.handout")
