import { describe, expect, test } from "bun:test";
import { type Environment, readConfig, settingsInForce } from "./config.ts";

const URL = "imaps://me%40example.com:hunter2@mail.example.com/DMARC";
const BARE = URL.replace(":hunter2", "");

const read = (given: Environment) =>
  readConfig(Object.fromEntries(Object.entries(given).map(([name, value]) => [`POSTWARDEN_IMAP_${name}`, value])));

describe("the mailbox", () => {
  test("is none unless set", () => {
    const config = readConfig({});
    expect(config.ok && config.value.imap).toBeNull();
  });

  test.each([
    [{ URL }, "hunter2", { kind: "seen" }],
    [{ URL: BARE, PASSWORD_FILE: "/p", AFTER: "move:Old reports" }, null, { kind: "move", folder: "Old reports" }],
    [{ URL: BARE, TOKEN_COMMAND: "oama access", AFTER: "delete", ACCOUNT: "main" }, null, { kind: "delete" }],
  ] as const)("%o", (given, password, after) => {
    const config = read(given);
    expect(config.ok && config.value.imap).toMatchObject({ url: { folder: "DMARC", password }, after });
  });

  test.each([
    [{ URL: BARE }, "needs exactly one of"],
    [{ URL, PASSWORD_FILE: "/p" }, "needs exactly one of"],
    [{ URL: BARE, PASSWORD_FILE: "/p", TOKEN_COMMAND: "x" }, "needs exactly one of"],
    [{ PASSWORD_FILE: "/p" }, "POSTWARDEN_IMAP_PASSWORD_FILE requires POSTWARDEN_IMAP_URL"],
    [{ ACCOUNT: "main" }, "POSTWARDEN_IMAP_ACCOUNT requires POSTWARDEN_IMAP_URL"],
    [{ ADDRESS: "dmarc@example.com" }, "POSTWARDEN_IMAP_ADDRESS requires POSTWARDEN_IMAP_URL"],
    [{ URL, ADDRESS: "a,b@example.com" }, "is not an address such as dmarc@example.com"],
    [{ URL, AFTER: "move:" }, '"move:" is not one of seen, move:Folder, delete, keep'],
    [{ URL, AFTER: "move:DMARC" }, "Name another folder"],
    [{ URL: `${URL}?x` }, "only imap:// may have a query"],
  ] as const)("%o is refused, without the password", (given, sentence) => {
    const config = read(given);
    const problems = config.ok ? [] : config.error;
    expect(problems).toEqual([expect.stringContaining(sentence)]);
    expect(problems.join()).not.toContain("hunter2");
  });

  test("is shown without password and command", () => {
    for (const given of [{ URL }, { URL: BARE, TOKEN_COMMAND: "print hunter2" }]) {
      const config = read(given);
      if (!config.ok) throw new Error(config.error.join());
      const shown = settingsInForce(config.value);
      expect(shown.POSTWARDEN_IMAP_URL).toBe("imaps://me%40example.com@mail.example.com:993/DMARC");
      expect(JSON.stringify(shown)).not.toContain("hunter2");
    }
  });
});

describe("the mailbox of bounces", () => {
  const readBounces = (given: Environment) =>
    readConfig(
      Object.fromEntries(Object.entries(given).map(([name, value]) => [`POSTWARDEN_BOUNCE_IMAP_${name}`, value])),
    );
  const whole = { URL, SIGNED_BY: "example.com, News.Example.com" };

  test.each<[Environment, readonly string[] | null]>([
    [whole, ["example.com", "news.example.com"]],
    [{ ...whole, SIGNED_BY: "Anyone" }, null],
  ])("%o", (given, signedBy) => {
    const config = readBounces(given);
    expect(config.ok && config.value.bounceImap).toMatchObject({
      ...{ setting: "POSTWARDEN_BOUNCE_IMAP_URL", url: { folder: "DMARC" }, after: { kind: "seen" }, signedBy },
    });
    expect(config.ok && config.value.imap).toBeNull();
    expect(config.ok && settingsInForce(config.value).POSTWARDEN_BOUNCE_IMAP_AFTER).toBe("seen");
  });

  test.each([
    [{ URL }, "POSTWARDEN_BOUNCE_IMAP_URL requires POSTWARDEN_BOUNCE_IMAP_SIGNED_BY"],
    [{ SIGNED_BY: "example.com" }, "POSTWARDEN_BOUNCE_IMAP_SIGNED_BY requires POSTWARDEN_BOUNCE_IMAP_URL"],
    [{ ACCOUNT: "main" }, "POSTWARDEN_BOUNCE_IMAP_ACCOUNT requires POSTWARDEN_BOUNCE_IMAP_URL"],
    [{ ...whole, SIGNED_BY: "a b" }, 'POSTWARDEN_BOUNCE_IMAP_SIGNED_BY: "a b" is neither a domain'],
    [{ ...whole, SIGNED_BY: "example.com,anyone" }, "is either domains or anyone"],
    [{ ...whole, AFTER: "move:DMARC" }, "POSTWARDEN_BOUNCE_IMAP_AFTER moves messages into the folder they are in"],
    [{ ...whole, PASSWORD_FILE: "/p" }, "POSTWARDEN_BOUNCE_IMAP_URL needs exactly one of"],
  ] as const)("%o is refused, without the password", (given, sentence) => {
    const config = readBounces(given);
    const problems = config.ok ? [] : config.error;
    expect(problems).toEqual([expect.stringContaining(sentence)]);
    expect(problems.join()).not.toContain("hunter2");
  });
});
