import { anyOf } from "./pattern.ts";

const BEHIND_THE_SCENES = anyOf(
  ["ldap", "dns", "database", "data base", "directory", "back-?end", "(?:my)?sql", "redis", "radius", "milter"],
  [
    "active directory",
    "recipient cache",
    "(?:recipient|user|address) (?:map|table|service)",
    "mail ?store",
    "storage server",
    "policy server",
    "auth(?:entication)? server",
  ],
);

/** Servers that are asked behind the one that replies. */
const UPSTREAM = anyOf(
  [
    "upstream",
    "(?:internal|backend|inner|next|remote|destination|target|final|home|mail|imap|lmtp|delivery|receiving|recipient(?:'?s)?|user'?s) (?:mail )?(?:server|host|system|hop)",
  ],
  ["mailbox server", "exchange server", "the server behind", "verification (?:server|service)"],
);

/** The server could not look it up: a backend failed, so its "unknown" is not definite. */
export const LOOKUP_FAILED: readonly string[] = [
  "\\blook-?ups? (?:has |have )?(?:failed|failures?|errors?|problems?|time)",
  `\\b${BEHIND_THE_SCENES} (?:\\S{1,16} )?(?:failures?|errors?|problems?|unavailable|unreachable|timed|timeout|time-out|offline|is down|not (?:available|reachable|responding|connected))`,
  `\\b${BEHIND_THE_SCENES} (?:look-?up|query|search|bind|connection|connect|request|server) (?:has )?(?:failed|failure|error)`,
  "\\b(?:could not|couldn't|cannot|can't|can not|unable to|failed to|failure to|error|problem|failed) (?:connect|contact|query|connecting|contacting|querying)\\b",
  `\\b(?:could not|couldn't|cannot|can't|can not|unable to|failed to) (?:reach|access|open|read|lock|bind to|talk to) (?:the |our |a |an )?(?:\\S{1,20} )?${anyOf(BEHIND_THE_SCENES, "server", "mailbox", "mail ?drop", "lock ?file", "spool")}`,
  "\\bconnect(?:ion|ing)? to \\S{1,80} (?:\\S{1,16} )?(?:failed|refused|lost|reset|timed|timeout)|\\bconnect to \\S{1,80}:? (?:no route|operation|network|host)",
  `\\b${anyOf(BEHIND_THE_SCENES, UPSTREAM)} (?:\\S{1,40} ){0,3}?${anyOf("(?:could not|couldn't|cannot|can't) be (?:reached|contacted|queried|asked)", "(?:did not|didn't|does not|doesn't|is not|not) (?:answer|respond|reply)\\w{0,3}", "(?:is )?(?:unreachable|not reachable|unresponsive)")}\\b`,
  "\\bnetwork (?:is )?(?:unreachable|down)\\b|\\bno route to host\\b|\\bhost (?:is )?(?:unreachable|down)\\b|\\bconnection (?:was )?(?:refused|reset|lost|aborted) by\\b",
  "\\btime(?:d)?[ -]?out\\b|\\bmaintenance\\b|\\bverification (?:\\S{1,16} ){0,3}(?:unavailable|not available|not found|offline|impossible)|\\bno (?:answer|response|reply) from\\b|\\bcall-?out (?:to \\S{1,64} )?(?:has )?(?:failed|failure|error)",
];

/** Only for now: a later attempt may get another reply. */
export const FOR_NOW: readonly string[] = [
  "\\btempora[rli]|\\btmp ?fail|\\bmomentar|\\btransient\\b|\\bfor now\\b|\\bfor the (?:moment|time being)\\b",
  // "Check the address and try again" is advice about a mistake.
  "\\b(?:again|try|back|retry|resend|send|attempt|tried)(?: \\S{1,16}){0,4} later\\b|(?<!\\b(?:and|then|before you|and please) )\\b(?:re-?)?try (?:it )?again\\b(?! with)",
  "\\bagain (?:in|after) (?:\\S{1,12} ){0,3}(?:while|moment|\\d|minutes?|hours?|seconds?|few|some)|\\btry later\\b|\\bcome back\\b|\\btomorrow\\b|\\bfor today\\b|\\bpending\\b|\\bbusy\\b",
  "\\b(?:will|to|shall|should) (?:be )?(?:retry|retried|re-?try)\\b|\\b(?:please|later) retry\\b|\\bretry (?:later|in \\d|after \\d|again)\\b",
  "\\bin progress\\b|\\b(?:verification|validation|check|callout|lookup) (?:is )?(?:pending|deferred|delayed|postponed|incomplete)\\b",
  "(?<!\\bservice )\\b(?:currently|presently) (?:unavailable|not available|unable|unreachable|busy|offline|locked|in use|down)\\b",
  "\\b(?:at|on) (?:this|the|that) (?:time|moment)\\b|\\bright now\\b|\\bat present\\b",
  "\\block(?:ed)? by\\b|\\bby another (?:process|session|client|program|server)\\b|\\bmail-?box (?:is )?(?:busy|in use)\\b",
  "\\bbeing (?:migrated|moved|restored|repaired|rebuilt|verified|checked|created|upgraded|transferred)\\b",
  "\\bnot yet (?:verified|known|checked|available|ready|synchroni[sz]ed|replicated|propagated)\\b",
  // German, Dutch, Scandinavian
  "\\bvoru?e?bergehend|\\bzeitweilig|\\bzeitweise|\\bmomentan\\b|\\bzur ?zeit\\b|\\bderzeit\\b|\\bim moment\\b|\\bspa?e?ter\\b|\\bin ku?e?rze\\b",
  "\\btijdelijk|\\bop dit moment\\b|\\bprobeer (?:het )?(?:later|opnieuw)|\\btillfallig|\\bmidlertidig|\\bforsok igen|\\bprov igen|\\bprov senere|\\btilapais|\\bmyohemmin|\\bsenare\\b|\\bsenere\\b",
  // Romance
  "\\btemporan|\\bprovvisoria|\\bprovisoire|\\bprovisoria|\\bplus tard\\b|\\bulterieurement\\b|\\bpour le moment\\b|\\bpour l'instant\\b|\\bactuellement indisponible",
  "\\bmas tarde\\b|\\bmas adelante\\b|\\bpor el momento\\b|\\ben este momento\\b|\\bmais tarde\\b|\\bno momento\\b|\\bneste momento\\b|\\bpiu tardi\\b|\\bal momento\\b|\\bmai tarziu\\b",
  // Slavic, Hungarian, Turkish, Greek, South-East Asian
  "\\btymczasow|\\bchwilow|\\bpozniej\\b|\\bobecnie niedostepn|\\bdocasn|\\bpozdeji\\b|\\bneskor|\\bprivremen|\\bkasnije\\b|\\bzacasn",
  "\\bideiglenes|\\batmeneti|\\bkesobb\\b|\\bgecici|\\bdaha sonra\\b|προσωριν|αργοτερα|\\bsementara\\b|\\bnanti\\b|\\btam thoi\\b",
  "временн|тимчасов|позже|позднее|попозже|пізніше|в данныи момент|сеичас",
  "稍后|稍後|暂时|暫時|目前|しばらく|一時|後ほど|のちほど|나중에|일시|잠시",
];

/** Something failed at the server; it says nothing about the recipient. */
export const SERVER_FAILED: readonly string[] = [
  "\\b(?:internal|system|server|software|configuration|local|unexpected|processing) (?:(?:server|config(?:uration)?|processing|mail|delivery|software|system|database|routing) )?(?:error|problem|failure|fault|malfunction)s?\\b|\\bshutting down\\b|\\bunknown (?:error|reason|problem|failure)\\b|\\bout of memory\\b|\\bdisk error\\b",
];
