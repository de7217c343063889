"""p2: a question, with the shape of the answer first."""

from tasks_env.families.tabular.voices.voice import Voice

P2 = Voice(
    layout=("opening", "columns", "sort", "limit", "joins", "derive", "filters", "aggregate", "closing"),
    mark="",
    separator=" ",
    table_list=("the table called $tables", "the tables called $tables"),
    opening="Could you work out a new table from $tables?",
    joins={
        "inner": "Would you match $source with $table by their common $column, leaving out those "
        "rows of $source that match nothing?",
        "left": "Would you match $source with $table by their common $column, and keep even those "
        "rows of $source that match nothing, leaving what would come from $table empty?",
    },
    derive="Can you also give each row a value $column, namely $formula, to $decimals, with halves "
    "rounded away from zero?",
    operators={
        "plus": "$left with $right added",
        "minus": "$left with $right subtracted",
        "times": "the product of $left and $right",
        "divided_by": "the quotient of $left over $right",
    },
    filters="Which of the rows satisfy that $conditions? Only those matter.",
    conjunction=", and also that ",
    conditions={
        "equals": "$column equals $value",
        "not_equals": "$column differs from $value",
        "at_least": "$column is no less than $value",
        "at_most": "$column is no more than $value",
        "more_than": "$column exceeds $value (equality is not enough)",
        "less_than": "$column stays below $value (equality is not enough)",
        "between": "$column lies from $low up to and including $high (with $low itself allowed)",
        "in": "$column is any of $values",
        "not_in": "$column is something other than $values",
        "starts_with": "$column has $value as its beginning",
        "contains": "$column has $value somewhere in it",
        "is_empty": "$column has no value",
        "is_not_empty": "$column has a value",
    },
    date_conditions={
        "at_least": "$column is no earlier than $value",
        "at_most": "$column is no later than $value",
        "more_than": "$column comes after $value (not on that day)",
        "less_than": "$column comes before $value (not on that day)",
    },
    empty_filtered="(If $columns has no value, the row does not satisfy it.)",
    aggregate="What do you get for every value (or combination of values) of $by that comes up: $measures?",
    measure_joint=", and ",
    measures={
        "count": "how many rows there are (call it $column)",
        "sum": "what $of adds up to (call it $column)",
        "mean": "what $of is on average (call it $column, to $decimals, with halves rounded away from zero)",
        "min": "what the lowest $of is (call it $column)",
        "max": "what the highest $of is (call it $column)",
    },
    empty_measured="(Please pass over missing values of $columns.)",
    sort="In what order? By $keys.",
    tie_break=", and among equals by ",
    sort_keys={
        ("number", "ascending"): "$column going up",
        ("number", "descending"): "$column going down",
        ("text", "ascending"): "$column in alphabetical order",
        ("text", "descending"): "$column in reverse alphabetical order",
        ("date", "ascending"): "$column going forward in time",
        ("date", "descending"): "$column going back in time",
    },
    unsorted="In what order? Just as the rows stand in $source.",
    limit="And how many? Nothing beyond the first $count rows in that order, please.",
    columns="Which columns should I see, from the first to the last? $columns.",
    repeated="(Identical rows may occur and should all be there.)",
    closing="Would you then hand the table in through {tool:submit}, giving its name as {arg:table}?",
)
