"""What people ask for, by scenario: templates beside those that a target's training data come from.

A kind of answer is asked for in many ways; these are for breadth. Their slots are filled from
the banks of ``distill``.
"""

from __future__ import annotations

STRUCTURE = (
    "Generate a CSV file with {3-9} rows: {column}, {column}, {column}.",
    "Make a table in Markdown that compares {product}, {product} and {product}.",
    "Convert this to YAML: name={person}, job={job}, city={place}",
    "Give me the HTML for a form with fields for {column} and {column}.",
    "Fix the syntax error:\n{snippet}",
    "Why does this crash?\n```\n{snippet}\n```",
    "Refactor the following so that it is easier to test.\n\n{snippet}",
    "Add type annotations to this.\n{snippet}",
    "Write a Dockerfile for a {language} service.",
    "Write a SQL statement that creates the table {table} with {column}, {column} and {column}.",
    "Write a shell script that {task}.",
    "How do I {function} {structure} in {language}? Show me code.",
    "Could you code {structure} for me? {language}, please, no comments.",
    "Complete this function:\ndef {function}({variable}, {variable}):",
    "Translate this code from {language} to {language}:\n{snippet}",
    "Write a JSON schema for {table}.",
    "List the names of all people in this text, separated by commas: {english} {person} was there.",
    "Fill in the form. Name: ..., job: ..., place: ...\n{person} works as a {job} in {place}.",
    "Pull every number out of this and return a JSON array: {english} {english} {10-99}, {3-9}.",
    "Extract the entities as `entity: type`, one a line.\n{english} {english}",
    "Sort these by price and print them as a table: {thing} {2-90}, {thing} {2-90}, {thing} {2-90}",
    "Write a LaTeX table with {2-6} columns for {table}.",
    "Write a makefile with targets build, test and clean.",
    "Create a class diagram in PlantUML for {structure}.",
    "Given the message below, output only the fields day, hour and place.\n{event} on {weekday} at "
    "{8-20} in {place}",
    "Classify each line as positive or negative. Answer with a list.\n1. {english}\n2. {english}\n"
    "3. {english}",
    "Write a CSS rule that centres a heading.",
    "Output an XML document with {2-6} {table}.",
    "Evaluate the review on a scale of 1 to 5 and return only the integer.\n'{product}: {english}'",
    "Find the bug. Expected {2-90}, got {2-90}.\n\n{snippet}",
    "Write an iCalendar entry for {event} on {weekday}.",
    "Implement an algorithm that {task}; it should run in linear time.",
    "Create a {language} script for {structure} with a main function.",
)

REASONING = (
    "A train leaves {place} at {6-11} o'clock at {60-160} km/h. When is it {100-400} km away?",
    "{person.a} has {12-90} {thing}s and gives {person.b} {2-11} of them. How many are left?",
    "If {2-9} {animal}s eat {10-60} kg of hay in {2-9} days, how much do {10-20} eat in a week?",
    "What is {12-99} * {12-99} - {100-999}? Show every step.",
    "Solve for x: {2-9}x + {1-50} = {51-99}",
    "Solve the system {2-9}x + {2-9}y = {10-60}, x - y = {1-9}.",
    "Find the derivative of x^{2-6} + {2-9}x.",
    "What is the probability of drawing {2-3} red balls out of {4-9} red and {3-9} blue ones?",
    "Prove that the sum of two odd numbers is even.",
    "Prove by induction that 1 + 2 + ... + n = n(n + 1) / 2.",
    "Which number comes next: {1-4}, {5-9}, {10-15}, {16-24}, ...? Explain.",
    "The area of a rectangle is {20-90} and one side is {2-9}. How long is its perimeter?",
    "{person.a}, {person.b} and {person.c} each own one pet: a {animal.a}, a {animal.b}, a "
    "{animal.c}. {person.a} does not own the {animal.a}. {person.b} owns the {animal.c}. Who owns "
    "what?",
    "All {job.a}s are tired. {person.a} is not tired. Can {person.a} be a {job.a}?",
    "A {thing} and a {thing} cost {11-90} euros together; one costs {2-9} more. What is the price "
    "of each?",
    "You have two jugs of {3-5} and {6-9} litres. How do you measure {1-2} litres?",
    "{person.a} is {2-6} times as old as {person.b}. In {3-9} years they are {40-90} together. How "
    "old are they now?",
    "A shop lowers a price of {50-400} dollars by {5-40} % and then by another {5-30} %. What does "
    "it cost now?",
    "Simplify ({2-9}a + {2-9}b)^2 - {2-9}ab.",
    "How many ways are there to arrange {4-8} books on a shelf if two must not touch?",
    "Convert {20-900} minutes into hours and minutes, and {2-40} miles into kilometres.",
    "Three doors, one prize. Should I switch? Reason it through.",
    "Is {51-199} a prime number? Why?",
    "Evaluate the integral of {2-9}x^{2-4} from 0 to {2-6}.",
    "In a race {person.a} overtakes the second. In what place is {person.a} now? Think carefully.",
    "Work out the mean, the median and the variance of {3-9}, {10-19}, {20-29}, {30-60}.",
    "{person.a} drives {100-400} miles on {5-20} gallons. How many gallons for {401-900} miles?",
    "Every day a {animal} climbs {3-5} metres and slips back {1-2} at night. When is it out of a "
    "well of {10-30} metres?",
    "A recipe for {2-4} needs {100-400} grams of flour. How much is that for {5-12} people?",
    "The sum of three consecutive integers is {30-300}. What are they?",
    "If it is {1-11} o'clock in {place}, {2-9} hours behind {place}, when does a call of {10-50} "
    "minutes end there?",
    "x^2 - {5-12}x + {4-20} = 0. Find both roots.",
    "{person.a} reads {10-40} pages a day and has {200-600} to go. How many days will it take, and "
    "what if {person.a} skips {weekday}s?",
)

CREATIVITY = (
    "Tell me a story about {idea}.",
    "Make up a legend that explains why there is {season}.",
    "Write me a limerick about a {job} from {place}.",
    "I need a slogan for {product}.",
    "Rap about {issue} like it is {season} in {place}.",
    "You are now a {animal}. Stay in character and describe your morning.",
    "Act as a {tone} {job} and greet a customer.",
    "Continue this story: {english} {english}",
    "Once upon a time, {person} found a {thing} in {setting}.",
    "Draft a blog post about {hobby} that begins with a surprise.",
    "Write a monologue for a villain who collects {thing}s.",
    "Compose a sonnet in which {season} is a guest.",
    "Picture yourself as a {job} during {history}. Write home about it.",
    "Come up with a plot for a film set in {setting}.",
    "Come up with {3-7} funny captions for a photo of a {animal} with a {thing}.",
    "Describe the taste of {food} to somebody from another planet.",
    "Write a love letter from a {thing} to a {thing}.",
    "What would {person.a} the {job} say if the {animal} could answer? Write it as a dialogue.",
    "Give this scene a twist: {person} arrives at {setting} and nobody is there.",
    "Write vivid travel writing about {place} in {season}.",
    "Imagine a world without {idea}. What does a morning look like?",
    "Invent a festival for {place} and describe how it sounds and smells.",
    "Write a eulogy for a {thing}, in a {tone} voice.",
    "Suppose you were a {job}. How would you celebrate {event}?",
    "Write a thank-you note to {person} in the style of an old sailor.",
    "Create a character for a novel: a {feeling} {job} with a secret.",
    "Role-play: I am lost in {setting}, you are the only one who knows the way.",
    "Write a persuasive post that makes people want {product}.",
    "Free verse, please, on {idea}.",
    "Spin a tale that ends with the words 'and that was the last {thing}'.",
    "Tell a ghost story for {audience}.",
    "Speak like a pirate and tell me about {hobby}.",
    "Write a screenplay in which {person.a} forgives {person.b}.",
)

KNOWLEDGE = (
    "Who discovered {science}?",
    "When did {history} begin?",
    "What is the population of {country}?",
    "Which river flows through {place}?",
    "Tell me what {science} means.",
    "How long does a {animal} live?",
    "Why is {science} important for biology?",
    "What role did {country} play in {history}?",
    "Describe how {science} works.",
    "Is {food} healthy?",
    "What are the symptoms of stress, and how is it treated?",
    "What language do people speak in {country}?",
    "Translate the following sentence to {tongue}: {english}",
    "Into {tongue}, please: {english} {english}",
    "Translate {tongue} to English: {foreign}",
    "Summarize this article.\n{english} {english} {english} {english} {english} {english}",
    "Shorten to one paragraph: {english} {english} {english} {english} {english}",
    "Condense the discussion below into its main points.\n\n{person}: {english}\n{person}: "
    "{english}\n{person}: {english}",
    "Read the passage and answer the question. {english} {english} {english} {english}\nQuestion: "
    "where did it happen?",
    "Answer the question from the documents.\n\n[1] {english} {english}\n[2] {english} {english}\n"
    "\nQuestion: who was there?",
    "Using only the context, tell me why {person} was late.\nContext: {english} {english} "
    "{english}",
    "What happened in {country} in {1800-1999}?",
    "Explain the theory of {science} in simple words.",
    "What caused {history}, and what followed?",
    "How do {animal}s find food in {season}?",
    "Discuss the influence of {history} on art.",
    "Which law protects people from {issue}?",
    "What is the meaning of the word '{idea}'?",
    "Name the largest cities of {country}.",
    "Where is {food} eaten most?",
    "Do {animal}s sleep at night?",
    "Outline the history of {hobby}.",
    "What should I know before I visit {place}?",
    "Explain what a {job} does and how one becomes one.",
    "What are the main differences between {country} and {country}?",
    "How is {product} made?",
)
