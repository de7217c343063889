"""The pool of irrelevant tools, by subject; `distractors.py` draws from it."""
