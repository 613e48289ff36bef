"""Seeds of writing, of questions and of dialogue."""

from __future__ import annotations

from sapwood_export.distill.seeds import Template

_REWRITE = (
    "Make it shorter.",
    "Rewrite it in a more {tone} tone.",
    "Now write it for {audience}.",
    "Give it a title.",
    "Can you make the ending stronger?",
    "Turn it into a list of bullet points.",
)

WRITING = (
    Template("Write a short story about a {job} and a {animal} in {setting}.", _REWRITE),
    Template("Write a story set in {setting}. It should begin with a lost {thing}.", _REWRITE),
    Template("Write a poem about {idea} and {season}.", _REWRITE),
    Template("Compose {2-4} haiku about a {animal}."),
    Template(
        "Write a {tone} letter from {person.a}, a {job}, to the city council about {issue}.",
        _REWRITE,
    ),
    Template("Draft an e-mail to {person} inviting them to {event} on {weekday}.", _REWRITE),
    Template("Write an e-mail in a {tone} tone to postpone {event} to {month}.", _REWRITE),
    Template("Write a product description for {product}, in about {60-150} words.", _REWRITE),
    Template("Write a review of {product} by a customer who is {feeling}.", _REWRITE),
    Template("Describe {setting} in {season}, using all five senses.", _REWRITE),
    Template("Write an essay of {3-5} paragraphs on {issue}.", _REWRITE),
    Template(
        "Write an opinion piece in a {tone} tone: what should change about {issue}?", _REWRITE
    ),
    Template(
        "Write the opening paragraph of a novel about a {job} who finds a {thing}.",
        ("Continue with the next paragraph.", "Who else could appear in this story?", *_REWRITE),
    ),
    Template("Write a dialogue between a {job} and a {job} who disagree about {issue}.", _REWRITE),
    Template("Write a speech of two minutes for {event} in a {tone} tone.", _REWRITE),
    Template(
        "Write a recipe for {food} for {2-8} people.",
        ("How can I make it without an oven?", "What can I serve with it?", "Make it vegetarian."),
    ),
    Template(
        "Write a short guide for visitors to {place}: what to see, what to eat, what to avoid.",
        _REWRITE,
    ),
    Template("Write a fable about a {animal.a} and a {animal.b} that teaches {idea}.", _REWRITE),
    Template("Write a diary entry of a {job} on a {feeling} day in {season}.", _REWRITE),
    Template("Write song lyrics about {place} with two verses and a chorus.", _REWRITE),
    Template("Write a job advertisement for a {job} in {place}.", _REWRITE),
    Template("Write a cover letter for {person}, who wants to work as a {job}.", _REWRITE),
    Template("Invent {3-6} names for a shop that sells {food}, and say why each of them fits."),
    Template("Write a {tone} toast for {person.a}, who likes {hobby} and {hobby}.", _REWRITE),
    Template(
        "Write a scene of a play: {person.a} tells {person.b} that the {thing} is gone.", _REWRITE
    ),
    Template("Write a news report about an unexpected {animal} at {event} in {place}.", _REWRITE),
    Template("Describe a {thing} without naming it."),
    Template("Write a bedtime story for {audience} in which a {animal} learns {hobby}.", _REWRITE),
    Template("Write an apology from a {job} to {person} for losing a {thing}.", _REWRITE),
    Template("Write a manual in {4-8} steps: how to take care of a {thing}.", _REWRITE),
    Template(
        "Give me an outline for a talk about {subject}.", ("Write the introduction.", *_REWRITE)
    ),
)

_MORE = (
    "Can you give an example?",
    "Explain that to {audience}.",
    "Why is that so?",
    "Summarise this in one sentence.",
    "What is a common misunderstanding about this?",
    "Tell me more about the second point.",
)

QUESTIONS = (
    Template("What is {science}, and why does it matter?", _MORE),
    Template("Explain {science} to {audience}.", _MORE),
    Template("How does {science} affect daily life?", _MORE),
    Template("What are the causes and the consequences of {history}?", _MORE),
    Template("Who were the important people in {history}?", _MORE),
    Template("How did {history} change ordinary people's lives?", _MORE),
    Template("Compare {science} and {science}.", _MORE),
    Template("What are the advantages and disadvantages of {issue}?", _MORE),
    Template("Give {3-7} arguments for and against {issue}.", _MORE),
    Template("Is {idea} something that can be learned?", _MORE),
    Template("What did philosophers say about {idea}?", _MORE),
    Template("What does a {job} do all day?", _MORE),
    Template("Where does the {animal} live, and what does it eat?", _MORE),
    Template("List {3-10} facts about the {animal}.", _MORE),
    Template("List {3-10} things to know about {country}.", _MORE),
    Template("What is the difference between a {animal} and a {animal}?", _MORE),
    Template("How is {food} made, and where does it come from?", _MORE),
    Template("How do I start with {hobby}?", (*_MORE, "What do I need to buy first?")),
    Template("What is the best time of the year to visit {place}?", _MORE),
    Template("Why do people enjoy {hobby}?", _MORE),
    Template("What would happen if there were no {science}?", _MORE),
    Template("Define {idea} in two sentences, then give {2-4} examples.", _MORE),
    Template("Is it true that the {animal} is more intelligent than the {animal}?", _MORE),
    Template("Which is heavier, a {thing.a} or a {thing.b}? Think step by step.", _MORE),
    Template(
        "{person.a} is taller than {person.b}. {person.b} is taller than {person.c}. Who is the "
        "shortest, and how do you know?"
    ),
    Template(
        "Every {animal.a} in this story likes {food.a}. Bruno does not like {food.a}. Can Bruno be "
        "a {animal.a}? Explain your reasoning."
    ),
    Template(
        "Today is {weekday}. In {3-30} days {person} has {event}. On which weekday will that be?"
    ),
    Template("Put these in order of size and explain: a {animal}, a {animal}, a {thing}, {place}."),
    Template("How does a {thing} work?", _MORE),
    Template("Who invented the {thing}, and how has it changed?", _MORE),
    Template("Answer briefly: what is the capital of {country}?"),
    Template("What is {subject}? Answer in one paragraph.", _MORE),
)

_PLAY = (
    "Stay in your role. What did you do this morning?",
    "What worries you most?",
    "And what do you think about {issue}?",
    "Tell me about your best day at work.",
    "What would you say to {audience}?",
    "I see. And then?",
)
_TALK = (
    "Thanks. What else could I try?",
    "I tried that already.",
    "That sounds good. What should I do first?",
    "I am not sure. Which one would you choose?",
    "Can you explain that again, more simply?",
    "How long will it take?",
)

DIALOGUE = (
    Template(
        "You are a {job} in {place}. I am a visitor. Greet me and tell me about your day.", _PLAY
    ),
    Template(
        "Pretend to be a {animal} that can talk. I will ask you questions. How are you?", _PLAY
    ),
    Template("Let us play: you are {person}, a {feeling} {job}. Why are you {feeling}?", _PLAY),
    Template("Imagine you are a {thing} in {setting}. Tell me what you see.", _PLAY),
    Template(
        "I would like to interview you as if you were a {job} during {history}. Are you ready?",
        _PLAY,
    ),
    Template(
        "Hello! How are you today?", ("What can you help me with?", "I feel {feeling}.", *_TALK)
    ),
    Template("Hi, my name is {person} and I live in {place}. What can we talk about?", _TALK),
    Template("I feel {feeling} because of {event}. What can I do?", _TALK),
    Template("My friend {person.a} is {feeling}. How can I help?", _TALK),
    Template("I want to learn {hobby}, but I have only {10-90} minutes a day. Any advice?", _TALK),
    Template("I have {food} and {food} at home. What can I cook tonight?", _TALK),
    Template("Can you help me plan {event} for {5-60} people?", _TALK),
    Template("I have {2-9} days in {place}. What should I do?", _TALK),
    Template("My {thing} is broken. What now?", _TALK),
    Template("I cannot decide between becoming a {job} and a {job}. Help me to decide.", _TALK),
    Template("How do I tell {person} that I cannot come to {event}?", _TALK),
    Template(
        "Tell me a joke about a {job} and a {animal}.",
        ("Another one, please.", "Why is that funny?"),
    ),
    Template("Tell me something interesting about {subject}.", (*_TALK, "Something else, please.")),
    Template(
        "Ask me {3-6} questions to find out which hobby suits me.",
        (
            "I like being outside, and I am patient.",
            "I prefer to be alone.",
            "What do you suggest?",
        ),
    ),
    Template("What is a good present for {audience} who likes {hobby}?", _TALK),
    Template("I have a question about {subject}.", ("What should a beginner know?", *_MORE)),
    Template("I cannot sleep before {event}. Do you have any tips?", _TALK),
    Template("{person.a} and I argue about {issue}. How can we talk about it calmly?", _TALK),
    Template(
        "Good evening! I would like to book a table for {2-12} people on {weekday}.",
        ("Do you have anything without meat?", "At {6-9} o'clock, please.", "Thank you, goodbye!"),
        system="You are the receptionist of a restaurant that is known for its {food}.",
    ),
    Template(
        "Which {thing} do you recommend for {audience}?",
        _TALK,
        system="You are a helpful shop assistant. Answer in a {tone} tone.",
    ),
    Template(
        "My order from {month} has not arrived.",
        ("The number is {10000-99999}.", "Can I have my money back?", "Thank you for your help."),
        system="You answer the customers of a shop that sells {product}. Be brief and polite.",
    ),
)
