import { expect, test } from "bun:test";
import { BlocklistStore } from "../blocklist/store.ts";
import { AlertRuleStore } from "../dmarc/alerts/rules/alert-rule-store.ts";
import { DigestQueue } from "../dmarc/alerts/rules/mail-queue-store.ts";
import { DomainStore } from "../dmarc/records/domains/domain-store.ts";
import { HealthStore } from "../dmarc/insight/health/health-store.ts";
import { NotificationsStore } from "../notifications/settings/store.ts";
import { createApps, ENDLESS } from "../testing/app.ts";

const start = createApps();
const MONTH_MS = 30 * 24 * 60 * 60_000;

/** An account with everything that scheduled jobs look for: a target, a domain, digests, reports to review. */
const startMonitoring = async () => {
  const app = start({ settings: { REPORT_HOST: "reports.example.net" } });
  const key = app.newKey({ mode: "live" });
  expect((await app.request("POST", "/v1/blacklist/targets", { key, body: { target: "example.com" } })).status).toBe(
    201,
  );
  expect((await app.request("POST", "/v1/dmarc/domains", { key, body: { domain: "example.com" } })).status).toBe(201);
  app.db.sqlite.run(
    "UPDATE dmarc_domains SET is_unreviewed = 1, status = 'active', digest = 'daily', digest_due_at_ms = 1, last_report_at_ms = 1",
  );
  const notifications = new NotificationsStore(app.db);
  const owner = { accountId: app.accountId(), mode: "live" } as const;
  const defaults = { ...notifications.findDefaults(owner), blacklistDigestDueAtMs: 1, updatedAtMs: 0 };
  app.db.transact((tx) => {
    notifications.save(tx, { ...owner, ...defaults });
    new HealthStore(app.db).plan(tx, 1, 1);
  });
  const laterMs = app.clock.nowMs() + MONTH_MS;
  const rules = new AlertRuleStore(app.db);
  const counts = () => ({
    targets: new BlocklistStore(app.db).dueTargets(laterMs, 9).length,
    domains: new DomainStore(app.db).due(laterMs, 9).length,
    health: new HealthStore(app.db).due(laterMs, 9).filter(({ isActive }) => isActive).length,
    reviews: rules.unreviewedDomains(0, 9).length,
    silences: rules.silentDomains(0, laterMs, 9).length,
    dmarcDigests: new DigestQueue(app.db).dueDomains(laterMs, 9).length,
    listingDigests: notifications.dueDigests(laterMs, 9).length,
  });
  return { app, counts };
};

const ALL = { targets: 1, domains: 1, health: 1, reviews: 1, silences: 1, dmarcDigests: 1, listingDigests: 1 };
const NONE = { targets: 0, domains: 0, health: 0, reviews: 0, silences: 0, dmarcDigests: 0, listingDigests: 0 };

test("monitoring of a disabled account is paused, and resumes when it is enabled", async () => {
  const { app, counts } = await startMonitoring();
  app.newAccount("other", "free");
  app.service.accounts.accounts.setEnabled("other", false);
  expect(counts()).toEqual(ALL);
  app.service.accounts.accounts.setEnabled("main", false);
  expect(counts()).toEqual(NONE);
  app.service.accounts.accounts.setEnabled("main", true);
  expect(counts()).toEqual(ALL);
});

test("the keys of a disabled account get 403 at once, and work again when it is enabled", async () => {
  const app = start();
  const [key, other] = [app.newKey(), app.newKey({ account: "other" })];
  const statusOf = async (one: typeof key) => (await app.request("GET", "/v1/account", { key: one })).status;
  app.service.accounts.accounts.setEnabled("main", false);
  for (const target of ["/v1/account", "/v1/email-verifications", "/v1/dmarc/domains"]) {
    const response = await app.request("GET", target, { key });
    expect(response).toMatchObject({ status: 403, body: { error: "account_disabled" } });
    expect(String(response.body.message)).toContain("disabled");
  }
  expect(await statusOf(other)).toBe(200);
  expect((await app.request("GET", "/v1/account", { key: `${key.key}x` })).status).toBe(401);
  app.service.accounts.accounts.setEnabled("main", true);
  expect(await statusOf(key)).toBe(200);
});

test("a verification that was accepted finishes although its account is disabled", async () => {
  let isDisabled = false;
  const connector = async () => {
    app.service.accounts.accounts.setEnabled("main", false);
    isDisabled = true;
    return { ok: false, error: "refused_or_unreachable" } as const;
  };
  const app = start({ ...ENDLESS, zone: { "example.com": { A: ["198.51.99.1"] } }, connector });
  const key = app.newKey({ mode: "live" });
  const posted = app.verify(key, "someone@example.com", "?timeout=1");
  await app.advance(1_000);
  expect(isDisabled).toBe(true);
  expect(await posted).toMatchObject({ status: 200, body: { status: "completed" } });
  expect(app.credits().held).toBe(0);
});
