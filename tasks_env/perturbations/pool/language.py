"""Irrelevant tools about words: a phrase book and a dictionary."""

from __future__ import annotations

from tasks_env.perturbations.pool.base import Distractor, fold, not_found
from tasks_env.tools import parameter, tool
from tasks_env.types import JsonObject

_LANGUAGES = ("french", "german", "italian", "spanish")
_PHRASES = {
    "hello": ("bonjour", "hallo", "ciao", "hola"),
    "good morning": ("bonjour", "guten Morgen", "buongiorno", "buenos días"),
    "good night": ("bonne nuit", "gute Nacht", "buona notte", "buenas noches"),
    "please": ("s'il vous plaît", "bitte", "per favore", "por favor"),
    "thank you": ("merci", "danke", "grazie", "gracias"),
    "excuse me": ("excusez-moi", "Entschuldigung", "mi scusi", "disculpe"),
    "water": ("eau", "Wasser", "acqua", "agua"),
    "bread": ("pain", "Brot", "pane", "pan"),
    "cheese": ("fromage", "Käse", "formaggio", "queso"),
    "apple": ("pomme", "Apfel", "mela", "manzana"),
    "coffee": ("café", "Kaffee", "caffè", "café"),
    "house": ("maison", "Haus", "casa", "casa"),
    "street": ("rue", "Straße", "strada", "calle"),
    "train": ("train", "Zug", "treno", "tren"),
    "airport": ("aéroport", "Flughafen", "aeroporto", "aeropuerto"),
    "hospital": ("hôpital", "Krankenhaus", "ospedale", "hospital"),
    "friend": ("ami", "Freund", "amico", "amigo"),
    "dog": ("chien", "Hund", "cane", "perro"),
    "cat": ("chat", "Katze", "gatto", "gato"),
    "sun": ("soleil", "Sonne", "sole", "sol"),
    "moon": ("lune", "Mond", "luna", "luna"),
    "the bill, please": (
        "l'addition, s'il vous plaît",
        "die Rechnung, bitte",
        "il conto, per favore",
        "la cuenta, por favor",
    ),
}
_DEFINITIONS = {
    "arboretum": "noun: a garden where many kinds of trees are grown for study and display.",
    "brackish": "adjective: slightly salty, as where a river meets the sea.",
    "candid": "adjective: open and sincere in speech.",
    "dapple": "verb: to mark with spots of colour or of light.",
    "ephemeral": "adjective: lasting only a short time.",
    "fathom": "noun: a measure of the depth of water, six feet. verb: to understand after much thought.",
    "gossamer": "noun: fine threads spun by small spiders; anything very light and thin.",
    "hinterland": "noun: the country behind a coast or away from the great towns.",
    "isthmus": "noun: a narrow strip of land that joins two larger ones.",
    "jubilant": "adjective: showing great joy.",
    "kiln": "noun: an oven for baking or drying pottery, bricks or grain.",
    "lull": "noun: a quiet interval. verb: to calm or send to sleep.",
    "meander": "verb: to follow a winding course; to wander at leisure.",
    "nimble": "adjective: quick and light in movement.",
    "opaque": "adjective: not letting light through; hard to understand.",
    "parable": "noun: a short story that teaches a moral lesson.",
    "quarry": "noun: a place where stone is dug; an animal that is hunted.",
    "resilient": "adjective: able to recover quickly.",
    "serendipity": "noun: the making of happy discoveries by chance.",
    "thicket": "noun: a dense growth of bushes or small trees.",
    "umbrage": "noun: offence taken.",
    "zenith": "noun: the point of the sky straight overhead; the highest point.",
}


def _translate(arguments: JsonObject) -> str:
    phrase, language = fold(arguments["phrase"]), fold(arguments["language"])
    if language not in _LANGUAGES:
        return not_found("language", arguments["language"], (name.title() for name in _LANGUAGES))
    if phrase not in _PHRASES:
        return f"The phrase book has no entry for: {arguments['phrase']}."
    return f"{phrase} ({language.title()}): {_PHRASES[phrase][_LANGUAGES.index(language)]}"


def _define(arguments: JsonObject) -> str:
    word = fold(arguments["word"])
    if word not in _DEFINITIONS:
        return f"The dictionary has no entry for: {arguments['word']}."
    return f"{word}, {_DEFINITIONS[word]}"


LANGUAGE = (
    Distractor(
        tool(
            "translate_phrase",
            "Translate an everyday English phrase with a traveller's phrase book.",
            {
                "phrase": parameter("string", "The English word or phrase, such as good morning.", maxLength=200),
                "language": parameter("string", "French, German, Italian or Spanish.", maxLength=40),
            },
        ),
        _translate,
    ),
    Distractor(
        tool(
            "define_word",
            "Look up the part of speech and the meaning of an English word in a pocket dictionary.",
            {"word": parameter("string", "The word, in its base form.", maxLength=100)},
        ),
        _define,
    ),
)
