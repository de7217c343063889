"""The analyze stage without its orchestration: inputs, which are cheap to look at, and outputs, which are not."""
