"""Seeds of mathematics: word problems, arithmetic, algebra, geometry, and explanations."""

from __future__ import annotations

from sapwood_export.distill.seeds import Template
from sapwood_export.distill.seeds_words import WORDS, bank

MATHEMATICS_WORDS: dict[str, tuple[str, ...]] = {
    **WORDS,
    "fruit": bank("apples, pears, plums, oranges, lemons, peaches, figs, melons, apricots"),
    "goods": bank("""
        tickets, notebooks, candles, tiles, bottles, books, chairs, eggs, stamps, bricks"""),
    "shape": bank("""
        rectangle, right triangle, circle, square, trapezoid, cube, cylinder, cone, sphere"""),
    "field": bank("""
        fractions, percentages, prime numbers, the Pythagorean theorem, derivatives, integrals,
        probability, logarithms, matrices, complex numbers, vectors, the quadratic formula,
        limits, permutations and combinations, the median and the mean, standard deviation,
        sets, functions, geometric series, modular arithmetic, proof by induction,
        binary numbers, angles, ratios"""),
    "operation": bank("plus, minus, times, divided by"),
    "ask": (
        "",
        "",
        " Show your work.",
        " Explain every step.",
        " Think step by step.",
        " Give only the result.",
    ),
}

_MORE = (
    "Check your result.",
    "Explain the second step again.",
    "What if the first number were {2-60}?",
    "Write it as a formula.",
    "Give me a similar exercise.",
    "Are you sure?",
)

MATHEMATICS = (
    Template(
        "{person.a} has {5-60} {fruit.f} and buys {2-20} bags of {3-12} {fruit.f} each. How many "
        "{fruit.f} does {person.a} have now?{ask}",
        _MORE,
    ),
    Template(
        "A {job} earns {12-60} euros an hour and works {4-10} hours a day. How much is that in "
        "{2-20} days?{ask}",
        _MORE,
    ),
    Template(
        "A train leaves {place.a} at {6-11}:{10-59} and travels at {60-180} km/h. {place.b} is "
        "{100-900} km away. When does it arrive?{ask}",
        _MORE,
    ),
    Template(
        "{product} costs {20-400} euros. In {month} the price falls by {5-60} percent, and then "
        "rises by {5-30} percent. What does it cost then?{ask}",
        _MORE,
    ),
    Template(
        "There are {12-90} {goods.g} in {3-12} boxes, and {person} takes away a third. How many "
        "{goods.g} are left?{ask}",
        _MORE,
    ),
    Template(
        "{person.a} is {3-30} years older than {person.b}. Together they are {40-99} years old. "
        "How old are they?{ask}",
        _MORE,
    ),
    Template(
        "A recipe for {food} for {2-6} people needs {100-900} grams of flour. How much is needed "
        "for {7-30} people?{ask}",
        _MORE,
    ),
    Template(
        "A tank holds {100-900} litres. One pipe fills {2-12} litres a minute, another one takes "
        "out {1-3}. How long until it is full?{ask}",
        _MORE,
    ),
    Template(
        "{person} reads {8-40} pages a day. The book has {150-800} pages. On which day is it "
        "finished?{ask}",
        _MORE,
    ),
    Template(
        "A {animal} runs {2-20} metres a second. How far does it get in {2-30} minutes?{ask}", _MORE
    ),
    Template(
        "{person} sells {5-60} {goods.g} for {2-15} euros each and pays {10-90} euros for the "
        "stall. What is the profit?{ask}",
        _MORE,
    ),
    Template(
        "In a class of {18-35} pupils, {20-80} percent like {hobby}. How many is that?{ask}", _MORE
    ),
    Template(
        "Share {50-900} euros between {person}, {person} and {person} in the ratio "
        "{1-4} : {2-5} : {1-6}.{ask}",
        _MORE,
    ),
    Template("What is {12-999} {operation} {3-99}?{ask}", _MORE),
    Template("Calculate {2-99} + {2-99} * {2-20} - {2-50}.{ask}", _MORE),
    Template("Calculate ({2-99} - {2-60}) / {2-9} + {2-20}^2.{ask}", _MORE),
    Template("Solve for x: {2-12}x + {1-60} = {20-200}.{ask}", _MORE),
    Template("Solve the equation x^2 + {2-15}x + {1-40} = 0.{ask}", _MORE),
    Template("Solve the system: {2-7}x + {1-9}y = {10-60} and x - {1-6}y = {1-12}.{ask}", _MORE),
    Template("Differentiate f(x) = {2-9}x^{2-6} + {2-30}x - {1-9}.{ask}", _MORE),
    Template("Compute the integral of {2-9}x^{2-5} from {0-2} to {3-6}.{ask}", _MORE),
    Template("Factorise {24-990} into primes.{ask}", _MORE),
    Template("What is the greatest common divisor of {24-400} and {36-600}?{ask}", _MORE),
    Template(
        "A {shape} has a side of {2-40} cm and a height of {2-30} cm. Which formulas are useful, "
        "and what is its size?{ask}",
        _MORE,
    ),
    Template(
        "The legs of a right triangle are {3-20} cm and {4-30} cm. How long is the "
        "hypotenuse?{ask}",
        _MORE,
    ),
    Template("A circle has a radius of {2-50} m. Find its area and its circumference.{ask}", _MORE),
    Template(
        "A bag holds {2-12} red, {2-12} blue and {2-12} green balls. What is the probability to "
        "draw a blue one, twice in a row?{ask}",
        _MORE,
    ),
    Template("{2-4} dice are thrown. What is the probability that the sum is {4-12}?{ask}", _MORE),
    Template("In how many ways can {3-9} people sit on {3-9} chairs?{ask}", _MORE),
    Template("Find the mean and the median of {1-50}, {1-50}, {1-50}, {1-50}, {1-50}.{ask}", _MORE),
    Template("Continue the sequence: {1-9}, {10-19}, {20-29}, {30-39}, ...{ask}", _MORE),
    Template(
        "Invest {500-9000} euros at {1-8} percent a year. What is it worth after {2-12} "
        "years?{ask}",
        _MORE,
    ),
    Template("Convert {2-900} kilometres to miles and {2-90} kilograms to pounds.{ask}", _MORE),
    Template(
        "Explain {field} to {audience}.", ("Give me an exercise.", "Why is it useful?", *_MORE)
    ),
    Template("What is the difference between {field} and {field}?", _MORE),
    Template("Write {2-6} exercises about {field}, with solutions.", _MORE),
    Template("Prove that the sum of two {2-3} digit even numbers is even.", _MORE),
    Template("Is {101-997} a prime number?{ask}", _MORE),
    Template("Write {11-255} in binary.{ask}", _MORE),
)
