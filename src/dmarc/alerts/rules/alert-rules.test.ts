import { expect, test } from "bun:test";
import { ALERT_RULES, DMARC_EVENTS } from "./alert-rules.ts";

const DOMAIN = { id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a60", domain: "example.com" };

test("names are those of stored alerts and events, in a fixed order", () => {
  expect(ALERT_RULES.map(({ name }) => name)).toEqual([
    "status_changed",
    "record_changed",
    "policy_weakened",
    "new_source",
    "new_subdomain",
    "failure_spike",
    "spoofing_campaign",
    "volume_spike",
    "reports_stopped",
    "tls_failures",
    "mta_sts_changed",
    "excessive_reporter",
  ]);
});

test.each(ALERT_RULES.map((rule) => [rule.name, rule] as const))(
  "%s has a row in the guide, and says something of its example in mail, chat and dashboard",
  async (name, { data, example, mail, open }) => {
    const guide = await Bun.file(new URL("../../../service/docs/manual/dmarc-alerts.md", import.meta.url)).text();
    expect(guide.split("\n").some((row) => row.startsWith("| `") && row.includes(`\`${name}\``))).toBe(true);
    expect(data.parse(example)).toEqual(example);
    expect(mail(example, DOMAIN).some((block) => block !== null)).toBe(true);
    const title = DMARC_EVENTS.find(({ type }) => type === `dmarc.${name}`)?.title((field) => `<${field}>`);
    expect(title).toStartWith("<domain>: ");
    const item = open?.attention(example, { domain: "example.com", path: "/dmarc/1" });
    if (item !== undefined) expect(item).toMatchObject({ action: { path: expect.stringMatching(/^\/dmarc\/1\//) } });
  },
);
