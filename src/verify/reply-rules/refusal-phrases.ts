import { anyOf, word } from "./pattern.ts";

const DELIVERIES = [
  "access",
  "permission",
  "authori[sz]ation",
  "service",
  "delivery",
  "session",
  "connection",
  "transaction",
];
const MESSAGES = ["mail", "e-?mail", "message", "request", "content"];
const TURNED_AWAY = ["rejected", "refused", "blocked", "discarded", "declined"];

const TO_BE = anyOf("is ", "was ", "has been ", "have been ", "to \\S{1,40} ", "");

/** The message is refused, for whatever reason: "Message rejected: user unknown" means no more than "user unknown". */
export const REJECTION: readonly string[] = [
  `${word(MESSAGES, "delivery", "transaction")} (?:\\S{8,40} )?${TO_BE}${word("rejected", "refused", "discarded", "declined", "reject")}`,
  "\\breject(?:s|ing|ions?)\\b|\\brefus(?:es|ing|al)\\b|\\bunwanted\\b|\\bdoes(?:n't| not) want\\b",
  "\\bnot (?:been )?accepted\\b|^refused\\b|\\b(?:connection|session)s? (?:is |was |has been )?disabled\\b|\\bonly allowed for\\b",
  "\\brejected your (?:message|e?-?mail)|\\bcommand rejected\\b|\\b(?:rejected|refused) by\\b|\\bwon't accept\\b|\\bmessage held\\b",
  `\\b${anyOf(["abgelehnt", "abgewiesen", "rejetee?", "rechazad[oa]", "recusad[oa]", "rejeitad[oa]", "rifiutat[oa]"], ["geweigerd", "odrzucon\\w", "odmitnut\\w", "reddedildi"])}\\b|отклонен|拒收`,
];

/** A mailbox may be blocked without the sender being refused. */
const NOT_A_MAILBOX = "(?<!\\b(?:mailbox|account|user) (?:is |was |has been )?(?:administratively )?)";
const NOT_FOR_INACTIVITY = "(?! (?:due to|for|because of) (?:\\S{1,16} ){0,2}inactivity)";
const SHUT_OUT = [
  ["denied", "refuses", "prohibited", "forbidden", "disallowed", `${NOT_A_MAILBOX}blocked${NOT_FOR_INACTIVITY}`],
  ["unwelcome", "go away", "not welcome", "get lost", "message blocked", "is protected by"],
  ["reject by", "refused? (?:to|due)", "user reject"],
].flat();
const SHUT_OUT_ABROAD = [
  ["verweigert", "blockiert", "nicht erlaubt", "nicht berechtigt", "acces refuse", "interdit", "non autorisee?"],
  ["denegad[oa]", "negad[oa]", "no permitid[oa]", "nao permitid[oa]", "negat[oa]", "non consentit[oa]"],
  ["odmow\\w+", "engellendi", "(?:toegang|acces|access|dostep\\w{0,2}|erisim) \\S{0,12}(?:geweigerd|reddedildi)"],
].flat();

/** A refusal without a reason. Beside a recipient phrase it makes the reply ambiguous. */
export const REFUSAL: readonly string[] = [
  `${word(DELIVERIES)}[ -]${TO_BE}${word(TURNED_AWAY, "not allowed")}`,
  `${word(MESSAGES)} ${TO_BE}${word("blocked", "not allowed")}`,
  `\\b${anyOf(SHUT_OUT)}\\b`,
  `(?<!mailbox name )\\b${anyOf("not", "isn'?t", "aren'?t", "without", "n't have", "not have")} (?:been )?${anyOf(["permitted", "permissions?", "authori[sz](?:ed|ation)(?! to see it)", "allowed", "accepting (?:mail|messages?|e-?mail) from", "whitelisted", "approved"])}\\b`,
  "\\bunauthori[sz]ed\\b|\\brestrict(?:ed|ions?)\\b|\\bviolat(?:e|es|ion)\\b|\\bprohibition\\b|\\bimposed\\b|\\bpermanently deferred\\b",
  "\\b(?:don'?t|do not) have permissions?\\b|\\bden(?:y|ies|ying)\\b",
  "\\bprohibit\\w*|\\bforbid\\w*|\\bdisallow\\w*|\\bblock(?:s|ing)\\b|\\bdo not allow\\b",
  "\\bipv?[46]? ?address(?:es)?\\b|(?<!rejecting \\(message )\\bfilter(?:ed|s|ing)?\\b|\\bno permission\\b|\\bauth(?:entication)? failed\\b",
  "\\b(?:does|do|will|would|can) ?(?:not|n't) accept (?:delivery|mail|messages?|e-?mail)|\\bnot accepting mail\\b",
  "\\bwe do(?:n't| not) accept (?:mail|messages)|\\bmembers?[- ]only\\b|\\bnon-?members?\\b|\\boutgoing e-?mail disabled\\b",
  "\\bnot (?:a )?subscri(?:bed|ber)\\b|\\bnot a member\\b(?! of (?:the |this )?domain)|\\blocal (?:users?|senders?) only\\b|\\bmoderated\\b",
  `\\b(?:for|to|from) (?:all |any |the )?${anyOf("external", "outside", "outer", "internet", "unauthenticated", "anonymous", "foreign", "non-?local")}\\b|\\bexternal (?:mail|e-?mails?|messages?|senders?)\\b`,
  "\\b(?:until|unless) (?:you|your|sent|the (?:sender|client|message)|it (?:is|was) (?:sent|signed))\\b",
  "\\b(?:unknown|invalid|bad|unverified|untrusted|unrecogni[sz]ed) (?:smtp |mail )?(?:clients?|servers?|peers?|connections?|networks?)\\b|\\bclient (?:is )?(?:unknown|not)\\b",
  "\\boutside\\b|\\bstrangers?\\b|\\b(?:only|exclusively) (?:\\S{1,16} ){0,2}(?:for|to|from|by)\\b|\\byou(?: are|'re) (?:an?|not)\\b",
  // The mailbox is at another server.
  "\\banother (?:mail )?(?:server|host|mx)\\b|\\bwrong (?:mail )?(?:server|host|mx)\\b|\\b(?:primary|secondary|backup) mx\\b|\\b(?:use|try) (?:mx\\b|\\S{1,64}\\.\\S)",
  "\\b(?:for|from|to) (?:all |any |these |those |such )?(?:hosts?|servers?|clients?|networks?|senders?|outsiders?)\\b|\\bfrom you\\b|\\bblocked you\\b|\\bopted out\\b",
  "\\binternal (?:use|users?|address(?:es)?|mail(?:box)?|only)\\b|\\bprivate (?:mail-?box|address|account|list)\\b|\\b(?:this|your|invalid) session\\b",
  "\\b(?:allow(?:ed)?|white|safe|permit(?:ted)?)[ -]?list\\w*|\\byour (?:address book|contacts|allow)|\\b(?:because|due to|because of) your?\\b",
  `\\b${anyOf(SHUT_OUT_ABROAD)}\\b`,
  "запрещен|отказано|拒绝|拒絕|禁止|拒否|거부|차단",
];

const DOMAIN = "(?:domain|host|hostname|domains?)";
const NOT_SERVED = anyOf(
  [
    "not (?:found|local|hosted|known|served|accepted|handled|configured|here|allowed|valid|supported|recogni[sz]ed|permitted)",
  ],
  [
    "unknown",
    "isn'?t (?:in|here|hosted)",
    "doesn'?t exist",
    "does not exist",
    "not exist",
    "is not reachable",
    "retired",
    "no longer in use",
    "(?:is )?obsolete",
    "(?:cannot|can't|could not) be (?:found|resolved)",
    "(?:currently )?(?:suspended|disabled|inactive|expired)",
  ],
);

/** The domain is not served here, or the server takes us for a relay client. */
export const RELAY: readonly string[] = [
  `\\brelay(?:ing|s)?\\b(?: \\S{1,40}){0,4} ${anyOf(["denied", "prohibited", "not (?:permitted|allowed|authori[sz]ed|supported)", "refused", "rejected", "disallowed", "forbidden", "not open"])}`,
  "\\b(?:not|no|no longer|unable to|cannot|can'?t|won'?t|will not|don'?t|refus\\w+ to|disallowed to|permitted to|allowed to) relay(?:ing|ed|s)?\\b",
  "\\b(?:hosting|owner'?s?|reseller|billing|server) account\\b|\\baccount of the (?:client|owner)\\b",
  "\\bto relay\\b|(?<!failure on )\\brelay(?:ing)? (?:access|attempt|through|is|from|of|msg)\\b|\\brcpthosts\\b",
  "\\bmail relay\\b|\\bnot found in dns\\b|\\b(?:open)?relay check\\b|(?<!failure on )\\brelaying\\b|\\bas a relay\\b",
  "\\bopen relay|\\bunauthori[sz]ed relay|\\bnot a (?:gateway|relay)\\b|\\bden(?:y|ies) relay|\\brelay traffic|\\brecipient domain\\b",
  `\\b${DOMAIN}\\b(?: \\S{1,40})? (?:is |are |was )?${NOT_SERVED}\\b`,
  `\\b${anyOf("unknown", "invalid", "unrout(?:e)?able", "no such", "not (?:a )?local", "non-?local", "not our", "not my", "foreign", "non-?exist[ae]nt")} (?:mail |recipient )?${DOMAIN}\\b`,
  `\\b${anyOf("do not", "don'?t", "doesn'?t", "does not")} ${anyOf("handle", "accept", "host", "serve", "process", "take", "deliver")}\\b(?: \\S{1,30}){0,5} domain\\b`,
  `\\b${anyOf("do not", "don'?t", "doesn'?t", "does not")} handle (?:e-?)?mail for (?!(?:that|this) user)`,
  "\\bnot (?:responsible|the mail (?:server|host|exchanger)|an? mx) for\\b|\\bmail loops? back\\b|\\broutage\\b|\\bzielserver\\b",
  "\\bi cannot deliver (?:mail )?(?:for|to) <?@|\\bdomain (?:\\S{1,40} )?(?:not in|is not in)\\b",
  "домен\\S{0,2} (?:\\S{1,20} ){0,2}(?:не (?:наиден|обслуживается)|неизвест)",
];

const SENDER_WORD = "(?:sender|originator)";
const SENDER_FAULTS = anyOf(
  [
    "rejected",
    "denied",
    "refused",
    "not",
    "unknown",
    "invalid",
    "fail\\w*",
    "unverif\\w+",
    "verif\\w+",
    "blocked",
    "prohibited",
  ],
  [
    "doesn'?t",
    "unauthori[sz]ed",
    "must",
    "undeliverable",
    "unavailable",
    "disabled",
    "inactive",
    "suspended",
    "empty",
    "missing",
  ],
  [
    "listed",
    "nonexistent",
    "unroutable",
    "unresolvable",
    "forged",
    "disallowed",
    "unvalidated",
    "resolve fail\\w*",
    "has no",
    "mismatch\\w*",
    "incorrect",
    "bad",
    "(?:in|on) (?:my|our|the|an?) (?:local )?(?:black|block|deny)",
  ],
);
const SENDER_KINDS = [
  [
    "invalid",
    "unknown",
    "bad",
    "forged",
    "unverified",
    "unverifiable",
    "illegal",
    "null",
    "empty",
    "unrout(?:e)?able",
    "unresolvable",
  ],
  [
    "fake",
    "missing",
    "blocked",
    "prohibited",
    "unauthori[sz]ed",
    "reject(?:ed|ing)?",
    "den(?:y|ies)",
    "verify",
    "undeliverable",
  ],
  ["restricted", "accept(?:s|ing)?(?: (?:e-?mails?|mails?|messages?))? from"],
].flat();
const RETURN_PATH =
  "(?:return[- ]path|return address|reverse[- ]path|envelope from|from address|from domain|originator)";

/** About the envelope sender: many servers refuse it only at RCPT. */
export const SENDER: readonly string[] = [
  `\\b${SENDER_WORD}(?:'?s)?(?! ips?\\b)(?: e-?mail)?(?: address| domain| account| mailbox| host)?[^a-z0-9]{0,4}(?:@[^a-z0-9]{0,4})?(?:${anyOf("is", "was", "has been", "could not be", "cannot be", "can't be", "does", "to", "email", "verify", "verification", "callout", "address")} ){0,3}${SENDER_FAULTS}`,
  `\\b${anyOf(SENDER_KINDS)} (?:the |this |that )?(?:envelope |mail |return )?(?:sender(?! ip)|return[- ]path|return address|reverse[- ]path)\\b`,
  "\\b(?:invalid|bad|unknown|fake) (?:mail )?from\\b|\\bmailfrom (?:failed|invalid|rejected|mismatch)|\\bverify mailfrom\\b",
  `\\bmail ?from(?! unknown (?:hosts?|servers?|clients?|ips?)):?(?: ?<?@>?| address| domain| command)? (?:is )?${anyOf("rejected", "denied", "refused", "not", "invalid", "unknown", "must", "does", "has", "cannot", "could", "mismatch\\w*")}(?! client ip)`,
  `\\b${RETURN_PATH}\\b(?: \\S{1,40}){0,2} ${anyOf("rejected", "denied", "refused", "not", "invalid", "unknown", "must", "does", "has", "is", "cannot", "could")}\\b`,
  "\\bmail ?from user\\b|\\bas (?:the |your )?sender\\b|\\bdomain of (?:the )?(?:sender|envelope|return)|\\bbadmailfrom\\b|\\bbadsendermx\\b|\\breturned mail\\b",
  "\\bempty envelope senders|\\b(?:for|of) (?:the |your )?sender\\b(?! ip)|\\breturn address|\\bsending address|\\bfrom: (?:domain|address)|\\bmail from:? ?<",
  "\\b(?:you are|you're) sending (?:from|as)\\b|\\bused (?:to|for) send(?:ing)?\\b",
  "\\byour (?:e-?mail |return |sender )?(?:address|account|mail-?box) (?:@ |<@> )?(?:is|was|does|has|not|could|cannot|invalid|unknown)\\b",
  "\\bauthenticated (?:user|account|client)\\b|\\byour (?:relay|smtp|sending|hosting|mail) (?:account|service)\\b|\\bserver'?s account\\b",
  "\\b(?:messages?|e-?mails?|mails?) from (?:an? |the )?(?:disabled|suspended|inactive|locked|expired|closed)\\b",
  "\\benvelope sender is\\b|\\bsender (?:verify|callout|verification)|\\bcallback (?:setup|verif\\w+)|\\bpostmaster verification\\b|\\bverification failed while checking\\b",
  "\\bunresolvable (?:\\S{1,16} )?from domain\\b|\\bnot accept (?:mail|messages) from <?@",
  "\\bsenderfilterconfig\\b|\\bnot logged in\\b|\\bverification failed for <?@",
  "\\b(?:bounces?|bounce messages?|null senders?|<>)(?: \\S{1,20}){0,2} (?:not accepted|not allowed|rejected|refused|disabled|denied|to this address)",
  "\\bbatv\\b|\\bthird-party dsns?\\b|\\bbogus mail from\\b|\\bbouncedeny\\b",
  "\\brequires? (?:an? )?valid sender|\\breturn mx\\b|\\bfor envelope sender\\b|\\bno(?:t)? dns/mx|\\be-?mail address is not verified\\b",
  "\\bdoes(?:n't| not) (?:send|accept|receive|expect) (?:mail or )?bounces|\\bonly accepts? mail from (?:known|authenticated|internal)",
];

/** The sender in other languages: such a reply is rather about us. */
const SENDERS: readonly string[] = [
  "absender\\w{0,9}",
  "expediteur\\w?",
  "emetteur\\w?",
  "remitente\\w?",
  "emisor\\w{0,2}",
  "remetente\\w?",
  "mittent[ei]",
  "afzenders?\\w{0,5}",
  "nadawc\\w{1,3}",
  "nadawco\\w{1,2}",
  "odesilatel\\w{0,3}",
  "odosielatel\\w{0,3}",
  "avsandar\\w{0,8}",
  "avsender\\w{0,9}",
  "afsender\\w{0,9}",
  "lahettaj\\w{1,5}",
  "felado\\w{0,5}",
  "expeditor\\w{0,4}",
  "gonder(?:en|ici)\\w{0,4}",
  "pengirim\\w{0,3}",
  "nguoi gui",
];

const YOURS: readonly string[] = [
  "ihre?",
  "deine?",
  "eure",
  "votre",
  "ton",
  "su",
  "tu",
  "seu",
  "sua",
  "tuo",
  "tua",
  "vostr[oa]",
  "uw",
  "jouw",
  "twoj[ae]?",
  "panstwa",
  "vase",
  "vasa",
];
const ADDRESSES: readonly string[] = [
  "(?:e-?mail-?)?adresse",
  "konto",
  "account",
  "domain",
  "compte",
  "cuenta",
  "direccion",
  "buzon",
  "conta",
  "endereco",
  "indirizzo",
  "casella",
  "adres",
  "adresa",
  "schranka",
  "skrzynka",
  "postfach",
  "boite",
  "mailbox",
];

/** About the sender, in other languages than English. */
export const SENDER_ABROAD: readonly string[] = [
  `\\b${anyOf(SENDERS)}\\b`,
  `\\b${anyOf(YOURS)} ${anyOf(ADDRESSES)}\\b(?! ip\\b)`,
  "отправител\\S{1,3}|відправник\\S{0,3}|αποστολε\\S{1,3}|发件人|發件人|寄件者|寄件人|送信者|差出人|발신자|보낸 ?사람|보내는 ?사람|송신자",
  "(?:ваш|твои)\\S{0,2} (?:почтов\\S{2,3} )?(?:адрес|ящик|аккаунт|домен)|(?:您|你)的(?:邮件|邮箱|郵件|郵箱|电子邮件)?(?:地址|邮箱|郵箱|信箱|账号|帳號|账户)|あなたの|귀하의",
];

/** A network address, not a mail address. */
export const IP_ABROAD: readonly string[] = [
  "\\bip[- ]?(?:adres|адрес)|\\b(?:adres\\w{0,3}|direccion|endereco|indirizzo|alamat|dia chi|osoite) ip\\b|адрес\\S{0,2} (?:сервер|хост|клиент|ip)",
];

const BLOCKED = anyOf(
  ["gesperrt", "blockiert", "bloquee?", "bloquead[oa]", "bloccat[oa]", "geblokkeerd", "zablokowan\\w", "zablokovan\\w"],
  ["sparrad", "sperret", "spaerret", "blocata?", "заблокирован\\S?", "заблоковано?"],
);

/** "Adresse gesperrt": perhaps the mailbox, perhaps our IP address. */
export const ADDRESS_BLOCKED: readonly string[] = [
  `(?:\\badress[ea]n?|\\badres|\\bdireccion|\\bendereco|\\bindirizzo|адрес) (?:(?:ist|est|is|wurde|jest|zostal|esta|foi|e|je) ){0,2}${BLOCKED}`,
];
