import type { Vocabulary } from "./vocabulary.ts";

/** German, French, Spanish, Portuguese, Italian, Dutch. */
export const WESTERN: readonly Vocabulary[] = [
  // German
  {
    nouns: ["\\b(?:be)?nutzer(?:name|konto|in)?\\b", "empfa?e?nger(?:in|adresse)?\\b", "postfach\\b", "mail-?box\\b"]
      .concat(["\\be?-?mail-?adresse\\b", "\\badresse\\b", "\\bkonto\\b", "\\baccount\\b", "teilnehmer", "anwender"])
      .concat(["@"]),
    stores: ["speicher\\S{0,12}", "\\bquota\\b"],
    unknown: ["unbekannt", "existiert (?:hier )?nicht", "nicht (?:mehr )?(?:bekannt|gefunden|vorhanden|existent)"]
      .concat([
        "ungu?e?ltig",
        "gibt es (?:hier )?nicht",
        "nicht \\(mehr\\) ",
        "nicht gu?e?ltig",
        "nicht (?:erreichbar|zustellbar|verfu?e?gbar)",
      ])
      .concat(["wurde gelo?e?scht"]),
    disabled: [
      "gesperrt",
      "deaktiviert",
      "inaktiv",
      "stillgelegt",
      "geschlossen",
      "abgeschaltet",
      "nicht aktiv",
    ].concat(["abgelaufen", "geku?e?ndigt"]),
    full: ["\\bvoll\\b", "u?e?berfu?e?llt", "u?e?berschritten", "erscho?e?pft", "kein speicher"],
    before: [
      "unbekannte[rsn]?",
      "ungu?e?ltige[rs]?",
      "kein(?:e|en)?(?: solche[rsn]?)?",
      "nicht (?:existierende|vorhandene)[rs]?",
    ],
    phrases: ["niemand unter (?:dieser|der|dem)"],
  },
  // French
  {
    nouns: ["utilisateur", "destinataire", "adresse", "boi?te", "compte", "usager", "abonne\\b", "@"],
    stores: ["\\bquota\\b", "espace"],
    unknown: [
      "inconnue?s?",
      "inexistante?",
      "n'? ?existe (?:pas|plus)",
      "introuvable",
      "invalide",
      "non trouvee?",
    ].concat([
      "n'est (?:pas|plus) valide",
      "non valide",
      "erronee?",
      "incorrecte?",
      "n'a pas ete trouve",
      "indisponible",
      "supprimee?",
    ]),
    disabled: [
      "desactivee?",
      "suspendue?",
      "inactive?",
      "fermee?",
      "bloquee?\\b",
      "est bloque\\b",
      "cloturee?",
      "resiliee?",
      "expiree?",
      "archivee?",
    ],
    full: ["pleine?\\b", "saturee?", "depassee?", "remplie", "insuffisant"],
    before: ["aucune?"],
  },
  // Spanish
  {
    nouns: ["usuario", "destinatario", "buzon", "cuenta", "direccion", "casilla", "correo", "persona", "@"],
    stores: ["\\bcuota\\b", "\\bquota\\b", "espacio", "almacenamiento"],
    unknown: [
      "desconocid[oa]",
      "no existe",
      "inexistente",
      "no (?:fue |ha sido |se )?(?:encontr|encuentr)",
      "invalid[oa]",
    ].concat([
      "no (?:es )?valid[oa]",
      "incorrect[oa]",
      "no (?:esta )?disponible",
      "eliminad[oa]",
      "no esta (?:registrad|dad)[oa]",
    ]),
    disabled: [
      "desactivad[oa]",
      "suspendid[oa]",
      "inactiv[oa]",
      "bloquead[oa]",
      "deshabilitad[oa]",
      "cancelad[oa]",
    ].concat(["cerrad[oa]", "dad[oa] de baja", "inhabilitad[oa]", "expirad[oa]", "caducad[oa]"]),
    full: ["llen[oa]\\b", "excedid[oa]", "superad[oa]", "sin espacio", "agotad[oa]", "insuficiente"],
    before: [
      "no existe (?:el|la|ningun|ese|esa|este|esta|dich[oa]|tal)",
      "no se (?:encontro|encuentra|reconoce) (?:el|la)",
    ],
    phrases: ["no hay (?:nadie|ningun usuario) con (?:ese|este)"],
  },
  // Portuguese
  {
    nouns: ["usuario", "utilizador", "destinatario", "\\bcaixa", "\\bconta\\b", "endereco", "e-?mail\\b", "@"],
    stores: ["\\bcota\\b", "\\bquota\\b", "espaco"],
    unknown: [
      "desconhecid[oa]",
      "nao (?:mais )?existe",
      "inexistente",
      "nao (?:foi )?(?:encontrad|localizad|cadastrad)[oa]",
    ].concat([
      "invalid[oa]",
      "nao e valid[oa]",
      "nao (?:esta )?(?:registrad|cadastrad)[oa]",
      "incorret[oa]",
      "indisponivel",
      "nao disponivel",
      "removid[oa]",
    ]),
    disabled: ["desativad[oa]", "suspens[oa]", "inativ[oa]", "bloquead[oa]", "desabilitad[oa]", "cancelad[oa]"].concat([
      "encerrad[oa]",
      "suspendid[oa]",
    ]),
    full: ["cheia\\b", "lotad[oa]", "excedid[oa]", "sem espaco", "estour\\w+", "esgotad[oa]", "insuficiente"],
    before: ["nao existe (?:o|a|esse|essa|este|esta)"],
  },
  // Italian
  {
    nouns: ["utente", "destinatario", "destin\\.? ", "casella", "indirizzo", "account", "mailbox", "@"],
    stores: ["\\bquota\\b", "spazio"],
    unknown: [
      "errat[oa]",
      "sconosciut[oa]",
      "inesistente",
      "non esist(?:e|ente)",
      "non (?:e stat[oa] )?trovat[oa]",
    ].concat([
      "non (?:e )?valid[oa]",
      "non piu (?:attiv|valid)[oa]",
      "non (?:e )?(?:presente|raggiungibile)",
      "rimoss[oa]",
      "non disponibile",
    ]),
    disabled: [
      "disattivat[oa]",
      "disabilitat[oa]",
      "sospes[oa]",
      "bloccat[oa]",
      "inattiv[oa]",
      "chius[oa]",
      "scadut[oa]",
    ].concat(["cessat[oa]"]),
    full: ["piena\\b", "pieno\\b", "superat[oa]", "esaurit[oa]", "insufficiente", "sovraccaric[oa]"],
    before: ["nessun[oa]?", "non esiste", "non esiste alcun[oa]?"],
  },
  // Dutch
  {
    nouns: [
      "gebruikers?",
      "ontvangers?",
      "geadresseerde",
      "postbus",
      "postvak",
      "mailbox",
      "account",
      "\\badres\\b",
    ].concat(["e-?mailadres", "@"]),
    unknown: ["onbekend", "bestaat (?:hier )?niet", "niet (?:gevonden|bekend|geldig)", "ongeldig", "niet beschikbaar"],
    disabled: ["geblokkeerd", "uitgeschakeld", "opgeheven", "gedeactiveerd", "niet actief", "gesloten", "inactief"],
    full: ["\\bvol\\b", "overschreden"],
    before: ["onbekende", "ongeldige?", "geen"],
  },
];
