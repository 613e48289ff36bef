"""Seeds of programming."""

from __future__ import annotations

from sapwood_export.distill.seeds import Template
from sapwood_export.distill.seeds_words import WORDS, bank

CODE_WORDS: dict[str, tuple[str, ...]] = {
    **WORDS,
    "language": bank("""
        Python, Python, Python, Python, JavaScript, JavaScript, Java, C, C++, Rust, Go,
        TypeScript, Bash, Ruby, C#"""),
    "task": bank("""
        reverses a string
        counts the vowels in a sentence
        checks whether a word is a palindrome
        returns the {2-5} largest numbers of a list
        merges two sorted lists
        computes the factorial of a number
        finds the first repeated character
        converts Celsius to Fahrenheit
        removes duplicates from a list and keeps the order
        counts how often each word occurs in a text
        checks whether a year is a leap year
        computes the sum of the digits of a number
        returns all prime numbers below n
        computes the greatest common divisor of two numbers
        rotates a list by k places
        flattens a nested list
        checks whether brackets are balanced
        finds the longest common prefix of some strings
        transposes a matrix
        does a binary search in a sorted list
        sorts a list with bubble sort
        sorts a list with quicksort
        counts the lines of a file
        reads a CSV file and prints the average of a column
        writes a dictionary to a JSON file
        parses a date such as 2021-{10-12}-{10-28}
        validates an e-mail address
        generates a random password of {8-20} characters
        computes the n-th Fibonacci number
        prints a multiplication table up to {5-12}
        finds the median of a list of numbers
        groups words by their first letter
        splits a list into chunks of {2-9}
        converts a number to binary
        converts Roman numerals to integers
        capitalises every word in a sentence
        removes all punctuation from a text
        checks whether two words are anagrams
        finds the missing number in a list from 1 to n
        computes the distance between two points
        inserts a node at the end of a linked list
        traverses a binary tree in order
        finds the shortest path in a grid
        counts the islands in a matrix of zeros and ones
        simulates rolling {2-6} dice
        shuffles a deck of cards
        returns the running average of a stream of numbers
        caches the results of another function
        retries a request up to {2-7} times
        downloads a page and prints its title"""),
    "structure": bank("""
        a stack, a queue, a bank account, a shopping cart, a library of books, a timer,
        a counter, a linked list, a binary search tree, a priority queue,
        a cache with a maximum size, a playlist, a matrix, a traffic light, a parking garage,
        a to-do list, a temperature sensor, a chess board, a phone book, an event log"""),
    "concept": bank("""
        recursion, closures, pointers, inheritance, polymorphism, garbage collection, threads,
        decorators, generators, hash tables, dynamic programming, big O notation, unit testing,
        version control, exceptions, interfaces, lambda functions, list comprehensions,
        asynchronous code, type hints, regular expressions, SQL joins, indexes in databases,
        HTTP status codes, REST, race conditions, immutability, stack and heap,
        floating-point rounding, dependency injection, caching, sockets"""),
    "table": bank("""
        orders, customers, employees, books, flights, students, products, invoices, rooms"""),
    "column": bank("price, city, created_at, name, quantity, age, rating, country, weight, status"),
    "variable": bank("total, count, value, index, result, items, score, level, size, width, speed"),
    "function": bank(
        "compute, process, update, find_all, convert, load, check, merge, collect, apply"
    ),
    "snippet": (
        "def {function}(items):\n    {variable.v} = 0\n    for item in items:\n        if "
        "item > {2-50}:\n"
        "            {variable.v} += item\n    return {variable.v}",
        "def {function}(n):\n    if n <= {0-2}:\n        return 1\n    return n * "
        "{function}(n - 1)",
        "for i in range(1, {8-40}):\n    if i % {2-5} == 0:\n        print('{animal}')\n    "
        "elif i % "
        "{3-7} == 0:\n        print('{thing}')\n    else:\n        print(i)",
        "const {variable.v} = [{1-9}, {10-20}, {2-30}].map(x => x * {2-9}).filter(x => x > "
        "{10-40});\n"
        "console.log({variable.v});",
        "{variable.v} = dict()\nfor word in text.split():\n    {variable.v}[word] = "
        "{variable.v}.get(word, 0)"
        " + 1\nprint({variable.v})",
        "int {function}(int a, int b) {\n    while (b != 0) {\n        int t = b;\n        b "
        "= a % b;\n"
        "        a = t;\n    }\n    return a;\n}",
        "SELECT {column.c}, COUNT(*) FROM {table} GROUP BY {column.c} HAVING COUNT(*) > {2-20};",
        "class {person}:\n    def __init__(self, {variable.v}):\n        self.{variable.v} = "
        "{variable.v}\n\n"
        "    def {function}(self):\n        self.{variable.v} -= {1-9}\n        return "
        "self.{variable.v}",
        "let {variable.v} = {10-99};\nwhile ({variable.v} > 0) {\n  console.log({variable.v});\n"
        "  {variable.v} -= {2-9};\n}",
        "fn {function}(values: &[i32]) -> i32 {\n    values.iter().filter(|v| **v % {2-9} == "
        "0).sum()\n}",
        '#!/bin/sh\nfor file in *.{table}; do\n  mv "$file" "{function}_$file"\ndone',
        "import re\n{variable.v} = re.findall(r'[a-z]+@[a-z]+', text)\nprint(len({variable.v}))",
    ),
}

_CHANGE = (
    "Explain how it works, step by step.",
    "Add comments to the code.",
    "Write a test for it.",
    "What is its time complexity?",
    "Can you write the same in {language}?",
    "What happens if the input is empty?",
    "Make it faster.",
)

CODE = (
    Template("Write a function in {language} that {task}.", _CHANGE),
    Template("Write a {language} program that {task}, and show how to use it.", _CHANGE),
    Template("Write a {language} function that {task}. Do not use any library.", _CHANGE),
    Template("I need {language} code that {task} and then {task}.", _CHANGE),
    Template("Implement {structure} as a class in {language}.", _CHANGE),
    Template("Write a class for {structure} in {language}, with tests.", _CHANGE),
    Template("Explain {concept} with a short example in {language}.", _CHANGE),
    Template("What is the difference between {concept} and {concept}?"),
    Template("What does this code do?\n\n```\n{snippet}\n```", _CHANGE),
    Template("Rewrite this code in {language}:\n\n```\n{snippet}\n```", _CHANGE),
    Template("Is there a mistake in this code? It should print a number.\n\n{snippet}", _CHANGE),
    Template("Improve the names in this code and add comments:\n\n```\n{snippet}\n```", _CHANGE),
    Template("Write unit tests for this:\n\n```\n{snippet}\n```", _CHANGE),
    Template(
        "Write an SQL query on the table `{table.a}`: every {column} where {column.b} is above "
        "{10-900}, sorted by {column.b}.",
        ("Now only the first {3-20} rows.", "Group the result by {column}.", "Explain the query."),
    ),
    Template("Design SQL tables for {table} and {table}, with keys.", ("Add {2-4} rows to each.",)),
    Template("Write a regular expression that matches {2-5} digits, a dash and {2-8} letters."),
    Template("Write an HTML page about {hobby} with a heading, a list and a form.", ("Add CSS.",)),
    Template("Show me how to {function} a list of {table} in {language}.", _CHANGE),
    Template("How do I read a file line by line in {language}?", _CHANGE),
    Template("Give me {3-6} tips for {concept} in {language}."),
    Template("Write a command-line tool in {language} for {structure}.", _CHANGE),
    Template("Write pseudocode for a program that {task}.", ("Now write it in {language}.",)),
)
