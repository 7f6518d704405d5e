import { anyOf, word } from "./pattern.ts";

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
