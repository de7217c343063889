"""How an episode can end; apart from the results schema, so that a look at a study needs no table library."""

INFRA_ERROR = "infra_error"

OUTCOMES = (
    "completed",
    "step_cap",
    "truncated",
    "context_overflow",
    "refused",
    "malformed",
    "no_submission",
    INFRA_ERROR,
)
"""How an episode ended. All but `infra_error` are scored as the verifier says."""
