"""Seeds of translation, of summarising and of answering from a passage."""

from __future__ import annotations

from sapwood_export.distill.seeds import PASSAGE, Template
from sapwood_export.distill.seeds_words import WORDS, bank

LANGUAGE_WORDS: dict[str, tuple[str, ...]] = {
    **WORDS,
    "tongue": bank("French, German, Spanish, Italian, Portuguese, Dutch, English"),
    "english": (
        "The {job} from {place} has lost the {thing} and cannot find it anywhere.",
        "We would like to book a room for {2-6} nights in {month}.",
        "My grandmother makes the best {food} in the whole town.",
        "Because of {season}, the ferry leaves {10-50} minutes later than usual.",
        "The museum is closed on {weekday}, but the library is open until {5-9} o'clock.",
        "I have been learning {hobby} for {2-9} years, and I still make mistakes.",
        "Could you tell me where I can buy a {thing}?",
        "{idea} is more important than money, said the old {job}.",
        "If it rains on {weekday}, we will cook {food} and stay at home.",
        "Scientists have discovered how the {animal} finds its way at night.",
        "The meeting about {issue} was moved to {month}, so nobody came.",
        "Please close the windows before you leave, and take the {thing} with you.",
    ),
    "german": (
        "Der {deberuf} wohnt seit {2-20} Jahren in {place} und fährt jeden Tag mit dem Zug.",
        "Am {detag} gehen wir mit {person} auf den Markt und kaufen {deware}.",
        "Könnten Sie mir bitte sagen, wo ich {deware} finde?",
        "Wenn das Wetter schön bleibt, essen wir am {detag} im Garten.",
        "Die Kinder haben {deware} vergessen, deshalb mussten sie noch einmal nach Hause.",
        "Ich habe den {deberuf} gefragt, aber er wusste es auch nicht.",
        "Das Museum ist am {detag} geschlossen, die Bücherei hat bis {5-9} Uhr geöffnet.",
    ),
    "deberuf": bank(
        "Lehrer, Bäcker, Arzt, Gärtner, Fahrer, Maler, Nachbar, Richter, Koch, Fischer"
    ),
    "detag": bank("Montag, Dienstag, Mittwoch, Donnerstag, Freitag, Samstag, Sonntag"),
    "deware": bank(
        "Brot und Käse, frisches Obst, einen Regenschirm, eine Landkarte, Kerzen, Blumen"
    ),
    "french": (
        "Le {frmetier} habite à {place} depuis {2-20} ans et prend le train tous les jours.",
        "{frjour} prochain, nous irons au marché avec {person} pour acheter {frchose}.",
        "Pourriez-vous me dire où je peux trouver {frchose} ?",
        "S'il fait beau {frjour}, nous mangerons dans le jardin.",
        "Les enfants ont oublié {frchose}, ils ont donc dû rentrer à la maison.",
        "J'ai demandé au {frmetier}, mais il ne le savait pas non plus.",
    ),
    "frmetier": bank(
        "boulanger, médecin, jardinier, voisin, peintre, professeur, facteur, pêcheur"
    ),
    "frjour": bank("lundi, mardi, mercredi, jeudi, vendredi, samedi, dimanche"),
    "frchose": bank(
        "du pain, des fleurs, un parapluie, une carte, du fromage, des bougies, un livre"
    ),
    "spanish": (
        "El {esoficio} vive en {place} desde hace {2-20} años y viaja todos los días en tren.",
        "El {esdia} vamos al mercado con {person} para comprar {escosa}.",
        "¿Podría decirme dónde puedo encontrar {escosa}?",
        "Si hace buen tiempo el {esdia}, comeremos en el jardín.",
        "Los niños olvidaron {escosa} y tuvieron que volver a casa.",
        "Le pregunté al {esoficio}, pero él tampoco lo sabía.",
    ),
    "esoficio": bank("panadero, médico, jardinero, vecino, pintor, profesor, cartero, pescador"),
    "esdia": bank("lunes, martes, miércoles, jueves, viernes, sábado, domingo"),
    "escosa": bank("pan, flores, un paraguas, un mapa, queso, velas, un libro, naranjas"),
    "foreign": ("{german}", "{german}", "{french}", "{spanish}"),
    "kind": bank("""
        an encyclopedia article, a news report, a travel report, a short biography, a blog post,
        a chapter of a textbook, an interview, an official report, a letter to the editor,
        a lecture"""),
    "matter": (
        "{science}",
        "{science}",
        "{history}",
        "{history}",
        "{issue}",
        "the {animal}",
        "{place}",
        "{country}",
        "{hobby}",
        "the daily life of a {job}",
        "the history of the {thing}",
        "an invented festival in {place}",
        "an invented company that sells {product}",
        "{person}, an invented {job} from {place}",
        "how {food} is made",
        "{event} in {setting}",
    ),
}

_TRANSLATE_MORE = (
    "Now into {tongue}.",
    "Make it sound more polite.",
    "Which words are the most difficult ones here?",
    "And how do you say: {english}",
)

TRANSLATION = (
    Template("Translate into {tongue}: {english}", _TRANSLATE_MORE),
    Template("Translate into {tongue}: {english} {english}", _TRANSLATE_MORE),
    Template('How do you say in {tongue}: "{english}"', _TRANSLATE_MORE),
    Template("Translate this into English: {foreign}", _TRANSLATE_MORE),
    Template("Translate this into English: {foreign} {foreign}", _TRANSLATE_MORE),
    Template("Translate from German into English: {german}", _TRANSLATE_MORE),
    Template("Translate from German into English: {german} {german}", _TRANSLATE_MORE),
    Template("Translate from French into English: {french} {french}", _TRANSLATE_MORE),
    Template("Translate from Spanish into English: {spanish} {spanish}", _TRANSLATE_MORE),
    Template("What does this mean in English? {foreign}", _TRANSLATE_MORE),
    Template("{foreign}\n\nGive the English translation of the sentence above.", _TRANSLATE_MORE),
    Template(
        "Translate these words into {tongue}: {thing}, {animal}, {weekday}, {food}.",
        _TRANSLATE_MORE,
    ),
    Template(
        "{english}",
        ("{english}", "{english}"),
        system="You are a translator. Translate everything the user writes into {tongue}.",
    ),
    Template(
        "{foreign}",
        ("{foreign}", "{foreign}"),
        system="You are a translator. Answer with the English translation of what is written.",
    ),
    Template("Write a conversation in {tongue} between a {job} and a tourist, with translations."),
    Template("Explain how to say 'I like {hobby}' in {tongue}, word by word.", _TRANSLATE_MORE),
)

_WRITE_PASSAGE = "Write {kind} about {matter}, in {2-5} paragraphs."

_SUMMARY_MORE = (
    "Shorter, please.",
    "Now in one sentence.",
    "What is the most important point?",
    "Give it a headline.",
    "Write it for {audience}.",
    "What does the text not say?",
)

SUMMARISING = tuple(
    Template(opening, _SUMMARY_MORE, system, _WRITE_PASSAGE)
    for opening, system in (
        ("Summarize the following text.\n\n" + PASSAGE, None),
        ("Summarise this in {1-4} sentences:\n\n" + PASSAGE, None),
        (PASSAGE + "\n\nWrite a summary of the text above.", None),
        ("What are the {2-5} main points of this text?\n\n" + PASSAGE, None),
        ("Give me a headline and a summary of {30-80} words.\n\nText: " + PASSAGE, None),
        ("Explain to {audience} what this text says:\n" + PASSAGE, None),
        (PASSAGE + "\n\nTL;DR:", None),
        ("Make bullet points of this:\n\n" + PASSAGE, None),
        ("Rewrite this text so that it is half as long.\n\n" + PASSAGE, None),
        (PASSAGE, "Summarize what the user sends in a few sentences. Use a {tone} tone."),
        ("Write an abstract for this:\n\n" + PASSAGE, None),
        ("Title this text and list its keywords.\n\n" + PASSAGE, None),
    )
)

_PASSAGE_MORE = (
    "Where does the text say so?",
    "Quote the sentence.",
    "What else does the text say about it?",
    "Is that certain?",
    "Answer in one word.",
)

RETRIEVAL = tuple(
    Template(opening, _PASSAGE_MORE, system, "Write {kind} about {matter.m}, in {1-4} paragraphs.")
    for opening, system in (
        ("Context: " + PASSAGE + "\n\nQuestion: What is special about {matter.m}?\nAnswer:", None),
        (
            "Answer with the help of this text only.\n\n"
            + PASSAGE
            + "\n\nWhy is {matter.m} important?",
            None,
        ),
        ("Passage:\n" + PASSAGE + "\n\nWhat does the passage say about {matter.m}?", None),
        ("Read the text and write {2-4} questions about it, with answers.\n\n" + PASSAGE, None),
        (PASSAGE + "\n\nWhich names, places and numbers occur in this text? Make a list.", None),
        (
            "Here are some documents.\n\n[1] "
            + PASSAGE
            + "\n\n[2] {english} {english}\n\nUsing the "
            "documents, explain {matter.m}. Name the document that you use.",
            None,
        ),
        (
            "Text: " + PASSAGE + "\n\nTrue or false: the text is about {matter}. Give a reason.",
            None,
        ),
        (PASSAGE + "\n\nAccording to this, what happened first, and what happened then?", None),
        ("What is the first sentence of this text about?\n\n" + PASSAGE, None),
        (
            "Tell me about {matter.m}.",
            "Use only this knowledge, and say so if it is not enough:\n" + PASSAGE,
        ),
        ("How does the following text explain {matter.m}? Quote it.\n\n" + PASSAGE, None),
    )
)
