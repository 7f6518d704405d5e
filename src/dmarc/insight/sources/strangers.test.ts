import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { source, stranger } from "../../../testing/dmarc-advice.ts";
import { createDmarcAlertHarness } from "../../../testing/dmarc-alert-harness.ts";
import { advise } from "../advice/advice.ts";
import { facts, MONITORING } from "../../../testing/dmarc-advice.ts";
import { bundleStrangers, StrangerStore } from "./strangers.ts";

const newHarness = createDmarcAlertHarness();
const MAIL = { messages: 40, authenticated: 40 };
const EVIL = ["203.0.113.1", "203.0.113.2", "203.0.113.3"];
const sourceOf = (ip: string) => ({
  ...stranger(40, { key: `org:evil-${ip}` }),
  ...{ classified_by: "service" as const, addresses: [{ ip }] },
});

describe("strangers", () => {
  const startWith = (
    others: readonly (readonly [domain: string, accountId: string, key: (ip: string) => string])[],
  ) => {
    const harness = newHarness();
    const own = harness.add("example.com", { accountId: "acme" });
    for (const [domain, accountId, keyOf] of others) {
      const { number } = harness.add(domain, { accountId });
      for (const ip of EVIL) harness.report(number, harness.today, keyOf(ip), MAIL);
    }
    const find = (sources = EVIL.map(sourceOf), fromDay = harness.today - 29) => [
      ...new StrangerStore(harness.db).find(own, sources, fromDay),
    ];
    return { harness, find, today: harness.today };
  };
  const foreign = (ip: string) => `${ip} -/- evil.example -`;

  test("are senders that use another domain of the account as well", () => {
    const { find, today } = startWith([["example.net", "acme", foreign]]);
    expect(find()).toEqual(EVIL.map((ip) => `org:evil-${ip}`));
    expect(find(undefined, today + 1)).toEqual([]);
    const [first, ...rest] = EVIL.map(sourceOf);
    for (const more of [{ aligned: 1 }, { classification: "authorized" as const }, { service_id: "mailchimp" }])
      expect(find([{ ...(first ?? sourceOf("")), ...more }, ...rest])).toHaveLength(2);
  });

  test("are found among many domains, whichever has the latest report", () => {
    const { find, harness } = startWith([["example.net", "acme", foreign]]);
    for (let at = 0; at < 400; at++) harness.add(`${at}.example`, { accountId: "acme" });
    harness.db.sqlite.run("UPDATE dmarc_domains SET last_report_at_ms = ? + number", [harness.today * DAY_MS]);
    expect(find()).toHaveLength(EVIL.length);
  });

  test.each([
    ["only a domain of another account", [["example.net", "other", foreign]]],
    ["a domain that they sign for", [["example.net", "acme", (ip: string) => `${ip} example.net/s1 - -`]]],
    ["a domain that they pass SPF for", [["example.net", "acme", (ip: string) => `${ip} -/- m.example.net -`]]],
    ["no other domain", []],
  ] as const)("are none with %s", (_, others) => {
    expect(startWith(others).find()).toEqual([]);
  });
});

test("several strangers are one question of the advice, and one is as any other", () => {
  const strangers = EVIL.map((ip) => stranger(40, { key: `org:${ip}`, name: ip }));
  const keys = new Set(strangers.map(({ key }) => key));
  const asked = (known: ReadonlySet<string>) => {
    const sources = [...bundleStrangers([source({ messages: 5_000, aligned: 5_000 }), ...strangers], known)];
    return advise(facts(MONITORING, { sources }));
  };
  const { next, requirements } = asked(keys);
  expect(requirements.find(({ code }) => code === "unknown_sources")).toMatchObject({ met: false, observed: 1 });
  expect(next).toMatchObject({ action: "classify_sources", source: null });
  expect(next?.why).toContain("3 senders");
  expect(next?.steps.join(" ")).toContain(`as threat: ${EVIL.join(", ")}`);
  expect(asked(new Set(["org:203.0.113.1"])).requirements).toContainEqual(
    expect.objectContaining({ code: "unknown_sources", observed: 3 }),
  );
});
