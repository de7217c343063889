"""The stability study: flows (verbs) over manifest, grid, models, episodes, store, statistics and reports (nouns)."""
