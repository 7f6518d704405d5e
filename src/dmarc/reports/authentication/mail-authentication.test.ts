import { describe, expect, test } from "bun:test";
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { silentLog } from "../../../testing/silent-log.ts";
import type { DnsResolver } from "../../../foundation/net/dns.ts";
import { createTestClock, settle } from "../../../testing/clock.ts";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import {
  createMailAuthentication,
  AUTHENTICATION_DEADLINE_MS,
  type MailToAuthenticate,
  type AuthenticationResults,
} from "./mail-authentication.ts";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const short = generateKeyPairSync("rsa", { modulusLength: 512 });
const ed25519 = generateKeyPairSync("ed25519");
const NOW_MS = Date.UTC(2026, 0, 1);
const NOW_S = NOW_MS / 1000;

const der = (key: KeyObject): Buffer => key.export({ type: "spki", format: "der" });
const rsaRecord = (key: KeyObject): string => `v=DKIM1; k=rsa; p=${der(key).toString("base64")}`;
const RSA_RECORD = rsaRecord(rsa.publicKey);
const ED25519_RECORD = `v=DKIM1; k=ed25519; p=${der(ed25519.publicKey).subarray(-32).toString("base64")}`;

interface Signing {
  readonly d?: string;
  readonly key?: KeyObject;
  readonly a?: string;
  /** More tags, as `x=1`. */
  readonly tags?: string;
  /** The body that the hash is made of. */
  readonly body?: string;
}

/** Signs `From` and the body, relaxed header and simple body (RFC 6376 §3.4), all written by hand. */
const signature = (from: string, mailBody: string, signing: Signing): string => {
  const { d = "example.com", key = rsa.privateKey, a = "rsa-sha256", tags, body = mailBody } = signing;
  const bodyHash = createHash(a.endsWith("sha1") ? "sha1" : "sha256")
    .update(body)
    .digest("base64");
  const value = `v=1; a=${a}; c=relaxed/simple; d=${d}; s=s1; h=from;${tags === undefined ? "" : ` ${tags};`} bh=${bodyHash}; b=`;
  const signed = `from:${from}\r\ndkim-signature:${value}`;
  const b =
    a === "ed25519-sha256"
      ? sign(null, createHash("sha256").update(signed).digest(), key)
      : sign(a.endsWith("sha1") ? "sha1" : "sha256", Buffer.from(signed), key);
  return `DKIM-Signature: ${value}${b.toString("base64")}\r\n`;
};

const BODY = "A report.\r\n";
interface Made {
  readonly from?: string;
  readonly signings?: readonly Signing[];
  readonly header?: string;
  readonly body?: string;
}

const mailOf = ({ from = "r@example.com", signings = [], header = "", body = BODY }: Made): string =>
  `${signings.map((one) => signature(from, body, one)).join("")}${header}From: ${from}\r\nSubject: x\r\n\r\n${body}`;

const zoneOf = (more: Zone = {}): Zone => ({
  "s1._domainkey.example.com": { TXT: [RSA_RECORD] },
  "s1._domainkey.mail.example.com": { TXT: [RSA_RECORD] },
  "s1._domainkey.esp.example": { TXT: [RSA_RECORD] },
  "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject"] },
  "example.com": { TXT: ["v=spf1 ip4:8.8.4.1 -all"] },
  "esp.example": { TXT: ["v=spf1 ip4:8.8.4.1 ~all"] },
  ...more,
});

const check = (
  text: string | Uint8Array,
  { zone = zoneOf(), ...mail }: Partial<MailToAuthenticate> & { zone?: Zone } = {},
): Promise<AuthenticationResults> => {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  const examine = createMailAuthentication({
    log: silentLog,
    resolver: createZoneResolver(zone),
    clock: createTestClock(NOW_MS),
  });
  return examine({ bytes, client: "8.8.4.9", helo: "mx.esp.example", mailFrom: "b@esp.example", ...mail });
};

/** A zone whose key has a tag more. */
const keyZone = (tag: string): Zone => ({ "s1._domainkey.example.com": { TXT: [`${RSA_RECORD}; ${tag}`] } });

const WITHOUT_POLICY = zoneOf({ "_dmarc.example.com": {} });

describe("signatures", () => {
  test.each<[string, Made, Zone, string, string, boolean]>([
    ["an aligned one that holds", { signings: [{}] }, {}, "pass", "pass", true],
    ["an aligned one with RSA keys in the bare form", { signings: [{}] }, bareKeyZone(), "pass", "pass", true],
    ["one of a domain below", { signings: [{ d: "mail.example.com" }] }, {}, "pass", "pass", true],
    [
      "one of a domain below, in the strict mode",
      { signings: [{ d: "mail.example.com" }] },
      { "_dmarc.example.com": { TXT: ["v=DMARC1; p=none; adkim=s"] } },
      "fail",
      "pass",
      false,
    ],
    ["one that holds, of another domain", { signings: [{ d: "esp.example" }] }, {}, "fail", "pass", false],
    ["one over another body", { signings: [{ body: "Another.\r\n" }] }, {}, "fail", "fail", true],
    [
      "one of another key",
      { signings: [{ key: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey }] },
      {},
      "fail",
      "fail",
      true,
    ],
    ["one whose i= is of another domain", { signings: [{ tags: "i=@google.com" }] }, {}, "fail", "permerror", true],
    [
      "one whose i= is above its d=",
      { signings: [{ d: "mail.example.com", tags: "i=@example.com" }] },
      {},
      "fail",
      "permerror",
      true,
    ],
    ["one whose i= is below its d=", { signings: [{ tags: "i=a@mail.example.com" }] }, {}, "pass", "pass", true],
    [
      "one whose i= is below its d=, of a key t=s",
      { signings: [{ tags: "i=a@mail.example.com" }] },
      keyZone("t=s"),
      "fail",
      "permerror",
      true,
    ],
    [
      "one whose i= is its d=, of a key t=s",
      { signings: [{ tags: "i=a@example.com" }] },
      keyZone("t=s"),
      "pass",
      "pass",
      true,
    ],
    ["one of a key in test mode", { signings: [{}] }, keyZone("t=y"), "fail", "neutral", true],
    ["one of a key in test mode, among other flags", { signings: [{}] }, keyZone("t=s:y"), "fail", "neutral", true],
    [
      "one over another header, of a key in test mode",
      { signings: [{ key: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey }] },
      keyZone("t=y"),
      "fail",
      "neutral",
      true,
    ],
    ["one that has expired", { signings: [{ tags: `t=${NOW_S - 9}; x=${NOW_S - 1}` }] }, {}, "fail", "neutral", true],
    ["one that expires later", { signings: [{ tags: `t=${NOW_S - 9}; x=${NOW_S + 9}` }] }, {}, "pass", "pass", true],
    [
      "one whose key is not there",
      { signings: [{}] },
      { "s1._domainkey.example.com": "nxdomain" },
      "fail",
      "neutral",
      true,
    ],
    [
      "one whose key was withdrawn",
      { signings: [{}] },
      { "s1._domainkey.example.com": { TXT: ["v=DKIM1; p="] } },
      "fail",
      "neutral",
      true,
    ],
    [
      "one whose key the DNS cannot give",
      { signings: [{}] },
      { "s1._domainkey.example.com": "servfail" },
      "unknown",
      "temperror",
      true,
    ],
    [
      "one of another domain whose key the DNS cannot give",
      { signings: [{ d: "esp.example" }] },
      { "s1._domainkey.esp.example": "servfail" },
      "fail",
      "temperror",
      false,
    ],
    [
      "one with Ed25519",
      { signings: [{ a: "ed25519-sha256", key: ed25519.privateKey }] },
      { "s1._domainkey.example.com": { TXT: [ED25519_RECORD] } },
      "pass",
      "pass",
      true,
    ],
    ["one with SHA-1", { signings: [{ a: "rsa-sha1" }] }, {}, "fail", "policy", true],
    [
      "one with a short key",
      { signings: [{ key: short.privateKey }] },
      { "s1._domainkey.example.com": { TXT: [rsaRecord(short.publicKey)] } },
      "fail",
      "policy",
      true,
    ],
    ["one over the whole body that says so", { signings: [{ tags: `l=${BODY.length}` }] }, {}, "pass", "pass", true],
    ["one over a part of the body", { signings: [{ tags: "l=2", body: "A " }] }, {}, "fail", "policy", true],
  ])("%s", async (_, made, more, authenticity, result, aligned) => {
    const finding = await check(mailOf(made), { zone: zoneOf(more) });
    expect(finding).toMatchObject({ authenticity, from: "example.com", dkim: [{ selector: "s1", result, aligned }] });
    expect(finding.temporary).toBe(authenticity === "unknown");
  });

  test("one valid one is enough, whatever the others are", async () => {
    const mail = mailOf({ signings: [{ body: "Another.\r\n" }, { d: "esp.example" }, {}] });
    const { authenticity, dkim } = await check(mail);
    expect(authenticity).toBe("pass");
    expect(dkim.map(({ result, domain }) => `${domain} ${result}`)).toEqual([
      "example.com fail",
      "esp.example pass",
      "example.com pass",
    ]);
  });

  test("are valid as of the time of receipt", async () => {
    const mail = mailOf({ signings: [{ tags: `t=${NOW_S - 99}; x=${NOW_S - 9}` }] });
    expect((await check(mail, { receivedAtMs: NOW_MS - 20_000 })).authenticity).toBe("pass");
    expect((await check(mail, { receivedAtMs: NOW_MS })).authenticity).toBe("fail");
  });

  test("verify in a mail with bare LF, and after the From line of an mbox", async () => {
    const mail = mailOf({ signings: [{}] });
    expect((await check(mail.replaceAll("\r\n", "\n"))).authenticity).toBe("pass");
    expect((await check(`From r@example.com Thu Jan  1 00:00:00 2026\r\n${mail}`)).authenticity).toBe("pass");
  });

  test("over folded fields verify byte for byte in simple, and tolerantly in relaxed canonicalization", async () => {
    const subject = "Subject:  a\r\n\t b  \r\n";
    const bodyHash = createHash("sha256").update(BODY).digest("base64");
    const sealed = (form: "simple" | "relaxed"): string => {
      const value = `v=1; a=rsa-sha256; c=${form}/simple; d=example.com; s=s1; h=subject:from; bh=${bodyHash}; b=`;
      const signed =
        form === "simple"
          ? `${subject}From: r@example.com\r\nDKIM-Signature: ${value}`
          : `subject:a b\r\nfrom:r@example.com\r\ndkim-signature:${value}`;
      return `DKIM-Signature: ${value}${sign("sha256", Buffer.from(signed), rsa.privateKey).toString("base64")}\r\n`;
    };
    const rest = `From: r@example.com\r\n${subject}\r\n${BODY}`;
    const loose = rest.replace("\t b", " b").replace("From: ", "FROM:  ");
    expect((await check(sealed("simple") + rest)).authenticity).toBe("pass");
    expect((await check(sealed("simple") + loose)).authenticity).toBe("fail");
    expect((await check(sealed("relaxed") + loose)).authenticity).toBe("pass");
    expect((await check(sealed("relaxed") + rest.replace(" b", " c"))).authenticity).toBe("fail");
  });

  test("verify over a large body with any lines", async () => {
    for (const body of [`${"x".repeat(200_000)}\r\n`, "x\r\n".repeat(70_000), `${"\r\n".repeat(70_000)}x\r\n`]) {
      const mail = mailOf({ signings: [{}], body });
      expect((await check(mail)).authenticity).toBe("pass");
      expect((await check(mail.replaceAll("\r\n", "\n"))).authenticity).toBe("pass");
      expect((await check(`${mail}!\r\n`)).authenticity).toBe("fail");
    }
  });

  test("beyond the tenth are ignored, and the result is unknown", async () => {
    const bad = { d: "esp.example", body: "Another.\r\n" };
    const ten = Array.from({ length: 10 }, () => bad);
    expect((await check(mailOf({ signings: ten }))).authenticity).toBe("fail");
    const { authenticity, dkim, temporary } = await check(mailOf({ signings: [...ten, {}] }));
    expect({ authenticity, temporary, looked: dkim.length }).toEqual({
      authenticity: "unknown",
      temporary: false,
      looked: 10,
    });
  });

  test("of ARC are ignored, and their keys are not queried", async () => {
    const arc = mailOf({ signings: [{ d: "esp.example" }] }).replace(
      "DKIM-Signature: v=1",
      "ARC-Message-Signature: i=1",
    );
    const seal =
      "ARC-Seal: i=1; a=rsa-sha256; cv=none; d=esp.example; s=s1; b=AAAA\r\nARC-Authentication-Results: i=1; x; dkim=pass\r\n";
    const resolver = createZoneResolver(zoneOf());
    const examine = createMailAuthentication({ log: silentLog, resolver, clock: createTestClock(NOW_MS) });
    const finding = await examine({ bytes: Buffer.from(seal + arc), client: null, helo: null, mailFrom: null });
    expect(finding.dkim).toEqual([]);
    expect(resolver.queries).toEqual(["TXT _dmarc.example.com"]);
  });
});

function bareKeyZone(): Zone {
  const key = rsa.publicKey.export({ type: "pkcs1", format: "der" }).toString("base64");
  return { "s1._domainkey.example.com": { TXT: [`k=rsa; p=${key}`] } };
}

describe("SPF", () => {
  test.each<[string, Partial<MailToAuthenticate>, Zone, AuthenticationResults["authenticity"], string | null]>([
    ["passes for the domain of From", { client: "8.8.4.1", mailFrom: "b@example.com" }, {}, "pass", "pass"],
    [
      "passes for a domain below",
      { client: "8.8.4.1", mailFrom: "b@mail.example.com" },
      { "mail.example.com": { TXT: ["v=spf1 ip4:8.8.4.1 -all"] } },
      "pass",
      "pass",
    ],
    [
      "passes for a domain below, in the strict mode",
      { client: "8.8.4.1", mailFrom: "b@mail.example.com" },
      {
        "mail.example.com": { TXT: ["v=spf1 ip4:8.8.4.1 -all"] },
        "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject; aspf=s"] },
      },
      "fail",
      "pass",
    ],
    ["passes for another domain", { client: "8.8.4.1" }, {}, "fail", "pass"],
    ["fails softly", {}, {}, "fail", "softfail"],
    ["fails", { mailFrom: "b@example.com" }, {}, "fail", "fail"],
    ["has no record", { mailFrom: "b@none.example" }, {}, "fail", "none"],
    [
      "passes for the name in HELO when there is no sender",
      { client: "8.8.4.1", mailFrom: "", helo: "mx.example.com" },
      { "mx.example.com": { TXT: ["v=spf1 a -all"], A: ["8.8.4.1"] } },
      "pass",
      "pass",
    ],
    [
      "passes by IPv6 and MX",
      { client: "2001:4860::1", mailFrom: "b@example.com" },
      {
        "example.com": { TXT: ["v=spf1 mx -all"], MX: [[1, "mx.example.com"]] },
        "mx.example.com": { AAAA: ["2001:4860::1"] },
      },
      "pass",
      "pass",
    ],
    [
      "is not answered by the DNS",
      { mailFrom: "b@example.com" },
      { "example.com": "servfail" },
      "unknown",
      "temperror",
    ],
    [
      "is not answered about an included record",
      { mailFrom: "b@example.com" },
      { "example.com": { TXT: ["v=spf1 include:other.example -all"] }, "other.example": "timeout" },
      "unknown",
      "temperror",
    ],
    [
      "is not answered about a reverse name",
      { mailFrom: "b@example.com" },
      { "example.com": { TXT: ["v=spf1 ptr -all"] }, "9.4.8.8.in-addr.arpa": "servfail" },
      "unknown",
      "temperror",
    ],
    ["is not answered for another domain", {}, { "esp.example": "servfail" }, "fail", "temperror"],
    [
      "includes itself",
      { mailFrom: "b@example.com" },
      { "example.com": { TXT: ["v=spf1 include:example.com -all"] } },
      "fail",
      "permerror",
    ],
    ["cannot be judged: our own host handed it in", { client: "10.0.0.1" }, {}, "unknown", null],
    ["cannot be judged: this host handed it in", { client: "::1" }, {}, "unknown", null],
    ["cannot be judged: it was a file", { client: null, helo: null, mailFrom: null }, {}, "unknown", null],
    ["cannot be judged: no sender, and no name", { mailFrom: null, helo: "[8.8.4.9]" }, {}, "unknown", null],
  ])("%s", async (_, mail, more, authenticity, result) => {
    const finding = await check(mailOf({}), { ...mail, zone: zoneOf(more) });
    expect({ authenticity: finding.authenticity, spf: finding.spf?.result ?? null }).toEqual({
      authenticity,
      spf: result,
    });
    expect(finding.temporary).toBe(authenticity === "unknown" && result !== null);
  });
});

describe("the policy of the header_from domain", () => {
  test("makes a mail without a pass fail; without a policy it is unknown", async () => {
    expect(await check(mailOf({}))).toMatchObject({
      authenticity: "fail",
      dmarc: { result: "fail", policy: "reject" },
    });
    expect(await check(mailOf({}), { zone: WITHOUT_POLICY })).toMatchObject({
      authenticity: "unknown",
      dmarc: { result: "none", policy: null },
      temporary: false,
    });
  });

  test("does not matter when a signature fails or passes", async () => {
    const broken = mailOf({ signings: [{ body: "Another.\r\n" }] });
    expect((await check(broken, { zone: WITHOUT_POLICY })).authenticity).toBe("fail");
    const good = mailOf({ signings: [{}] });
    expect(await check(good, { zone: WITHOUT_POLICY })).toMatchObject({
      authenticity: "pass",
      dmarc: { result: "none" },
    });
  });

  test("may be inherited", async () => {
    const mail = mailOf({ from: "r@a.example.com" });
    const zone = zoneOf({ "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject; sp=quarantine"] } });
    expect(await check(mail, { zone })).toMatchObject({ authenticity: "fail", dmarc: { policy: "quarantine" } });
  });

  test.each<[string, Made, AuthenticationResults["authenticity"]]>([
    ["no proof is unknown", {}, "unknown"],
    ["a signature of the same domain passes", { signings: [{}] }, "pass"],
    [
      "a signature of a domain below is unknown, for the mode may be strict",
      { signings: [{ d: "mail.example.com" }] },
      "unknown",
    ],
    ["a broken signature is unknown", { signings: [{ body: "Another.\r\n" }] }, "unknown"],
  ])("when the DNS does not say: %s", async (_, made, authenticity) => {
    const zone = zoneOf({ "_dmarc.example.com": "servfail" });
    expect(await check(mailOf(made), { zone })).toMatchObject({
      authenticity,
      dmarc: { policy: null },
      temporary: authenticity === "unknown",
    });
  });
});

describe("From", () => {
  test.each<[string, string, AuthenticationResults["authenticity"], string | null]>([
    ["of several addresses of one domain", "From: a@example.com, b@EXAMPLE.com\r\n", "fail", "example.com"],
    ["with a name that looks like an address", 'From: "x@other.example" <r@example.com>\r\n', "fail", "example.com"],
    ["with a folded name", "From\r\n : r@example.com\r\n", "fail", "example.com"],
    ["with U-labels", "From: r@bücher.example\r\n", "unknown", "xn--bcher-kva.example"],
    ["twice", "From: r@example.com\r\nFrom: r@other.example\r\n", "fail", null],
    ["twice, the second folded", "From: r@example.com\r\nFrom\r\n : r@other.example\r\n", "fail", null],
    ["of two domains", "From: r@example.com, r@other.example\r\n", "fail", null],
    ["that is missing", "Subject: x\r\n", "unknown", null],
    ["that is empty", "From: \r\n", "unknown", null],
    ["without a domain", "From: somebody\r\n", "unknown", null],
    ["of a host literal", "From: r@[192.0.2.1]\r\n", "unknown", null],
  ])("%s", async (_, header, authenticity, from) => {
    expect(await check(`${header}\r\n${BODY}`)).toMatchObject({ authenticity, from });
  });
});

test("a mail with a line above the limit is not authenticated", async () => {
  const body = `${"x".repeat(300_000)}\r\n`;
  expect(await check(mailOf({ signings: [{ body }], body }))).toMatchObject({
    authenticity: "unknown",
    message: "A line of the mail is too long.",
  });
  const lines = `${"x".repeat(200_000)}\r\n`.repeat(3);
  expect((await check(mailOf({ signings: [{ body: lines }], body: lines }))).authenticity).toBe("pass");
});

test("a public suffix is aligned with itself alone", async () => {
  const zone = zoneOf({ "s1._domainkey.com": { TXT: [RSA_RECORD] }, "s1._domainkey.co.uk": { TXT: [RSA_RECORD] } });
  const of = (d: string) => check(mailOf({ from: "r@co.uk", signings: [{ d }] }), { zone });
  expect((await of("co.uk")).dkim).toMatchObject([{ result: "pass", aligned: true }]);
  expect((await of("com")).dkim).toMatchObject([{ result: "pass", aligned: false }]);
});

test("no DNS query for a mail without exactly one From", async () => {
  const resolver = createZoneResolver(zoneOf());
  const examine = createMailAuthentication({ log: silentLog, resolver, clock: createTestClock(NOW_MS) });
  for (const header of ["", "From: r@example.com\r\n"]) {
    const bytes = Buffer.from(mailOf({ signings: [{}], header }).replace(header === "" ? /^From: .*\r\n/m : "", ""));
    const finding = await examine({ bytes, client: "8.8.4.1", helo: null, mailFrom: "b@example.com" });
    expect(finding.authenticity).not.toBe("pass");
  }
  expect(resolver.queries).toEqual([]);
});

describe("the deadline", () => {
  test("ends the wait for DNS queries that never finish, with unknown", async () => {
    const clock = createTestClock(NOW_MS);
    const signals: Array<AbortSignal | undefined> = [];
    const resolver: DnsResolver = {
      resolve: (_name, _type, options) => {
        signals.push(options?.signal);
        return new Promise(() => undefined);
      },
    };
    const examine = createMailAuthentication({ log: silentLog, resolver, clock });
    const bytes = Buffer.from(mailOf({ signings: [{}] }));
    const finding = examine({ bytes, client: "8.8.4.1", helo: null, mailFrom: "b@example.com" });
    while (signals.length === 0) await settle();
    expect(signals.map((signal) => signal?.aborted)).toEqual([false]);
    await clock.advance(AUTHENTICATION_DEADLINE_MS);
    expect(await finding).toMatchObject({ authenticity: "unknown", temporary: true });
    expect(signals.every((signal) => signal?.aborted)).toBe(true);
  });

  test("leaves no timer behind when all queries have finished", async () => {
    const clock = createTestClock(NOW_MS);
    const examine = createMailAuthentication({ log: silentLog, resolver: createZoneResolver(zoneOf()), clock });
    await examine({ bytes: Buffer.from(mailOf({ signings: [{}] })), client: null, helo: null, mailFrom: null });
    expect(clock.pending()).toBe(0);
  });
});
