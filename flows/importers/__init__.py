"""Results of other harnesses in this study's results schema, so that every analysis that they allow can run."""
