import { anyOf } from "./pattern.ts";

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
