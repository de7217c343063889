"""Episodes as pages for people: markdown and HTML, verdicts, differences of states, samples for an audit."""
