// Passwords that are tried first, because many people have chosen them; data only, knows no rule but how it is asked.

/** Words that are bad however often they are repeated and whatever digits or signs stand before or behind them. */
const words = `
  password admin administrator root test guest user login pass passwd passwort motdepasse
  contrasena changeme default secret letmein welcome qwerty qwertz azerty master sluice gateway
  proxy server manager abc asdf zxcv hello sunshine iloveyou princess monkey dragon football
  baseball superman batman trustno winter spring summer autumn january february march april june
  july august september october november december monday sunday google facebook github docker
  linux ubuntu debian oracle mysql postgres temp temporary example demo sample public private
  access internet computer database company office love qaz wsx qwe asd zxc passphrase shadow
  mustang qazwsx jordan hunter harley zxcvbnm asdfgh buster soccer tigger charlie ranger hockey
  starwars pepper klaster zxcvbn freedom maggie ginger cheese chelsea dallas matrix yankees
  corvette austin thunder merlin diamond hammer silver gfhjkm samantha golfer scooter orange
  cookie maverick sparky phoenix mickey bigdog snoopy guitar whatever chicken camaro mercedes
  peanut ferrari falcon cowboy samsung steelers smokey dakota arsenal boomer eagles tigers marina
  nascar yellow porsche monster spider diablo hannah bulldog junior london purple compaq lakers
  iceman hardcore cowboys money banana boston tennis coffee scooby nikita yamaha mother barney
  brandy chester oliver player forever rangers midnight chicago redsox angel badboy fender jasper
  slayer rabbit natasha marine wizard marlboro raiders prince casper fishing flower jasmine adidas
  winner gandalf enter ghbdtn golden cocacola winston madison angels panther sophie asdfasdf
  toyota tiger canada liverpoo apples pokemon slipknot qazxsw scorpion qwaszx butter startrek
  rainbow asdfghjkl newyork redskins gemini cameron qazwsxedc florida liverpool turtle sierra
  viking booger doctor rocket dolphins captain bandit jaguar packers pookie peaches dolphin helpme
  theman maxwell qwertyui lovers maddog giants nirvana metallic hotdog rosebud mountain warrior
  stupid elephant success alexis lucky scorpio samson driver freddy sydney gators dexter bubba
  creative voodoo trouble america nissan gunner garfield asdfghjk apollo eminem legend airborne
  beavis apple brooklyn godzilla skippy buddy qwert kitten magic shelby phantom asdasd xavier
  braves darkness copper platinum qweqwe tomcat bigboy animal police online voyager lifehack
  sniper trinity blazer heaven lover snowball loveme bubbles cricket willow donkey topgun nintendo
  saturn destiny pakistan pumpkin digital sergey redwings explorer runner therock guinness
  lasvegas beatles christin celtic andrey broncos babygirl eclipse fluffy cartman michigan
  carolina testing alexande birdie pantera vampire mexico buffalo genius montana minecraft maximus
  flyers lovely stalker metallica doggie snickers speedy bronco paradise yankee horses magnum
  dreams lacrosse goober enigma qwertyu scotty bollocks surfer poohbear genesis qweasdzxc
`;

/** From lists of leaked passwords: those of ten characters and more that do not follow from a word above. */
const phrases = `
  mypassword nopassword newpassword qwertyuiop 1234567890 q1w2e3r4t5 1q2w3e4r5t 4815162342
  123456789a 1234554321 123456789q 1029384756 manchester 1qaz2wsx3edc 12345678910 q1w2e3r4t5y6
  1123581321 1q2w3e4r5t6y nuttertools 1122334455 qazwsxedcrfv 1234567890q terminator enterprise
  123456789z poiuytrewq rjirfrgbde fktrcfylhf a123456789 translator undertaker multiplelo
  motherlode rjycnfynby syncmaster aleksandra salamander montgom240 sersolution leavemealone
  realmadrid tinkerbell 123456654321 dragonball playstation ghostrider 1234567890a 1357924680
  gfhjkmgfhjkm microphone 1234567891 vsjasnel12 yjdsqgfhjkm strawberry anastasiya harrypotter
  abrakadabra alessandro 123456789s good123654 konstantin highlander ghjcnjgfhjkm tokiohotel
  sonyericsson evangelion zxcasdqwe123 pufunga7782 hellokitty ironmaiden roadrunner htubcnhfwbz
  123456789m vqsablpzla skateboard q123456789 friendster 123456789d vfntvfnbrf 0192837465
  alexander1 nthvbyfnjh azertyuiop 1qazxsw23edc 1234567899 1234509876 madagaskar dragonballz
  abracadabra rfhfvtkmrf ronaldinho supersonic ghjcnbnenrf qwerasdfzxcv greedisgood cheerleaers
  flvbybcnhfnjh 123456789r 123456789987654321 blackberry 1020304050 112233445566 z1x2c3v4b5
  mastermind 1357908642 123456789v q1q2q3q4q5 finalfantasy ghbdtnrfrltkf 1z2x3c4v5b spiderman1
  0987654321q websolutions 1234567890z 123456789o losangeles a1b2c3d4e5 christophe wachtwoord
  chickenwing101 1qaz2wsx3edc4rfv a1s2d3f4g5 quant4307s ghbdtndctv vflfufcrfh babemagnet
  lamborghini justinbieber lockerroom casablanca armageddon knickerless evanescence qawsedrftg
  1a2s3d4f5g comicbookdb braveheart 1213141516 yfnfitymrf 123456789p maximilian needforspeed
  devilmaycry shevchenko montecarlo 123456789l businessbabe zxcvb12345 1a2b3c4d5e 123456789123
  uncencored callofduty 12345678900 volkswagen 0000000000o spartan117 12345654321 pathfinder
  asdfg12345 watermelon astalavista summertime dhjnvytyjub cxfcnkbdfz 123456789k dkflbvbhjdbx
  17171717aa deutschland aleksander qazwsxedcrfvtgb darthvader lifeisgood a1a2a3a4a5 badnaamhere
  0102030405 dkflbvbhjdyf bondarenko mostwanted opensesame goldfinger limpbizkit thunderbird
  counterstrike solidsnake zcxfcnkbdf bladerunner chocolate1 jediknight zaq1xsw2cde3 1a2a3a4a5a
  vfvfvskfhfve angelofwar ghjcnjghjcnj q1234567890 fkmnthyfnbdf hondacivic ctdfcnjgjkm 123456789n
  salamandra smallville qazxswedcvfr ilovemyself galatasaray qwertyasdfgh cyberonline cvzefh1gkc
  qwertasdfg azsxdcfvgb sailormoon jesuschrist darkknight 1111111111zz 1q2q3q4q5q oc247ngucz
  psychnaut1 whosyourdaddy 1223334444 123456789w astonvilla 123123123q fktrcfylhjdyf fktrcfylhjdbx
  cnjvfnjkju mickeymouse trustnoone 541233432442 fgjrfkbgcbc 1111122222 12345trewq 0147896325
  12345678900987654321 bestfriend qpwoeiruty ghbdtnghbdtn firefighter 010203040506 lost4815162342
  birthday21 12345zxcvb venom121293 neveragain moneymaker 51051051051 cxfcnmttcnm 102030405060
  vanyarespekt 123456789g 1234567890s letmeinnow hellraiser dbrnjhjdbx rhbcnbyjxrf combat123654
  vyjujnjxbt quicksilver depechemode 123456789x zaratustra devilmaycry4 matematika devildriver
  efbcapa201 iseedeadpeople helloworld 123456789qqq jamesbond007 rkfdbfnehf iddqdidkfa ledzeppelin
  123123123a a987654321 4815162342lost superduper rfnfcnhjaf 123456789t 123456789b qq123456789
  qwertyytrewq 1112131415 3141592654 1234567890qw 12345678912 1234qwerasdf 123qwe456rty goodfellas
  computador elizabeth1 ghjcnjrdfibyj ybrjkftdbx kamehameha zx123456789 hellothere 1357997531
  1122112211 qwertyuiop123 deerhunter 123456789f clubpenguin primetime21 q1w2e3r4t5y6u7 birthday54
  111222333a stalingrad desperados apokalipsis fenerbahce rfnfgekmnf qwertyuiop1 jetbalance
  1qa2ws3ed4rf juggernaut 123456789qw puertorico amsterdam1 rfkmrekznjh z123456789 wishmaster
  dbrnjhjdyf ptybnxtvgbjy verygoodbot wenef45313 cheburashka unforgiven iaapptfcor gunslinger
  cyjdsvujljv vfylfhbyrf skorpion39 123456789qq 12345678987654321 deltaforce masterchief
  ajcuivd289 s456123789 applesauce mevefalkcakk playstation3 firestarter birthday299
  31217221027711 justforfun necromancer lkjhgfdsaz roflcopter supermanboy cannondale sevastopol
  beautiful1 dragonfire q1w2e3r4t5y6u7i8 cyecvevhbr 123456789aa sanandreas byajhvfnbrf
  zqjphsyf6ctifgu oldsmobile 4815162342a chessmaster gthtcnhjqrf lhbjkjubz2957704 superpuper
  lightsaber kingfisher newzealand andrewjackie tigerwoods networkingpe 12qw34er56ty
  1qazxsw23edcvfr4 sidewinder dodgeviper ghjrehfnehf ladyffesta 159753456852 olegnaruto
  1234567890w 123456782000 hypnodanny ghbdtngjrf mastercard loveislife jesusislord rjhjkmbien
  fcbarcelona christopher1 abcde12345 angelochek ingodwetrust digitalprodu reanimator 1234554321q
  whatthehell streetball alphaomega deeppurple cegthgfhjkm 1236547890 winnipeg261 kbnthfnehf
  a1234567890 runescape1 123456789i peanutbutter 12345abcde anastasija 123456789as vfhufhbnrf
  1234567890zzz ghjcnjrdfif mangust6403 christian1 rammstein1 olcrackmaster rfhfrfnbwf ontherocks
  flintstone lfplhfgthvf cegthgegth
`;

const toSet = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

export const commonWords = toSet(words);
export const commonPhrases = toSet(phrases);
