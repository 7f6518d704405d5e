import { expect, test } from "bun:test";
import { isStatusWord, foldText, readableText, TEXT_CHARS_MAX } from "./signs.ts";

test.each([
  ["Empfänger\n  UNGÜLTIG", "empfanger ungultig"],
  ["Użytkownik nie istnieje: łąka", "uzytkownik nie istnieje: laka"],
  ["KULLANICI bulunamadı, İSTEK", "kullanici bulunamadi, istek"],
  ["ｕｓｅｒ ｕｎｋｎｏｗｎ", "user unknown"],
  ["ﾕｰｻﾞｰが存在しません", "ユーザーが存在しません"],
  ["사용자를 찾을 수 없습니다", "사용자를 찾을 수 없습니다"],
  ["doesn’t exist", "doesn't exist"],
])("%p folds to %p", (text, folded) => {
  expect(foldText(text)).toBe(folded);
});

test.each([
  ["<spam@unknown.example>: User unknown", "<@>: user unknown"],
  ["user a.b+c@d.example.", "user @."],
  ["(nobody@example.com:blocked)", "(@:blocked)"],
  ["a@b c@d@e", "@ @"],
  ["mail <> refused", "mail <> refused"],
  ["a@b.example... User unknown", "@... user unknown"],
  ["MAILBOX_NOT_FOUND", "mailbox not found"],
  ["@", "@"],
])("addresses in %p are masked: %p", (text, words) => {
  expect(readableText(text).words).toBe(words);
});

test("links are taken out of the words and kept apart", () => {
  expect(readableText("See https://x.example/?p=NoSuchUser or <http://y.example> now")).toEqual({
    words: "see url or <url> now",
    mailboxWords: "see url or <url> now",
    links: "https://x.example/?p=nosuchuser http://y.example",
  });
});

test("our own texts cannot speak", () => {
  expect(readableText("Spam.Host.Example: ok", ["spam.host.example"]).words).toBe("@: ok");
});

test.each([
  ["rejected for no_such_user", "no_such_user", "rejected for @"],
  ["<J.Doe>: blocked", "j.doe", "<@>: blocked"],
  ["unknown-jdoe, jdoe.x, xjdoe, jdoe_x", "jdoe", "unknown-jdoe, jdoe.x, xjdoe, jdoe x"],
  ["jdoe jdoe.", "jdoe", "@ @."],
  ["ab is unknown", "ab", "ab is unknown"],
  ["no such user", "user", "no such user"],
  ["Jürgen: gesperrt", "JÜRGEN", "@: gesperrt"],
])("in %p the local part %p is hidden from what is said of a mailbox: %p", (text, localPart, mailboxWords) => {
  expect(readableText(text, [], localPart).mailboxWords).toBe(mailboxWords);
});

test("a local part is not hidden from what is said of us", () => {
  expect(readableText("sender unknown", [], "sender")).toMatchObject({
    words: "sender unknown",
    mailboxWords: "@ unknown",
  });
});

test.each([
  ["this account is locked", "this account is locked"],
  ["<locked>: sorry, locked", "<@>: sorry, locked"],
  ["'locked' (locked) [locked] \"locked\"", "'@' (@) [@] \"@\""],
  ["(locked> locked) 'locked", "(locked> locked) 'locked"],
])("a local part that is a word of servers is hidden only where it is quoted: %p", (text, mailboxWords) => {
  expect(readableText(text, [], "locked", (word) => word === "locked").mailboxWords).toBe(mailboxWords);
});

test.each([
  ["locked", true],
  ["disabled", true],
  ["unknown", true],
  ["full", true],
  ["gesperrt", true],
  ["inconnu", true],
  ["ada", false],
  ["no_such_user", false],
  ["locked.out", false],
])("%p is a word of servers: %p", (word, expected) => {
  expect(isStatusWord(word)).toBe(expected);
});

test("a text beyond the ceiling is cut", () => {
  expect(foldText("x".repeat(TEXT_CHARS_MAX + 1)).length).toBe(TEXT_CHARS_MAX);
});
