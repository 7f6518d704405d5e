import { expect, test } from "bun:test";
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { createTestClock } from "../../../testing/clock.ts";
import { createZoneResolver } from "../../../testing/dns-zone.ts";
import { SAMPLE_DAY_S, sampleReportMail } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import { silentLog } from "../../../testing/silent-log.ts";
import { createMailAuthentication } from "../../reports/authentication/mail-authentication.ts";
import { RollupStore } from "../sources/rollup-store.ts";

const newHarness = createIngestHarness();
const keys = { "google.com": generateKeyPairSync("ed25519"), "attacker.example": generateKeyPairSync("ed25519") };
type Signer = keyof typeof keys;

const keyRecord = (key: KeyObject): string =>
  `v=DKIM1; k=ed25519; p=${key.export({ type: "spki", format: "der" }).subarray(-32).toString("base64")}`;

/** A mail with a DKIM signature over its From and body (RFC 6376, relaxed/simple; RFC 8463). */
const signed = (mail: Uint8Array, domain: Signer): Buffer => {
  const text = Buffer.from(mail).toString("latin1");
  const body = text.slice(text.indexOf("\r\n\r\n") + 4);
  const from = /^From: (.*)\r$/m.exec(text)?.[1] ?? "";
  const hash = (data: string) => createHash("sha256").update(Buffer.from(data, "latin1"));
  const value = `v=1; a=ed25519-sha256; c=relaxed/simple; d=${domain}; s=s1; h=from; bh=${hash(body).digest("base64")}; b=`;
  const seal = sign(null, hash(`from:${from}\r\ndkim-signature:${value}`).digest(), keys[domain].privateKey);
  return Buffer.from(`DKIM-Signature: ${value}${seal.toString("base64")}\r\n${text}`, "latin1");
};

test("a report of google.com signed by attacker.example is never Google's, whichever comes first", async () => {
  for (const order of [
    ["attacker.example", "google.com"],
    ["google.com", "attacker.example"],
  ] as const) {
    const clock = createTestClock((SAMPLE_DAY_S + 2 * 86_400) * 1000);
    const resolver = createZoneResolver({
      "s1._domainkey.google.com": { TXT: [keyRecord(keys["google.com"].publicKey)] },
      "s1._domainkey.attacker.example": { TXT: [keyRecord(keys["attacker.example"].publicKey)] },
      "_dmarc.google.com": { TXT: ["v=DMARC1; p=reject"] },
      "_dmarc.attacker.example": { TXT: ["v=DMARC1; p=reject"] },
    });
    const authenticate = createMailAuthentication({ resolver, clock, log: silentLog });
    const harness = newHarness({ clock, authenticate });
    const { number } = harness.enrol("example.com");
    for (const domain of order) {
      const rows = [{ count: domain === "google.com" ? 10 : 900 }];
      const bytes = signed(
        sampleReportMail({ org: "google.com", email: `a@${domain}`, reportId: "same", rows }),
        domain,
      );
      await harness.upload(bytes, { via: "smtp", client: "127.0.0.1", helo: "x", mailFrom: `a@${domain}` });
    }
    const range = { fromDay: Math.floor(SAMPLE_DAY_S / 86_400), toDay: Math.floor(SAMPLE_DAY_S / 86_400) };
    expect(new RollupStore(harness.db).reporters(number, range)).toMatchObject([
      { reporter: "google.com", author: "", authenticatedAs: "google.com", reports: 1, messages: 10 },
    ]);
    expect(harness.rollups()).toEqual(harness.recount());
  }
});

test("a mail of google.com that attacker.example signed is quarantined", async () => {
  const clock = createTestClock((SAMPLE_DAY_S + 2 * 86_400) * 1000);
  const resolver = createZoneResolver({
    "s1._domainkey.attacker.example": { TXT: [keyRecord(keys["attacker.example"].publicKey)] },
    "_dmarc.google.com": { TXT: ["v=DMARC1; p=reject"] },
    "google.com": { TXT: ["v=spf1 -all"] },
  });
  const harness = newHarness({ clock, authenticate: createMailAuthentication({ resolver, clock, log: silentLog }) });
  harness.enrol("example.com");
  const bytes = signed(sampleReportMail({ org: "google.com", email: "a@google.com" }), "attacker.example");
  const { row } = await harness.upload(bytes, { via: "smtp", client: "8.8.4.9", helo: "x", mailFrom: "a@google.com" });
  expect(row).toMatchObject({ outcome: "quarantined", reason: "not_authentic" });
});
