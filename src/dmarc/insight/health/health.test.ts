import { describe, expect, test } from "bun:test";
import { err, ok } from "../../../foundation/base/errors.ts";
import type { DnsResponse, DnsResolver, DnsType } from "../../../foundation/net/dns.ts";
import type { Getter } from "../../../foundation/net/fetch-url.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import { createHealthCheck, HEALTH_MS_MAX } from "./health.ts";
import { createHealthDns, HEALTH_QUERIES_MAX } from "./section-report.ts";
import { domainHealthSchema } from "./health-schema.ts";

const KEY = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const POLICY = "version: STSv1\nmode: enforce\nmx: mail.example.com\nmax_age: 86400\n";
const ZONE: Zone = {
  "example.com": { TXT: ["v=spf1 mx -all"], MX: [[10, "mail.example.com"]] },
  "mail.example.com": { A: ["8.8.4.4"] },
  "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject; rua=mailto:a@example.com"] },
  "mail._domainkey.example.com": { TXT: [KEY] },
  "_mta-sts.example.com": { TXT: ["v=STSv1; id=1;"] },
  "mta-sts.example.com": { A: ["192.0.2.1"] },
  "_smtp._tls.example.com": { TXT: ["v=TLSRPTv1; rua=mailto:a@example.com"] },
  "default._bimi.example.com": { TXT: ["v=BIMI1; l=https://example.com/l.svg; a=https://example.com/v.pem"] },
};
const served: Getter = async () => ok({ status: 200, body: POLICY, isWhole: true, contentType: "text/plain" });
const CODES = ["dmarc", "spf", "dkim", "mx", "mta_sts", "tls_rpt", "bimi"];
const mail = [{ selector: "mail", signer: "example.com", origin: "request", seen: null }] as const;

const newCheck = (resolver: DnsResolver, get: Getter = served) => {
  const clock = createTestClock();
  return { clock, check: createHealthCheck({ resolver, get, clock }) };
};

test("every section is there in its order, and the result is what the interface promises", async () => {
  const { check, clock } = newCheck(createZoneResolver(ZONE));
  const health = await check({ domain: "example.com", selectors: mail });
  expect(health.sections.map(({ code }) => code)).toEqual(CODES as never);
  expect(health).toMatchObject({ domain: "example.com", checked_at: "2026-01-01T00:00:00.000Z", status: "warnings" });
  expect(health.sections.filter(({ status }) => status !== "ok").map(({ code }) => code)).toEqual(["dkim"]);
  expect(domainHealthSchema.parse(JSON.parse(JSON.stringify(health)))).toEqual(health as never);
  expect(clock.pending()).toBe(0);
});

test("the worst section decides: errors, then what is unknown, then warnings", async () => {
  const statusOf = async (zone: Zone) =>
    (await newCheck(createZoneResolver({ ...ZONE, ...zone })).check({ domain: "example.com", selectors: mail })).status;
  expect(await statusOf({ "_smtp._tls.example.com": "servfail" })).toBe("unknown");
  expect(await statusOf({ "_smtp._tls.example.com": "servfail", "_dmarc.example.com": {} })).toBe("problems");
  const rsaToo = { "mail._domainkey.example.com": { TXT: ["v=DKIM1; p="] } };
  expect(await statusOf(rsaToo)).toBe("problems");
});

test("of a domain that does not exist nothing else is said", async () => {
  const { check } = newCheck(createZoneResolver({}));
  const health = await check({ domain: "example.com", selectors: [] });
  expect(health.sections.flatMap(({ findings }) => findings.map(({ code }) => code))).toEqual(["domain_missing"]);
  expect(health.status).toBe("problems");
});

test("without selectors common ones are tried", async () => {
  const resolver = createZoneResolver({ ...ZONE, "google._domainkey.example.com": { TXT: [KEY] } });
  const health = await newCheck(resolver).check({ domain: "example.com", selectors: [] });
  const dkim = health.sections.find((section) => section.code === "dkim");
  expect(dkim?.code === "dkim" && dkim.keys.map(({ selector }) => selector).sort()).toEqual(["google", "mail"]);
});

/** A resolver that never answers. */
const silent = (): DnsResolver & { count: () => number } => {
  let asked = 0;
  return {
    count: () => asked,
    resolve<T extends DnsType>(): Promise<DnsResponse<T>> {
      asked += 1;
      return Promise.withResolvers<DnsResponse<T>>().promise;
    },
  };
};

describe("limits", () => {
  test("a DNS that never responds makes everything unknown after 20 seconds, and nothing a finding", async () => {
    const resolver = silent();
    const { check, clock } = newCheck(resolver);
    const checked = check({ domain: "example.com", selectors: mail });
    await clock.advance(HEALTH_MS_MAX);
    const health = await checked;
    expect(health.status).toBe("unknown");
    for (const section of health.sections) {
      expect(section).toMatchObject({ status: "unknown", findings: [] });
      expect(section.unchecked[0]).toContain("the time limit was reached");
    }
    expect(resolver.count()).toBeLessThanOrEqual(8);
    expect(clock.pending()).toBe(0);
  });

  test("a caller that gives up ends it at once, also before it began", async () => {
    for (const isEarly of [true, false]) {
      const { check, clock } = newCheck(silent());
      const caller = new AbortController();
      if (isEarly) caller.abort();
      const checked = check({ domain: "example.com", selectors: mail, signal: caller.signal });
      caller.abort();
      expect((await checked).status).toBe("unknown");
      expect(clock.pending()).toBe(0);
    }
  });

  test("a policy server that fails is unknown", async () => {
    const { check } = newCheck(createZoneResolver(ZONE), async () =>
      err({ kind: "timeout", problem: "There was no answer." }),
    );
    const { sections } = await check({ domain: "example.com", selectors: mail });
    expect(sections.find(({ code }) => code === "mta_sts")).toMatchObject({ status: "unknown", findings: [] });
  });

  test("a query is sent once, and only so many in all", async () => {
    const resolver = createZoneResolver({});
    const dns = createHealthDns(resolver);
    await Promise.all([
      dns.resolve("a.example", "TXT"),
      dns.resolve("A.example", "TXT"),
      dns.resolve("a.example", "A"),
    ]);
    expect(resolver.queries).toEqual(["TXT a.example", "A a.example"]);
    const replies = await Promise.all(Array.from({ length: 150 }, (_, at) => dns.resolve(`n${at}.example`, "A")));
    expect(resolver.queries).toHaveLength(HEALTH_QUERIES_MAX);
    expect(replies.filter(({ outcome }) => outcome === "overloaded")).toHaveLength(150 - HEALTH_QUERIES_MAX + 2);
  });
});
