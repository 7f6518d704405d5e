import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ScriptedDnsServer, startDnsServer } from "../testing/dns-server.ts";
import { encodeResponse } from "../testing/dns-server.ts";
import { serveZone } from "../testing/dns-wrong.ts";
import type { Zone } from "../testing/dns-zone.ts";
import { createCommandLine } from "../testing/command-line.ts";

const { run, dataDir } = createCommandLine();
const ZONE: Zone = {
  "good.com": { TXT: ["v=spf1 mx -all"], MX: [[10, "mx.good.com"]] },
  "mx.good.com": { A: ["8.8.4.4", "8.8.8.8"] },
  "_dmarc.good.com": { TXT: ["v=DMARC1; p=reject; rua=mailto:a@good.com"] },
  "bad.com": {
    TXT: ["v=spf1 include:one.example include:none.example ~all"],
    MX: [[10, "mx.bad.com"]],
  },
  "one.example": { TXT: ["v=spf1 a:out.one.example -all"] },
  "out.one.example": { A: ["192.0.2.1"] },
  "mail._domainkey.bad.com": { TXT: ["v=DKIM1; p="] },
  "evil.com": { TXT: ["v=spf1 include:a.example\nSPF        ok\u001b[31m -all"], MX: [[10, "mx.evil.com"]] },
  "dark.com": { TXT: "servfail", MX: [[10, "mx.dark.com"]] },
  "mx.dark.com": { A: ["8.8.4.4"] },
  "_dmarc.dark.com": { TXT: ["v=DMARC1; p=reject; rua=mailto:a@dark.com"] },
};

let dns: ScriptedDnsServer;
beforeAll(async () => {
  const right = serveZone(ZONE);
  dns = await startDnsServer((query) =>
    query.name.toLowerCase() === "dark.com" && query.type === "TXT"
      ? encodeResponse(query, { rcode: 2 })
      : right(query),
  );
});
afterAll(() => dns.stop());

const health = (...args: string[]) =>
  run(["dmarc", "health", ...args], { settings: { DNS_SERVERS: `${dns.server.address}:${dns.server.port}` } });

describe("dmarc health", () => {
  test("of a domain in order ends with 0 and needs no database", async () => {
    const { status, out, err } = await health("Good.com");
    expect({ status, err }).toEqual({ status: 0, err: "" });
    expect(out.split("\n")[0]).toBe("good.com: ok");
    expect(out).toMatch(/^ +10 mx\.good\.com, 8\.8\.4\.4, 8\.8\.8\.8$/m);
    expect(await Bun.file(`${dataDir}/postwarden.db`).exists()).toBe(false);
  });

  test("of a domain with errors ends with 1, and says in 80 columns what to do", async () => {
    const { status, out, err } = await health("bad.com", "--selector", "mail", "k1");
    expect({ status, err }).toEqual({ status: 1, err: "postwarden: bad.com has problems." });
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(out).toMatch(/^SPF +problems$/m);
    expect(out).toMatch(/^ +3 DNS lookups \(10 allowed\), 1 of them void$/m);
    expect(out).toMatch(/^ {12}2 {2}include:one\.example$/m);
    expect(out).toMatch(/^ {14}1 {2}a:out\.one\.example$/m);
    expect(out).toContain('Fix: Remove "include:none.example"');
    expect(out).toMatch(/^ +mail, revoked$/m);
    expect(out).toMatch(/^ +k1, missing$/m);
  });

  test("of a domain that cannot be checked ends with 4", async () => {
    const { status, out, err } = await health("dark.com");
    expect({ status, err }).toEqual({ status: 4, err: "postwarden: Not everything of dark.com could be checked." });
    expect(out).toMatch(/^ {2}unknown +Could not be checked: SERVFAIL for dark\.com TXT\.$/m);
  });

  test("prints what stands in the DNS on its line, without control characters", async () => {
    const { out } = await health("evil.com");
    expect(out).toMatch(/^SPF +problems$/m);
    expect(out).not.toMatch(/^SPF +ok/m);
    expect(out).not.toContain("\u001b");
  });

  test("prints JSON", async () => {
    const { status, json } = await health("bad.com", "--json", "--selector", "mail,k1");
    expect(status).toBe(1);
    expect(json).toMatchObject({
      domain: "bad.com",
      status: "problems",
      sections: expect.arrayContaining([
        expect.objectContaining({
          code: "dkim",
          keys: [
            expect.objectContaining({ selector: "mail", state: "revoked" }),
            expect.objectContaining({ selector: "k1" }),
          ],
        }),
      ]),
    });
  });

  test.each([
    [["https://good.com/"]],
    [["a@good.com"]],
    [["com"]],
    [["good.com", "--selector", "a b"]],
    [["good.com", "--selector", ...Array.from({ length: 31 }, (_, at) => `s${at}`)]],
    [[]],
  ])("%j is wrong usage", async (args) => {
    expect((await health(...args)).status).toBe(2);
  });
});
