import { describe, expect, test } from "bun:test";
import { formatImapUrl, parseImapUrl } from "./imap-client.ts";

const read = (text: string) => {
  const parsed = parseImapUrl(text);
  return parsed.ok ? parsed.value : parsed.error;
};

describe("the URL of a mailbox", () => {
  test.each([
    ["imaps://me@mail.example.com", "mail.example.com", 993, "tls", "me", null, "INBOX"],
    [
      "imaps://me%40example.com:p%40ss%3Aword@mail.example.com:1993/DMARC%20reports",
      "mail.example.com",
      1993,
      "tls",
      "me@example.com",
      "p@ss:word",
      "DMARC reports",
    ],
    ["imaps://me:x@[::1]/A/B", "::1", 993, "tls", "me", "x", "A/B"],
    ["imap://me:x@mail.example.com/", "mail.example.com", 143, "starttls", "me", "x", "INBOX"],
    ["imap://me:x@127.0.0.1:1143", "127.0.0.1", 1143, "none", "me", "x", "INBOX"],
    ["imap://me:x@localhost", "localhost", 143, "none", "me", "x", "INBOX"],
    ["imap://me:x@localhost?starttls", "localhost", 143, "starttls", "me", "x", "INBOX"],
  ] as const)("%s", (text, host, port, security, user, password, folder) => {
    expect(read(text)).toEqual({ host, port, security, user, password, folder });
  });

  test.each([
    "imaps://mail.example.com/INBOX",
    "https://me:x@mail.example.com",
    "imaps://me:x@/INBOX",
    "imaps://me:hunter2@mail.example.com/%ff",
    "imaps://me:hunter2%0d@mail.example.com",
    "imaps://me:hunter2@mail.example.com/INBOX#1",
    "imaps://me:hunter2@mail.example.com?starttls",
    "imap://me:hunter2@mail.example.com?tls=off",
    "imap://me:hunter2@192.0.2.1",
    `imaps://me:hunter2@mail.example.com/${"x".repeat(256)}`,
    "",
  ])("%s is refused without being repeated", (text) => {
    expect(read(text)).toBeString();
    expect(read(text)).not.toContain("hunter2");
  });

  test("is shown without the password, and is read again as it was", () => {
    for (const text of ["imaps://a%40b.example@h.example:993/x%20y/z", "imap://a@localhost:143/INBOX?starttls"]) {
      const parsed = parseImapUrl(text.replace("@h", ":hunter2@h").replace("@l", ":hunter2@l"));
      if (!parsed.ok) throw new Error(parsed.error);
      expect(formatImapUrl(parsed.value)).toBe(text);
    }
  });
});
