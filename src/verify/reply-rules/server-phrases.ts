/** Lists, scores and services that judge senders. Looked for in the prose and in the links. */
export const BLOCKLIST_NAMES: readonly string[] = [
  "spamhaus|spamcop|\\bsorbs\\b|uceprotect|spamrats|\\bsurbl\\b|\\buribl\\b|invaluement|abusix|mailspike|spfbl",
  "\\bpsbl\\b|surriel|truncate\\.gbudb|hostkarma|junkemailfilter|backscatterer|nixspam|manitu\\.net|abuseat",
  "dronebl|barracudacentral|blocklist\\.de|imp\\.ch|mail-abuse|trendmicro|trend micro|senderscore|senderbase",
  "sender ?score|talosintel|csi\\.cloudmark|cloudmark|ipcheck\\.proofpoint|csi\\.mimecast|mcafee|sophos",
  "symantec|brightmail|messagelabs\\.com/\\S*(?:ip|reputation)|cyren|kundenserver\\.de/\\S*rbl|return ?path\\.",
  "mxtoolbox|multirbl|rbl-dns|blackholes?\\.|delist|antispam\\.imp|0spam|s5h\\.net|rfc-ignorant|rfc-clueless",
  "fabel\\.dk|virbl|zapbl|gbudb",
  "\\b(?:dnsr?bls?|rh?sbl|rbls?|dnswl|sbrs|drbl)\\b|\\b(?:black|block|deny)[ -]?list(?:s|ed|ing)?\\b",
  "\\bblacklst\\b|p=(?:blockedmessage|unsolicited\\w+|rejected\\w+|messagerejected)\\b",
];

/** Who sends, from where, with which record: never about the mailbox. */
export const POLICY: readonly string[] = [
  "\\breverse[ -]?(?:dns|lookup|host|mapping|entry|resolution|record|zone)|\\br-?dns\\b|\\bptr\\b|\\bfcrdns\\b",
  "(?:cannot|can ?not|can't|could not|unable to) (?:find|resolve|verify) (?:(?:your|the|its) )?(?:reverse|host ?name|client|ip)",
  "(?:cannot|can't|could not|unable to) (?:find|resolve|verify) your|\\bunresolvable\\b",
  "\\b(?:client|sender|sending|remote|source|connecting) ips?\\b|\\bno (?:valid )?(?:reverse|ptr|rdns)",
  "\\bdns:nr\\b|\\b(?:host ?name|ip) (?:lookup|resolution) fail|\\bip name (?:lookup|possibly)",
  "name lookup failed|does(?:n't| not) resolve|\\b(?:forward|reverse)-?confirmed",
  "\\b(?:name|host ?name|ptr) lookup fail",
  "\\breputation\\b|\\bspam(?:s|ming|mers?|my|-?like|trap|bots?)?\\b|\\banti-?spam polic|\\bunsolicited\\b",
  "\\bbulk (?:e-?)?mail|\\babus(?:e|ive)\\b|\\bsuspicious\\b|\\b(?:anti-?)?spoof|\\bphish|\\bvirus(?:es)?\\b",
  "\\bmalware\\b|\\bbotnet\\b|\\bcompromised\\b|\\bopen[ -](?:relay|proxy)|\\bcomplaints?\\b|\\bharvest",
  "\\bdirectory attack|\\bdictionary attack|\\bbackscatter|\\bbounce attack|\\bbad behaviou?r|\\bu[bc]e\\b",
  "\\bmass mail|\\bcontent (?:is |was |has been )?(?:rejected|denied|refused)",
  "\\bspf\\b|\\bsender policy framework|\\bdkim\\b|\\bdmarc\\b|\\bdomainkeys\\b|\\barc validation",
  "\\bunauthenticated\\b|\\bsender ?id\\b",
  "polic(?:y|ies)\\b|\\baup#|\\bterms of service\\b|\\badministrative(?:ly)? (?:prohib|reject|den|block|refus)",
  "\\bsecurity (?:reason|polic|violation|restrict)|\\bcountry\\b|\\bgeo-?(?:ip|block|location)|\\bregion\\b",
  "\\bclient host\\b|\\bhelo command rejected",
  "\\b(?:bad|invalid|bogus|forged|illegal|fake|malformed|syntactically invalid|unacceptable|wrong|unresolvable) (?:helo|ehlo)\\b",
  "\\b(?:helo|ehlo)(?:/(?:helo|ehlo))?(?: command)?(?: name| argument| host ?name| string| greeting| domain)?(?: \\S{1,40})? (?:rejected|refused|denied|invalid|is invalid|mismatch|not (?:valid|accept\\w+|resolv\\w+|allowed)|must|does|doesn't|not fqdn|is (?:an? )?ip)",
  "\\b(?:in|your|of|my|the) (?:helo|ehlo)\\b",
  // "Contact your provider" is advice, whatever the refusal is about.
  "\\b(?<!contact )your (?:ip|host|server|network|isp|mail ?server|mta|domain|system|machine|provider|internet|connection|e-?mail server)\\b",
  "\\bfrom your\\b|\\bsending (?:ip|server|host|mta|domain|system|mail ?server)\\b",
  "\\b(?:this|the|remote|source|client|connecting|sender|originating) (?:ip|ip address|host|server|client|mta)\\b(?: \\S{1,60})? (?:is|has|was|are|not|black|block|listed|banned|rejected|denied|refused|cannot)",
  "\\bip(?:[=:]\\d| ?<)|\\b(?:this|black|bad|invalid|blocked|your) ip\\b",
  "\\bip (?:is|in|not|was|has|rejected|blocked|denied)\\b",
  "\\b(?:connections?|e-?mails?|messages?|mails?|traffic|access|anything) (?:not accepted )?from (?!@|<@|sender)(?:\\S{1,60} )?(?:is |are |was |has been |have been )?(?:\\[?\\d|ip|this|servers?|hosts?|dynamic|residential|dial|not accepted|blocked|banned|refused|rejected|denied|temporarily|the)",
  "\\bdynamic(?:ally)?[ -](?:ip|address|assigned|host|range|pool|allocat)",
  "\\b(?:residential|dial-?up|dsl|consumer)\\b|\\bgeneric (?:reverse|rdns|host)",
  "\\b(?:bann?ed|blacklisted|block-?listed|(?<!not )listed (?:in|by|at|on) (?!the (?:domino|directory|address))|untrusted|not trusted|locally blocked|access rules|firewall)\\b",
  "\\bcs0[0-9]\\b|\\[(?:cs|bl|ib|rp|tss|hvu|hm|sa|rs)[0-9]{2,4}[a-z]?\\]",
  "\\b(?:ip|rly|rtr|hvu|dyn|con|rly):[a-z]{1,3}[0-9]?\\b",
  "\\b(?:dt|rp|mi|hl|fl|su|cf|dp):[a-z]{2,4}\\b|\\bofr_?\\d*_?(?:50[0-9]|99[0-9])\\b|\\bofr_50[0-9]\\b",
  "\\blpn\\d+_50[0-9]\\b|\\bofu\\d*_50[0-9]\\b|\\bs31[45]0\\b|\\bofr\\d+_(?:103|104|105|108|50[0-9])\\b",
  "\\b(?:schwarze liste|sperrliste|auf ?grund ihrer|ihre (?:ip|nachricht|mail)|ihr (?:server|mailserver)|liste noire|votre (?:ip|adresse ip|serveur|message)|lista (?:negra|nera)|su (?:ip|servidor|direccion ip)|seu (?:ip|servidor)|sua mensagem|zwarte lijst|czarna lista|czarnej liscie|cerny list|kara liste)\\b",
  "спам|черн\\S{2,3} списо?к|ваш\\S{0,2} (?:ip|сервер|хост|сообщени|письм)|垃圾|黑名单|黑名單|ブラックリスト|迷惑メール|スパム|스팸",
  "블랙리스트|您的(?:ip|服务器|域名|邮件)|拒绝来自|ip ?(?:地址|주소)",
];

/** Somebody is turned away, without a word why. Beside a recipient phrase it makes the reply ambiguous. */
export const REFUSAL: readonly string[] = [
  "\\b(?:access|permission|authori[sz]ation|service|delivery|session|connection|transaction|mail|e-?mail|message|request) (?:is |was |has been |have been |to \\S{1,40} )?(?:denied|rejected|refused|blocked|prohibited|forbidden|discarded|declined|disallowed|not allowed)\\b",
  "\\b(?:denied|refuses|blocked(?! (?:due to|for) inactivity)|prohibited|forbidden|refused|disallowed|unwelcome|go away|not welcome|get lost)\\b",
  "\\b(?:not|isn'?t|aren'?t|without|n't have|not have) (?:been )?(?:permitted|permissions?|authori[sz](?:ed|ation)|allowed|accepting (?:mail|messages?|e-?mail) from|whitelisted)\\b",
  "\\bunauthori[sz]ed\\b|\\brestrict(?:ed|ions?)\\b|\\bviolat(?:e|es|ion)\\b|\\bprohibition\\b",
  "\\bipv?[46]? ?address(?:es)?\\b|\\bfilter(?:ed|s|ing)?\\b|\\bno permission\\b",
  "\\bwe do(?:n't| not) accept (?:mail|messages)|\\bmembers?[- ]only\\b|\\bnon-?members?\\b",
  "\\bnot (?:a )?subscri(?:bed|ber)\\b|\\bnot a member\\b|\\blocal (?:users?|senders?) only\\b|\\bmoderated\\b",
  "\\b(?:abgelehnt|abgewiesen|verweigert|blockiert|nicht erlaubt|nicht berechtigt|acces refuse|rejete|interdit|non autorise|denegad[oa]|rechazad[oa]|recusad[oa]|rejeitad[oa]|negad[oa]|no permitid[oa]|nao permitid[oa]|rifiutat[oa]|negat[oa]|non consentit[oa]|geweigerd|odrzucon\\w|odmow\\w+|odmitnut\\w|reddedildi|engellendi)\\b",
  "отклонен|запрещен|отказано|拒绝|拒絕|禁止|拒否|거부|차단",
];

/** The domain is not served here, or we are taken for someone who wants to relay. */
export const RELAY: readonly string[] = [
  "\\brelay(?:ing)?\\b(?: \\S{1,40}){0,4} (?:denied|prohibited|not (?:permitted|allowed|authori[sz]ed|supported)|refused|rejected|disallowed|forbidden|not open)",
  "\\b(?:not|no|unable to|cannot|can'?t|won'?t|will not|don'?t|refus\\w+ to|disallowed to|permitted to|allowed to) relay(?:ing|ed)?\\b",
  "\\bto relay\\b|\\brelay(?:ing)? (?:access|attempt|through|is|from)\\b|\\brcpthosts\\b|\\brelaying\\b",
  "\\bopen relay",
  "\\b(?:domain|host|hostname|domains?)\\b(?: \\S{1,40})? (?:is |are |was )?(?:not (?:found|local|hosted|known|served|accepted|handled|configured|here|allowed|valid|served|supported|recogni[sz]ed)|unknown|isn'?t (?:in|here|hosted)|doesn'?t exist|does not exist|not exist)\\b",
  "\\b(?:unknown|invalid|unrouteable|unroutable|no such|not a local|non-?local|not our|not my|foreign) (?:mail )?(?:domain|host|hostname)\\b",
  "\\b(?:do not|don'?t|doesn'?t|does not) (?:handle|accept|host|serve|process|take|deliver)\\b(?: \\S{1,30}){0,5} domain\\b",
  "\\bnot (?:responsible|the mail (?:server|host|exchanger)|an? mx) for\\b",
  "\\bi cannot deliver (?:mail )?(?:for|to) <?@|\\bdomain (?:\\S{1,40} )?(?:not in|is not in)\\b",
  "\\bnot a (?:gateway|relay)\\b|\\bden(?:y|ies) relay|\\brelay traffic|\\brecipient domain\\b",
  "\\bmail loops? back\\b|\\broutage\\b|\\bzielserver\\b",
  "домен\\S{0,2} (?:\\S{1,20} ){0,2}(?:не (?:наиден|обслуживается)|неизвест)",
];

/** Said of the envelope sender: MAIL FROM reaches its verdict at RCPT on many servers. */
export const SENDER: readonly string[] = [
  "\\bsender(?:'?s)?(?! ips?\\b)(?: e-?mail)?(?: address| domain| account| mailbox| host)?[^a-z0-9]{0,4}(?:@[^a-z0-9]{0,4})?(?:(?:is|was|has been|could not be|cannot be|can't be|does|to|email|verify|verification|callout|address) ){0,3}(?:rejected|denied|refused|not|unknown|invalid|fail\\w*|unverif\\w+|verif\\w+|blocked|prohibited|doesn'?t|unauthori[sz]ed|must|undeliverable|unavailable|disabled|inactive|suspended|empty|missing|listed|nonexistent|unroutable|unresolvable|forged|disallowed)",
  "\\b(?:invalid|unknown|bad|forged|unverified|unverifiable|illegal|null|empty|unroutable|unrouteable|unresolvable|fake|missing|blocked|prohibited|unauthori[sz]ed|reject(?:ed|ing)?|den(?:y|ies)|verify|undeliverable|restricted) (?:the )?(?:envelope |mail |return )?(?:sender(?! ip)|return[- ]path|return address|reverse[- ]path)\\b",
  "\\b(?:invalid|bad|unknown|fake) (?:mail )?from\\b",
  "\\bmail ?from:?(?: ?<?@>?| address| domain| command)? (?:is )?(?:rejected|denied|refused|not|invalid|unknown|must|does|has|cannot|could)",
  "\\b(?:envelope from|from address|from domain|return[- ]path|reverse[- ]path|originator)\\b(?: \\S{1,40}){0,2} (?:rejected|denied|refused|not|invalid|unknown|must|does|has|is|cannot|could)\\b",
  "\\bdomain of (?:the )?(?:sender|envelope|return)|\\bbadmailfrom\\b|\\bbadsendermx\\b|\\breturned mail\\b",
  "\\bempty envelope senders|\\b(?:for|of) (?:the |your )?sender\\b(?! ip)",
  "\\b(?:you are|you're) sending (?:from|as)\\b|\\bused (?:to|for) send(?:ing)?\\b|\\breturn address",
  "\\bsending address|\\bmail from:? ?<",
  "\\byour (?:e-?mail |return |sender )?(?:address|account|mail-?box) (?:@ |<@> )?(?:is|was|does|has|not|could|cannot|invalid|unknown)\\b",
  "\\benvelope sender is\\b|\\bsender (?:verify|callout|verification)|\\bcallback (?:setup|verif\\w+)",
  "\\bsenderfilterconfig\\b|\\bnot logged in\\b|\\bverification failed for <?@",
  "\\b(?:bounces?|bounce messages?|null senders?|<>)(?: \\S{1,20}){0,2} (?:not accepted|not allowed|rejected|refused|disabled|denied|to this address)",
  "\\bdoes(?:n't| not) (?:send|accept|receive|expect) (?:mail or )?bounces",
  "\\bonly accepts? mail from (?:known|authenticated|internal)",
  "\\b(?:absender\\w{0,9}|expediteur|remitente|remetente|mittente|afzender|nadawc\\w|odesilatel)\\b(?: \\S{1,40}){0,3} (?:abgelehnt|unbekannt|ungultig|ungueltig|existiert|nicht|refuse|rejete|inconnu|invalide|n'existe|rechazad|desconocid|invalid|no existe|recusad|nao existe|sconosciut|rifiutat|non|onbekend|geweigerd|ongeldig|nieznan|odrzucon|nie|neexistuje)",
  "отправител\\S{1,3}|发件人|發件人|寄件者|寄件人|送信者|差出人|발신자|보낸 ?사람",
];

export const GREYLISTED: readonly string[] = [
  "\\bgr[ea]y[- ]?list|\\bpostgrey\\b|\\bsqlgrey\\b|\\bmilter-greylist|\\bgreylst|\\bgr[ae]ylisted",
  "\\bgr[ea]ytrap|\\bgreyd\\b",
  "\\bnew (?:sender|host|triplet|connection)\\b(?: \\S{1,20}){0,4} (?:try|retry|again|later|minutes)",
  "\\bfirst (?:time|seen)\\b(?: \\S{1,20}){0,6} (?:try|retry|later|again)",
  "\\bnot yet (?:authori[sz]ed to deliver|whitelisted|seen)|\\bgraue liste|\\bliste grise",
  "\\blista (?:gris|cinza|grigia)\\b|\\bgrijze lijst|сер\\S{2,3} списо?к|грейлист|グレーリスト|灰名单|灰名單|그레이리스트",
];

export const RATE_LIMITED: readonly string[] = [
  "\\btoo many\\b(?! hops| spams| (?:mails|messages) (?:on|in) )",
  "\\btoo (?:fast|frequent(?:ly)?|much (?:mail(?! data)|traffic)|quick(?:ly)?)\\b",
  "\\b(?:rate|connection|concurren\\w+|session|message|sending|hourly|daily|throughput|recipients?|volume)[ -]?(?:rate )?(?:limit(?:s|ed|ing)?|control|throttl\\w+)\\b",
  "\\blimit(?:s|ed)? (?:the )?(?:rate|connections|number of|(?:for|on) how many)|\\bfrequency limit",
  "\\bfrequency (?:is )?limited|\\bthrottl|\\bslow(?:ing)? (?:it )?down\\b|\\brate[ -]?limit",
  "\\b(?:sending|daily|hourly|message rate|outbound|sent|recipient|mail rate) quota",
  "\\bmax(?:imum|\\.)? (?:number of )?(?:concurrent |parallel |simultaneous )?(?:connections?|sessions?|recipients?|emails? per)\\b",
  "\\bexcess(?:ive|ively)?\\b(?: \\S{1,20}){0,3} (?:connections?|rate|volume|traffic|errors?|invalid|unknown|recipients?)",
  "\\bunusual rate\\b|\\bhigh (?:volume|rate|number)|\\bunexpected volume",
  "\\bmessages? (?:\\S{1,60} ){0,2}temporarily deferred|\\b(?:all )?server ports (?:are )?busy",
  "\\bserver(?: is)? (?:too )?busy|\\bconcurrent (?:connections|sessions)",
  "\\bexceed(?:ed|s|ing)?\\b(?: \\S{1,24}){0,5} (?:connections?|rate|per (?:hour|minute|day|second|connection|session)|number of (?:mails|messages)|limit of \\d+ (?:recipients|connections|messages))",
  "\\b(?:deferred|delayed)(?: \\S{1,20}){0,3} (?:due to|because of) (?:\\S{1,20} ){0,3}(?:volume|rate|load)",
  "\\bload (?:is )?too high|\\bretry (?:at a )?(?:lower|slower) (?:rate)?|\\btoo ?many ?(?:connections|rcpt)",
  "\\bquota (?:de|d')envoi|\\b(?:hvu|con):b[0-9]\\b|\\bdyn:t[0-9]\\b",
  "\\bzu viele\\b|\\btrop de\\b|\\bdemasiad[oa]s\\b|\\bmuit[oa]s (?:conex|destin|mensag|erros)|\\btropp[ei]\\b",
  "\\bte veel\\b|\\bzbyt (?:wiele|duzo)\\b|\\bprilis mnoho\\b|\\bcok fazla\\b|слишком (?:много|часто)",
  "превышен\\S{0,2} (?:лимит|число|количеств)|频率|頻率|过多|過多|太多|过于频繁|超过.{0,6}(?:连接|频)|過ぎます|多すぎ|너무 많",
];

export const TLS_DEMANDED: readonly string[] = [
  "\\bmust (?:first )?(?:issue|send|use|do) (?:an? )?(?:starttls|tls|ssl|encrypt\\w+)",
  "\\b(?:starttls|tls|ssl|encryption)(?: connection| session| encryption| is| v?1\\.[0-3]| or (?:higher|later|above)| level| command| version| transport| support| must be)* (?:required|needed|mandatory|first|necessary|enforced|issued first)\\b",
  "\\brequires? (?:an? |the use of )?(?:starttls|tls|ssl|encrypt\\w+|secure (?:connection|session|channel|transport))",
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
  "\\bsubmission\\b|authentifizierung|autenticacion|autenticacao|autenticazione|认证|認証",
];

export const TEMPORARY: readonly string[] = [
  "\\btry (?:it |the mail |your message |sending |delivery )?(?:again|later|back)|\\btemporar|\\bagain later",
  "\\bservice (?:is )?(?:currently )?(?:unavailable|not available)",
  "\\b(?:lookup|dns|internal|local|system|server|configuration|backend|database|ldap) (?:error|problem|failure)",
  "\\btime(?:d)?[ -]?out|\\bmaintenance\\b|\\bmilter\\b|\\bresources?\\b|\\bspater\\b|\\bspaeter\\b",
  "\\bvorubergehend|\\bplus tard|\\bmas tarde|\\bmais tarde|\\bpiu tardi|\\bpozniej|позже|позднее|временн|稍后",
  "稍後|しばらく|一時的|나중에|일시",
];
