import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { silentLog } from "../../../testing/silent-log.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import {
  AUTHENTICATION_QUERIES_MAX,
  createMailAuthentication,
  type MailToAuthenticate,
} from "./mail-authentication.ts";
import { TXT_CHARACTERS_MAX } from "../../../foundation/dkim/signed-mail.ts";

const unhandled: unknown[] = [];
const note = (cause: unknown): void => void unhandled.push(cause);
beforeAll(() => void process.on("unhandledRejection", note));
afterAll(() => {
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});

const KEY = "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQ==";
const ZONE: Zone = {
  "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject"] },
  "s._domainkey.example.com": { TXT: [KEY] },
};
const EMPTY_BODY_HASH = "frcCV1k9oG9oKj3dpUqdJg1PxRT2RSN/XKdLCPjaYaY=";
const SIGNATURE = `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/simple; d=example.com; s=s; h=from; bh=${EMPTY_BODY_HASH}; b=AAAA\r\n`;
const WITH_RELAXED = SIGNATURE.replace("relaxed/simple", "relaxed/relaxed");
const FROM = "From: r@example.com\r\n";

const check = async (bytes: Uint8Array | string, zone: Zone = ZONE, mail: Partial<MailToAuthenticate> = {}) => {
  const resolver = createZoneResolver(zone);
  const examine = createMailAuthentication({ log: silentLog, resolver, clock: createTestClock() });
  const received = { client: "8.8.4.9", helo: "mx.example.com", mailFrom: "b@example.com", ...mail };
  const finding = await examine({
    ...received,
    bytes: typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes,
  });
  return { finding, asked: resolver.queries };
};

const MEGABYTE = 1024 * 1024;
const times = (count: number, text: string): string => text.repeat(count);

/** Mails whose cost for a careless verifier grows with the square, or worse, of their size. */
const COSTLY: Readonly<Record<string, string>> = {
  "100,000 signatures": `${times(100_000, SIGNATURE)}${FROM}\r\n`,
  "10 signatures that name 2,000 fields, of 400 fields": `${times(10, SIGNATURE.replace("h=from", `h=from${times(2_000, ":b")}`))}${times(400, "a: 1\r\n")}${FROM}\r\n`,
  "signatures whose names are folded": `${times(900, SIGNATURE.replace(":", "\r\n :"))}${FROM}\r\n`,
  "signatures that are spaces": `${times(10, `DKIM-Signature: v=1; a${times(8_000, " ")}a; d=example.com; s=s\r\n`)}${FROM}\r\n`,
  "a signature of 1 MB": `DKIM-Signature: ${times(MEGABYTE, "a")}\r\n${FROM}\r\n`,
  "a field of 1 MB": `Subject: ${times(MEGABYTE, " ")}\r\n${FROM}\r\n`,
  "a header of 500,000 folded lines": `Subject: x\r\n${times(500_000, " \r\n")}${FROM}\r\n`,
  "a header of 30,000 fields": `${times(30_000, "a:\r\n")}${FROM}\r\n`,
  "a header of bare returns": `Subject: x${times(120_000, "\r")}y\r\n${FROM}\r\n`,
  "a line of spaces before the first field": `a${times(120_000, " ")}b: c\r\n${FROM}\r\n`,
  "a From of groups": `From: ${times(2_000, "a:;,")}r@example.com\r\n\r\n`,
  "a From of nested groups": `From: ${times(4_000, "a:")}r@example.com;\r\n\r\n`,
  "a From of comments": `From: ${times(4_000, "(")}r@example.com\r\n\r\n`,
  "a From of quotes": `From: ${times(2_000, '"a" ')}r@example.com\r\n\r\n`,
  "a content type of parameters": `${SIGNATURE}Content-Type: multipart/mixed; ${times(1_600, 'a*1="x"; ')}boundary="${times(1_000, "-")}"\r\n${FROM}\r\n${times(50_000, "--\r\n")}`,
  "no header end": times(25 * 1024, `${"x".repeat(1_023)}`),
  "a body of 6 MB without a line end": `${SIGNATURE}${WITH_RELAXED}${FROM}\r\n${times(6 * MEGABYTE, "x")}`,
  "a body of 6 MB of line feeds": `${SIGNATURE}${WITH_RELAXED}${FROM}\r\n${times(6 * MEGABYTE, "\n")}`,
  "a body of 768 KB of tabs and line feeds, hashed in many ways": `${times(10, WITH_RELAXED).replace(/; h=/g, (_, at: number) => `; l=${at}; h=`)}${FROM}\r\n${times(MEGABYTE / 4, "a\t\n")}`,
  nothing: "",
  "only line ends": times(MEGABYTE, "\r\n"),
};

describe("a mail with", () => {
  test.each(Object.entries(COSTLY))(
    "%s is judged without a pass",
    async (_, text) => {
      const { finding, asked } = await check(text);
      expect(finding.authenticity).not.toBe("pass");
      expect(finding.message).not.toBe("");
      expect(asked.length).toBeLessThanOrEqual(AUTHENTICATION_QUERIES_MAX);
    },
    // Linear work takes well below a second; quadratic work on these sizes takes minutes.
    30_000,
  );
});

test.each(["a field of 1 MB", "a header of 30,000 fields", "a header of bare returns", "no header end"])(
  "%s is not even begun with",
  async (name) => {
    const { finding } = await check(COSTLY[name] ?? "");
    expect(finding.message).toContain("header of the mail is too large");
  },
);

describe("a signature with malformed tags never passes and never throws:", () => {
  const tags = {
    v: ["", "2", "1; v=1"],
    a: ["", "rsa", "rsa-md5", "ed25519-sha1", "-", "hmac-sha256", "__proto__"],
    c: ["", "x/y", "simple/simple/simple", "relaxed/"],
    d: ["", ".", "a..b", "com", "example.com.", "-", times(300, "a"), "exa mple.com", "\u00e4.example", "__proto__"],
    s: ["", ".", "a b", times(100, "x."), "\0"],
    h: ["", ":", "::from", "subject", times(1_000, "from:")],
    bh: ["", "=", "AAAA"],
    b: ["", "=", "\u0000", times(4_000, "A")],
    l: ["-1", "9e99", "1e3", "NaN", times(76, "9")],
    t: ["-1", "1e99", "x"],
    x: ["-1", "0", "99999999999999999999", "x"],
    i: ["x", "@", "@@", "@other.example", `"${times(3_000, "\\a")}`],
    q: ["http"],
  };
  test.each(Object.entries(tags))("%s", async (name, values) => {
    for (const value of values) {
      const kept = SIGNATURE.slice(0, -2)
        .split("; ")
        .map((tag, index) => (index === 0 ? tag.replace("DKIM-Signature: ", "") : tag))
        .filter((tag) => !tag.startsWith(`${name}=`));
      const { finding } = await check(`DKIM-Signature: ${[...kept, `${name}=${value}`].join("; ")}\r\n${FROM}\r\n`);
      expect(finding.authenticity).not.toBe("pass");
    }
  });
});

describe("a key record", () => {
  test.each([
    "",
    "p=",
    "v=DKIM1",
    "v=DKIM2; p=AAAA",
    "v=DKIM1; p=AAAA",
    "v=DKIM1; k=ed25519; p=AAAA",
    "v=DKIM1; k=rsa; p=***",
    "v=DKIM1; s=other; p=AAAA",
    `v=DKIM1; p=${times(1_000, "A")}`,
    `v=DKIM1; p=${times(8_000, "A")}`,
    `${times(4_000, ";")}`,
    "\u0000\u00ff",
    "__proto__=1; constructor=2; p=AAAA",
  ])("of %p proves nothing, and that is an answer", async (text) => {
    const zone = { ...ZONE, "s._domainkey.example.com": { TXT: [text] } };
    const { finding } = await check(`${SIGNATURE}${FROM}\r\n`, zone);
    expect(finding).toMatchObject({ authenticity: "fail", dkim: [{ result: "neutral" }] });
  });

  test("that is longer than any key is a temporary error", async () => {
    const zone = { ...ZONE, "s._domainkey.example.com": { TXT: [times(TXT_CHARACTERS_MAX + 1, "p")] } };
    const { finding } = await check(`${SIGNATURE}${FROM}\r\n`, zone);
    expect(finding).toMatchObject({ authenticity: "unknown", dkim: [{ result: "temperror" }] });
  });
});

describe("an SPF record", () => {
  /** Every name has this record and leads to many more; those below example.net have nothing. */
  const tree = (record: string): Zone =>
    new Proxy(ZONE, {
      get: (zone, name: string) =>
        zone[name] ?? {
          TXT: [record],
          A: name.endsWith(".net") ? [] : ["192.0.2.1"],
          MX: Array.from({ length: 9 }, (_, n) => [n, `m${n}.${name}`] as const),
          PTR: Array.from({ length: 50 }, (_, n) => `p${n}.example.com`),
        },
      getOwnPropertyDescriptor: (zone, name) => ({
        value: Reflect.get(zone, name),
        configurable: true,
        enumerable: true,
      }),
      has: () => true,
    });
  const named = (form: string): string => Array.from({ length: 12 }, (_, n) => form.replace("N", String(n))).join(" ");

  test.each([
    `v=spf1 ${named("include:N.example.com")} -all`,
    `v=spf1 ${named("mx:N.example.com")} -all`,
    `v=spf1 ${named("a:N.example.com")} -all`,
    `v=spf1 ${named("exists:%{i}.N.example.net")} -all`,
    `v=spf1 ${named("ptr:N.example.org")} -all`,
    "v=spf1 redirect=%{p}.a.example.com",
    "v=spf1 redirect=a.example.com redirect=b.example.com",
    "v=spf1 exp=%{s}.example.com -all",
    `v=spf1 ${times(1_500, "x=y ")}-all`,
    `v=spf1 exists:${times(1_000, "%{s}")}.example.net -all`,
    `v=spf1 exists:%{d${times(2_000, "9")}r.-+,/_=}.example.com -all`,
    `v=spf1 ip4:${times(8_000, "1")} -all`,
    `v=spf1 a/${times(4_000, "1/")} -all`,
    "v=spf1 include:%{z}.example.com -all",
    "v=spf1 include: -all",
    "v=spf1 \u0000 \u00ff",
  ])("as %p ends within the ceiling of questions, without a pass", async (record) => {
    const { finding, asked } = await check(`${FROM}\r\n`, tree(record));
    expect(finding.authenticity).not.toBe("pass");
    expect(asked.length).toBeLessThanOrEqual(AUTHENTICATION_QUERIES_MAX);
    expect(finding.spf?.result).not.toBe("pass");
  });
});

describe("an envelope", () => {
  test.each<Partial<MailToAuthenticate>>([
    { mailFrom: "@" },
    { mailFrom: "a@b@c@" },
    { mailFrom: `"${times(200, "@")}"@example.com` },
    { mailFrom: `${times(4_000, "a")}@example.com` },
    { mailFrom: "a@\u0000" },
    { mailFrom: "a@[8.8.4.9]" },
    { mailFrom: "", helo: times(5_000, "a.") },
    { helo: "\r\n" },
    { client: "not an address" },
    { client: "8.8.4.9%eth0" },
    { client: "::ffff:8.8.4.9" },
  ])("of %j never makes a pass", async (mail) => {
    const { finding } = await check(`${FROM}\r\n`, ZONE, mail);
    expect(finding.authenticity).not.toBe("pass");
  });
});

test("a bug rejects; it is not a result", async () => {
  const resolver = { resolve: () => Promise.reject(new TypeError("bug")) };
  const authenticate = createMailAuthentication({ resolver, clock: createTestClock(), log: silentLog });
  const mail = { client: "8.8.4.9", helo: "mx.example.com", mailFrom: "b@example.com" };
  for (const header of [`${SIGNATURE}${FROM}`, FROM]) {
    const done = authenticate({ ...mail, bytes: Buffer.from(`${header}\r\n`) });
    await expect(done).rejects.toThrow("bug");
  }
});

test("no HTTP client is loaded", async () => {
  await check(`${SIGNATURE}${FROM}\r\n`);
  const loaded = Object.keys(require.cache);
  expect(loaded.filter((path) => path.includes("mailauth/lib/dkim/")).length).toBeGreaterThan(0);
  expect(loaded.filter((path) => /undici|mailauth\/lib\/(bimi|mta-sts|mailauth)/.test(path))).toEqual([]);
});
