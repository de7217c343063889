"""p4: backwards, from the finished table to its sources; a description instead of steps."""

from tasks_env.families.tabular.voices.voice import Voice

P4 = Voice(
    layout=("closing", "columns", "limit", "sort", "aggregate", "filters", "derive", "joins", "opening"),
    mark="* ",
    separator="\n",
    table_list=("$tables, a table that exists already", "$tables, tables that exist already"),
    opening="All of it comes from $tables.",
    joins={
        "inner": "Such a row is a row of $source extended by the row of $table that has the same "
        "$column; rows of $source that no row of $table extends are no part of this.",
        "left": "Such a row is a row of $source extended by the row of $table that has the same $column; "
        "rows of $source that no row of $table extends are part of this too, blank in the columns of $table.",
    },
    derive="In every row, before any selection, $column stands for $formula, given with $decimals "
    "(rounded; an exact half goes away from zero).",
    operators={
        "plus": "$left increased by $right",
        "minus": "$left less $right",
        "times": "$left multiplied by $right",
        "divided_by": "$left over $right",
    },
    filters="Behind it are rows with this property, and no rows without it: $conditions.",
    conjunction="; at the same time ",
    conditions={
        "equals": "$column reads $value",
        "not_equals": "$column reads otherwise than $value",
        "at_least": "$column is $value or greater",
        "at_most": "$column is $value or smaller",
        "more_than": "$column is greater than, and not equal to, $value",
        "less_than": "$column is smaller than, and not equal to, $value",
        "between": "$column is in the range $low to $high, ends included",
        "in": "$column reads one of these: $values",
        "not_in": "$column reads none of these: $values",
        "starts_with": "the first letters of $column are $value",
        "contains": "$value is a part of $column",
        "is_empty": "$column is blank",
        "is_not_empty": "$column is filled in",
    },
    date_conditions={
        "at_least": "$column is the day $value or a later one",
        "at_most": "$column is the day $value or an earlier one",
        "more_than": "$column is a day after, and not on, $value",
        "less_than": "$column is a day before, and not on, $value",
    },
    empty_filtered="A blank $columns does not have the property.",
    aggregate="One row describes all underlying rows that share their $by. In it, $measures.",
    measure_joint="; ",
    measures={
        "count": "$column counts these underlying rows",
        "sum": "$column adds up their $of",
        "mean": "$column averages their $of, given with $decimals (rounded; an exact half goes away from zero)",
        "min": "$column is the least $of among them",
        "max": "$column is the greatest $of among them",
    },
    empty_measured="Blanks in $columns play no role in that.",
    sort="The order of its rows follows $keys.",
    tie_break="; at a tie it follows ",
    sort_keys={
        ("number", "ascending"): "$column from low to high",
        ("number", "descending"): "$column from high to low",
        ("text", "ascending"): "$column as in a dictionary",
        ("text", "descending"): "$column as in a dictionary read backwards",
        ("date", "ascending"): "$column from the oldest to the newest",
        ("date", "descending"): "$column from the newest to the oldest",
    },
    unsorted="The order of its rows is the order that they have in $source.",
    limit="It stops after $count rows: whatever would come later in the order below is cut off.",
    columns="From left to right it has the columns $columns, and only these.",
    repeated="It may contain the same row more than once; nothing is merged.",
    closing="Hand in one new table with {tool:submit} (put its name into {arg:table}). What it looks "
    "like, from the finished table back to its sources:",
)
