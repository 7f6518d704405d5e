import { describe, expect, test } from "bun:test";
import { isDisposable, isRoleAccount } from "./address-evidence.ts";

describe("disposable domains", () => {
  test.each([
    ["mailinator.com", "mailinator.com"],
    ["team.mailinator.com", "mailinator.com"],
    ["a.b.c.guerrillamail.com", "guerrillamail.com"],
    ["example.com", null],
    ["gmail.com", null],
    ["mailinator-fans.example", null],
    ["mailinator.com.example.org", null],
    ["com", null],
    ["localhost", null],
    ["[192.0.2.1]", null],
  ])("%s is covered by %s", (domain, entry) => {
    expect(isDisposable(domain)).toBe(entry);
  });

  test.each([
    ...[
      "duck.com",
      "mozmail.com",
      "jane.mozmail.com",
      "relay.firefox.com",
      "privaterelay.appleid.com",
      "simplelogin.com",
    ],
    ...["slmail.me", "aleeas.com", "jane.aleeas.com", "addy.io", "anonaddy.com", "jane.anonaddy.me", "passmail.net"],
    ...["passinbox.com", "opayq.com"],
  ])("%s forwards to somebody and is never disposable", (domain) => {
    expect(isDisposable(domain)).toBeNull();
  });
});

describe("role accounts", () => {
  // RFC 2142 names the mailboxes that every domain should have.
  test.each([
    ...[
      "info",
      "marketing",
      "sales",
      "support",
      "abuse",
      "noc",
      "security",
      "postmaster",
      "hostmaster",
      "usenet",
      "news",
    ],
    ...[
      "webmaster",
      "www",
      "uucp",
      "ftp",
      "noreply",
      "no-reply",
      "admin",
      "root",
      "mailer-daemon",
      "hr",
      "billing",
      "kontakt",
    ],
  ])("%s is a role", (localPart) => {
    expect(isRoleAccount(localPart)).toBe(localPart);
  });

  test("what follows the plus sign does not hide a role", () => {
    expect(isRoleAccount("sales+spring+2026")).toBe("sales");
  });

  test.each([
    ...["salesman", "info.jane", "jane.info", "jane", "jane+sales", "+sales", "", '"sales desk"'],
    ...["paris", "alexa", "chicago", "2024", "123", "abc", "apple", "smile", "master", "hi"],
  ])("%s may be a person", (localPart) => {
    expect(isRoleAccount(localPart)).toBeNull();
  });
});
