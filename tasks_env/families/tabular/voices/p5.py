"""p5: a note from a colleague, informal, the wish before the details."""

from tasks_env.families.tabular.voices.voice import Voice

P5 = Voice(
    layout=("opening", "columns", "joins", "derive", "filters", "aggregate", "sort", "limit", "closing"),
    mark="",
    separator=" ",
    table_list=("$tables (one table, you'll see it)", "$tables (you'll see them)"),
    opening="Hi! I need a new table made out of $tables.",
    joins={
        "inner": "Please look up each $source row in $table via $column and throw away the $source rows you "
        "can't find there.",
        "left": "Please look up each $source row in $table via $column, but hang on to the $source rows you "
        "can't find there (they just get nothing in the $table columns).",
    },
    derive="I also want $column in every row: take $formula and round to $decimals, halves go away from zero.",
    operators={
        "plus": "$left and add $right",
        "minus": "$left and take off $right",
        "times": "$left and multiply it by $right",
        "divided_by": "$left and divide it by $right",
    },
    filters="I only care about rows like this: $conditions.",
    conjunction=", plus ",
    conditions={
        "equals": "$column says $value",
        "not_equals": "$column doesn't say $value",
        "at_least": "$column at $value or above",
        "at_most": "$column at $value or under",
        "more_than": "$column above $value, not right at it",
        "less_than": "$column under $value, not right at it",
        "between": "$column anywhere from $low through $high, those two count as well",
        "in": "$column says any of $values",
        "not_in": "$column doesn't say any of $values",
        "starts_with": "$column begins with $value",
        "contains": "$column has $value in it",
        "is_empty": "$column is left blank",
        "is_not_empty": "$column isn't left blank",
    },
    date_conditions={
        "at_least": "$column from $value on, that day counts",
        "at_most": "$column up to $value, that day counts",
        "more_than": "$column after $value, that day doesn't count",
        "less_than": "$column before $value, that day doesn't count",
    },
    empty_filtered="If $columns is blank, skip the row.",
    aggregate="Then boil those down to one line per $by, with $measures.",
    measure_joint=" and ",
    measures={
        "count": "how many rows went in as $column",
        "sum": "all the $of together as $column",
        "mean": "the average $of as $column (round to $decimals, halves go away from zero)",
        "min": "the lowest $of as $column",
        "max": "the highest $of as $column",
    },
    empty_measured="Don't let blanks in $columns count for anything.",
    sort="Put it in order by $keys.",
    tie_break=", and if that's a draw, by ",
    sort_keys={
        ("number", "ascending"): "$column (little ones on top)",
        ("number", "descending"): "$column (big ones on top)",
        ("text", "ascending"): "$column (A on top)",
        ("text", "descending"): "$column (Z on top)",
        ("date", "ascending"): "$column (oldest on top)",
        ("date", "descending"): "$column (newest on top)",
    },
    unsorted="Don't move the rows around, $source has them in the order I want.",
    limit="Once it's in order, the top $count rows will do, drop the rest.",
    columns="Give me just these columns, in this order: $columns.",
    repeated="If some rows come out the same, leave them all in.",
    closing="When you're done, send me its name with {tool:submit}, as {arg:table}. Thanks!",
)
