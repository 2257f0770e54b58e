"""Words of the closed classes (articles, prepositions, pronouns, forms of "be" and "have") of languages tagged by a lexicon."""

from memory.openie.rules.languages import words as w

_DE = "d' de du des"
CLOSED: dict[str, dict[str, str]] = {
    "fr": {
        w.DETERMINER: "le la les l' un une ce cet cette ces son sa ses leur leurs mon ma mes notre nos votre vos chaque "
        "plusieurs quelques tout toute tous toutes certains certaines quel quelle",
        w.OF: _DE,
        w.PREPOSITION: "à au aux en dans par pour sur sous avec sans chez vers entre depuis pendant après avant contre "
        "comme selon jusque jusqu' dès parmi via lors hors",
        w.AUXILIARY: "est sont était étaient fut furent sera seront serait seraient soit a ont avait avaient eut aura auront "
        "aurait peut peuvent pouvait pourra doit doivent devait devra va vont reste devient devint",
        w.NONFINITE: "être avoir été eu étant ayant pouvoir devoir",
        w.PARTICLE: "aucun aucune ne n' pas jamais plus se s' rien",
        w.PRONOUN: "il elle ils elles on celui-ci celle-ci ceux-ci cela ça c' je j' nous vous tu y lui eux",
        w.CONJUNCTION: "et ou ni puis ainsi",
        w.SUBORDINATOR: "qui que qu' dont où quand lorsque lorsqu' si car puisque parce quoique bien-que afin comment pourquoi "
        "lequel laquelle lesquels lesquelles mais",
        w.ADVERB: "très aussi encore déjà souvent toujours ici là alors ensuite donc également notamment seulement même "
        "plutôt surtout parfois environ ailleurs enfin moins bien",
    },
    "es": {
        w.DETERMINER: "el la los las un una unos unas este esta estos estas ese esa esos esas su sus mi mis nuestro nuestra "
        "cada varios varias algunos algunas todo toda todos todas otro otra otros otras lo",
        w.OF: "de del",
        w.PREPOSITION: "a al en por para con sin sobre entre desde hasta hacia contra según durante tras ante bajo como "
        "mediante",
        w.AUXILIARY: "es son era eran fue fueron será serán sería sea está están estaba estaban estuvo ha han había habían "
        "puede pueden podía podrá debe deben debería va van hay",
        w.NONFINITE: "ser estar haber sido estado habido siendo estando poder deber",
        w.PARTICLE: "ningún ninguna no nunca se jamás ya",
        w.PRONOUN: "él ella ellos ellas ello esto eso yo nosotros usted ustedes le les me te nos",
        w.CONJUNCTION: "y e o u ni",
        w.SUBORDINATOR: "que quien quienes cual cuales donde cuando si porque aunque pues mientras cuyo cuya cómo pero sino",
        w.ADVERB: "muy también aún siempre aquí allí así entonces además sólo solo más menos casi luego después antes "
        "actualmente bien",
    },
    "it": {
        w.DETERMINER: "il lo la i gli le l' un uno una un' questo questa questi queste quest' quel quello quella quei quegli "
        "quelle suo sua suoi sue loro nostro nostra ogni alcuni alcune tutto tutta tutti tutte altri altre",
        w.OF: "di del dello della dei degli delle dell' d'",
        w.PREPOSITION: "a al allo alla ai agli alle all' da dal dallo dalla dai dagli dalle dall' in nel nello nella nei negli "
        "nelle nell' con su sul sullo sulla sui sugli sulle sull' per tra fra presso verso contro come secondo durante dopo "
        "prima senza tramite attraverso col",
        w.AUXILIARY: "è sono era erano fu furono sarà saranno sarebbe sia ha hanno aveva avevano ebbe può possono poteva potrà "
        "deve devono doveva viene vengono venne vennero veniva va vanno c'è",
        w.NONFINITE: "essere avere stato stata stati state avuto essendo potere dovere",
        w.PARTICLE: "non si s' mai",
        w.PRONOUN: "egli ella esso essa essi esse lui lei ciò io noi voi tu ne ci vi",
        w.CONJUNCTION: "e ed o od né",
        w.SUBORDINATOR: "che chi cui quale quali dove quando se perché poiché sebbene benché mentre affinché come-se ma però",
        w.ADVERB: "molto anche ancora già sempre qui là così poi inoltre solo soltanto più meno quasi quindi oggi bene",
    },
    "pt": {
        w.DETERMINER: "o a os as um uma uns umas este esta estes estas esse essa esses essas aquele aquela seu sua seus suas "
        "meu minha nosso nossa cada vários várias alguns algumas todo toda todos todas outro outra outros "
        "outras",
        w.OF: "de do da dos das d'",
        w.PREPOSITION: "ao à aos às em no na nos nas num numa por pelo pela pelos pelas para com sem sobre entre desde até "
        "contra segundo durante após ante sob como neste nesta nesse nessa deste desta através",
        w.AUXILIARY: "é são era eram foi foram será serão seria seja está estão estava estavam esteve tem têm tinha tinham "
        "teve há havia pode podem podia poderá deve devem deveria vai vão fica ficou",
        w.NONFINITE: "ser estar ter haver sido estado tido sendo estando poder dever",
        w.PARTICLE: "nenhum nenhuma não nunca se jamais",
        w.PRONOUN: "ele ela eles elas isto isso aquilo eu nós você vocês lhe lhes me te",
        w.CONJUNCTION: "e ou nem",
        w.SUBORDINATOR: "que quem qual quais onde quando se-bem porque embora pois enquanto cujo cuja caso mas porém",
        w.ADVERB: "muito também ainda já sempre aqui ali assim então além só mais menos quase depois antes hoje bem apenas",
    },
    "nl": {
        w.DETERMINER: "de het een dit dat deze die zijn haar hun mijn ons onze elk elke ieder iedere enkele sommige alle "
        "andere",
        w.OF: "van",
        w.PREPOSITION: "in op met voor door naar uit bij aan over onder tussen tegen tijdens na vanaf sinds tot zonder als via "
        "volgens rond langs binnen buiten te",
        w.AUXILIARY: "is was waren wordt worden werd werden heeft hebben had hadden kan kunnen kon konden moet moeten mag "
        "mogen zal zullen zou zouden wil",
        w.NONFINITE: "geweest gehad geworden",
        w.PARTICLE: "geen niet nooit zich",
        w.PRONOUN: "hij zij ze ik wij we jij u men hem er",
        w.CONJUNCTION: "en of noch",
        w.SUBORDINATOR: "om omdat wanneer terwijl hoewel indien zodat toen waar wie wat waarbij waarin waarmee hoe maar want",
        w.ADVERB: "ook nog al altijd vaak hier daar dan dus zeer heel slechts alleen meer minder bijna later nu enkel "
        "allereerst alsof",
    },
}

VERBS = {
    "pt": "permite permitem usa usam contém contêm fornece fornecem inclui incluem oferece oferecem mantém mantêm cria criam "
    "vive vivem trabalha trabalham nasce nasceu morre morreu fundou escreveu dirige dirigem instala instalam executa executam "
    "suporta suportam mostra mostram define definem pertence pertencem começa começam torna tornam recebe recebem utiliza "
    "utilizam existe existem faz fazem fez diz disse descreve descrevem gere gerem gerencia gerenciam substitui requer",
}
"""Finite forms that no ending gives away, of a language for which there is no lexicon."""

FINITE_ENDINGS = {
    "pt": ("ou", "eu", "iu", "aram", "eram", "iram", "ava", "avam", "ará", "arão", "erá", "erão", "irá", "irão"),
    "es": ("ó", "aron", "ieron", "aba", "aban"),
    "it": ("ò", "arono", "irono", "erono", "ette", "ettero"),
    "fr": ("èrent", "irent", "aient"),
    "nl": ("dde", "dden", "tte", "tten"),
}
PARTICIPLE_ENDINGS = {
    "fr": ("é", "ée", "és", "ées"),
    "es": ("ado", "ada", "ados", "adas", "ido", "ida", "idos", "idas"),
    "it": ("ato", "ata", "ati", "uto", "uta", "uti"),
    "pt": (
        "ado",
        "ada",
        "ados",
        "adas",
        "ido",
        "ida",
        "idos",
        "idas",
        "ído",
        "ída",
        "ídos",
        "ídas",
        "ando",
        "endo",
        "indo",
    ),
}
INFINITIVE_ENDINGS = {
    "fr": ("er", "ir"),
    "es": ("ar", "er", "ir"),
    "it": ("are", "ere", "ire"),
    "pt": ("ar", "er", "ir"),
}
ADVERB_ENDINGS = {"fr": ("ment",), "es": ("mente",), "it": ("mente",), "pt": ("mente",)}
