"""p3: formal and verbose, in paragraphs."""

from tasks_env.families.tabular.voices.voice import Voice

P3 = Voice(
    layout=("opening", "joins", "derive", "filters", "aggregate", "sort", "limit", "columns", "closing"),
    mark="",
    separator="\n\n",
    table_list=(
        "the data held in the table by the name of $tables",
        "the data held in the tables by the names of $tables",
    ),
    opening="You are requested to prepare a report in the form of a single new table, drawn up from "
    "$tables. The provisions below apply in the order in which they are given.",
    joins={
        "inner": "Each row of $source shall be supplemented with the columns of $table, the two being "
        "related through the column $column. A row of $source for which $table has no counterpart is to be "
        "disregarded.",
        "left": "Each row of $source shall be supplemented with the columns of $table, "
        "the two being related through the column $column. A row of $source for which $table has no "
        "counterpart is nevertheless to be retained, the supplementary columns being left empty.",
    },
    derive="A further column, to be named $column, shall state $formula. Its values are to be rounded to "
    "$decimals, and a value halfway between two candidates is to be rounded away from zero.",
    operators={
        "plus": "the sum of the row's $left and its $right",
        "minus": "the row's $left diminished by its $right",
        "times": "the row's $left multiplied by its $right",
        "divided_by": "the row's $left as divided by its $right",
    },
    filters="The report shall take into account solely those rows in which $conditions.",
    conjunction=", and in which furthermore ",
    conditions={
        "equals": "the value of $column is identical to $value",
        "not_equals": "the value of $column is anything except $value",
        "at_least": "the value of $column is greater than or equal to $value",
        "at_most": "the value of $column is less than or equal to $value",
        "more_than": "the value of $column is strictly greater than $value",
        "less_than": "the value of $column is strictly less than $value",
        "between": "the value of $column is neither less than $low nor greater than $high",
        "in": "the value of $column appears in the list $values",
        "not_in": "the value of $column does not appear in the list $values",
        "starts_with": "the value of $column opens with the characters $value",
        "contains": "the characters $value occur within the value of $column",
        "is_empty": "no value has been entered for $column",
        "is_not_empty": "some value has been entered for $column",
    },
    date_conditions={
        "at_least": "the date $column falls on or after $value",
        "at_most": "the date $column falls on or before $value",
        "more_than": "the date $column falls strictly after $value",
        "less_than": "the date $column falls strictly before $value",
        "between": "the date $column falls neither before $low nor after $high",
    },
    empty_filtered="A row in which no value has been entered for $columns is not to be taken into account.",
    aggregate="The rows thus obtained shall be condensed to one row for each distinct value, or "
    "combination of values, of $by, accompanied by the following figures: $measures.",
    measure_joint="; furthermore ",
    measures={
        "count": "under the heading $column, the number of rows so condensed",
        "sum": "under the heading $column, the total of the values of $of",
        "mean": "under the heading $column, the arithmetic mean of the values of $of, rounded to $decimals, "
        "a value halfway between two candidates being rounded away from zero",
        "min": "under the heading $column, the minimum of the values of $of",
        "max": "under the heading $column, the maximum of the values of $of",
    },
    empty_measured="In these figures, missing values of $columns are to be passed over.",
    sort="The rows of the report shall be arranged according to $keys.",
    tie_break=", rows that agree in this respect being arranged according to ",
    sort_keys={
        ("number", "ascending"): "$column in increasing magnitude",
        ("number", "descending"): "$column in decreasing magnitude",
        ("text", "ascending"): "$column in the order of the alphabet",
        ("text", "descending"): "$column in the reverse order of the alphabet",
        ("date", "ascending"): "$column in chronological order",
        ("date", "descending"): "$column in reverse chronological order",
    },
    unsorted="The rows of the report shall appear in the same sequence as in $source.",
    limit="Of the rows so arranged, no more than the first $count are to be retained.",
    columns="The report shall consist of the following columns and no others, in the sequence stated: $columns.",
    repeated="Should several of its rows be identical, all of them are to be retained.",
    closing="As soon as the table is ready, kindly hand it in by means of the tool {tool:submit}, stating "
    "the name of the table in the argument {arg:table}.",
)
