import { describe, expect, test } from "bun:test";
import { parseReply } from "../../foundation/net/smtp-reply.ts";
import { readReply } from "../replies.ts";

const readingOf = (text: string): string => {
  const parsed = parseReply(text);
  if (!parsed.ok) throw new Error(`${parsed.error}: ${text}`);
  return readReply(parsed.value, "rcpt", { recipient: "ada@x.example" }).reading;
};

/** What would make a verification undeliverable. */
const NO: ReadonlySet<string> = new Set(["mailbox_not_found", "mailbox_disabled", "null_mx"]);

const CODES = ["550", "550 5.1.1", "550 5.1.0", "551 5.1.6", "553 5.1.3", "554 5.7.1", "550 5.2.1", "554 5.4.1"];

const NOUNS = [
  ...["recipient", "the recipient", "recipient address", "the user", "user <ada@x.example>", "mailbox", "the account"],
  ...["address", "<ada@x.example>", "this e-mail address", "alias"],
];
const ACTIVE = ["verify", "validate", "check", "confirm", "resolve", "determine", "look up", "contact", "reach"];
const PASSIVE = [
  "verified",
  "validated",
  "checked",
  "confirmed",
  "resolved",
  "determined",
  "looked up",
  "contacted",
  "reached",
];
const ENGLISH: ReadonlyArray<(noun: string) => string[]> = [
  (noun) =>
    ACTIVE.flatMap((verb) => [`Unable to ${verb} ${noun}`, `Cannot ${verb} ${noun}`, `We could not ${verb} ${noun}`]),
  (noun) => ACTIVE.flatMap((verb) => [`Failed to ${verb} ${noun}`, `Couldn't ${verb} whether ${noun} exists`]),
  (noun) =>
    PASSIVE.flatMap((verb) => [
      `${noun} could not be ${verb}`,
      `${noun} cannot be ${verb}`,
      `${noun} can't be ${verb}`,
    ]),
  (noun) => PASSIVE.flatMap((verb) => [`${noun} was not ${verb}`, `existence of ${noun} not ${verb}`]),
  (noun) => [`${noun} verification failed`, `${noun} validation error`, `Verification of ${noun} failed`],
  (noun) => [
    `Error verifying ${noun}`,
    `Failure while checking ${noun}`,
    `${noun}: verify failed`,
    `unverified ${noun}`,
  ],
];

const SUFFIXES = [
  ...[
    "",
    ", upstream did not answer",
    ": network unreachable",
    ": upstream server did not respond",
    " (no route to host)",
  ],
  ...[
    ": internal server replied 421",
    ": 451 4.3.0 service unavailable",
    ": backend not found",
    ": domain controller not found",
  ],
  ...[", the directory does not exist", ": unknown error", ": mail server unknown", ". Contact your administrator."],
];

describe("a server that could not find out does not know", () => {
  test.each(CODES)("in English, at %p", (code) => {
    const texts = NOUNS.flatMap((noun) => ENGLISH.flatMap((phrases) => phrases(noun)));
    const wrong = texts
      .flatMap((text, at) => ["", SUFFIXES[at % SUFFIXES.length] ?? ""].map((suffix) => `${code} ${text}${suffix}`))
      .filter((text) => NO.has(readingOf(text)));
    expect(wrong).toEqual([]);
  });

  const ABROAD: Readonly<Record<string, readonly string[]>> = {
    german: [
      "Empfänger konnte nicht überprüft werden",
      "Der Benutzer kann nicht verifiziert werden",
      "Postfach konnte nicht geprüft werden",
      "Die Adresse konnte nicht ermittelt werden",
      "Konnte Empfänger nicht überprüfen",
      "Prüfung des Empfängers fehlgeschlagen",
      "Verifizierung der Adresse nicht möglich",
      "Empfänger nicht erreichbar",
      "Es ist unmöglich, den Empfänger zu überprüfen",
    ],
    french: [
      "Impossible de vérifier le destinataire",
      "Le destinataire n'a pas pu être vérifié",
      "L'adresse ne peut pas être validée",
      "Vérification du destinataire impossible",
      "La vérification de l'adresse a échoué",
      "Échec de la vérification du destinataire",
      "Impossible de joindre le destinataire",
      "Utilisateur injoignable",
    ],
    spanish: [
      "No se pudo verificar el destinatario",
      "No es posible comprobar el usuario",
      "El destinatario no pudo ser verificado",
      "Imposible validar la dirección",
      "Verificación del destinatario fallida",
      "Error al verificar la cuenta",
      "El usuario no fue verificado",
    ],
    portuguese: [
      "Não foi possível verificar o destinatário",
      "O destinatário não pôde ser verificado",
      "Impossível validar o endereço",
      "Falha na verificação do destinatário",
      "A verificação do usuário falhou",
    ],
    italian: [
      "Impossibile verificare il destinatario",
      "Il destinatario non può essere verificato",
      "Non è stato possibile verificare l'indirizzo",
      "Verifica del destinatario fallita",
      "Destinatario non raggiungibile",
    ],
    dutch: [
      "Ontvanger kan niet worden geverifieerd",
      "Kan de ontvanger niet controleren",
      "De gebruiker kon niet worden gecontroleerd",
      "Verificatie van ontvanger mislukt",
      "Ontvanger niet bereikbaar",
    ],
    polish: [
      "Nie można zweryfikować odbiorcy",
      "Nie udało się sprawdzić użytkownika",
      "Odbiorca nie może być zweryfikowany",
      "Weryfikacja odbiorcy nie powiodła się",
    ],
    czech: [
      "Nelze ověřit příjemce",
      "Nepodařilo se ověřit uživatele",
      "Ověření adresy selhalo",
      "Adresa nebyla ověřena",
      "Nepodarilo sa overiť používateľa",
    ],
    scandinavian: [
      "Mottagaren kunde inte verifieras",
      "Kan inte kontrollera mottagaren",
      "Mottakeren kunne ikke verifiseres",
      "Modtageren kunne ikke bekræftes",
      "Kontroll av mottagaren misslyckades",
    ],
    finnish: [
      "Vastaanottajaa ei voitu tarkistaa",
      "Vastaanottajan tarkistus epäonnistui",
      "Osoitetta ei voida vahvistaa",
    ],
    hungarian: [
      "A címzettet nem sikerült ellenőrizni",
      "A címzett nem ellenőrizhető",
      "A felhasználó ellenőrzése sikertelen",
    ],
    romanian: [
      "Destinatarul nu a putut fi verificat",
      "Nu s-a putut verifica adresa",
      "Verificarea utilizatorului a eșuat",
    ],
    turkish: ["Alıcı doğrulanamadı", "Kullanıcı kontrol edilemedi", "Adres doğrulaması başarısız"],
    indonesian: ["Penerima tidak dapat diverifikasi", "Tidak dapat memverifikasi alamat", "Verifikasi pengguna gagal"],
    vietnamese: ["Không thể xác minh người nhận", "Người dùng không thể được xác minh", "Kiểm tra địa chỉ thất bại"],
    russian: [
      "Не удалось проверить получателя",
      "Получатель не может быть проверен",
      "Невозможно проверить адрес",
      "Проверка получателя не удалась",
      "Ошибка проверки адреса",
    ],
    ukrainian: ["Не вдалося перевірити одержувача", "Неможливо перевірити користувача", "Перевірка адреси не вдалася"],
    greek: ["Δεν ήταν δυνατή η επαλήθευση του παραλήπτη", "Αδυναμία επαλήθευσης χρήστη"],
    japanese: ["宛先を確認できませんでした", "ユーザーの検証に失敗しました", "アドレスの照会ができません"],
    chinese: ["无法验证收件人", "不能确认用户", "邮箱验证失败", "無法驗證收件者", "收件人地址无法查询"],
    korean: ["수신자를 확인할 수 없습니다", "사용자 검증에 실패했습니다", "주소를 조회하지 못했습니다"],
  };
  test.each(Object.keys(ABROAD))("in %s, at any code", (language) => {
    const wrong = (ABROAD[language] ?? [])
      .flatMap((text) =>
        CODES.flatMap((code) => ["", ": 421", " (timeout)", "."].map((end) => `${code} ${text}${end}`)),
      )
      .filter((text) => NO.has(readingOf(text)));
    expect(wrong).toEqual([]);
  });

  test.each([
    "550 5.1.1 <ada@x.example>: Recipient address rejected: undeliverable address: mail for x.example loops back to myself",
    "550 5.1.1 <ada@x.example>: Recipient address rejected: undeliverable address: message size 5 exceeds size limit of server mx.x.example",
  ])("%p is the server's own problem", (text) => expect(NO.has(readingOf(text))).toBe(false));
});

test.each([
  "550 Cannot verify recipient: internal server replied 421",
  "550 Recipient verify failed: 421 service unavailable",
  "550 5.1.1 User unknown (host mx.inner.example said: 450 4.2.0 try again)",
  "550 5.1.1 undeliverable address: host 10.0.0.1 said: 451 4.3.0 <ada@x.example>: lookup failure",
  "550 Recipient verification failed: network unreachable",
  "550 Unable to verify recipient, upstream did not answer",
  "550 5.1.1 recipient server could not be contacted",
])("%p holds for now", (text) => expect(readingOf(text)).toBe("temporary"));

test.each([
  "550-Callout verification failed:\n550 550 5.1.1 <ada@x.example>: User unknown",
  "550 Recipient verification failed: no such user",
  "550 Unable to verify recipient: user unknown",
  "550 Could not verify address: <ada@x.example> does not exist",
  "550 5.1.1 <ada@x.example>: Recipient address rejected: undeliverable address: host 10.0.0.1 said: 550 5.1.1 User unknown",
  "550 5.1.1 The email account that you tried to reach does not exist",
  "550 Unable to find recipient",
  "550 Cannot locate mailbox",
  "550 5.1.1 User 4210 unknown",
  "550 5.1.1 No such user, see RFC 5321 section 4.2.3",
  "550 5.1.1 error 450010: user unknown",
])("%p is knowledge", (text) => expect(readingOf(text)).toBe("mailbox_not_found"));
