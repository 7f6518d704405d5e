import type { Vocabulary } from "./pattern.ts";

/** Polish to Vietnamese: written in Latin letters, folded without their accents. */
export const NORTHERN_AND_SOUTHERN: readonly Vocabulary[] = [
  // Polish
  {
    nouns: [
      "uzytkownik\\w{0,4}",
      "odbiorc\\w{0,3}",
      "adresat\\w{0,3}",
      "skrzynk\\w{0,3}",
      "\\bkont[oa]\\b",
      "adres\\w{0,3}",
    ].concat(["@"]),
    stores: ["pojemnosc", "limit"],
    unknown: [
      "nieznan\\w",
      "nie istnieje",
      "nie (?:zostal\\w? )?znalezion\\w{1,2}",
      "nieprawidlow\\w",
      "niepoprawn\\w",
    ],
    disabled: ["zablokowan\\w", "nieaktywn\\w", "zawieszon\\w", "wylaczon\\w", "usuniet\\w", "wygasl\\w"],
    full: ["pelna", "przepelnion\\w", "przekroczon\\w", "zapelnion\\w", "brak miejsca"],
    before: ["nie ma takie(?:go|j)", "brak(?: takie(?:go|j))?", "nieznan\\w{1,2}", "nieprawidlow\\w{1,2}"],
    unchecked: [
      "(?:nie (?:mozna|udalo sie|udaje sie|moze byc|mogl\\w{0,2} byc|zdolal\\w{0,2}|moge|moglem|jest mozliwe)|niemozliw\\w|bez mozliwosci) (?:\\S{1,14} ){0,3}?(?:zweryfik|weryfik|sprawdz|potwierdz|ustali|rozwiaz|skontaktow|osiagn|zwalid)",
      "nie (?:zostal\\w? )?(?:zweryfikowan|sprawdzon|potwierdzon)|blad (?:\\S{1,10} )?(?:weryfikacj|sprawdzan|walidacj)",
    ],
    failedChecks: [
      "(?:weryfikacj\\w|sprawdzani\\w|sprawdzeni\\w|potwierdzeni\\w|walidacj\\w)\\b[^.;]{0,40}? (?:nie powiodl|nieudan|nie udal|niemozliw|zakonczyl)",
    ],
  },
  // Czech and Slovak
  {
    nouns: [
      "uzivatel\\w{0,2}",
      "schrank[auy]",
      "adresat",
      "prijemce",
      "adresa",
      "\\bucet\\b",
      "prijimatel",
      "pouzivatel",
      "@",
    ],
    unknown: ["neexistuj[ei]", "neznam\\w", "nenalezen\\w?", "neplatn\\w", "nebol[ao]? najden\\w"],
    disabled: ["zablokovan\\w?", "deaktivovan\\w?", "zrusen\\w?", "neaktivn\\w", "pozastaven\\w?"],
    full: ["\\bplna\\b", "preplnen\\w", "prekrocen\\w?"],
    before: ["neznam\\w", "neexistujici", "neplatn\\w"],
    unchecked: [
      "(?:nelze|nemoz\\w+|nepodaril\\w s[ea]|neni mozne|nie je mozne|nemohl\\w?|nemohol|nedalo s[ea]|nedokazal\\w?) (?:\\S{1,14} ){0,3}?(?:overi|overe|zkontrol|skontrol|potvrdi|potvrz|zjisti|vyhled|kontaktov|validov)",
      "neb[yo]l\\w? (?:overen|potvrzen|potvrden|zkontrolovan|skontrolovan)",
    ],
    failedChecks: [
      "(?:overeni|overenie|overovani|kontrola|validace|validacia)\\b[^.;]{0,40}? (?:selhal|zlyhal|neuspes|s[ea] nezdaril|s[ea] nepodaril|nemozn)",
    ],
  },
  // Swedish, Norwegian, Danish
  {
    nouns: [
      "anvandaren?",
      "mottagaren?",
      "bruker(?:en)?",
      "mottaker(?:en)?",
      "modtager(?:en)?",
      "brugeren?",
      "postkassen?",
    ].concat(["brevladan?", "adressen?", "kontot?\\b", "kontoen", "@"]),
    unknown: [
      "okand",
      "finns (?:inte|ej)",
      "existerar (?:inte|ej)",
      "finn?es ikke",
      "fins ikke",
      "ukjent",
      "ukendt",
    ].concat([
      "eksisterer ikke",
      "findes ikke",
      "ugyldig",
      "ogiltig",
      "hittades inte",
      "ikke funnet",
      "blev ikke fundet",
    ]),
    disabled: ["sparrad", "avstangd", "inaktiv", "sperret", "spaerret", "deaktiver(?:at|et)", "stengt", "lukket"],
    full: ["\\bfull\\b", "fuld\\b", "overskredet", "overskriden"],
    before: ["okand", "ukjent", "ukendt", "ugyldig", "ogiltig"],
    unchecked: [
      "(?:inte|ej|ikke|icke) (?:\\S{1,14} ){0,3}?(?:verifi|kontroll|bekrae?ft|bekreft|validera|valider|faststall|fastsla|slas? upp|sla op|tjekk|kontakt|nas\\b|na\\b|naes\\b|nas?tt?\\b)",
      "(?:misslyckades|mislyktes|mislykkedes|omojligt|umulig\\w?)(?: \\S{1,14}){0,2} (?:att|a|at|med a) (?:\\S{1,14} )?(?:verifi|kontroll|bekraft|bekreft|valider|na\\b)",
    ],
    failedChecks: [
      "(?:verifiering|verifisering|verificering|verifikation|kontroll|kontrollen|validering)\\w{0,3}\\b[^.;]{0,40}? (?:misslyckades|mislyktes|mislykkedes|feilet|fejlede|mislykket|ikke mulig|inte mojlig|ej mojlig)",
    ],
  },
  // Finnish
  {
    nouns: ["kayttaja\\w{0,3}", "vastaanottaja\\w{0,3}", "postilaatikko\\w{0,3}", "osoite\\w{0,3}"],
    unknown: ["tuntematon", "ei loydy", "ei ole olemassa", "ei loytynyt", "virheellinen"],
    disabled: ["suljettu", "lukittu", "poistettu kaytosta"],
    full: ["taynna"],
    before: ["tuntematon"],
    unchecked: [
      "(?:ei|eivat|en) (?:voitu|voida|voi|pystytty|pysty|onnistut\\w+|saatu|ole voitu) (?:\\S{1,24} ){0,3}?(?:tarkist|vahvist|varment|tavoit|selvit|todent)",
    ],
    failedChecks: [
      "(?:tarkist\\w+|tarkast\\w+|vahvist\\w+|varmen\\w+|todenn\\w+|todent\\w+)\\b[^.;]{0,40}? (?:epaonnist|ei onnist)|(?:epaonnist\\w+)[^.;]{0,30}? (?:tarkist|vahvist|varmen|todent|todenn)",
    ],
  },
  // Hungarian
  {
    nouns: ["felhasznalo", "cimzett", "postafiok", "\\b(?:e-?mail ?)?cim\\b"],
    unknown: ["nem letezik", "nem talalhato", "ismeretlen", "ervenytelen"],
    disabled: ["letiltva", "felfuggesztve", "inaktiv", "megszunt"],
    full: ["megtelt", "tele van", "betelt"],
    before: ["ismeretlen", "nem letezo", "ervenytelen"],
    unchecked: [
      "nem (?:sikerult|lehet|lehetett|tudtuk|tudjuk|tudta|volt lehetseges) (?:\\S{1,16} ){0,3}?(?:ellenoriz|megerosit|igazol|meghataroz|elern|felold|hitelesit)",
    ],
    failedChecks: [
      "nem (?:ellenorizheto|igazolhato|erheto el|elerheto|hitelesitheto)|(?:ellenorzes\\w*|igazolas\\w*|hitelesites\\w*)\\b[^.;]{0,40}? (?:sikertelen|nem sikerult|meghiusult)|sikertelen (?:\\S{1,16} )?(?:ellenorzes|igazolas|hitelesites)",
    ],
  },
  // Romanian
  {
    nouns: ["utilizator(?:ul)?", "destinatar(?:ul)?", "casuta", "adresa", "\\bcontul?\\b"],
    unknown: ["necunoscuta?", "inexistenta?", "nu exista", "invalida?", "nu a fost gasit"],
    disabled: ["dezactivata?", "suspendata?", "blocata?"],
    full: ["\\bplina\\b", "depasita?"],
    unchecked: [
      "(?:nu (?:s-a putut|a putut(?: fi)?|poate fi|se poate|am putut|a fost posibil\\w?|este posibil\\w?)|imposibil(?: de)?|eroare la) (?:\\S{1,14} ){0,2}?(?:verific|valid|confirm|rezolv|determin|contact)",
    ],
    failedChecks: [
      "(?:verificarea|validarea|confirmarea)\\b[^.;]{0,40}? (?:a )?(?:esuat|imposibil)|nu a fost (?:verificat|validat|confirmat)",
    ],
  },
  // Turkish
  {
    nouns: ["kullanici\\S{0,5}", "alici\\S{0,4}", "posta kutusu", "hesap\\b", "hesabi\\b", "adres\\S{0,3}", "@"],
    stores: ["\\bkota(?:si)?\\b"],
    unknown: ["bulunamadi", "bilinmiyor", "mevcut degil", "gecersiz", "\\byok\\b", "tanimsiz"],
    disabled: ["devre disi", "askiya alin", "pasif", "kapatil", "kapali"],
    full: ["\\bdolu\\b", "asildi"],
    before: ["bilinmeyen", "gecersiz", "boyle bir", "gecersiz bir"],
    unchecked: [
      "(?:dogrulanam|kontrol edilem|onaylanam|cozumlenem|ulasilam|belirlenem|tespit edilem|teyit edilem|sorgulanam|denetlenem|dogrulayam|kontrol edem)",
    ],
    failedChecks: ["(?:dogrula\\S*|kontrol\\S*|onay\\S*)\\b[^.;]{0,40}? (?:basarisiz|yapilam|mumkun degil|tamamlanam)"],
  },
  // Indonesian
  {
    nouns: ["pengguna", "penerima", "alamat", "akun", "kotak surat"],
    unknown: ["tidak (?:ditemukan|dikenal|ada|valid|terdaftar)"],
    disabled: ["dinonaktifkan", "ditangguhkan", "tidak aktif"],
    full: ["penuh"],
    unchecked: [
      "(?:tidak (?:dapat|bisa|mampu)|tak (?:dapat|bisa)|gagal|belum) (?:\\S{1,14} ){0,2}?(?:memverifikasi|diverifikasi|memeriksa|diperiksa|memvalidasi|divalidasi|mengonfirmasi|dikonfirmasi|menghubungi|dihubungi|memastikan|dipastikan|menjangkau|dijangkau)",
    ],
    failedChecks: ["(?:verifikasi|pemeriksaan|validasi)\\b[^.;]{0,40}? gagal|gagal (?:verifikasi|validasi)"],
  },
  // Vietnamese
  {
    nouns: ["nguoi dung", "nguoi nhan", "dia chi", "hop thu", "tai khoan"],
    unknown: ["khong ton tai", "khong tim thay", "khong hop le"],
    disabled: ["bi khoa", "vo hieu hoa", "tam ngung"],
    full: ["da day", "het dung luong"],
    unchecked: [
      "(?:khong the|khong|chua) (?:\\S{1,14} ){0,2}?(?:xac minh|xac nhan|xac thuc|kiem tra|lien lac|lien he|xac dinh)",
    ],
    failedChecks: ["(?:xac minh|xac nhan|xac thuc|kiem tra)[^.;]{0,40}? (?:that bai|khong thanh cong)"],
  },
];
