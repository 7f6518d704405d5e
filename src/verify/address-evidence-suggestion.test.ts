import commonProviders from "email-providers/common.json" with { type: "json" };
import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { parseAddress } from "../foundation/mail/address.ts";
import { suggestAddress } from "./address-evidence.ts";

const suggestionFor = (domain: string): string | null => {
  const address = parseAddress(`Jane.Doe+x@${domain}`);
  return address.ok ? suggestAddress(address.value) : `not an address: ${address.error}`;
};

describe("slips of the finger", () => {
  test.each([
    ["gmial.com", "gmail.com"],
    ["gmal.com", "gmail.com"],
    ["gamil.com", "gmail.com"],
    ["gmaill.com", "gmail.com"],
    ["gmail.con", "gmail.com"],
    ["gmail.co", "gmail.com"],
    ["gmail.cmo", "gmail.com"],
    ["gmail.comm", "gmail.com"],
    ["gmailcom", "gmail.com"],
    ["gmial.con", "gmail.com"],
    ["hotmal.com", "hotmail.com"],
    ["hotmial.com", "hotmail.com"],
    ["jotmail.com", "hotmail.com"],
    ["yaho.com", "yahoo.com"],
    ["yhaoo.com", "yahoo.com"],
    ["yaho.co.uk", "yahoo.co.uk"],
    ["outlok.com", "outlook.com"],
    ["outlook.con", "outlook.com"],
    ["iclod.com", "icloud.com"],
    ["aol.con", "aol.com"],
    ["protnmial.com", "protonmail.com"],
    ["gmx.ed", "gmx.de"],
    ["comcst.net", "comcast.net"],
  ] as const)("%s: did you mean %s?", (typed, meant) => {
    expect(suggestionFor(typed)).toBe(`Jane.Doe+x@${meant}`);
  });
});

describe("no suggestion for a domain that may well be meant", () => {
  const meant = `
    example.com mail.com ymail.com email.com hmail.com outlook.co outlook.dk gmx.ch hotmail.be aon.com ao.com
    ma.com wahoo.com cloud.com photon.me love.com never.com we.de live.nl mail.gmial.com localhost
    xn--gmil-5na.com [192.0.2.1] gmail.fr yahoo.be
  `;
  test.each(meant.trim().split(/\s+/))("%s", (domain) => {
    expect(suggestionFor(domain)).toBeNull();
  });

  test.each(commonProviders)("the known provider %s", (domain) => {
    expect(suggestionFor(domain)).toBeNull();
  });
});

test("a suggestion is an address that needs no further suggestion, at another domain", () => {
  const slip = fc
    .tuple(
      fc.constantFrom("gmail.com", "hotmail.com", "protonmail.com", "gmx.de", "yahoo.co.uk"),
      fc.nat(),
      fc.constantFrom("", "x", "m"),
    )
    .map(([domain, at, letter]) => {
      const index = at % domain.length;
      return domain.slice(0, index) + letter + domain.slice(index + 1);
    });
  fc.assert(
    fc.property(slip, (domain) => {
      const typed = parseAddress(`jane@${domain}`);
      const suggested = typed.ok ? suggestAddress(typed.value) : null;
      if (suggested === null) return;
      const again = parseAddress(suggested);
      expect(again.ok && again.value.domain !== domain && suggestAddress(again.value) === null).toBe(true);
    }),
  );
});
