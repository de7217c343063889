"""Does the analysis recover a known truth? Studies drawn from the scripted agents' documented error model."""
