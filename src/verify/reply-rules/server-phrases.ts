import { anyOf, GAP, word, uncheckedIn } from "./pattern.ts";
import { EASTERN } from "./languages-east.ts";
import { NORTHERN_AND_SOUTHERN } from "./languages-north-south.ts";
import { WESTERN } from "./languages-west.ts";
import { LISTS_ITS_RECIPIENTS, SUBJECT } from "./recipient-english.ts";

export const GREYLISTED: readonly string[] = [
  "\\bgr[ea]y[- ]?list|\\bpostgrey\\b|\\bsqlgrey\\b|\\bmilter-greylist|\\bgreylst|\\bgr[ae]ylisted",
  "\\bgr[ea]ytrap|\\bgreyd\\b",
  "\\bnew (?:sender|host|triplet|connection)\\b(?: \\S{1,20}){0,4} (?:try|retry|again|later|minutes)",
  "\\bfirst (?:time|seen)\\b(?: \\S{1,20}){0,6} (?:try|retry|later|again)",
  // iRedAPD's default, and policyd's: "policy" is their word for greylisting.
  "\\bpolicy rejection\\W{0,4}(?:please )?try (?:again )?later\\b",
  "\\bnot yet (?:authori[sz]ed to deliver|whitelisted|seen)|\\bgraue liste|\\bliste grise",
  "\\blista (?:gris|cinza|grigia)\\b|\\bgrijze lijst|сер\\S{2,3} списо?к|грейлист|グレーリスト|灰名单|灰名單|그레이리스트",
];

const UNKNOWN_ONES =
  "(?:unknown|invalid|bad|wrong|non-?exist[ae]nt)(?:/\\w{3,12})? (?:(?:user|recipient|address|mailbox|rcpt)(?:e?s)?|mail ?boxes)";

/** Our unknown recipients are counted against us. */
export const UNKNOWN_RECIPIENTS_COUNTED: readonly string[] = [
  `\\b(?:too many|excessive|numerous|repeated|number of|more than \\d{1,5}|limit of|attempts to|probing|high rate of) (?:\\S{1,16} ){0,3}?${UNKNOWN_ONES}\\b`,
  `\\b${UNKNOWN_ONES} (?:\\S{1,16} ){0,2}?(?:exceeded|limit|threshold|reached)\\b`,
];

/** Our address is refused as such. */
export const SHUT_OUT: readonly string[] = [
  "\\b(?:blocked|blocking|banned|blacklisted|rejected|refused|denied)\\b|\\byour (?:ip|address|host|server|network)\\b",
];

export const RATE_LIMITED: readonly string[] = [
  "\\btoo many\\b(?! hops| spams| unwanted| (?:mails|messages) (?:on|in) )",
  "\\btoo (?:fast|frequent(?:ly)?|much (?:mail(?! data)|traffic)|quick(?:ly)?)\\b",
  "\\b(?:rate|connection|concurren\\w+|session|message|sending|hourly|daily|throughput|recipients?|volume)[ -]?(?:rate )?(?:limit(?:s|ed|ing)?|control|throttl\\w+)\\b",
  "\\blimit(?:s|ing)? (?:the )?(?:rate|connections|number of|(?:for|on) how many)|\\bfrequency limit",
  "\\bfrequency (?:is )?limited|\\bthrottl|\\bslow(?:ing)? (?:it )?down\\b",
  "\\b(?:only|maximum(?: of)?|max\\.?|at most|no more than|more than|limit of) (?:one|a single|\\d{1,5}) (?:rcpt|recipient)s?\\b|\\b(?:one|single) (?:rcpt|recipient) (?:at a time|per|only)|\\bmultiple (?:rcpts|recipients)\\b",
  "\\bnumber of (?:unknown|invalid|bad|nonexistent)\\b|\\bmore than \\d{1,5} (?:unknown|invalid|bad)\\b|\\b(?:unknown|invalid|bad) (?:users|recipients|addresses) (?:\\S{1,16} )?(?:exceeded|limit|threshold|reached)\\b",
  "\\brate[ -]?limit|\\bslower\\b|\\btoo busy\\b(?!\\?)|\\btoo much load\\b|\\bflood(?:ing|ed)?\\b|\\bover ?load",
  "\\bqueue quota\\b|\\b(?:submission|sending|connection|message) rate\\b|\\bthreshold (?:has been )?exceeded|\\bexceeded (?:\\S{1,20} )?(?:threshold|permitted limits)",
  "\\b(?:sending|daily|hourly|message rate|outbound|sent|recipient|mail rate) quota",
  "\\bmax(?:imum|\\.)? (?:number of )?(?:concurrent |parallel |simultaneous )?(?:connections?|sessions?|recipients?|emails? per)\\b",
  "\\bexcess(?:ive|ively)?\\b(?: \\S{1,20}){0,3} (?:connections?|rate|volume|traffic|errors?|invalid|unknown|recipients?)",
  "\\b(?:numerous|repeated) attempts\\b|\\bexceeded the allow(?:able|ed) number\\b",
  "\\bunusual rate\\b|\\bhigh (?:volume|rate|number)|\\bunexpected volume",
  "\\bmessages? (?:\\S{1,60} ){0,2}temporarily deferred|\\b(?:all )?server ports (?:are )?busy",
  "\\bserver(?: is)? (?:too )?busy|\\bconcurrent (?:connections|sessions)",
  "\\bexceed(?:ed|s|ing)?\\b(?: \\S{1,24}){0,5} (?:connections?|rate|per (?:hour|minute|day|second|connection|session)|number of (?:mails|messages)|limit of \\d+ (?:recipients|connections|messages))",
  "\\b(?:deferred|delayed)(?: \\S{1,20}){0,3} (?:due to|because of) (?:\\S{1,20} ){0,3}(?:volume|rate|load)",
  "\\bload (?:is )?too high|\\bretry (?:at a )?(?:lower|slower) (?:rate)?|\\btoo ?many ?(?:connections|rcpt)",
  "\\bquota (?:exceeded )?(?:for|of) sending\\b|\\b(?:sending|outgoing|outbound) (?:quota|limit)\\b",
  "\\bquota (?:de|d')envoi|\\b(?:hvu|con):b[0-9]\\b|\\bdyn:t[0-9]\\b",
  "\\bzu viele\\b|\\btrop de\\b|\\bdemasiad[oa]s\\b|\\bmuit[oa]s (?:conex|destin|mensag|erros)|\\btropp[ei]\\b",
  "\\bte veel\\b|\\bzbyt (?:wiele|duzo)\\b|\\bprilis mnoho\\b|\\bcok fazla\\b|слишком (?:много|часто)",
  "превышен\\S{0,2} (?:лимит|число|количеств)|频率|頻率|过多|過多|太多|过于频繁|超过.{0,6}(?:连接|频)|過ぎます|多すぎ|너무 많",
];

export const TLS_DEMANDED: readonly string[] = [
  "\\bmust (?:first )?(?:issue|send|use|do) (?:an? )?(?:starttls|tls|ssl|encrypt\\w+)",
  "\\b(?:starttls|tls/sslv?\\d?|tls|ssl|encryption)(?: connection| session| encryption| is| v?1\\.[0-3]| or (?:higher|later|above)| level| command| version| transport| support| must be)* (?:required|needed|mandatory|first|necessary|enforced|issued first)\\b",
  "\\brequires? (?:an? |the use of )?(?:high-strength ciphers|starttls|tls|ssl|encrypt\\w+|secure (?:connection|session|channel|transport))",
  "\\b(?:use|issue|try|enable|need) starttls\\b",
  "\\bencrypted (?:session|connection|channel)s? (?:is |are )?(?:required|only)",
  "\\b(?:only|not)(?: \\S{1,20}){0,3} (?:over|without|via) (?:starttls|tls|ssl|encryption)\\b",
  "\\bplain ?text (?:connections?|sessions?|smtp|delivery) (?:is |are )?(?:not|refused|rejected|disallowed)",
  "\\btls erforderlich|\\bunencrypted (?:connections?|sessions?|mail|smtp)|\\bverschlusselung erforderlich",
];

export const AUTH_DEMANDED: readonly string[] = [
  "\\bauthenticat(?:ion|e|ed)\\b(?: \\S{1,20}){0,2} (?:required|needed|first|necessary|before)",
  "\\b(?:must|need to|please|requires?)(?: \\S{1,20}){0,2} (?:authenticat\\w+|log ?in|smtp ?auth|auth)\\b",
  "\\bsmtp[- ]?auth|\\bauth required|\\bnot authenticated\\b|\\bpop before smtp|\\blogin required",
  "\\b(?:until|unless|before|without|first)(?: \\S{1,16}){0,3} (?:authenticat\\w+|log(?:ged)? ?in|login|auth)\\b",
  "\\blog ?in first\\b|\\bcredentials?\\b|\\bor password\\b|\\b(?:in|for) (?:smtp )?auth(?:entication)?\\b|\\bauthentication (?:mechanism|method|type)\\b",
  "\\bsubmission (?:port|service|agent)|\\bport 587\\b|\\bonly allowed with authentication|\\breceive your mail before sending|authentifizierung|autenticacion|autenticacao|autenticazione|认证|認証",
];

export const TEMPORARY: readonly string[] = [
  "\\btry (?:it |the mail |your message |sending |delivery )?(?:again|later|back)|\\btemporar|\\bagain later",
  "\\bservice (?:is )?(?:currently )?(?:unavailable|not available)",
  "\\b(?:lookup|dns|internal|local|system|server|configuration|backend|database|ldap) (?:error|problem|failure)",
  "\\btime(?:d)?[ -]?out|\\bmaintenance\\b|\\bmilter\\b|\\bresources?\\b|\\bspater\\b|\\bspaeter\\b",
  "\\bvorubergehend|\\bplus tard|\\bmas tarde|\\bmais tarde|\\bpiu tardi|\\bpozniej|позже|позднее|временн|稍后",
  "稍後|しばらく|一時的|나중에|일시",
];

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

const FAILED_TO = anyOf(
  ["could not", "couldn'?t", "cannot", "can'?t", "can not", "did not", "didn'?t", "unable to", "not able to"],
  ["failed to", "fails to", "failure to", "(?:not possible|impossible) (?:for us )?to", "no way to"],
);
const CHECK = anyOf(
  ["verify", "validate", "check", "confirm", "resolve", "determine", "look ?up", "look", "contact", "reach"],
  ["ascertain", "establish", "evaluate", "query", "test", "re-?verify", "re-?check"],
);
const CHECKED = anyOf(
  ["verified", "validated", "checked", "confirmed", "resolved", "determined", "looked up", "contacted", "reached"],
  ["ascertained", "established", "evaluated", "queried", "tested", "opened", "read", "loaded"],
);
const CHECKING = anyOf(
  ["verif(?:ication|ying|y)", "validat(?:ion|ing|e)", "check(?:ing|s)?", "confirm(?:ation|ing)", "resol(?:ution|ving)"],
  ["determin(?:ation|ing)", "look(?:ing)?[ -]?up", "contacting", "reaching", "call-?out", "call-?back", "probe"],
);
const WENT_WRONG = anyOf(
  ["failed", "failure", "fails", "error", "unsuccessful", "incomplete", "impossible", "not possible", "aborted"],
  ["interrupted", "skipped", "not (?:completed|performed|available|successful)", "did not (?:complete|succeed)"],
  ["could not be (?:completed|performed|done|made|carried out|finished)"],
);

/** Up to a few words, none of which ends a clause: "lookup in domain map failed" is a lookup that found nothing. */
const OF_WHOM = "(?: (?!in (?:\\S{1,16} ){0,2}?(?:map|table|list)\\b)[^\\s:;.]{1,40}){0,5}?";

const UNCHECKED = [
  // The purported responsible address is that of a sender.
  `\\b${FAILED_TO} (?:\\w{2,16}ly )?${CHECK}\\b(?! purported)`,
  `\\b(?:(?:could|was|were|is|are|has|have|does|do)n'?t|can'?t|cannot|not|never)(?: (?:yet|been|be|\\w{2,16}ly)){0,3} ${CHECKED}\\b`,
  `\\bun(?:verified|verifiable|validated|confirmed|checked|determined|resolved|reachable)\\b|\\bnot (?:verifiable|reachable|resolvable|determinable)\\b`,
  `\\b${CHECKING}${OF_WHOM} ${WENT_WRONG}\\b`,
  `\\b(?:failed|failure|error|problem|trouble|unsuccessful)(?: (?:in|of|on|to|at|with|during|while|when|the|a|your|an)){0,3} ${CHECKING}\\b`,
];
const FAILED_CHECK = `\\b${CHECKING} (?:of|for|on) (?:[^\\s:;.]{1,40} ){0,4}?${WENT_WRONG}\\b|\\b(?:failed|unsuccessful) (?:${word("recipient", "user", "address", "mailbox", "account")} )${CHECKING}\\b`;
/** Within one clause, so that what follows a colon is read for itself: "could not verify: no such user". */
const WITHIN_CLAUSE = "(?:[^.;:!?]|\\.(?! )){0,48}?";
/** Postfix reports its own failure of address verification so, with 5.1.1: the mail would not have reached a mailbox. */
const NEVER_ASKED = ["\\bmail for \\S{1,128} loops? back\\b", "\\bloops? back to (?:myself|itself)\\b"];

/**
 * The server could not find out whether the mailbox exists. That it was unable to verify a recipient is not knowledge about
 * it, whatever the code.
 */
export const INABILITY: readonly string[] = [
  `${SUBJECT}${GAP}${anyOf(UNCHECKED)}`,
  `${anyOf(UNCHECKED)}${WITHIN_CLAUSE}${SUBJECT}`,
  FAILED_CHECK,
  ...NEVER_ASKED,
  ...uncheckedIn([...WESTERN, ...NORTHERN_AND_SOUTHERN, ...EASTERN]),
];

const ITS_TABLE = "(?! (?:data ?base|directory|table|map|list|server|service|store|back-?end|look-?up|cache|quota))";
const NAMED = `${anyOf("user", "recipient", "rcpt", "addressee", "mail-?box", "account", "address", "alias")}${ITS_TABLE}\\b`;

/** Beside an inability, only this is knowledge: "callout failed: 550 user unknown". */
export const NAMED_UNKNOWN: readonly string[] = [
  `\\b(?:unknown|no such|invalid|non-?exist[ae]nt|no) (?:local |virtual |such )?${NAMED}`,
  `(?:\\b${NAMED}|@)[^a-z0-9]{0,6}(?:is |was |has been |could |does |do |did ){0,2}${anyOf(["unknown\\b(?! (?:host|error|reason|problem|server))", "not (?:exist|be found|found|known)", "n't exist", "doesn'?t exist", "no longer exist"])}`,
  "\\bnot found in (?:the )?(?:\\S{1,16} )?(?:recipient|user) (?:table|list)\\b|\\bnosuchuser\\b|\\buserunknown\\b",
  LISTS_ITS_RECIPIENTS,
];

const REPLY_WORD = anyOf(
  ["said", "says", "replied", "replies", "reply", "answered", "answer", "returned", "responded", "response"],
  ["gave", "got", "failed", "failure", "error", "code", "status", "result", "with", "reports?", "reported"],
);

/** A 4xx reply of another server, quoted within a permanent refusal: "cannot verify recipient: server replied 421". */
export const QUOTED_TEMPORARY: readonly string[] = [
  `\\b${REPLY_WORD}(?: \\S{1,40}){0,2}?[: ("'<-]{1,4}4[2-57]\\d\\b(?!\\.\\d|[%/]| ?(?:bytes?|kb|mb|gb|ms|s|sec|seconds?|minutes?|messages?|mails?|days?|recipients?)\\b)`,
  `(?:^|[ (<"'-])4[2-57]\\d[ -]#?4\\.\\d{1,2}\\.\\d{1,3}\\b|\\(#?4\\.[0-7]\\.\\d{1,3}\\)`,
];

/** Blocklists, scores and reputation services. Matched in the prose and in the links. */
export const BLOCKLIST_NAMES: readonly string[] = [
  "spamhaus|spamcop|\\bsorbs\\b|uceprotect|spamrats|\\bsurbl\\b|\\buribl\\b|invaluement|abusix|mailspike|spfbl",
  "\\bpsbl\\b|surriel|truncate\\.gbudb|hostkarma|junkemailfilter|backscatterer|nixspam|manitu\\.net|abuseat",
  "dronebl|barracudacentral|blocklist\\.de|imp\\.ch|mail-abuse|trendmicro|trend micro|senderscore|senderbase",
  "sender ?score|talosintel|csi\\.cloudmark|cloudmark|ipcheck\\.proofpoint|csi\\.mimecast|mcafee|sophos",
  "symantec|brightmail|messagelabs\\.com/\\S*(?:ip|reputation)|cyren|kundenserver\\.de/\\S*rbl|return ?path\\.",
  "mxtoolbox|multirbl|rbl-dns|blackholes?\\.|delist|antispam\\.imp|0spam|s5h\\.net|rfc-ignorant|rfc-clueless",
  "fabel\\.dk|virbl|zapbl|gbudb|barracuda(?:networks)?\\W{0,4}(?:com/)?reputation|denyip|block-?lookup",
  `${word("dnsr?bls?", "rh?sbl", "rbls?", "dnswl", "sbrs", "drbl")}|\\b(?:black|block|deny)[ -]?list(?:s|ed|ing)?\\b`,
  "\\bblacklst\\b|p=(?:blockedmessage|unsolicited\\w+|rejected\\w+|messagerejected)\\b",
];

/** Vendors of filters, whose servers add the same link to every refusal, whatever its reason. */
export const VENDOR_LINKS: readonly string[] = [
  "^(?:https?://|www\\.)\\S{0,64}\\b(?:symantec|symanteccloud|messagelabs|brightmail|trendmicro|mcafee|sophos|cyren|proofpoint|mimecast|cloudmark)\\.(?:com|net)\\b(?!\\S*(?:reputation|\\brbl\\b|blocklist|blacklist|delist|ipcheck|removal|investigate|csi\\.|ers\\.|[?&]ip))\\S*$",
];

/** Names that a server requires: reverse DNS and HELO. */
const NAMES_OF_HOSTS: readonly string[] = [
  "\\breverse[ -]?(?:dns|lookup|host|mapping|entry|resolution|record|zone|name|ptr)|\\br-?dns\\b|\\bptr\\b|\\bfcrdns\\b",
  "(?:cannot|can ?not|can't|could not|unable to) (?:find|resolve|verify) (?:(?:your|the|its) )?(?:reverse|host ?name|client|ip)",
  "(?:cannot|can't|could not|unable to) (?:find|resolve|verify) your|\\bunresolvable\\b(?! address)|\\bdns-p\\d\\b",
  "\\bhost\\b(?: \\S{1,40})? (?:cannot|can't|could not) be resolved|\\bno (?:valid )?(?:reverse|ptr|rdns)",
  "\\bdns:nr\\b|\\b(?:host ?name|ip) (?:lookup|resolution) fail|\\bip name (?:lookup|possibly)",
  "name lookup failed|does(?:n't| not) resolve|\\b(?:forward|reverse)-?confirmed|\\b(?:name|host ?name|ptr) lookup fail",
  `\\b${anyOf("bad", "invalid", "bogus", "forged", "illegal", "fake", "malformed", "syntactically invalid", "unacceptable", "wrong", "unresolvable")} (?:helo|ehlo)\\b`,
  `\\b(?:helo|ehlo)(?:/(?:helo|ehlo))?(?: command)?(?: name| argument| host ?name| string| greeting| domain)?(?: \\S{1,40})? ${anyOf(["has been", "rejected", "refused", "denied", "invalid", "is invalid", "mismatch", "not (?:valid|accept\\w+|resolv\\w+|allowed)"], ["must", "does", "doesn't", "not fqdn", "is (?:an? )?ip"])}`,
  "(?<!\\(|\\b(?:say|send|need|issue) )\\b(?:helo|ehlo)\\b(?! (?:first|needed|required)|/(?:helo|ehlo) (?:first|needed|required))|\\b(?:in|your|of|my|the) (?:helo|ehlo)\\b|\\bclient host\\b",
];

const THINGS_SENT = ["connections?", "e-?mails?", "messages?", "mails?", "traffic", "access", "anything"];
const TO_BE = anyOf("is ", "are ", "was ", "has been ", "have been ", "");
const ORIGINS = [
  ["\\[?\\d", "ip", "this", "the", "servers?", "hosts?", "dynamic", "residential", "dial"],
  ["not accepted", "blocked", "banned", "refused", "rejected", "denied", "temporarily"],
].flat();

/** Addresses and networks that are refused. */
const WHERE_FROM: readonly string[] = [
  "\\b(?:client|sender|sending|remote|source|connecting) ips?\\b",
  // "Contact your provider" is advice, whatever the refusal is about.
  `\\b(?<!contact )your (?:access |smtp |mail )?${anyOf(["ip", "host", "server", "network", "isp", "mail ?server", "mta", "domain", "system", "machine"], ["provider", "internet", "connection", "e-?mail server", "dns", "smtp", "client", "computer"])}\\b`,
  "\\bfrom your\\b|\\bsending (?:ip|server|host|mta|domain|system|mail ?server)\\b",
  `\\b${anyOf("this", "the", "remote", "source", "client", "connecting", "sender", "originating")} ${anyOf("ip", "ip address", "host", "server", "client", "mta")}\\b(?: \\S{1,60})? ${anyOf(["is", "has", "was", "are", "not", "black", "block", "listed", "banned", "rejected", "denied", "refused", "cannot"])}`,
  "\\bip(?:[=:]\\d| ?<)|\\b(?:this|black|bad|invalid|blocked|your) ip\\b|\\bips? (?:is|are|in|not|was|has|rejected|blocked|denied)\\b",
  `\\b${anyOf(THINGS_SENT)} (?:not accepted )?from (?!@|<@|sender)(?:\\S{1,60} )?${TO_BE}${anyOf(ORIGINS)}`,
  "\\bdynamic(?:ally)?[ -](?:ip|address|assigned|host|range|pool|allocat)|\\bmismatch\\w* (?:with )?client ip",
  "\\b(?:residential|dial-?up|dsl|consumer)\\b|\\bgeneric (?:reverse|rdns|host)",
  `\\b${anyOf(["bann?ed", "blacklisted", "block-?listed", "(?<!not )listed (?:in|by|at|on) (?!the (?:domino|directory|address))", "untrusted"], ["not trusted", "locally blocked", "access rules", "firewall", "ip in prison"])}\\b`,
  "\\bcountry\\b|\\bgeo-?(?:ip|block|location)|\\bregion\\b|\\bnot accepting connections\\b|\\bnot allowed to (?:connect|send)\\b",
  "\\b(?:approved|specific|authori[sz]ed) (?:external |e-?mail )?(?:addresses|senders)\\b|\\baccess to submit\\b|\\b(?:helo)?ip rej(?:e)?ct",
];

/** Objections to the message or to the behaviour of its sender. */
const BEHAVIOUR: readonly string[] = [
  "\\breputation\\b|\\bspam(?:s|ming|mers?|my|-?like|trap|bots?|my)?\\b|\\banti-?spam|\\bjunk ?mail|\\bunsolicited\\b",
  "\\bbulk (?:e-?)?mail|\\babus(?:e|ive)\\b|\\bsuspicious\\b|\\b(?:anti-?)?spoof|\\bphish|\\bvirus(?:es)?\\b",
  "\\bmalware\\b|\\bbotnet\\b|\\bcompromised\\b|\\bopen[ -](?:relay|proxy)|\\bcomplaints?\\b|\\bharvest",
  "\\bdirectory attack|\\bdictionary attack|\\bbackscatter|\\bbounce attack|\\bbad behaviou?r|\\bu[bc]e\\b",
  "\\bmass mail|\\bcontent (?:is |was |has been )?(?:reject|denied|refused)|\\b(?:mail|message) (?:data|content) refused",
  "\\b(?:from|to|reply-to|date|subject) headers?\\b|\\bheader from\\b",
  "\\bscreening\\b|\\bmessage filtered|\\bforged e-?mail|\\b(?:bad|duplicate|missing) headers?\\b|\\bheader error\\b",
  "\\battachments?\\b|\\bspamassassin\\b|\\bscored \\S{1,8} points\\b|\\b(?:mail|message) ?scor(?:e|ing)|\\bunwanted messages\\b|\\bclosed (?:mailing list|list|system)\\b|\\borgani[sz]ation(?:al)? settings\\b",
];

const RECORDS_AND_RULES: readonly string[] = [
  "\\bspf\\b|\\bsender policy framework|\\bdkim\\b|\\bdmarc\\b|\\bdomainkeys\\b|\\barc validation",
  "\\bunauthenticated\\b|\\bsender ?id\\b|polic(?:y|ies)\\b|\\baup#|\\bterms of service\\b",
  "\\badministrative(?:ly)? (?:prohib|reject|den|block|refus)|\\bhelo command rejected",
  "\\bsecurity (?:reason|polic|violation|restrict|regulation|rule)",
];

/** Codes of providers, in brackets or after a colon. */
const CODES: readonly string[] = [
  "\\bcs0[0-9]\\b|\\[(?:cs|bl|ib|rp|tss|hvu|hm|sa|rs)[0-9]{2,4}[a-z]?\\]|\\b(?:ip|rly|rtr|hvu|dyn|con):[a-z]{1,3}[0-9]?\\b",
  "\\b(?:dt|rp|mi|hl|fl|su|cf|dp):[a-z]{2,4}\\b|\\bofr[ _]?\\d*[ _]?(?:50[0-9]|99[0-9])\\b",
  "\\blpn\\d+[ _]50[0-9]\\b|\\bofu\\d*[ _]50[0-9]\\b|\\bs31[45]0\\b|\\bofr\\d+[ _](?:103|104|105|108|50[0-9])\\b",
];

const WORDS_ABROAD = [
  ["schwarze liste", "sperrliste", "auf ?grund ihrer", "ihre (?:ip|nachricht|mail)", "ihr (?:server|mailserver)"],
  ["liste noire", "votre (?:ip|adresse ip|serveur|message)", "lista (?:negra|nera)"],
  ["su (?:ip|servidor|direccion ip)", "seu (?:ip|servidor)", "sua mensagem", "politica\\b"],
  ["zwarte lijst", "czarna lista", "czarnej liscie", "cerny list", "kara liste"],
].flat();
const ABROAD: readonly string[] = [
  `\\b${anyOf(WORDS_ABROAD)}\\b`,
  "спам|черн\\S{2,3} списо?к|ваш\\S{0,2} (?:ip|сервер|хост|сообщени|письм)|垃圾|黑名单|黑名單|ブラックリスト|迷惑メール|スパム|스팸",
  "블랙리스트|您的(?:ip|服务器|域名|邮件)|拒绝来自|ip ?(?:地址|주소)",
];

/** About the sender, its network, records or behaviour: never about the mailbox. */
export const POLICY_WORDS: readonly string[] = [
  ...NAMES_OF_HOSTS,
  ...WHERE_FROM,
  ...BEHAVIOUR,
  ...RECORDS_AND_RULES,
  ...CODES,
  ...ABROAD,
];
