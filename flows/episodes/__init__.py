"""One episode: the scaffold's loop, its transcript, what it may spend and how fast it may ask."""
