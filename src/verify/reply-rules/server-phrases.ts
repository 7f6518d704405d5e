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
