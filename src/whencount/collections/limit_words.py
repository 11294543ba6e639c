"""Names and likes that the `limit` generator combines."""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


FIRST_NAMES = _words("""
Ada Alma Amir Anton Asha Aysel Beatriz Bela Boris Bruno Carla Cedric Chandra Clara Dario Delia
Dimitri Edda Elias Emre Esme Farid Fiona Gita Greta Hana Hector Ilse Imran Ines Ivo Jamila Joao
Jonas Kavya Keiko Kofi Lars Leila Lucio Mabel Malik Marta Mei Milos Nadia Nilo Noor Olga Omar
Petra Priya Quentin Rafael Renata Rohan Runa Salma Selim Sigrid Tamar Tariq Thea Tomas Uma Ursula
Vera Viktor Wanda Wen Xenia Yara Yusuf Zelda Zoran
""")

_FAMILY_BEGINNINGS = _words("""
Alder Ash Barn Beck Birch Black Brook Carl Cold Cross Dun East Elm Fair Fern Gold Grey Hazel Holm
Iron Kings Lang Lind Lock Marl Mill Moor North Oak Pem Quill Red Rose Sand Silver Stan Stone Thorn
Wald West White Wick Win Wood
""")

_FAMILY_ENDINGS = _words("""
bach bank berg bourne bridge by cliff combe croft dale den field ford gard gate grove ham hill
holt house hurst ley low man mark mere ridge son stead stock strom ton vale ville ward well wick
worth yard
""")

FAMILY_NAMES = [
    beginning + ending
    for beginning in _FAMILY_BEGINNINGS
    for ending in _FAMILY_ENDINGS
    if beginning.lower() != ending
]

LIKES = _words("""
Aardvarks Abacuses Accordions Acorns Acrobats Adzes Airships Albatrosses Almanacs Almonds Alpacas
Amaranth Amethysts Ammonites Amphorae Anagrams Anchors Anemones Anthems Antelopes Anvils Apricots
Aquariums Aqueducts Archery Armadillos Artichokes Asparagus Asters Astrolabes Atlases Auctions
Aubergines Auroras Avalanches Avocados Axolotls Azaleas Badgers Badminton Bagels Bagpipes
Balconies Ballads Ballet Balloons Bamboo Bananas Banjos Barley Barnacles Barometers Basil
Basilicas Bassoons Bats Bazaars Beadwork Beans Beavers Beech Beekeeping Beetles Beetroot Begonias
Bells Biathlon Bicycles Billiards Biographies Biscuits Bison Blackbirds Blankets Blizzards
Blueberries Bobsleighs Bonfires Bonsai Bookbinding Boomerangs Bouquets Bowling Bracelets Brambles
Brass Bridges Broccoli Brooches Buckwheat Buffets Bulldogs Bumblebees Bungalows Butterflies
Buttons Cabbages Cactuses Calendars Calligraphy Camels Campfires Canals Canaries Candles Cannons
Canoes Canyons Cappuccinos Capybaras Caramel Caravans Cardamom Carnivals Carousels Carpentry
Carrots Cartoons Cartwheels Cashews Castanets Castles Catacombs Caterpillars Cathedrals
Cauliflowers Caves Cellos Centipedes Ceramics Chameleons Chandeliers Chapels Charades Checkers
Cheetahs Cherries Chess Chestnuts Chickpeas Chimneys Chinchillas Chocolate Choirs Chrysanthemums
Cicadas Cider Cinemas Cinnamon Citadels Clarinets Cliffs Clocks Clouds Clover Coconuts
Codebreaking Coffee Coins Comets Compasses Concertos Corals Coriander Cormorants Corncobs Cottages
Cotton Couscous Coyotes Crabs Cranberries Cranes Crayons Crepes Cricket Crickets Crochet
Crocodiles Crocuses Croissants Croquet Crosswords Crystals Cucumbers Cuckoos Cumin Cupcakes
Curling Currants Curry Cycling Cymbals Cypresses Daffodils Dahlias Daisies Dams Dandelions Dates
Deltas Deserts Detectives Diamonds Diaries Dice Dinghies Dinosaurs Dolphins Dominoes Donkeys
Doorknobs Dragonflies Drawbridges Drums Ducks Dulcimers Dumplings Dunes Eagles Earrings Earthworms
Easels Echoes Eclipses Eels Egrets Elderflowers Elephants Elevators Elms Embroidery Emeralds
Encyclopedias Engravings Envelopes Epics Equations Escalators Essays Estuaries Eucalyptus Fables
Falafel Falconry Falcons Fans Farms Feathers Fencing Fennel Ferns Ferries Festivals Fiddles Figs
Finches Fireflies Fireplaces Fireworks Fjords Flags Flamenco Flamingos Flannel Flasks Flax Fleece
Flutes Fog Folklore Forests Forges Fossils Fountains Foxes Foxgloves Freesias Frescoes Frisbees
Frogs Frost Fudge Funiculars Galaxies Galleons Gardens Garlic Garnets Gazebos Gazelles Gears
Geckos Geese Genealogy Geodes Geometry Geraniums Geysers Gherkins Gibbons Ginger Giraffes Glaciers
Glassblowing Gliders Globes Gloves Gnomes Goats Goldfish Gondolas Gongs Gooseberries Gorges Gourds
Grammar Granite Grapefruit Grapes Grasshoppers Greenhouses Greyhounds Grouse Guavas Guitars Gulls
Gymnastics Hailstones Halibut Hammocks Hamsters Handball Harbors Hares Harmonicas Harps
Harpsichords Hats Hawks Hawthorns Hazelnuts Hearths Heather Hedgehogs Helicopters Herons Herrings
Hexagons Hibiscus Hieroglyphs Hiking Hippos Hockey Hollyhocks Honey Hornets Horses Horseradish
Hourglasses Hummingbirds Hurdles Hurricanes Hyacinths Hydrangeas Hyenas Hymns Ibises Icebergs
Icicles Iguanas Impalas Ink Irises Islands Ivory Ivy Jackals Jade Jaguars Jam Jars Jasmine
Javelins Jazz Jellyfish Jesters Jigsaws Jokes Judo Juggling Juniper Kale Kangaroos Karate Kayaks
Kestrels Kettles Keyboards Kilts Kimonos Kingfishers Kites Kiwis Knitting Koalas Kumquats
Labyrinths Lace Ladders Ladybirds Lagoons Lakes Lamps Lanterns Larches Larks Lasagna Lasers
Laurels Lavender Leeks Legends Lemmings Lemons Lemurs Lenses Lentils Leopards Letters Lettuce
Libraries Lichens Lighthouses Lightning Lilacs Lilies Limericks Limestone Linen Linguistics Lions
Liquorice Lizards Llamas Lobsters Locks Locomotives Locusts Logic Looms Lotuses Lullabies Lupins
Lutes Lynxes Lyres Macaroni Macaws Magnets Magnolias Magpies Mahogany Mallards Mammoths Manatees
Mandolins Mangoes Mangroves Maples Maps Marathons Marbles Marigolds Marimbas Marionettes Marjoram
Markets Marmalade Marmots Marshes Martens Masks Mazes Meadows Medals Meerkats Melons Meringues
Meteorites Metronomes Microscopes Milkshakes Millet Mills Mimosas Mines Minotaurs Mint Mirrors
Moats Mohair Moles Monasteries Mongooses Monoliths Monsoons Moons Moose Moss Mosaics Moths
Motorcycles Mountains Muffins Mulberries Mules Murals Mushrooms Musicals Mussels Mustard Myrtles
Mysteries Myths Nachos Narwhals Nasturtiums Nebulas Necklaces Nectarines Nettles Newts
Nightingales Noodles Novels Nutmeg Oaks Oases Oatmeal Obelisks Oboes Observatories Ocelots
Octopuses Okapis Okra Oleanders Olives Omelettes Onions Opals Operas Oranges Orangutans Orchards
Orchestras Orchids Oregano Organs Origami Ospreys Ostriches Otters Owls Oxen Oysters Paddleboats
Paella Pagodas Palaces Palindromes Palms Pancakes Pandas Pangolins Pansies Pantomimes Papayas
Paprika Papyrus Parachutes Parades Paradoxes Parakeets Parchment Parks Parrots Parsley Parsnips
Partridges Pastels Pastries Patchwork Pavilions Peaches Peacocks Peanuts Pearls Pears Pebbles
Pelicans Pencils Pendulums Penguins Peonies Peppermint Peppers Perfumes Periscopes Persimmons
Petunias Pheasants Philosophy Phonographs Photography Pianos Pickles Picnics Pigeons Pike
Pilgrimages Pineapples Pines Piranhas Pistachios Pizza Planetariums Planets Plankton Plateaus
Platypuses Plums Poetry Polkas Pomegranates Ponchos Ponies Poplars Poppies Porcelain Porcupines
Porridge Portraits Postcards Potatoes Pottery Prairies Prawns Pretzels Primroses Prisms Proverbs
Puddings Puffins Pulleys Pumas Pumpkins Puns Puppets Puzzles Pyramids Pythons Quails Quarries
Quartets Quartz Quasars Quiches Quicksand Quills Quilts Quinces Quinoa Quivers Rabbits Raccoons
Radios Radishes Rafts Railways Rainbows Raisins Ranches Rapids Raspberries Ravens Ravioli Reefs
Reindeer Relics Reptiles Rhinos Rhododendrons Rhubarb Rhymes Ribbons Riddles Ringtones Risotto
Rivers Robins Robots Rockets Rodeos Rooks Rosemary Roses Rowing Rubies Rugby Ruins Runes Saddles
Saffron Sailing Salads Salamanders Salmon Salsa Sandals Sandcastles Sandstone Sapphires Sardines
Satellites Satire Saunas Savannas Saxophones Scallops Scarves Schooners Scones Scooters Scorpions
Sculptures Seahorses Seals Seaweed Sequoias Serenades Sesame Shadows Shamrocks Sharks Sheep Shells
Sherbet Shipwrecks Shrimps Signposts Silk Skating Skiing Skylarks Sledges Sloths Snails Snorkels
Snowdrops Snowflakes Sonatas Sonnets Soups Spaghetti Sparrows Spiders Spinach Spirals Sponges
Spruces Squash Squids Squirrels Stables Stalactites Stamps Starfish Starlings Statues Steamboats
Stethoscopes Stilts Storks Strawberries Submarines Suitcases Sundials Sunflowers Surfing Sushi
Swallows Swamps Swans Swimming Swings Sycamores Symphonies Synagogues Syrup Tambourines Tango
Tangrams Tapestries Tapirs Tarantulas Tattoos Teapots Telegrams Telescopes Temples Tennis Tents
Termites Terraces Thermometers Thimbles Thistles Thunder Thyme Tides Tigers Toads Toboggans Toffee
Tofu Tomatoes Topaz Topiary Tornadoes Tortoises Totems Toucans Tractors Trampolines Trams Treasure
Trees Triangles Trilobites Trombones Trout Truffles Trumpets Tubas Tugboats Tulips Tundra Tunnels
Turmeric Turnips Turquoise Turtles Typewriters Ukuleles Umbrellas Unicycles Vanilla Vases Vaults
Velvet Verandas Viaducts Villages Vineyards Violas Violets Violins Volcanoes Volleyball Vultures
Waffles Wagons Walnuts Walruses Waltzes Warblers Wasabi Watercolors Waterfalls Watermelons
Waterwheels Weasels Weaving Wetlands Whales Wheat Wheelbarrows Whirlpools Whistles Willows
Windmills Windows Wisteria Wolverines Wolves Wombats Woodcuts Woodpeckers Wool Wrens Wrestling
Xylophones Yachts Yaks Yarn Yodeling Yoga Yogurt Yurts Zebras Zeppelins Zinnias Zithers Zodiacs
Zucchini
""")

MODIFIERS = _words("""
Ancient Bavarian Bronze Carved Coastal Copper Crimson Desert Floating Frozen Giant Gilded Glass
Golden Hidden Icelandic Indigo Japanese Marble Midnight Miniature Mountain Northern Painted Paper
Peruvian Purple Royal Scarlet Silent Silver Southern Spiral Striped Tiny Tropical Velvet Vintage
Wild Winter
""")
