import type { Vocabulary } from "./vocabulary.ts";

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
  },
  // Finnish
  {
    nouns: ["kayttaja\\w{0,3}", "vastaanottaja\\w{0,3}", "postilaatikko\\w{0,3}", "osoite\\w{0,3}"],
    unknown: ["tuntematon", "ei loydy", "ei ole olemassa", "ei loytynyt", "virheellinen"],
    disabled: ["suljettu", "lukittu", "poistettu kaytosta"],
    full: ["taynna"],
    before: ["tuntematon"],
  },
  // Hungarian
  {
    nouns: ["felhasznalo", "cimzett", "postafiok", "\\b(?:e-?mail ?)?cim\\b"],
    unknown: ["nem letezik", "nem talalhato", "ismeretlen", "ervenytelen"],
    disabled: ["letiltva", "felfuggesztve", "inaktiv", "megszunt"],
    full: ["megtelt", "tele van", "betelt"],
    before: ["ismeretlen", "nem letezo", "ervenytelen"],
  },
  // Romanian
  {
    nouns: ["utilizator(?:ul)?", "destinatar(?:ul)?", "casuta", "adresa", "\\bcontul?\\b"],
    unknown: ["necunoscuta?", "inexistenta?", "nu exista", "invalida?", "nu a fost gasit"],
    disabled: ["dezactivata?", "suspendata?", "blocata?"],
    full: ["\\bplina\\b", "depasita?"],
  },
  // Turkish
  {
    nouns: ["kullanici\\S{0,5}", "alici\\S{0,4}", "posta kutusu", "hesap\\b", "hesabi\\b", "adres\\S{0,3}", "@"],
    stores: ["\\bkota(?:si)?\\b"],
    unknown: ["bulunamadi", "bilinmiyor", "mevcut degil", "gecersiz", "\\byok\\b", "tanimsiz"],
    disabled: ["devre disi", "askiya alin", "pasif", "kapatil", "kapali"],
    full: ["\\bdolu\\b", "asildi"],
    before: ["bilinmeyen", "gecersiz", "boyle bir", "gecersiz bir"],
  },
  // Indonesian
  {
    nouns: ["pengguna", "penerima", "alamat", "akun", "kotak surat"],
    unknown: ["tidak (?:ditemukan|dikenal|ada|valid|terdaftar)"],
    disabled: ["dinonaktifkan", "ditangguhkan", "tidak aktif"],
    full: ["penuh"],
  },
  // Vietnamese
  {
    nouns: ["nguoi dung", "nguoi nhan", "dia chi", "hop thu", "tai khoan"],
    unknown: ["khong ton tai", "khong tim thay", "khong hop le"],
    disabled: ["bi khoa", "vo hieu hoa", "tam ngung"],
    full: ["da day", "het dung luong"],
  },
];
