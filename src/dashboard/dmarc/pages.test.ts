import { describe, expect, test } from "bun:test";
import { dayOfTime } from "../../foundation/base/days.ts";
import { newId } from "../../foundation/base/secrets.ts";
import { encodeCursor } from "../../foundation/http/route-input.ts";
import { signIn } from "../../testing/dashboard.ts";
import { createDmarcPageTests, type DmarcPageTest } from "../../testing/dmarc-page-tests.ts";
import type { SampleRow } from "../../testing/dmarc-reports.ts";

const newTest = createDmarcPageTests();

const HOSTILE = `"><img src=x onerror=alert(1)>`;
const OWN: SampleRow = { ip: "192.0.2.1", count: 90 };
const SERVICE: SampleRow = {
  ...{ ip: "198.51.100.7", count: 12, disposition: "quarantine", dkim: "fail", spf: "fail" },
  ...{ dkimResults: ["sendgrid.net pass s1"], spfResults: ["em.sendgrid.net pass"] },
};
const PARTNER: SampleRow = {
  ...{ ip: "203.0.113.5", count: 20, dkim: "fail", spf: "fail", dkimResults: [] },
  spfResults: ["crm.partner.org pass"],
};
const FORGED: SampleRow = {
  ...{ ip: "198.18.7.7", count: 8, disposition: "reject", dkim: "fail", spf: "fail", dkimResults: [] },
  spfResults: ["example.com fail"],
};

/** A domain with mail of its own, of a service, of a partner and of a forger. */
const filled = async () => {
  const made = await newTest();
  const id = await made.enrol();
  for (const daysAgo of [1, 2, 4]) await made.report(daysAgo, { rows: [OWN, SERVICE, PARTNER, FORGED] });
  await made.report(1, { org: HOSTILE.replaceAll("<", "&lt;"), rows: [OWN] });
  made.nameAddresses({
    ...{ "192.0.2.1": "mail.example.com", "198.51.100.7": "o1.sendgrid.net" },
    ...{ "203.0.113.5": "out.crm.partner.org", "198.18.7.7": null },
  });
  await made.app.service.dmarc.jobs.sumUpDomains();
  return { ...made, id };
};

const raise = ({ app }: DmarcPageTest, id: string, rule: string, data: object): string => {
  const alertId = newId();
  const body = JSON.stringify({ summary: `made ${rule}`, data });
  app.db.sqlite.run("INSERT INTO dmarc_alerts SELECT ?, number, ?, 's', ?, ?, NULL FROM dmarc_domains WHERE id = ?", [
    alertId,
    rule,
    app.clock.nowMs(),
    body,
    id,
  ]);
  return alertId;
};
const CAMPAIGN = {
  ...{ started_day: "2025-12-30", day: "2025-12-31", messages: 900, networks: 40, quarantined: 0, rejected: 880 },
};

describe("the list of domains", () => {
  test("teaches how to begin while it is empty", async () => {
    const { visitor } = await newTest();
    const { status, text } = await visitor.get("/dmarc");
    expect(status).toBe(200);
    expect(text).toContain("See who sends mail in your name");
    expect(text).toContain("Enroll your first domain");
  });

  test("shows status, policy, aligned share and the next step", async () => {
    const { visitor } = await filled();
    const { text } = await visitor.get("/dmarc");
    expect(text).toContain("1 domain");
    expect(text).toMatch(/example\.com Active p=none 75 % 7 days: 75 %/);
    expect(text).toContain("480 messages");
    expect(text).toContain("Classify partner.org");
  });

  test("says what is wrong with a domain, and filters by it", async () => {
    const { visitor, zone, enrol, app, key } = await filled();
    const gone = await enrol("gone.org");
    zone["_dmarc.gone.org"] = { TXT: ["v=DMARC1; p=none; rua=mailto:other@example.org"] };
    await app.request("POST", `/v1/dmarc/domains/${gone}/verify`, { key });
    const all = await visitor.get("/dmarc");
    expect(all.text.indexOf("gone.org")).toBeLessThan(all.text.indexOf("example.com Active"));
    expect(all.text).toContain("1 action required");
    expect(all.text).toMatch(/gone\.org Action required .*rua/);
    const filtered = await visitor.get("/dmarc?status=action_required&sort=name");
    expect(filtered.text).toContain("gone.org");
    expect(filtered.text).not.toContain("example.com Active");
    const none = await visitor.get("/dmarc?text=absent&status=nonsense&sort=nonsense");
    expect([none.status, none.text.includes("No domain matches")]).toEqual([200, true]);
  });

  test("has pages of 50 or 200 domains", async () => {
    const { visitor, enrol } = await newTest();
    for (let at = 0; at < 51; at++) await enrol(`shop-${String(at).padStart(2, "0")}.org`);
    const first = await visitor.get("/dmarc?sort=name");
    expect(first.text).toContain("1–50 of 51");
    expect(first.text).not.toContain("shop-50.org");
    const [, next = ""] = /rel="next" href="([^"]+)"/.exec(first.html) ?? [];
    const second = await visitor.get(next.replaceAll("&amp;", "&"));
    expect(second.text).toContain("51 of 51");
    expect(second.text).toContain("shop-50.org");
    expect((await visitor.get("/dmarc?sort=name&rows=200")).text).toContain("1–51");
  });

  test("has its tags above it while they are few, and folds more", async () => {
    const { app, key, visitor, enrol } = await newTest();
    const id = await enrol();
    const tag = async (count: number) => {
      const tags = Array.from({ length: count }, (_, at) => `client-${at}`);
      await app.request("PATCH", `/v1/dmarc/domains/${id}`, { key, body: { tags } });
      return (await visitor.get("/dmarc")).html;
    };
    expect(await tag(3)).toMatch(/<details class="panel fold" open><summary>3 tags</);
    expect(await tag(4)).toMatch(/<details class="panel fold"><summary>4 tags</);
  });

  test("is a CSV file", async () => {
    const { visitor } = await filled();
    const { html, headers } = await visitor.get("/dmarc.csv");
    expect(headers.get("content-type")).toStartWith("text/csv");
    const [header, row] = html.split("\r\n");
    expect(header).toStartWith("domain,label,status,attention,policy,messages_7_days");
    expect(row).toStartWith("example.com,,active,,p=none,480,75,480,75,");
    expect(row).toContain("Classify partner.org");
  });
});

describe("the page of a domain", () => {
  test("begins with the next step, then mail by outcome, sources worst first, reporters and names", async () => {
    const { visitor, id } = await filled();
    const { status, text } = await visitor.get(`/dmarc/${id}`);
    expect(status).toBe(200);
    expect(text).toContain("Next step: Classify partner.org");
    expect(text).toContain("480 messages, 75 % aligned");
    expect(text).toContain("Failing, from your own services 36");
    expect(text).toContain("Failing, from other senders 84");
    const order = ["partner.org", "SendGrid", "example.com (own servers)", "Unauthenticated mail from 1 network"];
    const places = order.map((name) => text.indexOf(`Select ${name}`));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
    expect(text).toContain("passes for crm.partner.org, not for you");
    expect(text).toContain("fails SPF and DKIM; 24 rejected");
    expect(text).toContain("receiver.example");
  });

  test("shows a day that no report covers as unknown, not as zero", async () => {
    const { visitor, id } = await filled();
    const { text } = await visitor.get(`/dmarc/${id}?days=7`);
    expect(text).toContain("29 Dec 2025 no data no data no data");
    expect(text).toContain("28 Dec 2025 90 12 28");
  });

  test("marks the days on which the record changed", async () => {
    const { visitor, id, zone, app, key } = await filled();
    const text = JSON.stringify(zone["_dmarc.example.com"]).replace("p=none", "p=quarantine; pct=50");
    zone["_dmarc.example.com"] = JSON.parse(text);
    await app.request("POST", `/v1/dmarc/domains/${id}/verify`, { key });
    const page = await visitor.get(`/dmarc/${id}`);
    expect(page.text).toContain("Record changed: p=quarantine, pct=50");
  });

  test("says that reports cannot arrive before it advises anything else", async () => {
    const { visitor, id, zone, app, key } = await filled();
    zone["_dmarc.example.com"] = { TXT: ["v=DMARC1; p=none"] };
    await app.request("POST", `/v1/dmarc/domains/${id}/verify`, { key });
    const { text } = await visitor.get(`/dmarc/${id}`);
    expect(text).toContain("Reports cannot arrive");
    expect(text).not.toContain("Next step:");
    expect((await visitor.get("/")).text).toContain("example.com no longer sends its reports here");
  });

  test("shows an open alert until it is acknowledged", async () => {
    const made = await filled();
    const alert = raise(made, made.id, "spoofing_campaign", CAMPAIGN);
    expect((await made.visitor.get(`/dmarc/${made.id}`)).text).toContain("Somebody forges mail from example.com");
    const after = await made.visitor.submit(`/dmarc/${made.id}/alerts/${alert}/acknowledge`, {
      back: `/dmarc/${made.id}?days=7`,
    });
    expect(after.text).toContain("Acknowledged.");
    expect(after.text).not.toContain("Somebody forges mail");
  });

  test("escapes what reports and people say", async () => {
    const { visitor, id } = await filled();
    await visitor.submit(`/dmarc/${id}/sources/org%3Apartner.org/class`, { classification: "threat", note: HOSTILE });
    for (const path of [`/dmarc/${id}`, `/dmarc/${id}/sources/org%3Apartner.org`, `/dmarc?text=${HOSTILE}`]) {
      const { html } = await visitor.get(path);
      expect(html).not.toContain("<img src=x");
      expect(html).not.toContain("<i>AS</i>");
    }
    expect((await visitor.get(`/dmarc/${id}`)).text).toContain("<img src=x onerror=alert(1)>");
  });
});

describe("classifying sources", () => {
  test("one in place, and back again", async () => {
    const { visitor, id } = await filled();
    const path = `/dmarc/${id}/sources/org%3Apartner.org/class`;
    const done = await visitor.submit(path, { classification: "authorized", back: `/dmarc/${id}?days=90` });
    expect(done.text).toContain("partner.org is now authorized.");
    const back = await visitor.post(path, { classification: "automatic", back: "https://evil.example/" });
    expect(back.location).toBe(`/dmarc/${id}/sources`);
    expect((await visitor.get(`/dmarc/${id}/sources?class=unknown`)).text).toContain("partner.org");
  });

  test("all that are ticked, with a note", async () => {
    const { visitor, id } = await filled();
    const keys = ["org:partner.org", "service:sendgrid"];
    const done = await visitor.submit(`/dmarc/${id}/classify`, {
      keys,
      classification: "forwarder",
      note: "As Ada said",
    });
    expect(done.text).toContain("2 sources are now forwarder.");
    const { text } = await visitor.get(`/dmarc/${id}/sources/org%3Apartner.org`);
    expect(text).toContain("As you classified it.");
    expect(text).toContain("As Ada said");
  });

  test("none is ticked, or one is not there", async () => {
    const { visitor, id } = await filled();
    const absent = `/dmarc/${id.slice(0, -4)}0000/classify`;
    expect((await visitor.post(absent, { classification: "threat" })).status).toBe(404);
    const none = await visitor.submit(`/dmarc/${id}/classify`, { classification: "threat" });
    expect(none.text).toContain("Tick the sources to classify first.");
    const keys = ["org:absent.org", "org:partner.org"];
    expect((await visitor.post(`/dmarc/${id}/classify`, { keys, classification: "threat" })).status).toBe(404);
    expect((await visitor.get(`/dmarc/${id}/sources?class=threat`)).text).not.toContain("partner.org");
    expect((await visitor.post(`/dmarc/${id}/classify`, { keys: "no key", classification: "threat" })).status).toBe(
      400,
    );
  });
});

test("forms have limits: 500 sources at once, 50 rules", async () => {
  const { visitor, id, app } = await filled();
  const keys = Array.from({ length: 501 }, (_, at) => `org:s${at}.org`);
  const many = await visitor.submit(`/dmarc/${id}/classify`, { keys, classification: "threat" });
  expect(many.text).toContain("At most 500 sources can be classified at once.");
  const rules = JSON.stringify(Array.from({ length: 50 }, () => ({ country: "DE", classification: "threat" })));
  app.db.sqlite.run("UPDATE dmarc_domains SET source_rules = ? WHERE id = ?", [rules, id]);
  const full = await visitor.post(`/dmarc/${id}/rules`, { country: "FR", classification: "threat" });
  expect(full.status).toBe(409);
  expect(full.text).toContain("A domain can have 50 rules. Remove one first.");
});

describe("the sources of a domain", () => {
  test.each([
    ["", ["partner.org", "SendGrid", "own servers", "Unauthenticated mail"]],
    ["?class=misconfigured", ["SendGrid"]],
    ["?failing=on", ["partner.org", "SendGrid"]],
    ["?text=MAIL.example", ["own servers"]],
    ["?text=198.18.7", ["Unauthenticated mail"]],
    ["?networks=on&class=threat", ["198.18.7.0/24"]],
    ["?class=forwarder", []],
  ])("filtered by %s", async (query, names) => {
    const { visitor, id } = await filled();
    const { html } = await visitor.get(`/dmarc/${id}/sources${query}`);
    const shown = [...html.matchAll(/>Select ([^<]+)</g)].map(([, name = ""]) => name);
    expect(shown).toHaveLength(names.length);
    names.forEach((name, at) => void expect(shown[at]).toContain(name));
  });

  test("as CSV, with the same filters", async () => {
    const { visitor, id } = await filled();
    const { html, headers } = await visitor.get(`/dmarc/${id}/sources.csv?class=misconfigured`);
    expect(headers.get("content-disposition")).toContain("sources-example.com-");
    const rows = html.trim().split("\r\n");
    expect(rows).toHaveLength(2);
    expect(rows[1]).toStartWith("service:sendgrid,");
  });

  test("classified by rules that are added and removed", async () => {
    const { visitor, id } = await filled();
    const rule = { network: "203.0.113.0/24", reverse_name: "", classification: "authorized" };
    const added = await visitor.submit(`/dmarc/${id}/rules`, rule);
    expect(added.text).toContain("Rule added.");
    expect(added.text).toContain("address in 203.0.113.0/24 Authorized");
    const wrong = await visitor.post(`/dmarc/${id}/rules`, { ...rule, network: "203.0.113.0/99" });
    expect(wrong.status).toBe(400);
    expect(wrong.text).toContain("Must be a network such as 192.0.2.0/24");
    expect(wrong.html).toContain('value="203.0.113.0/99"');
    const stored = JSON.stringify({ network: "203.0.113.0/24", classification: "authorized" });
    const removed = await visitor.submit(`/dmarc/${id}/rules/remove`, { rule: stored });
    expect(removed.text).toContain("Rule removed.");
    expect(removed.text).not.toContain("address in 203.0.113.0/24");
  });
});

describe("the page of a source", () => {
  test("says what it is and why, what fails and how to fix it, and shows rows", async () => {
    const { visitor, id } = await filled();
    const { text } = await visitor.get(`/dmarc/${id}/sources/service%3Asendgrid`);
    expect(text).toContain(
      "SendGrid: 36 messages of the last 30 days failed, the last on 31 Dec 2025 . Results: DKIM passes for sendgrid.net, which is not aligned",
    );
    expect(text).toContain("Set up DKIM for example.com at SendGrid");
    expect(text).toContain("It is authenticated as another domain");
    expect(text).toContain("o1.sendgrid.net");
    expect(text).toContain("36 quarantined");
    expect(text).toContain("DKIM pass sendgrid.net (s1)");
  });

  test("folds its rows by day, and says of which day other pages may have more", async () => {
    const { visitor, id } = await filled();
    const path = `/dmarc/${id}/sources/service%3Asendgrid`;
    const days = (html: string) =>
      [...html.matchAll(/<details class="fold"><summary>(.*?)<\/summary>/g)].map(([, text = ""]) =>
        text.replaceAll(/<[^>]+>/g, ""),
      );
    const ofDay = (day: number, rows = "1 row") => `${day} Dec 2025 ${rows}, 12 messages 12 failed`;
    expect(days((await visitor.get(path)).html)).toEqual([ofDay(31), ofDay(30), ofDay(28)]);
    const cursor = encodeCursor(`${dayOfTime(Date.parse("2025-12-30"))}.999999999999.0.0`);
    const next = days((await visitor.get(`${path}?cursor=${cursor}`)).html);
    expect(next).toEqual([ofDay(30, "1 row on this page"), ofDay(28)]);
  });

  test("filters its rows by result and address", async () => {
    const { visitor, id } = await filled();
    const path = `/dmarc/${id}/sources/service%3Asendgrid`;
    expect((await visitor.get(`${path}?aligned=yes`)).text).toContain("No row matches.");
    expect((await visitor.get(`${path}?ip=198.51.100.7`)).text).toContain("1–3 of 3");
    expect((await visitor.get(`${path}?ip=198.51.100.8`)).text).toContain("No row matches.");
    expect((await visitor.get(`${path}?ip=nonsense&cursor=nonsense`)).text).toContain("1–3");
  });

  test("has its rows as CSV, with the same filters", async () => {
    const { visitor, id } = await filled();
    const path = `/dmarc/${id}/sources/service%3Asendgrid`;
    const file = "/records.csv?days=30&amp;aligned=no&amp;ip=198.51.100.7";
    expect((await visitor.get(`${path}?aligned=no&ip=198.51.100.7`)).html).toContain(`${path}${file}`);
    const lines = async (query: string) =>
      (await visitor.get(`${path}/records.csv?${query}`)).html.trim().split("\r\n");
    const [head, ...rows] = await lines("days=30&aligned=no&ip=198.51.100.7");
    expect([head, rows.length]).toEqual([expect.stringContaining("source_ip"), 3]);
    expect([(await lines("aligned=yes")).length, (await lines("ip=198.51.100.8")).length]).toEqual([1, 1]);
  });

  test.each([
    ["own", "At least 90 % of its mail is aligned."],
    ["org:partner.org", "Nothing shows whether it sends for you"],
    ["unauthenticated", "Nothing authenticates its mail"],
  ])("explains the class of %s", async (key, reason) => {
    const { visitor, id } = await filled();
    expect((await visitor.get(`/dmarc/${id}/sources/${encodeURIComponent(key)}`)).text).toContain(reason);
  });

  test("is not there for a key that no report names", async () => {
    const { visitor, id } = await filled();
    expect((await visitor.get(`/dmarc/${id}/sources/org%3Aabsent.org`)).status).toBe(404);
    expect((await visitor.get(`/dmarc/${id}/sources/%E0`)).status).toBe(404);
  });
});

describe("alerts and settings", () => {
  test("lists alerts, and turns a rule off and on", async () => {
    const made = await filled();
    raise(made, made.id, "new_subdomain", {});
    const { visitor, id } = made;
    expect((await visitor.get(`/dmarc/${id}/alerts`)).text).toContain("Made new_subdomain");
    const off = await visitor.submit(`/dmarc/${id}/alerts/rules`, { rule: "new_subdomain", turn: "off" });
    expect(off.text).toContain('Alerts "New subdomain" are off for this domain.');
    expect(off.text).toContain("Turn on New subdomain");
    await visitor.submit(`/dmarc/${id}/settings`, SETTINGS);
    expect((await visitor.get(`/dmarc/${id}/alerts`)).text).toContain("Turn on New subdomain");
  });

  const SETTINGS = {
    ...{
      label: "Main",
      webhook_url: "https://example.com/hook",
      recipients: "",
      digest: "off",
    },
    ...{ sends_mail: "yes", require_authentic_reports: "on", retention_days: "30", raw_retention_days: "0" },
    ...{ new_source_messages: "5", new_source_percent: "0.5", failure_spike_messages: "20" },
    ...{ failure_spike_percent: "15", spoofing_messages: "100" },
    ...{ volume_spike_messages: "700", volume_spike_factor: "6", volume_spike_addresses: "20" },
  };

  test("saves every setting", async () => {
    const { visitor, id, app, key } = await filled();
    const saved = await visitor.submit(`/dmarc/${id}/settings`, SETTINGS);
    expect(saved.text).toContain("Settings saved.");
    const { body } = await app.request("GET", `/v1/dmarc/domains/${id}`, { key });
    expect(body).toMatchObject({
      label: "Main",
      settings: {
        ...{ webhook_configured: true, sends_mail: true, retention_days: 30, raw_retention_days: 0 },
        ...{ require_authentic_reports: true, failure_reports_redact: false },
        alert_thresholds: {
          new_source_messages: 5,
          new_source_percent: 0.5,
          volume_spike_messages: 700,
          volume_spike_factor: 6,
        },
      },
    });
  });

  test.each([
    ["retention_days", "0", "Must be a whole number of days from 1 to 3650"],
    ["webhook_url", "ftp://example.com", ""],
    ["spoofing_messages", "many", ""],
    ["recipients", "nobody", ""],
  ])("keeps what was typed when %s is %s", async (field, value, message) => {
    const { visitor, id } = await filled();
    const wrong = await visitor.post(`/dmarc/${id}/settings`, { ...SETTINGS, [field]: value });
    expect(wrong.status).toBe(400);
    expect(wrong.html).toContain(`-${field.replaceAll("_", "-")}-error`);
    expect(wrong.text + wrong.html).toContain(value);
    expect(wrong.text).toContain(message);
    expect(wrong.html).toContain('value="Main"');
  });

  test("pauses, resumes and deletes", async () => {
    const { visitor, id } = await filled();
    const paused = await visitor.submit(`/dmarc/${id}/pause`, { monitoring: "off" });
    expect(paused.text).toContain("Monitoring of example.com is paused.");
    expect((await visitor.get(`/dmarc/${id}`)).text).toContain("Monitoring is paused");
    expect((await visitor.submit(`/dmarc/${id}/pause`, { monitoring: "on" })).text).toContain("monitored again");
    expect((await visitor.get(`/dmarc/${id}/delete`)).text).toContain("All reports about example.com will be deleted");
    expect((await visitor.submit(`/dmarc/${id}/delete`)).text).toContain("example.com is deleted.");
    expect((await visitor.get(`/dmarc/${id}`)).status).toBe(404);
  });
});

const PAGES = ["", "/sources", "/sources.csv", "/sources/own", "/alerts", "/settings", "/delete"];
const FORMS: ReadonlyArray<readonly [string, Readonly<Record<string, string>>]> = [
  ["/classify", { keys: "own", classification: "threat" }],
  ["/sources/own/class", { classification: "threat" }],
  ["/rules", { country: "DE", classification: "threat" }],
  ["/rules/remove", { rule: "{}" }],
  ["/alerts/rules", { rule: "new_source", turn: "off" }],
  ["/pause", { monitoring: "off" }],
  ["/delete", {}],
];

describe("another account", () => {
  test("finds no page of the domain and changes nothing", async () => {
    const made = await filled();
    const alert = raise(made, made.id, "spoofing_campaign", CAMPAIGN);
    const other = await signIn(made.app, { account: "other" });
    for (const path of PAGES) expect([path, (await other.get(`/dmarc/${made.id}${path}`)).status]).toEqual([path, 404]);
    const forms = [...FORMS, [`/alerts/${alert}/acknowledge`, {}] as const];
    for (const [path, fields] of forms)
      expect([path, (await other.post(`/dmarc/${made.id}${path}`, fields)).status]).toEqual([path, 404]);
    expect((await other.get("/dmarc")).text).not.toContain("example.com Active");
    const { text } = await made.visitor.get(`/dmarc/${made.id}`);
    expect(text).toContain("Somebody forges mail");
    expect(text).toContain("Active");
  });

  test("nor does the other mode, nor a form without the token of the session", async () => {
    const made = await filled();
    for (const path of PAGES) expect((await made.visitor.get(`/test/dmarc/${made.id}${path}`)).status).toBe(404);
    for (const [path, fields] of FORMS)
      expect((await made.visitor.post(`/dmarc/${made.id}${path}`, fields, "forged")).status).toBe(403);
    expect((await made.visitor.get(`/dmarc/${made.id}`)).status).toBe(200);
  });
});
