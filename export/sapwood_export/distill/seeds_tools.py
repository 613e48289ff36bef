"""Seeds of calling tools with JSON, and of turning text into JSON."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

from sapwood_export.distill.seeds import Seed, Template, draw_seed
from sapwood_export.distill.seeds_words import WORDS, bank

TOOL_WORDS: dict[str, tuple[str, ...]] = {
    **WORDS,
    "currency": bank("US dollars, yen, Swiss francs, pounds, Czech crowns, rupees, pesos, krona"),
    "color": bank("red, green, blue, yellow, black, white, orange, brown, purple"),
}


@dataclass(frozen=True)
class _Tool:
    name: str
    description: str
    parameters: dict[str, str]  # name: type
    requests: tuple[str, ...]

    def schema(self) -> dict[str, object]:
        properties = {name: {"type": kind} for name, kind in self.parameters.items()}
        return {
            "name": self.name,
            "description": self.description,
            "parameters": {"type": "object", "properties": properties},
        }


_TOOLS = (
    _Tool(
        "get_weather",
        "The weather forecast of a place.",
        {"location": "string", "days": "integer"},
        (
            "What will the weather be like in {place} for the next {2-9} days?",
            "Do I need an umbrella in {place}?",
        ),
    ),
    _Tool(
        "convert_currency",
        "Converts an amount of money.",
        {"amount": "number", "source": "string", "target": "string"},
        ("How much are {10-900} euros in {currency}?", "Convert {100-9999} {currency} to euros."),
    ),
    _Tool(
        "send_message",
        "Sends a message to a contact.",
        {"recipient": "string", "text": "string"},
        (
            "Tell {person} that I will be {5-50} minutes late.",
            "Write to {person}: thank you for the {thing}!",
        ),
    ),
    _Tool(
        "set_timer",
        "Starts a timer.",
        {"minutes": "integer", "label": "string"},
        ("Set a timer of {2-90} minutes for the {food}.", "Wake me up in {10-50} minutes."),
    ),
    _Tool(
        "search_products",
        "Searches a shop.",
        {"query": "string", "maximum_price": "number", "limit": "integer"},
        ("Find a {color} {thing} for less than {10-300} euros.", "Show me {3-9} cheap {thing}s."),
    ),
    _Tool(
        "create_event",
        "Adds an event to the calendar.",
        {"title": "string", "day": "string", "hour": "integer"},
        (
            "Put {event} on {weekday} at {8-20} o'clock into my calendar.",
            "I have an appointment with a {job} on {weekday} at {8-19}. Please note it.",
        ),
    ),
    _Tool(
        "get_directions",
        "Directions from one place to another.",
        {"start": "string", "destination": "string", "mode": "string"},
        (
            "How do I get from {place} to {place} by train?",
            "Show me the way from {place} to {place} on foot.",
        ),
    ),
    _Tool(
        "look_up_word",
        "Looks up a word in a dictionary.",
        {"word": "string", "language": "string"},
        ("What does '{animal}' mean in French?", "Look up the word '{hobby}' for me."),
    ),
    _Tool(
        "play_music",
        "Plays music.",
        {"artist": "string", "genre": "string"},
        ("Play something {tone} by {person}.", "I would like to hear jazz from {country}."),
    ),
    _Tool(
        "calculate",
        "Evaluates an arithmetic expression.",
        {"expression": "string"},
        ("What is {12-999} times {12-99}?", "Compute ({10-99} + {10-99}) / {2-9}."),
    ),
    _Tool(
        "list_files",
        "Lists the files of a folder.",
        {"folder": "string", "extension": "string"},
        ("Which PDF files are in the folder '{animal}'?", "List everything in '{month}'."),
    ),
    _Tool(
        "book_table",
        "Books a table in a restaurant.",
        {"restaurant": "string", "people": "integer", "time": "string"},
        ("A table for {2-9} at 'The {animal}' on {weekday} at {17-21}:30, please.",),
    ),
)

_SYSTEMS = (
    "You have access to these tools:\n%s\nTo use one, answer with JSON only: "
    '{"name": ..., "arguments": {...}}',
    "You are an assistant with functions. Functions, in JSON:\n%s\nAnswer with a JSON object "
    'that has "name" and "arguments". If no function fits, answer in a sentence.',
    "Available functions: %s\nReply with the call inside <tool_call></tool_call> tags, as JSON.",
)

_EXTRACTION = (
    Template(
        "Extract name, job and place as JSON: {person} is a {job} from {place} and likes {hobby}.",
        ("Add the hobby.", "Write the same as XML."),
    ),
    Template(
        "Turn this list into a JSON array of objects with `item` and `price`: {thing} {2-90} "
        "euros; "
        "{thing} {2-90} euros; {thing} {2-90} euros.",
        ("Sort it by price.", "What do they cost together?"),
    ),
    Template(
        "Write a JSON object that describes a {color} {thing}: name, colour, weight in grams, "
        "price.",
        ("Now two more of them, in an array.", "Write a JSON schema for it."),
    ),
    Template(
        "Give me {3-8} animals like the {animal} as JSON: a list of objects with name, diet and "
        "habitat.",
        ("Only those that can swim.",),
    ),
    Template(
        "Which fields does this message have? Answer in JSON. 'Dear {person}, {event} is moved to "
        "{weekday}, {1-28} {month}, at {9-20} o'clock in {place}. Kind regards, {person}'",
    ),
)


def draw_tool_seed(category: str, generator: random.Random) -> Seed:
    """A request beside one to three tools, or an extraction to JSON."""
    if generator.random() < 0.3:
        return draw_seed(category, _EXTRACTION, TOOL_WORDS, generator)
    tools = generator.sample(_TOOLS, generator.randint(1, 3))
    indent = generator.choice((None, None, 2))
    listed = json.dumps([tool.schema() for tool in tools], indent=indent)
    wanted = generator.choice(tools)
    template = Template(
        opening=generator.choice(wanted.requests),
        follow_ups=generator.choice(tools).requests,
    )
    seed = draw_seed(category, (template,), TOOL_WORDS, generator)
    # Put in after the slots are filled: the schemas' braces are no slots.
    system = generator.choice(_SYSTEMS) % listed
    return Seed(category, seed.opening, seed.follow_ups, system)
