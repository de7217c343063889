"""The instruction in six wordings, written by hand: a neutral one and five paraphrases.

Each wording has a frame, a sentence per kind of question, and a sentence per form of answer. All of them
carry every part of the spec: scene, rows, conditions with values and bounds, columns, rank, the form of the
answer, and what happens to missing values.

Slots: `row`, `rows` the base table's rows; `where` the conditions; `column` what is asked for; `measure` what ranks;
`rank` highest, earliest and so on; `entities`, `relation` the rows that may not be referred to; `a_row`,
`Entities` the same with an article or a capital.
"""

from __future__ import annotations

from dataclasses import dataclass

from tasks_env.families.query.params import QuestionKind
from tasks_env.families.query.question import Direction
from tasks_env.families.query.wording import Voice


@dataclass(frozen=True)
class Phrasing:
    """One wording. `forms` has a sentence for `whole`, `decimals`, `text`, `date`, `list`, `pair_whole` and
    `pair_decimals`."""

    voice: Voice
    frame: str
    conjunction: str
    ranks: dict[Direction, str]
    asks: dict[QuestionKind, str]
    count_measure: str
    total_measure: str
    forms: dict[str, str]
    orders: tuple[str, str]
    missing: str


_BASE = Phrasing(
    voice="plain",
    frame=(
        "A SQLite database holds the records of {scene}. Answer this question from it:\n\n"
        "{ask}\n\n"
        "{missing}Answer format: {form}\n\n"
        "Use {{tool:list_tables}}, {{tool:describe_table}} and {{tool:run_query}} to find the answer, then call"
        " {{tool:submit}} with it as {{arg:answer}}."
    ),
    conjunction=" and ",
    ranks={"highest": "highest", "lowest": "lowest", "latest": "latest", "earliest": "earliest"},
    asks={
        "count": "How many {rows} are there where {where}?",
        "distinct": "How many different values of the {column} occur among the {rows} where {where}?",
        "sum": "What is the total of the {column} over all {rows} where {where}?",
        "average": "What is the average of the {column} over all {rows} where {where}?",
        "date": "What is the {rank} value of the {column} among the {rows} where {where}?",
        "lookup": "For the only {row} where {where}, what is the {column}?",
        "extreme": "Consider the {rows} where {where}. For the {row} with the {rank} {measure}, what is the {column}?",
        "list": "Which different values of the {column} occur among the {rows} where {where}?",
        "top": (
            "Group the {rows} where {where} by the {column}. Which value of the {column} has the {rank} {measure}, and"
            " how much is it? Groups without any such {row} are left out."
        ),
        "absent": (
            "How many {entities} are not the {relation} of even one {row} where {where}? Include {entities}"
            " without any {row}."
        ),
    },
    count_measure="number of {rows}",
    total_measure="total {measure}",
    forms={
        "whole": "one whole number in digits, nothing else.",
        "decimals": "one number rounded to {decimals} decimals, with a decimal point, nothing else.",
        "text": "the value alone, spelled as in the database, without quotes.",
        "date": "one date as YYYY-MM-DD, nothing else.",
        "list": (
            "the values, each once, spelled as in the database, in alphabetical order {order}, separated by"
            " semicolons (;)."
        ),
        "pair_whole": (
            "the {column} spelled as in the database, a semicolon (;), and the {measure} as a whole number in digits."
        ),
        "pair_decimals": (
            "the {column} spelled as in the database, a semicolon (;), and the {measure} rounded to {decimals}"
            " decimals, with a decimal point."
        ),
    },
    orders=("(A to Z)", "reversed (Z to A)"),
    missing="Leave out every {row} for which anything that the question mentions is missing (NULL).\n\n",
)

_P1 = Phrasing(
    voice="formal",
    frame=(
        "Call {{tool:submit}} with one {{arg:answer}}, worked out from the SQLite database of {scene}.\n\n"
        "{ask} {missing}Write {form}\n\n"
        "The database can be explored with {{tool:list_tables}} and {{tool:describe_table}} and read with"
        " {{tool:run_query}}."
    ),
    conjunction=" and ",
    ranks={"highest": "largest", "lowest": "smallest", "latest": "latest", "earliest": "earliest"},
    asks={
        "count": "Count the {rows} for which {where}.",
        "distinct": "Take the {rows} for which {where}, and count the distinct values of the {column}.",
        "sum": "Add up the {column} of every one of the {rows} for which {where}.",
        "average": "Compute the mean of the {column} of the {rows} for which {where}.",
        "date": "Find the {rank} {column} of the {rows} for which {where}.",
        "lookup": "Find the one {row} for which {where}, and report the {column}.",
        "extreme": (
            "Take the {rows} for which {where}, pick the {row} whose {measure} is the {rank}, and report the {column}"
            " of that {row}."
        ),
        "list": "Take the {rows} for which {where}, and list the distinct values of the {column}.",
        "top": (
            "Take the {rows} for which {where}, put together those with the same {column}, find the group with the"
            " {rank} {measure}, and report the {column} that its {rows} share, along with that figure. Values that"
            " occur in none of these {rows} are not considered."
        ),
        "absent": (
            "Count the {entities} that do not occur as the {relation} in any {row} for which {where}; {entities}"
            " that no {row} refers to are included."
        ),
    },
    count_measure="number of {rows}",
    total_measure="sum of the {measure}",
    forms={
        "whole": "the answer as a whole number in digits and add nothing.",
        "decimals": "the answer as a number rounded to {decimals} decimals, with a decimal point, and add nothing.",
        "text": "only the value, with the database's spelling and no quotes.",
        "date": "the answer as a date of the form YYYY-MM-DD and add nothing.",
        "list": (
            "each value once, with the database's spelling, sorted alphabetically {order}, with a semicolon (;)"
            " between values."
        ),
        "pair_whole": (
            "the {column} with the database's spelling, then a semicolon (;), then the {measure} as a whole number"
            " in digits."
        ),
        "pair_decimals": (
            "the {column} with the database's spelling, then a semicolon (;), then the {measure} rounded to"
            " {decimals} decimals with a decimal point."
        ),
    },
    orders=("from A to Z", "from Z to A"),
    missing="Disregard any {row} that has NULL in anything named here. ",
)

_P2 = Phrasing(
    voice="plain",
    frame=(
        "Here is how to answer: {form} {missing}Hand the answer in as {{arg:answer}} of {{tool:submit}}.\n\n"
        "The data are those of {scene}, in a SQLite database: {{tool:list_tables}} names its tables,"
        " {{tool:describe_table}} shows their columns, and {{tool:run_query}} runs a SELECT statement.\n\n"
        "Now the question. {ask}"
    ),
    conjunction=", and ",
    ranks={"highest": "greatest", "lowest": "least", "latest": "most recent", "earliest": "earliest"},
    asks={
        "count": "Of all {rows}, how many are such that {where}?",
        "distinct": "Looking only at {rows} such that {where}, how many different values does the {column} take?",
        "sum": "Looking only at {rows} such that {where}, what does the {column} add up to?",
        "average": "Looking only at {rows} such that {where}, what is the {column} on average?",
        "date": "Looking only at {rows} such that {where}, what is the {rank} value of the {column}?",
        "lookup": "There is exactly one {row} such that {where}. For that {row}, what is the {column}?",
        "extreme": (
            "Looking only at {rows} such that {where}, one {row} has the {rank} {measure}. For that {row}, what is"
            " the {column}?"
        ),
        "list": "Looking only at {rows} such that {where}, what are the different values of the {column}?",
        "top": (
            "Looking only at {rows} such that {where}, and comparing the values of the {column} with one another,"
            " which value comes out with the {rank} {measure}, and what is that figure? (A value without any of"
            " these {rows} is out of the running.)"
        ),
        "absent": (
            "Looking only at {rows} such that {where}, how many of all the {entities} never appear as the"
            " {relation}? ({Entities} with no {row} whatsoever belong to the count.)"
        ),
    },
    count_measure="number of {rows}",
    total_measure="total of the {measure}",
    forms={
        "whole": "just a whole number, in digits.",
        "decimals": "just a number, rounded to {decimals} decimals and written with a decimal point.",
        "text": "just the value, without quotes, as the database spells it.",
        "date": "just a date, written YYYY-MM-DD.",
        "list": (
            "the values as the database spells them, none twice, alphabetically {order}, and semicolons (;)"
            " between them."
        ),
        "pair_whole": (
            "first the {column} as the database spells it, second the {measure} as a whole number in digits, and a"
            " semicolon (;) between the two."
        ),
        "pair_decimals": (
            "first the {column} as the database spells it, second the {measure} rounded to {decimals} decimals and"
            " written with a decimal point, and a semicolon (;) between the two."
        ),
    },
    orders=("from A to Z", "backwards from Z to A"),
    missing="Skip each {row} where something that the question names has no value (NULL). ",
)

_P3 = Phrasing(
    voice="terse",
    frame=(
        "SQLite, {scene}. Tools: {{tool:list_tables}}, {{tool:describe_table}}, {{tool:run_query}}.\n"
        "Rows: {rows}\n"
        "Conditions: {where}\n"
        "Wanted: {ask}\n"
        "{missing}Output: {form}\n"
        "Finish: {{tool:submit}}, {{arg:answer}} = output."
    ),
    conjunction=" AND ",
    ranks={"highest": "maximum", "lowest": "minimum", "latest": "latest", "earliest": "earliest"},
    asks={
        "count": "number of rows",
        "distinct": "number of distinct {column}",
        "sum": "sum of {column}",
        "average": "mean of {column}",
        "date": "{rank} {column}",
        "lookup": "{column} (one matching row)",
        "extreme": "{column} of the row with {rank} {measure}",
        "list": "distinct {column}",
        "top": "grouped by {column}: {column} with {rank} {measure}, and that figure; groups without rows ignored",
        "absent": "number of {entities} that are {relation} of none of the rows; {entities} without {rows} included",
    },
    count_measure="number of rows",
    total_measure="sum of {measure}",
    forms={
        "whole": "whole number, digits only",
        "decimals": "number, rounded to {decimals} decimals, decimal point",
        "text": "value only, database spelling, no quotes",
        "date": "YYYY-MM-DD only",
        "list": "database spelling, no repeats, alphabetical {order}, separator semicolon (;)",
        "pair_whole": "{column} (database spelling), semicolon (;), {measure} (whole number, digits)",
        "pair_decimals": (
            "{column} (database spelling), semicolon (;), {measure} (rounded to {decimals} decimals, decimal point)"
        ),
    },
    orders=("A to Z", "Z to A"),
    missing="Rows with NULL in anything mentioned: ignore\n",
)

_P4 = Phrasing(
    voice="plain",
    frame=(
        "Hello! I am preparing a short report about {scene} and need one fact from our SQLite database. Could you"
        " look it up for me? {ask}\n\n"
        "{missing}I will paste what you give me straight into the report, so please stick to this form: {form}\n\n"
        "If you do not know the database yet, {{tool:list_tables}} tells you which tables there are and"
        " {{tool:describe_table}} what is in each of them; {{tool:run_query}} takes any SELECT statement. Once you"
        " are sure, pass the result to {{tool:submit}} as its {{arg:answer}}. Many thanks!"
    ),
    conjunction=" and also ",
    ranks={"highest": "highest", "lowest": "lowest", "latest": "last", "earliest": "first"},
    asks={
        "count": "I would like to know how many {rows} we have where {where}.",
        "distinct": (
            "I would like to know how many different values of the {column} turn up in the {rows} where {where}."
        ),
        "sum": "I would like to know what the {column} comes to in total for the {rows} where {where}.",
        "average": "I would like to know the average {column} for the {rows} where {where}.",
        "date": (
            "I would like to know which value of the {column} comes {rank} (in the order of the calendar) for the"
            " {rows} where {where}."
        ),
        "lookup": "We have a single {row} where {where}, and for that one I would like to know the {column}.",
        "extreme": (
            "I am thinking of the {rows} where {where}: one {row} among them has the {rank} {measure} of all, and"
            " for that one I would like to know the {column}."
        ),
        "list": "I would like to know which different values of the {column} turn up in the {rows} where {where}.",
        "top": (
            "I am thinking of the {rows} where {where}, sorted into groups by the {column}: I would like to know"
            " which of these groups has the {rank} {measure}, and what that comes to. Please do not bother with"
            " groups that have no such {row} at all."
        ),
        "absent": (
            "I would like to know how many {entities} we have that are not the {relation} of even a single {row}"
            " where {where}. Please do include {entities} that have no {row} of any kind."
        ),
    },
    count_measure="number of {rows}",
    total_measure="sum of the {measure}",
    forms={
        "whole": "a whole number in digits and not a word more.",
        "decimals": "a number rounded to {decimals} decimals, with a decimal point, and not a word more.",
        "text": "the value exactly as it is spelled in the database, no quotes around it and not a word more.",
        "date": "a date written as YYYY-MM-DD and not a word more.",
        "list": (
            "all the values exactly as they are spelled in the database, every value only once, in alphabetical"
            " order {order}, with a semicolon (;) between one value and the next."
        ),
        "pair_whole": (
            "the {column} exactly as it is spelled in the database, then a semicolon (;), then the {measure} as a"
            " whole number in digits."
        ),
        "pair_decimals": (
            "the {column} exactly as it is spelled in the database, then a semicolon (;), then the {measure}"
            " rounded to {decimals} decimals, with a decimal point."
        ),
    },
    orders=("starting at A and ending at Z", "the other way round, starting at Z and ending at A"),
    missing=(
        "One more thing: our records have gaps. When {a_row} has no value (NULL) for something that I mention,"
        " please do not use that {row}.\n\n"
    ),
)

_P5 = Phrasing(
    voice="formal",
    frame=(
        "DATA REQUEST\n"
        "1. Source: SQLite database of {scene}; accessible through {{tool:list_tables}}, {{tool:describe_table}}"
        " and {{tool:run_query}}.\n"
        "2. Selection: all {rows} that satisfy the following: {where}.{missing}\n"
        "3. Result: {ask}\n"
        "4. Form: {form}\n"
        "5. Delivery: {{tool:submit}}, with the result in {{arg:answer}}."
    ),
    conjunction="; ",
    ranks={"highest": "highest", "lowest": "lowest", "latest": "latest", "earliest": "earliest"},
    asks={
        "count": "the size of the selection, that is, the number of {rows} in it.",
        "distinct": "the number of different values of the {column} within the selection.",
        "sum": "the sum total of the {column} across the selection.",
        "average": "the arithmetic mean of the {column} across the selection.",
        "date": "the {rank} {column} within the selection.",
        "lookup": "the {column} of the {row} selected (there is only one).",
        "extreme": "the {column} of whichever {row} in the selection has the {rank} {measure}.",
        "list": "the set of values of the {column} within the selection.",
        "top": (
            "the selection being divided into groups by the {column}, the {column} that the group with the {rank}"
            " {measure} has in common, followed by that {measure}. Groups that do not occur in the selection are"
            " excluded."
        ),
        "absent": (
            "the number of {entities} that are not the {relation} of any {row} in the selection, including"
            " {entities} to which no {row} refers."
        ),
    },
    count_measure="number of {rows}",
    total_measure="sum total of the {measure}",
    forms={
        "whole": "a whole number in digits; no other text.",
        "decimals": "a number rounded to {decimals} decimals, written with a decimal point; no other text.",
        "text": "the value as spelled in the database; no quotes, no other text.",
        "date": "a date in the notation YYYY-MM-DD; no other text.",
        "list": (
            "values as spelled in the database, without repetition, in alphabetical order {order}, delimited by"
            " semicolons (;)."
        ),
        "pair_whole": "{column} as spelled in the database, semicolon (;), {measure} as a whole number in digits.",
        "pair_decimals": (
            "{column} as spelled in the database, semicolon (;), {measure} rounded to {decimals} decimals with a"
            " decimal point."
        ),
    },
    orders=("A to Z", "Z to A, that is, descending"),
    missing=" Not selected is any {row} for which something named in this request is NULL.",
)

PHRASINGS: dict[str, Phrasing] = {"base": _BASE, "p1": _P1, "p2": _P2, "p3": _P3, "p4": _P4, "p5": _P5}
