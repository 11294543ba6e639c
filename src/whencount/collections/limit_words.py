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
Aardvarks Abacuses Abalone Abbeys Acacias Accordions Acorns Acrobats Adzes Aerobics Agates
Airships Albatrosses Alligators Almanacs Almonds Aloe Alpacas Alphabets Amaranth Amethysts
Ammonites Amphorae Amulets Anagrams Anchors Anchovies Anemones Angelfish Antelopes Anthems
Antiques Anvils Apricots Aprons Aquariums Aqueducts Archery Arches Arias Armadillos Armchairs
Arrows Artichokes Asparagus Asters Astrolabes Atlases Aubergines Auctions Auroras Autobiographies
Avalanches Avocados Axolotls Azaleas Baboons Backgammon Backpacks Badgers Badminton Bagels
Bagpipes Baguettes Baking Balconies Ballads Ballet Balloons Bamboo Bananas Bandanas Banjos Baobabs
Barges Barley Barnacles Barns Barometers Baroque Baseball Basil Basilicas Baskets Bassinets
Bassoons Bathtubs Batik Bats Battlements Bayous Bazaars Beaches Beacons Beadwork Beans Bears
Beavers Beds Beech Beekeeping Beetles Beetroot Begonias Bellflowers Bells Belts Benches Biathlon
Bicycles Billiards Biographies Birches Birdbaths Birdhouses Birdsong Biscuits Bison Blackbirds
Blankets Blizzards Bluebells Blueberries Blues Boats Bobcats Bobsleighs Bonfires Bongos Bonsai
Bookbinding Books Boomerangs Boots Bottles Boulders Bouquets Bowling Boxing Bracelets Brambles
Brass Bread Breakwaters Bricks Bridges Brocade Broccoli Brooches Brownies Brushes Bubbles Buckets
Buckwheat Buffaloes Buffets Bugles Bulldogs Bumblebees Bungalows Buoys Burritos Buses Bustards
Buttercups Butterflies Butterscotch Buttons Cabbages Cabins Cables Cabooses Cactuses Cakes
Calculus Calendars Calligraphy Camellias Camels Cameos Cameras Campfires Camping Canals Canaries
Candles Candy Cannons Canoes Canvas Canyons Capers Capes Cappuccinos Capybaras Caramel Caravans
Cardamom Cardigans Cards Caribou Carnations Carnivals Carousels Carpentry Carpets Carrots
Cartography Cartoons Cartwheels Cashews Casseroles Castanets Castles Catacombs Catamarans
Caterpillars Catfish Cathedrals Cats Cattle Cauliflowers Caves Caviar Cedars Celery Cellos
Centipedes Ceramics Chairs Chameleons Champagne Chandeliers Chapels Charades Charcoal Charts
Checkers Cheese Cheesecakes Cheetahs Chemistry Cherries Chess Chestnuts Chickens Chickpeas Chicory
Chimneys Chinchillas Chisels Chives Chocolate Choirs Chrysanthemums Chutney Cicadas Cider Cinemas
Cinnabar Cinnamon Circuses Citadels Cities Clams Clarinets Classics Clay Cliffs Cloaks Clocks
Clogs Clouds Clover Coats Cobras Cobwebs Cockatoos Coconuts Cod Codebreaking Coffee Coins Collages
Colonnades Comedies Comets Compasses Concertos Condors Constellations Cookies Copper Coracles
Corals Coriander Cork Cormorants Corncobs Corsets Cottages Cotton Couscous Cowboys Coyotes Crabs
Crackers Crags Cranberries Cranes Crayfish Crayons Crepes Cricket Crickets Crime Crochet
Crocodiles Crocuses Croissants Croquet Crosswords Crowns Crows Crystals Cubism Cuckoos Cucumbers
Cumin Cupboards Cupcakes Curling Currants Curry Curtains Cushions Cutlery Cycling Cymbals
Cypresses Daffodils Dahlias Daisies Dalmatians Dams Dancing Dandelions Darts Dates Debates Deer
Deltas Denim Deserts Desks Detectives Dialects Diamonds Diaries Dice Dinghies Dinosaurs Diving
Dogs Dolls Dolphins Dominoes Donkeys Doorknobs Doors Doves Dragonflies Dragons Drama Drawbridges
Drawings Dreams Driftwood Drones Drums Ducks Dulcimers Dumplings Dunes Dungeons Eagles Earrings
Earthenware Earthworms Easels Echoes Eclipses Edelweiss Eels Egrets Elderflowers Elephants
Elevators Elms Embers Embroidery Emeralds Emus Enamel Encyclopedias Engravings Envelopes Epics
Equations Escalators Essays Estuaries Etchings Etymology Eucalyptus Fables Fairies Falafel
Falconry Falcons Fans Farmers Farms Feathers Fencing Fennel Ferns Ferrets Ferries Festivals
Fiction Fiddles Figs Finches Fireflies Fireplaces Fireworks Fishing Fjords Flags Flamenco
Flamingos Flannel Flasks Flatbread Flax Fleece Flint Flounders Flowers Flutes Fog Folklore
Football Forests Forges Forks Fortresses Fossils Fountains Foxes Foxgloves Freesias Frescoes
Frisbees Fritters Frogs Frost Fruitcakes Fuchsias Fudge Fugues Funiculars Furniture Gables Gadgets
Galaxies Galleons Gardens Gargoyles Garlic Garnets Gates Gazebos Gazelles Gears Geckos Geese Gems
Genealogy Geodes Geometry Geraniums Geysers Gherkins Ghosts Gibbons Ginger Gingerbread Giraffes
Glaciers Glassblowing Gliders Glitter Globes Gloves Gloxinias Gnomes Goats Goldfish Golf Gondolas
Gongs Gooseberries Gorges Gourds Gowns Graffiti Grammar Granite Grapefruit Grapes Graphs
Grasshoppers Gravel Greenhouses Greyhounds Grouse Guavas Guillemots Guitars Gulfs Gulls Gumdrops
Gymnastics Haiku Hail Hailstones Halibut Hammers Hammocks Hamsters Handball Handkerchiefs Harbors
Hares Harmonicas Harnesses Harps Harpsichords Hats Hawks Hawthorns Haystacks Hazelnuts Headphones
Hearths Heather Hedgehogs Hedges Helicopters Helmets Herbs Herons Herrings Hexagons Hibiscus
Hieroglyphs Hiking Hills Hippos Histories Hockey Holly Hollyhocks Homework Honey Hoods Hoops
Hornets Horseradish Horses Hotels Hourglasses Houseboats Hummingbirds Hurdles Hurricanes Huts
Hyacinths Hydrangeas Hyenas Hymns Ibises Icebergs Icicles Icons Igloos Iguanas Illusions Impalas
Incense Ink Insects Inventions Irises Iron Islands Ivory Ivy Jackals Jackdaws Jackets Jade Jaguars
Jam Jars Jasmine Javelins Jazz Jeeps Jelly Jellyfish Jesters Jewelry Jigs Jigsaws Jokes Journals
Judo Juggling Jungles Juniper Jute Kale Kaleidoscopes Kangaroos Karate Kayaks Kebabs Kestrels
Kettles Keyboards Keys Kilns Kilts Kimonos Kingfishers Kiosks Kites Kittens Kiwis Knights Knitting
Knots Koalas Kumquats Labyrinths Lace Ladders Ladybirds Lager Lagoons Lakes Lambs Lamps Landscapes
Languages Lanterns Lapwings Larches Larks Lasagna Lasers Laundry Laurels Lava Lavender Leather
Leeks Legends Lego Lemmings Lemonade Lemons Lemurs Lenses Lentils Leopards Letters Lettuce
Libraries Libretti Lichens Lifeboats Lighthouses Lightning Lights Lilacs Lilies Limericks Limes
Limestone Linen Linguistics Lions Lipstick Liquorice Litchis Lizards Llamas Llanos Loaves Lobsters
Lockets Locks Locomotives Locusts Logic Logos Lollipops Looms Lotuses Lullabies Lupins Lutes
Lynxes Lyres Macaroni Macaws Machines Magazines Magic Magnets Magnolias Magpies Mahogany Mallards
Mammoths Manatees Mandarins Mandolins Mangoes Mangroves Manors Manuscripts Maples Maps Marathons
Marbles Marigolds Marimbas Marionettes Marjoram Markets Marmalade Marmots Marshes Martens Marzipan
Masks Mathematics Mazes Meadows Meatballs Medals Medicine Meerkats Megaliths Melons Memoirs
Meringues Mermaids Meteorites Metronomes Mice Microscopes Milk Milkshakes Millet Mills Mimosas
Mines Minotaurs Mint Mirrors Mittens Moats Mohair Moles Monasteries Mongooses Monkeys Monoliths
Monsoons Monuments Moons Moose Mopeds Mosaics Moss Motets Moths Motorcycles Mountains Mousse
Muffins Mugs Mulberries Mules Mummies Murals Museums Mushrooms Music Musicals Mussels Mustard
Myrtles Mysteries Myths Nachos Napkins Narwhals Nasturtiums Nebulas Necklaces Nectarines Needles
Nests Nets Nettles Neuroscience Newts Nightingales Noodles Nougat Novels Nurseries Nutmeg Nuts
Nylon Oaks Oars Oases Oatcakes Oatmeal Obelisks Oboes Observatories Oceans Ocelots Octagons
Octopuses Odes Okapis Okra Oleanders Olives Olympics Omelettes Onions Opals Operas Optics Oranges
Orangutans Oratorios Orchards Orchestras Orchids Oregano Organs Origami Ospreys Ostriches Otters
Ovens Overtures Owls Oxen Oysters Paddleboats Paella Pagodas Paintings Pajamas Palaces Palindromes
Palms Pancakes Pancetta Pandas Pangolins Panpipes Pansies Panthers Pantomimes Papayas Paper
Paprika Papyrus Parables Parachutes Parades Paradoxes Paragliding Parakeets Parasols Parchment
Parks Parquet Parrots Parsley Parsnips Partridges Pasta Pastels Pastries Patchwork Paths Patios
Pavilions Peaches Peacocks Peanuts Pearls Pears Peas Pebbles Pediments Pelicans Pencils Pendulums
Penguins Pens Peonies Peppermint Peppers Perch Perfumes Periscopes Persimmons Pesto Petunias
Pewter Pheasants Philosophy Phonographs Photography Physics Pianos Pickles Picnics Pies Pigeons
Pigs Pike Pilgrimages Pillows Pilots Pinball Pineapples Pines Piranhas Pirates Pistachios Pizza
Planetariums Planets Plankton Plateaus Plates Platypuses Playgrounds Plazas Pliers Plums Poetry
Polkas Polo Pomegranates Ponchos Ponds Ponies Popcorn Poplars Poppies Porcelain Porches Porcupines
Porridge Portraits Ports Postcards Posters Potatoes Pottery Prairies Prawns Prayers Preludes
Pretzels Primroses Printing Prisms Proverbs Prunes Psalms Puddings Puffins Pulleys Pullovers Pumas
Pumice Pumpkins Puns Puppets Puzzles Pyramids Pyrites Pythons Quails Quarries Quartets Quartz
Quasars Quays Quiches Quicksand Quills Quilts Quinces Quinoa Quivers Quizzes Rabbits Raccoons
Radios Radishes Rafts Railways Rain Rainbows Rainforests Raisins Ramps Ranches Rapids Raspberries
Rattles Ravens Ravioli Recipes Recorders Reeds Reefs Reggae Reindeer Relays Relics Reptiles
Requiems Rhapsodies Rhinos Rhododendrons Rhubarb Rhymes Ribbons Rice Riddles Rings Ringtones
Risotto Rivers Rivets Roads Robins Robots Rockets Rocks Rodeos Romances Roofs Rooks Ropes Rosemary
Roses Roundabouts Rowing Rubies Rugby Rugs Ruins Runes Rye Saddles Saffron Sagas Sailing Salads
Salamanders Salmon Salsa Samba Sandals Sandcastles Sandstone Sapphires Sardines Satellites Satin
Satire Saucers Saunas Sausages Savannas Saws Saxophones Scallops Scarves Schooners Scones Scooters
Scorpions Scrapbooks Screws Sculptures Seagrass Seahorses Seals Seas Seaweed Seeds Semaphores
Sequoias Serenades Sesame Shadows Shamrocks Sharks Shawls Sheep Shells Shelves Sherbet Shipwrecks
Shipyards Shoes Shrimps Shrines Shutters Sidewalks Signposts Silk Singing Skating Skiing Skirts
Skylarks Skyscrapers Slates Sledges Sleet Slippers Sloths Smoke Snails Snakes Snooker Snorkels
Snow Snowdrops Snowflakes Soap Soccer Socks Sofas Softball Sonatas Songs Sonnets Soups Spades
Spaghetti Sparrows Spears Spelling Spices Spiders Spinach Spirals Spires Sponges Spoons Springs
Spruces Squares Squash Squids Squirrels Stables Stadiums Stags Stairs Stalactites Stamps Starfish
Starlings Stars Stations Statues Steamboats Stethoscopes Stews Stilts Stools Storks Storms Stoves
Strawberries Streams Submarines Sugar Suitcases Sundials Sunflowers Sunrises Sunsets Surfing Sushi
Swallows Swamps Swans Sweaters Swimming Swings Swords Sycamores Symphonies Synagogues Syrup Tables
Tadpoles Tailors Tambourines Tango Tangrams Tapestries Tapirs Tarantulas Tarts Tattoos Taxis Tea
Teak Teapots Teddies Telegrams Telescopes Temples Tennis Tents Termites Terraces Theaters Theology
Thermometers Thimbles Thistles Thrillers Thunder Thyme Tides Ties Tigers Tiles Tinsel Toads Toast
Toboggans Toffee Tofu Tomatoes Tools Topaz Topiary Tornadoes Tortoises Totems Toucans Toys Tracks
Tractors Trains Trampolines Trams Traps Trays Treasure Trees Trellises Triangles Trilobites
Trombones Trousers Trout Trucks Truffles Trumpets Tubas Tugboats Tulips Tundra Tunes Tunnels
Turbines Turbots Turmeric Turnips Turquoise Turtles Tuxedos Twilight Typewriters Typhoons Ukuleles
Umbrellas Unicorns Unicycles Urns Valleys Vampires Vanilla Vans Vases Vaults Veils Velvet Verandas
Vests Viaducts Villages Vinegar Vines Vineyards Violas Violets Violins Virtues Volcanoes
Volleyball Volumes Vultures Waffles Wagons Wallets Wallpaper Walls Walnuts Walruses Waltzes Wands
Warblers Wardrobes Wasabi Watches Water Watercolors Waterfalls Watermelons Waterwheels Waves Wax
Weasels Weather Weaving Wells Wetlands Whales Wheat Wheelbarrows Whirlpools Whistles Wigs Willows
Windmills Windows Wine Wings Wisteria Wizards Wolverines Wolves Wombats Woodcuts Woodlands
Woodpeckers Wool Workshops Wrens Wrestling Xylophones Yachts Yaks Yarn Yews Yodeling Yoga Yogurt
Yurts Zebras Zeppelins Zinnias Zithers Zodiacs Zucchini
""")

MODIFIERS = _words("""
Ancient Bavarian Bronze Carved Coastal Copper Crimson Desert Floating Frozen Giant Gilded Glass
Golden Hidden Icelandic Indigo Japanese Marble Midnight Miniature Mountain Northern Painted Paper
Peruvian Purple Royal Scarlet Silent Silver Southern Spiral Striped Tiny Tropical Velvet Vintage
Wild Winter
""")
