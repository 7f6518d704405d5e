/** Up to a few words between two parts of a phrase, within one sentence. Bounded, so that patterns stay linear. */
const GAP = "(?:[^.;!?]|\\.(?! )){0,48}?";
/** The same for scripts that write without spaces. */
const CJK_GAP = "[^。;!?]{0,24}?";

interface Vocabulary {
  /** Words for the mailbox. */
  readonly nouns: readonly string[];
  /** What is said of it behind the noun: "user … unknown". */
  readonly after: readonly string[];
  /** What is said of it before the noun: "unknown user". */
  readonly before?: readonly string[];
  readonly gap?: string;
}

/** The patterns of one language. */
const said = ({ nouns, after, before = [], gap = GAP }: Vocabulary): string[] => [
  `(?:${nouns.join("|")})${gap}(?:${after.join("|")})`,
  ...(before.length > 0 ? [`(?:${before.join("|")}) (?:\\S{1,24} ){0,2}?(?:${nouns.join("|")})`] : []),
];

/** "@" stands for every address, see `readableText`. An IP address is no mailbox. */
const NOUN =
  "@|\\b(?:(?:user|mail|account)[ -]?(?:name|id)|users?|recipients?|mail-?box(?:es)?|accounts?|addressee|customer|subscriber|alias|maildrop|inbox|rcpt|person|local ?part|e-?mail id|(?<!\\bip |\\bipv[46] |\\bsource |\\bclient |\\bserver )address(?:es)?)\\b";

const NOT_EXIST =
  "(?:does ?n[o']t|does no|doesn'?t|do not|did not|don'?t|didn'?t|not|no longer) exists?|doesnt exist|non-?exist[ae]nt|inexistent|not present|no longer (?:here|valid|on (?:this|our) (?:server|system))|(?:was |is |be )?not (?:be )?found\\b|not ok\\b|\\bunknown\\b(?! (?:host|client|command|helo|error|option|sender|server|ip|domain))";

/** The recipient is unknown, by language; the sources are regular expressions over folded text. */
export const UNKNOWN_RECIPIENT: Readonly<Record<string, readonly string[]>> = {
  english: [
    `(?:${NOUN})${GAP}(?:${NOT_EXIST})`,
    `(?:${NOUN})[^a-z0-9]{0,6}(?:@[^a-z0-9]{0,4})?(?:(?:is|was|are|has|been|marked|as|name|address|account|mailbox|id|could|can|\\([^)]{0,40}\\)) ?){0,3}(?:invalid|(?:not|cannot) (?:be )?(?:found|known|listed|recogni[sz]ed|valid|local|registered|here|exist\\w*|active on|a (?:valid|known|registered|local))|not (?:on|at) this (?:server|system|host)|not a mailbox|unallocated|illegal)`,
    // RFC 5321's own words for 550; providers who answer with them mean the mailbox.
    "\\bmailbox(?: @| <@>)? (?:is )?(?:unavailable|not available)\\b(?! (?:due|because|temporar|at this time|now|right))(?![^;]{0,40}(?:quota|full\\b|storage))",
    "\\b(?:unknown|invalid|illegal|bad|non-?exist[ae]nt|inexistent|undeliverable|unrecogni[sz]ed|wrong|incorrect|unrout[e]?able|not a valid|not a known|no valid) (?:or (?:illegal|invalid|disabled|unknown|inactive) )?(?:local |virtual |final |destination |recipient'?s? |target |to |delivery |e-?mail |user |mail ?box |smtp ){0,2}(?:users?|recipients?|mail-?box|accounts?|address|addressee|alias|rcpt|customer|local ?part|e-?mail(?: id)?|user ?name)\\b",
    "\\bno such (?:a )?(?:local |virtual |active |e-?mail |mail |valid |smtp |internet |known ){0,2}(?:users?|recipients?|mail-?box|accounts?|addresse?e?s?|person|alias|customer|subscriber|name|id|login|local ?part|mail ?drop|rcpt|e-?mail|one|target)\\b",
    "\\bno (?:mail-?box|account|user|one|body|recipient|person|subscriber|customer)\\b(?: \\S{1,30}){0,3} (?:here|by (?:that|this) name|with (?:that|this) (?:name|address)|exists?|found|named)\\b",
    "\\bno (?:mail[- ]?box|account|user|recipient|alias) (?:found|available)\\b",
    "\\bunavailable (?:mail )?user\\b|\\bdon'?t exists? (?:that|this|the|such) user",
    "\\b(?:nobody|no[ -]?one) (?:here )?(?:by|with) (?:that|this) (?:name|e-?mail|address)",
    "\\bhandle mail for (?:that|this) user\\b|\\bnot (?:an? )?users? (?:of|on|at) (?:this|our)\\b",
    "\\bnot an? (?:(?:valid|known|active|local|registered|existing|current) ){1,2}(?:e-?mail )?(?:user|recipient|mail-?box|account|address|customer)\\b",
    "\\bnot found (?:recipient|user|account|mail-?box)|\\bmissing home directory\\b",
    "\\bno[ -]?one at (?:this|that) address",
    "\\bnot (?:our|a|one of our) (?:valid )?(?:customers?|subscribers?|local users?)\\b",
    "\\bnot (?:listed |found |present |known )?in (?:the |our |this |any )?(?:local |virtual |relay |domino |ldap |active |server'?s? )?(?:recipient|mailbox|alias|user|directory|address book|public name)",
    `\\b(?:user|recipient|@)${GAP}(?:does not|doesn'?t|do not) have an? ${GAP}\\baccount\\b`,
    "\\b(?:do not|don'?t|doesn'?t|does not) (?:have|know|recogni[sz]e|host) (?:(?:of|about|an?|any|this|that|the|such) ){1,3}(?:users?|recipients?|mail-?box|accounts?|address|person|customer)\\b",
    "\\b(?:can'?t|cannot|can not|could not|couldn'?t|unable to) (?:find|locate|verify|resolve) (?:(?:the|this|that|a|your) )?(?:user|recipient|mail-?box|account|addressee|recipient'?s address|to address|destination address)\\b",
    "\\b(?:resolver\\.adr\\.)?(?:ex)?recip(?:ient)?notfound\\b|\\bnosuchuser\\b|\\brecipnotfound\\b",
    "\\b(?:recipient|user|account|mailbox) (?:has |was |is )?(?:been )?(?:deleted|removed|cancell?ed)\\b",
    "\\bnot (?:found )?(?:by|via) (?:smtp )?address lookup\\b",
    "\\b(?:address|user|recipient|mailbox)_(?:not_found|unknown|invalid|does_not_exist)\\b",
    "^addressee unknown|\\brecipient verification failed\\b|\\bofr_?\\d*_416\\b|\\bofr_416\\b|\\blpn\\d+_416\\b",
  ],
  german: said({
    nouns: [
      "(?:be)?nutzer(?:name|konto)?|empfa?e?nger(?:in|adresse)?|postfach|mailbox|e?-?mail-?adresse|adresse",
      "konto|account|teilnehmer|anwender|@",
    ],
    after: [
      "unbekannt|existiert (?:hier )?nicht|nicht bekannt|nicht gefunden|nicht vorhanden|ungu?e?ltig",
      "gibt es (?:hier )?nicht|nicht existent|nicht \\(mehr\\) |nicht mehr vorhanden",
    ],
    before: ["unbekannte[rs]?|ungu?e?ltige[rs]?|kein solche[rs]?|nicht existierende[rs]?|nicht vorhandene[rs]?"],
  }),
  french: said({
    nouns: ["utilisateur|destinataire|adresse|bo[i]te|compte|usager|abonne|@"],
    after: [
      "inconnue?s?|inexistante?|n'? ?existe (?:pas|plus)|introuvable|invalide|non trouvee?|n'est pas valide",
      "non valide",
    ],
    before: ["aucun|aucune"],
  }),
  spanish: said({
    nouns: ["usuario|destinatario|buzon|cuenta|direccion|casilla|correo|persona|@"],
    after: [
      "desconocid[oa]|no existe|inexistente|no (?:fue |ha sido )?encontrad[oa]|invalid[oa]",
      "no (?:es )?valid[oa]",
    ],
    before: ["no existe (?:el|la|ese|esa|este|esta|dich[oa]|tal)|no se (?:encontro|encuentra|reconoce) (?:el|la)"],
  }),
  portuguese: said({
    nouns: ["usuario|utilizador|destinatario|caixa|conta|endereco|e-?mail|@"],
    after: [
      "desconhecid[oa]|nao existe|inexistente|nao (?:foi )?(?:encontrad|localizad|cadastrad)[oa]|invalid[oa]",
      "nao e valid[oa]",
    ],
    before: ["nao existe (?:o|a|esse|essa|este|esta)"],
  }),
  italian: said({
    nouns: ["utente|destinatario|destin\\.? |casella|indirizzo|account|mailbox|@"],
    after: [
      "errat[oa]|sconosciut[oa]|inesistente|non esist(?:e|ente)|non (?:e stat[oa] )?trovat[oa]",
      "non (?:e )?valid[oa]|non piu (?:attiv|valid)[oa]",
    ],
    before: ["nessun[oa]?"],
  }),
  dutch: said({
    nouns: ["gebruikers?|ontvangers?|geadresseerde|postbus|postvak|mailbox|account|adres|e-?mailadres|@"],
    after: ["onbekend|bestaat (?:hier )?niet|niet gevonden|ongeldig|niet bekend"],
    before: ["onbekende|ongeldige?|geen"],
  }),
  polish: said({
    nouns: ["uzytkownik\\w{0,4}|odbiorc\\w{0,3}|adresat\\w{0,3}|skrzynk\\w{0,3}|kont[oa]|adres\\w{0,3}|@"],
    after: ["nieznan\\w|nie istnieje|nie (?:zostal\\w? )?znalezion\\w{1,2}|nieprawidlow\\w|niepoprawn\\w"],
    before: ["nie ma takie(?:go|j)|brak|brak takie(?:go|j)|nieznan\\w{1,2}"],
  }),
  czech: said({
    nouns: ["uzivatel|schranka|adresat|prijemce|adresa|ucet|prijimatel|pouzivatel|@"],
    after: ["neexistuje|neznam\\w|nenalezen\\w?|neplatn\\w|nebol[ao]? najden\\w"],
    before: ["neznam\\w|neexistujici|neplatn\\w"],
  }),
  nordic: said({
    nouns: [
      "anvandaren?|mottagaren?|bruker(?:en)?|mottaker(?:en)?|modtager(?:en)?|brugeren?|postkassen?|brevladan?",
      "adressen?|kontot?|@",
    ],
    after: [
      "okand|finns (?:inte|ej)|existerar (?:inte|ej)|finnes ikke|fins ikke|ukjent|ukendt|eksisterer ikke",
      "findes ikke|ugyldig|ogiltig",
    ],
    before: ["okand|ukjent|ukendt|ugyldig|ogiltig"],
  }),
  finnish: said({
    nouns: ["kayttaja\\w{0,3}|vastaanottaja\\w{0,3}|postilaatikko\\w{0,3}|osoite\\w{0,3}"],
    after: ["tuntematon|ei loydy|ei ole olemassa|ei loytynyt"],
    before: ["tuntematon"],
  }),
  hungarian: said({
    nouns: ["felhasznalo|cimzett|postafiok|cim"],
    after: ["nem letezik|nem talalhato|ismeretlen|ervenytelen"],
    before: ["ismeretlen|nem letezo"],
  }),
  romanian: said({
    nouns: ["utilizator(?:ul)?|destinatar(?:ul)?|casuta|adresa|contul?"],
    after: ["necunoscuta?|inexistenta?|nu exista|invalida?"],
  }),
  turkish: said({
    nouns: ["kullanici\\S{0,5}|alici\\S{0,4}|posta kutusu|hesap|hesabi|adres\\S{0,3}|@"],
    after: ["bulunamadi|bilinmiyor|mevcut degil|gecersiz|\\byok\\b|tanimsiz"],
    before: ["bilinmeyen|gecersiz|boyle bir|gecersiz bir"],
  }),
  indonesian: said({
    nouns: ["pengguna|penerima|alamat|akun"],
    after: ["tidak (?:ditemukan|dikenal|ada|valid|terdaftar)"],
  }),
  vietnamese: said({
    nouns: ["nguoi dung|nguoi nhan|dia chi|hop thu|tai khoan"],
    after: ["khong ton tai|khong tim thay|khong hop le"],
  }),
  russian: said({
    nouns: [
      "пользовател\\S{1,3}|получател\\S{1,3}|адресат\\S{0,2}|ящик\\S{0,2}|адрес\\S{0,2}|абонент\\S{0,2}",
      "учетн\\S{2,3} запис\\S{1,2}|аккаунт\\S{0,2}|користувач\\S{0,2}|одержувач\\S{0,2}|скриньк\\S{1,2}|@",
    ],
    after: [
      "не (?:был )?наиден\\S?|не существует|неизвест\\S{2,3}|не зарегистрирован\\S?|отсутствует",
      "недеиствител\\S{2,4}|не знаидено|не існує|не найден\\S?",
    ],
    before: ["нет такого|нет такои|неизвестн\\S{2,3}|несуществующ\\S{2,3}|невідом\\S{2,3}|недеиствительн\\S{2,3}"],
  }),
  greek: said({
    nouns: ["χρηστης|παραληπτης|διευθυνση|λογαριασμος|γραμματοκιβωτιο"],
    after: ["δεν υπαρχει|αγνωστο\\S|δεν βρεθηκε"],
    before: ["αγνωστο\\S"],
  }),
  japanese: said({
    nouns: ["ユーザー?|宛先|受信者|メールアドレス|アドレス|メールボックス|アカウント|利用者|受取人"],
    after: ["存在しません|存在しない|見つかりません|見つからない|不明|無効|ありません|登録されていません"],
    gap: CJK_GAP,
  }).concat(
    "該当する?(?:ユーザー?|アドレス|宛先)|存在しない(?:ユーザー?|アドレス|宛先|メール)|不明な(?:ユーザー?|宛先)",
  ),
  chinese: said({
    nouns: ["用户|用戶|使用者|收件人|收信人|收件者|邮箱|郵箱|信箱|帐号|帳號|账号|账户|帳戶|地址|邮件地址"],
    after: ["不存在|不正确|不正確|未找到|找不到|无效|無效|不明|未知|没有找到|未注册|未註冊|错误|錯誤"],
    gap: CJK_GAP,
  }).concat(
    "(?:不存在|无效|無效|未知|没有|沒有|查无|查無|找不到)(?:的|此|该|該|这个|這個){0,2}(?:用户|用戶|使用者|收件人|收信人|收件者|邮箱|郵箱|信箱|帐号|帳號|账号|地址)",
  ),
  korean: said({
    nouns: ["사용자|수신자|수신인|받는 ?사람|메일함|편지함|계정|주소|아이디"],
    after: ["존재하지 ?않|찾을 ?수 ?없|없는|없습니다|알 ?수 ?없|잘못|유효하지 ?않"],
    gap: CJK_GAP,
  }).concat("(?:존재하지 ?않는|없는|잘못된|알 ?수 ?없는) ?(?:사용자|수신자|메일|계정|주소|아이디|편지함)"),
};

/** The recipient exists but was switched off. */
export const DISABLED_RECIPIENT: readonly string[] = [
  `(?:${NOUN})${GAP}\\b(?:disabled|suspend(?:ed)?|inactive|in-active|deactivated|de-activated|frozen|closed|locked|expired|terminated|dormant|discontinued|archived|not active|not enabled|not activated|blocked (?:due to|for) inactivity|no longer (?:active|available|in use|in service|accept(?:s|ing)|receiv\\w+|monitored|used|with)|has left|is not accepting (?:any )?(?:mail|e-?mail|messages))\\b(?! (?:sender|ip|network))`,
  "\\b(?:disabled|suspended|inactive|archived|deactivated|frozen|locked|expired|closed|terminated) (?:user|recipient|mail-?box|account|address|e-?mail)\\b",
  "\\buser is over the quota and disabled\\b",
  "(?:konto|postfach|benutzer|empfa?e?nger|mailbox|adresse|account)(?:[^.;!?]|\\.(?! )){0,32}?(?:gesperrt|deaktiviert|inaktiv|stillgelegt|geschlossen|abgeschaltet|nicht aktiv)",
  "(?:compte|boite|utilisateur|adresse|destinataire)(?:[^.;!?]|\\.(?! )){0,32}?(?:desactivee?|suspendue?|inactive?|fermee?|bloquee?|cloturee?)",
  "(?:cuenta|usuario|buzon|conta|caixa|casilla|destinatario|account|casella|utente)(?:[^.;!?]|\\.(?! )){0,32}?(?:desactivad[oa]|desativad[oa]|suspendid[oa]|suspens[oa]|inactiv[oa]|inativ[oa]|bloquead[oa]|deshabilitad[oa]|desabilitad[oa]|cancelad[oa]|disattivat[oa]|disabilitat[oa]|sospes[oa]|bloccat[oa]|inattiv[oa]|chius[oa]|cerrad[oa]|encerrad[oa])",
  "(?:account|mailbox|gebruiker|postbus)(?:[^.;!?]|\\.(?! )){0,32}?(?:geblokkeerd|uitgeschakeld|opgeheven|gedeactiveerd|niet actief)",
  "(?:kont[oa]|skrzynk\\w|uzytkownik)(?:[^.;!?]|\\.(?! )){0,32}?(?:zablokowan\\w|nieaktywn\\w|zawieszon\\w|wylaczon\\w|usuniet\\w)",
  "(?:ящик|пользовател\\S|учетн\\S{2,3} запис\\S|аккаунт|абонент|адрес)(?:[^.;!?]|\\.(?! )){0,32}?(?:заблокирован|отключен|неактив|приостановлен|удален|закрыт)",
  "(?:hesap|hesabi|kullanici|posta kutusu)(?:[^.;!?]|\\.(?! )){0,32}?(?:devre disi|askiya alin|pasif|kapatil|kapali)",
  "(?:ユーザー?|アカウント|メールボックス|アドレス)[^。]{0,16}?(?:停止|無効化|凍結|休止)",
  "(?:用户|用戶|邮箱|郵箱|信箱|帐号|帳號|账号|账户|帳戶)[^。]{0,12}?(?:停用|冻结|凍結|禁用|锁定|鎖定|已关闭|已關閉|注销|註銷|暂停|暫停|封禁)",
  "(?:사용자|계정|메일함|편지함|아이디)[^.]{0,16}?(?:정지|비활성|휴면|중지|차단|잠겨|해지)",
];

/** The recipient exists and has no room left. */
export const FULL_MAILBOX: readonly string[] = [
  "\\b(?:mail-?box|inbox|account|user|maildir|mail ?drop|mail ?file|storage|folder|recipient|disk)\\b(?:[^.;!?]|\\.(?! )){0,40}?\\b(?:full|over (?:the |its |his |their |disk |mail |storage )?(?:quota|limit)|overquota|out of (?:space|storage|quota)|has no (?:space|storage|room))",
  "\\b(?:over|out of|exceed(?:s|ed|ing)?|insufficient|not enough|no|low on) (?:(?:the|its|his|their|your|mail|mailbox|disk|storage|user|account|allocated|allowed|maximum|max|message|inbox|recipient'?s?|allowable|available|free|file) ){0,4}(?:quota|storage(?: space| allocation| limit)?|(?:disk|mailbox|storage) space)\\b",
  "\\b(?:quota|storage|mailbox (?:size|limit|storage)|storage allocation|size limit)(?: \\S{1,20}){0,3} (?:exceeded|exceed|full|reached)\\b",
  "\\bquota(?: limit)? (?:exceeded|violation|exceed|full)\\b|\\boverquota\\b|\\bover-quota\\b",
  "\\bmailfolder is full\\b|\\bmailbox[_ ]?full\\b",
  "exceeded (?:storage|disk) allocation",
  "(?:not|n't) have (?:enough|sufficient) (?:disk |storage )?(?:space|room)|\\bexceeding receiving limits",
  "\\btoo (?:much mail|many (?:mails|messages) (?:on|in) )|\\bmail box full\\b",
  "(?:postfach|mailbox|konto|speicher\\S{0,8})(?:[^.;!?]|\\.(?! )){0,32}?(?:voll|uberfullt|ueberfuellt|quota|uberschritten|ueberschritten|erschopft)",
  "(?:boite|compte|quota|espace)(?:[^.;!?]|\\.(?! )){0,32}?(?:pleine?|saturee?|depassee?|remplie)",
  "(?:buzon|cuenta|caixa|casella|mailbox|casilla|cota|cuota|quota|spazio)(?:[^.;!?]|\\.(?! )){0,32}?(?:llen[oa]|cheia|lotada|piena|excedid[oa]|superad[oa]|superata|esaurito|sin espacio|sem espaco|estourou)",
  "(?:postbus|mailbox|postvak)(?:[^.;!?]|\\.(?! )){0,24}?\\bvol\\b",
  "(?:skrzynk\\w|pojemnosc)(?:[^.;!?]|\\.(?! )){0,32}?(?:pelna|przepelnion\\w|przekroczon\\w)",
  "schranka (?:\\S{1,20} ){0,3}plna|posta kutusu (?:\\S{1,20} ){0,3}dolu|kota(?:si)? (?:asildi|dolu)",
  "ящик\\S{0,2}(?:[^.;!?]|\\.(?! )){0,24}?(?:переполнен|полон|заполнен)",
  "превышен\\S{0,2} (?:квот|лимит места|размер ящика)",
  "(?:メールボックス|容量|ディスク)[^。]{0,16}?(?:いっぱい|一杯|満杯|超過|不足|超え)",
  "(?:邮箱|郵箱|信箱|用户|用戶|帐号|账号|收件人)[^。]{0,12}?(?:已满|已滿|空间不足|空間不足|容量不足|超出容量|超过限额|满了|滿了)",
  "(?:空间|空間|容量|配额|配額)(?:已满|已滿|不足|超限)",
  "(?:메일함|편지함|용량|사서함)[^.]{0,16}?(?:가득|초과|부족|꽉)",
];
