import type { Vocabulary } from "./pattern.ts";

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
        "nicht (?:zustellbar|verfu?e?gbar)",
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
    unchecked: [
      "nicht (?:\\S{1,16} ){0,2}?(?:u?e?berpru?e?f|gepru?e?ft|pru?e?fen|verifizier|validier|besta?e?tigt|ermittel|aufgelo?e?st|kontaktier|erreich|kontrollier|feststell|festgestellt)",
    ],
    failedChecks: [
      "(?:pru?e?fung|verifizierung|verifikation|validierung|ermittlung|abfrage)\\b[^.;]{0,40}? (?:fehlgeschlagen|gescheitert|nicht mo?e?glich|unmo?e?glich|abgebrochen|misslungen|schlug fehl)",
      "unmo?e?glich[^.;]{0,40}? zu (?:u?e?berpru?e?fen|pru?e?fen|verifizieren|validieren|erreichen|ermitteln)",
    ],
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
    unchecked: [
      "(?:impossible|incapable|pas possible|pas pu|peut pas|peux pas|pouvons pas|pu) (?:de |d')?(?:\\S{1,12} ){0,2}?(?:verifier|valider|confirmer|controler|resoudre|determiner|contacter|joindre|atteindre|consulter)",
      "(?:pas|jamais) (?:pu |peut )?(?:etre|ete) (?:verifie|valide|confirme|controle|resolu|determine|contacte|joint|atteint|consulte)",
      "injoignable|non verifie|(?:peut|peuvent) (?:pas )?etre (?:verifie|valide|confirme|controle|resolu|determine|contacte|joint|atteint)",
    ],
    failedChecks: [
      "(?:verification|validation|controle|resolution|consultation)\\b[^.;]{0,40}? (?:a |est |en )?(?:echou|echec|impossible)",
      "(?:echec|erreur) (?:de |d'|lors |pendant )[^.;]{0,24}?(?:verification|validation|controle|resolution)",
    ],
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
    unchecked: [
      "(?:no (?:se )?(?:pudo|puede|pudieron|pude|ha podido|pudimos|logro|fue posible|es posible|ha sido posible)|imposible|incapaz de|(?:fallo|error) (?:al|en)) (?:\\S{1,12} ){0,2}?(?:verific|valid|confirm|comprob|resolv|resuelt|determin|contact|consult|alcanz)",
      "(?:fallo|error) (?:de|en|durante) (?:\\S{1,4} )?(?:verificacion|validacion|comprobacion|resolucion|consulta)",
      "no (?:ha sido |fue |esta )?(?:verificad|validad|confirmad|comprobad|contactad|alcanzad)",
    ],
    failedChecks: [
      "(?:verificacion|validacion|comprobacion|resolucion|confirmacion|consulta)\\b[^.;]{0,40}? (?:fallid|fallo|ha fallado|imposible|no completad|incomplet)",
    ],
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
    unchecked: [
      "(?:nao (?:foi possivel|e possivel|pode|pude|podemos|consegu\\w+|se pode)|impossivel|incapaz de|(?:falha|erro) ao) (?:\\S{1,12} ){0,2}?(?:verific|valid|confirm|comprov|resolv|determin|contat|contact|consult|alcanc)",
      "(?:falha|erro) (?:na|de|da|durante a) (?:verificacao|validacao|confirmacao|resolucao|consulta)",
      "nao (?:foi )?(?:verificad|validad|confirmad|contatad|contactad|alcancad)",
    ],
    failedChecks: [
      "(?:verificacao|validacao|confirmacao|resolucao|consulta)\\b[^.;]{0,40}? (?:falhou|falhad|impossivel|nao concluid|sem sucesso|incomplet)",
    ],
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
      "non (?:e )?presente",
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
    unchecked: [
      "(?:impossibile|non (?:e stato possibile|e possibile|puo|ha potuto|si puo|riesc\\w+|si e potut\\w)|incapace di|errore (?:nel|durante)|fallit[oa] nel) (?:\\S{1,12} ){0,2}?(?:verific|valid|conferm|controll|risol|determin|contatt|raggiung)",
      "(?:errore|fallimento) (?:di|nella|durante la) (?:verifica|validazione|risoluzione)",
      "non (?:e stat[oa] |e )?(?:verificat|verificabil|validat|controllat|confermat|contattat|raggiungibil|raggiunt)",
    ],
    failedChecks: [
      "(?:verifica|validazione|controllo|conferma|risoluzione)\\b[^.;]{0,40}? (?:fallit|non riuscit|impossibile|non possibile|incomplet)",
    ],
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
    unchecked: [
      "niet (?:\\S{1,12} ){0,2}?(?:verifie|geverifieerd|gecontroleerd|controleren|gevalideerd|valideren|bevestig|bereik|vastgesteld|vaststellen|opgezocht|opzoeken|gecontacteerd)",
    ],
    failedChecks: [
      "(?:verificatie|controle|validatie|bevestiging)\\b[^.;]{0,40}? (?:mislukt|niet mogelijk|onmogelijk|niet gelukt)",
      "onmogelijk (?:om )?[^.;]{0,40}? te (?:verifieren|controleren|valideren|bereiken|bevestigen)",
    ],
  },
];
