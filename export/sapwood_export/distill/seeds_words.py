"""Banks of words that several kinds of seeds draw from."""

from __future__ import annotations

import re


def bank(text: str) -> tuple[str, ...]:
    """The entries of a bank, written with commas or line ends between them."""
    return tuple(entry.strip() for entry in re.split(r"[,\n]", text) if entry.strip())


WORDS: dict[str, tuple[str, ...]] = {
    "person": bank("""
        Amara, Bruno, Chiara, Dmitri, Elif, Farah, Gustav, Hana, Ibrahim, Jolanda, Kofi, Leila,
        Mateo, Nadia, Olga, Pablo, Quentin, Rosa, Sven, Tomoko, Ursula, Viktor, Wanda, Xavier,
        Yusuf, Zofia, Anneke, Bashir, Carmen, Dario, Esther, Fergus, Greta, Henrik, Ines,
        Jasper, Katya, Ludo"""),
    "job": bank("""
        beekeeper, nurse, bus driver, carpenter, librarian, baker, electrician, violin teacher,
        surgeon, farmer, accountant, lighthouse keeper, gardener, firefighter, translator,
        watchmaker, plumber, park ranger, chemist, journalist, sailor, tailor, architect,
        postal worker, geologist, chef, astronomer, dentist, crane operator, football coach,
        museum guide, software developer"""),
    "place": bank("""
        Lisbon, Nairobi, Kyoto, Reykjavik, Buenos Aires, Marrakesh, Tallinn, Hanoi, Quito,
        Vancouver, Istanbul, Dakar, Krakow, Melbourne, Havana, Tbilisi, Edinburgh, Mumbai, Oslo,
        Santiago, Naples, Samarkand, Ljubljana, Cape Town, Kathmandu, New Orleans, Porto, Riga,
        Valencia, Zanzibar"""),
    "country": bank("""
        Portugal, Kenya, Japan, Iceland, Argentina, Morocco, Estonia, Vietnam, Ecuador, Canada,
        Turkey, Senegal, Poland, Australia, Cuba, Georgia, Scotland, India, Norway, Chile,
        Italy, Uzbekistan, Slovenia, South Africa, Nepal, Latvia, Spain, Tanzania, Peru,
        Indonesia, Finland, Mexico"""),
    "setting": bank("""
        a small harbour town, an abandoned railway station, a crowded night market,
        a mountain hut, a greenhouse in winter, the last bookshop in the city,
        a research ship in the Arctic, a village without electricity, a theatre before the show,
        a desert observatory, a school kitchen, an island with one road, a hospital at midnight,
        a repair shop for clocks, an orchard in autumn, a space station, a flooded valley,
        a quiet library, a train that never stops, an old vineyard"""),
    "animal": bank("""
        octopus, hedgehog, crow, otter, elephant, honeybee, salmon, fox, penguin, bat, tortoise,
        wolf, hummingbird, camel, dolphin, spider, owl, frog, kangaroo, seahorse, lynx, ant,
        whale, squirrel, flamingo, mole, eagle, beaver, jellyfish, donkey, swallow, gecko"""),
    "thing": bank("""
        umbrella, bicycle, kettle, compass, lantern, typewriter, ladder, backpack, violin,
        telescope, wooden chair, mirror, clock, blanket, teapot, toolbox, notebook, candle,
        suitcase, key, radio, camera, pair of boots, map, sewing machine, fountain pen,
        frying pan, rope, globe, hammock"""),
    "food": bank("""
        lentil soup, sourdough bread, apple pie, mushroom risotto, fried rice, pancakes,
        goulash, vegetable curry, dumplings, roasted pumpkin, fish tacos, hummus,
        pickled cucumbers, porridge, potato salad, ramen, cheese omelette, baked beans,
        spinach lasagne, plum jam, chicken stew, banana bread, paella, borscht, falafel,
        onion tart, rice pudding, grilled peppers"""),
    "hobby": bank("""
        chess, birdwatching, pottery, rock climbing, knitting, baking, kite flying, photography,
        woodcarving, gardening, juggling, hiking, calligraphy, swimming, stargazing,
        playing the cello, collecting stamps, fencing, origami, fishing, table tennis,
        learning Italian, cycling, brewing tea, writing letters, running,
        painting with watercolours, restoring furniture"""),
    "science": bank("""
        photosynthesis, black holes, plate tectonics, vaccines, magnetism, evolution,
        the water cycle, antibiotics, tides, the human heart, gravity, enzymes, earthquakes,
        rainbows, the immune system, radioactivity, the greenhouse effect, cell division,
        lightning, semiconductors, superconductivity, DNA replication, sound waves, volcanoes,
        the nitrogen cycle, sleep, hormones, entropy, lasers, the periodic table,
        ocean currents, the ozone layer, nuclear fusion, digestion, eclipses, memory,
        stem cells, fermentation, friction, the Doppler effect, osmosis, neurons, batteries,
        crystals"""),
    "history": bank("""
        the invention of printing, the Silk Road, the Roman aqueducts, the French Revolution,
        the Industrial Revolution, the fall of Constantinople, the Viking voyages,
        the Black Death, the building of the pyramids, the Renaissance, the Cold War,
        the abolition of slavery, the age of sail, the Meiji Restoration, the Ottoman Empire,
        women's suffrage, the Inca road system, the space race, the Hanseatic League,
        the Spanish flu, decolonisation in Africa, the Mongol Empire, the Great Depression,
        the history of the postal service, the Enlightenment, the Phoenicians"""),
    "idea": bank("""
        friendship, patience, curiosity, forgiveness, courage, boredom, honesty, solitude,
        ambition, gratitude, justice, freedom, nostalgia, humour, trust, beauty, failure,
        kindness, discipline, tradition, progress, responsibility, privacy, luck, hope, silence,
        change, loyalty"""),
    "issue": bank("""
        working from home, public transport, school uniforms, plastic packaging,
        artificial intelligence, social media, fast fashion, nuclear power, zoos,
        tourism in old towns, space exploration, electric cars, homework, noise in cities,
        sugar taxes, remote islands, video games, cash and digital money, meat and the climate,
        four-day working weeks, free museums, urban gardens, electronic voting, online learning,
        tipping, renting and owning a home, advertising to children, genetically modified crops,
        night trains, open-plan offices"""),
    "tone": bank("""
        formal, friendly, humorous, serious, poetic, plain, enthusiastic, dry, warm, dramatic,
        ironic, neutral, encouraging, melancholic, direct"""),
    "audience": bank("""
        a child of eight, a new colleague, my grandmother, a class of teenagers, a busy manager,
        a beginner, someone who has never heard of it, an expert from another field, a tourist,
        my neighbours, a curious friend, university students, retired engineers, new parents"""),
    "season": bank("spring, summer, autumn, winter, the rainy season, a heatwave, the first snow"),
    "weekday": bank("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
    "month": bank("""
        January, February, March, April, May, June, July, August, September, October, November,
        December"""),
    "product": bank("""
        a reusable water bottle, a pair of headphones, a folding bicycle, an herbal tea,
        a desk lamp, a language app, a rain jacket, a coffee grinder, a board game,
        a garden hose, a smart thermostat, a wooden toy train, a sleeping bag, a kitchen scale,
        a standing desk, a solar charger"""),
    "feeling": bank("""
        nervous, tired, excited, lonely, proud, confused, bored, relieved, worried, hopeful,
        annoyed, grateful, overwhelmed, curious"""),
    "event": bank("""
        a birthday party, a school fair, a wedding, a job interview, a neighbourhood clean-up,
        a charity run, a family reunion, a book club evening, a science workshop,
        a farewell dinner, a housewarming, a street concert, a chess tournament,
        a product launch, a camping weekend"""),
    "subject": (
        "{science}",
        "{science}",
        "{history}",
        "{issue}",
        "the {animal}",
        "{hobby}",
        "{food}",
        "{place}",
        "life as a {job}",
        "{idea}",
        "{country}",
    ),
}
