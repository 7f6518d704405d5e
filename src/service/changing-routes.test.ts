import { describe, expect, test } from "bun:test";
import type { IssuedKey } from "../accounts/keys.ts";
import { createApps, type TestApp } from "../testing/app.ts";
import { sampleReportXml } from "../testing/dmarc-reports.ts";
import { createFullAccounts, type FullAccount } from "../testing/full-account.ts";
import { changedWithoutEntry, entriesAddedBy, requireEntry } from "../testing/audit-entries.ts";
import { changesNothingOfOthers } from "../testing/other-account.ts";

const startFull = createFullAccounts(createApps());

interface Operation {
  /** Parameters of the path by name. */
  readonly params?: (account: FullAccount) => Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** What must be there before; returns more parameters. */
  readonly prepare?: (account: FullAccount) => Promise<Readonly<Record<string, string>>>;
  /** Of the key. Default: test. */
  readonly mode?: "live";
  /** A table that must change: otherwise the operation did nothing, and the test would prove nothing. Null for one that only looks. */
  readonly changes: string | null;
  /** Of the entry in the audit log; default: the first parameter of the path. */
  readonly subject?: string;
}

const id = (name: keyof FullAccount) => (account: FullAccount) => ({ id: String(account[name]) });
const list = (name: keyof FullAccount) => (account: FullAccount) => ({ jobId: String(account[name]) });
const source = (account: FullAccount) => ({ id: account.domain, key: "own" });
const listing = (account: FullAccount) => ({ id: account.target, listing: "test-list" });

/** Every operation of the API that changes something. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/email-verifications": { body: { email: "mailbox_exists@b.example" }, changes: "verifications" },
  "DELETE /v1/email-verifications/:id": { params: id("verification"), changes: "verifications" },
  "POST /v1/bounces": {
    mode: "live",
    body: [{ event: "bounce", email: "a@b.example", timestamp: 1, sg_event_id: "1", status: "5.1.1" }],
    changes: "bounces",
  },
  "POST /v1/bulk-verifications": { body: { emails: ["a@b.example"] }, changes: "bulk_jobs" },
  "POST /v1/bulk-verifications/:jobId/cancel": { params: list("runningList"), changes: "bulk_jobs" },
  "POST /v1/bulk-verifications/:jobId/retry": { params: list("endedList"), changes: "bulk_jobs" },
  "DELETE /v1/bulk-verifications/:jobId": { params: list("endedList"), changes: "bulk_jobs" },
  "POST /v1/blacklist/targets": { body: { target: "1.2.3.4" }, changes: "blocklist_targets", subject: "1.2.3.4" },
  "PATCH /v1/blacklist/targets/:id": {
    params: id("target"),
    body: { label: "x", muted_lists: ["test-list"] },
    changes: "blocklist_targets",
  },
  "DELETE /v1/blacklist/targets/:id": { params: id("target"), changes: "blocklist_targets" },
  "PATCH /v1/blacklist/targets/:id/listings/:listing": {
    params: listing,
    body: { note: "x", acknowledged: true },
    changes: "blocklist_listings",
  },
  "POST /v1/blacklist/targets/:id/check": { params: id("target"), changes: "blocklist_checks" },
  "POST /v1/blacklist/targets/batch": { body: { targets: ["1.2.3.4", "5.6.7.8/30"] }, changes: "blocklist_targets" },
  "POST /v1/blacklist/targets/discover": { body: { domain: "example.com", dry_run: true }, changes: null },
  "POST /v1/dmarc/reports": { body: sampleReportXml({ reportId: "2" }), changes: "dmarc_reports" },
  "POST /v1/dmarc/ingestions/:id/retry": { params: id("ingestion"), changes: "dmarc_ingestions" },
  "POST /v1/dmarc/ingestions/retry": { changes: "dmarc_ingestions" },
  "POST /v1/dmarc/domains": { body: { domain: "example.org" }, changes: "dmarc_domains", subject: "example.org" },
  "PATCH /v1/dmarc/domains/:id": {
    params: id("domain"),
    body: { digest: "weekly", label: "x" },
    changes: "dmarc_domains",
  },
  "DELETE /v1/dmarc/domains/:id": { params: id("domain"), changes: "dmarc_domains" },
  "POST /v1/dmarc/domains/:id/verify": { params: id("domain"), changes: "dmarc_domains" },
  "PATCH /v1/dmarc/domains/:id/mta-sts": {
    params: id("domain"),
    body: { mode: "testing" },
    prepare: async ({ request, domain }) => {
      await request("POST", `/v1/dmarc/domains/${domain}/verify`);
      return {};
    },
    changes: "dmarc_mta_sts",
  },
  "POST /v1/dmarc/domains/:id/report-links": {
    params: id("domain"),
    body: { expires_at: "2026-02-01T00:00:00Z", note: "x" },
    changes: "dmarc_shares",
  },
  "DELETE /v1/dmarc/domains/:id/report-links/:linkId": {
    params: id("domain"),
    prepare: async ({ request, domain }) => {
      const body = { expires_at: "2026-02-01T00:00:00Z" };
      return { linkId: (await request("POST", `/v1/dmarc/domains/${domain}/report-links`, body)).id };
    },
    changes: "dmarc_shares",
  },
  "PATCH /v1/dmarc/tags/:tag": {
    params: () => ({ tag: "client-a" }),
    body: { digest: "weekly", recipients: ["it@client-a.example"] },
    prepare: async ({ request, domain }) => {
      await request("PATCH", `/v1/dmarc/domains/${domain}`, { tags: ["client-a"] });
      return {};
    },
    changes: "dmarc_tag_digests",
  },
  "PATCH /v1/dmarc/domains/:id/sources": {
    params: id("domain"),
    body: { keys: ["own"], classification: "threat" },
    changes: "dmarc_source_words",
  },
  "PATCH /v1/dmarc/domains/:id/sources/:key": {
    params: source,
    body: { classification: "threat" },
    changes: "dmarc_source_words",
  },
  "POST /v1/dmarc/reporters": {
    body: { reporter: "partner-mail.net" },
    changes: "dmarc_accepted_reporters",
    subject: "partner-mail.net",
  },
  "DELETE /v1/dmarc/reporters/:reporter": {
    params: () => ({ reporter: "accepted-mail.net" }),
    changes: "dmarc_accepted_reporters",
  },
  "POST /v1/webhooks/deliveries/:id/redeliver": { params: id("failedDelivery"), changes: "webhook_deliveries" },
  "POST /v1/webhooks/deliveries/:id/cancel": { params: id("pendingDelivery"), changes: "webhook_deliveries" },
  "POST /v1/webhooks/deliveries/redeliver": { body: { status: "failed" }, changes: "webhook_deliveries" },
  "POST /v1/webhooks/deliveries/cancel": { body: {}, changes: "webhook_deliveries" },
  "POST /v1/webhooks/test": { body: { url: "http://127.0.0.1:1024/" }, changes: "webhook_secrets" },
  "POST /v1/webhooks/secret/rotate": { changes: "webhook_secrets" },
  "PATCH /v1/notifications/mail": {
    body: { recipient: "anna@example.com", kind: "dmarc_digest", enabled: false },
    mode: "live",
    changes: "mail_subscriptions",
  },
  "POST /v1/notifications/windows": {
    body: { weekly: { days: ["mon"], from: "22:00", to: "06:00", time_zone: "UTC" } },
    changes: "maintenance_windows",
  },
  "DELETE /v1/notifications/windows/:id": { params: id("window"), changes: "maintenance_windows" },
  "PATCH /v1/notifications": {
    body: { webhook_url: "https://hooks.example/", recipients: ["a@b.example"] },
    mode: "live",
    changes: "account_notifications",
  },
};

/** Too many for the audit log: each verification names its key itself. */
const UNRECORDED = new Set(["POST /v1/email-verifications", "POST /v1/bounces"]);

const changingRoutes = async (app: TestApp): Promise<readonly string[]> =>
  (await app.applicationOf("/v1/account")).routes
    .filter(({ method, path }) => method !== "GET" && path.startsWith("/v1/"))
    .map(({ method, path }) => `${method} ${path}`);

const perform = (account: FullAccount, name: string, { params, body }: Operation, key: IssuedKey) => {
  const [method = "", path = ""] = name.split(" ");
  const values = params?.(account) ?? {};
  const target = path.replaceAll(/:(\w+)/g, (_, of: string) => encodeURIComponent(values[of] ?? ""));
  return account.app.request(method, target, { key, body });
};

describe("operations of the API", () => {
  test("that change something are all here", async () => {
    const { app } = await startFull();
    expect(Object.keys(OPERATIONS).toSorted()).toEqual([...(await changingRoutes(app))].toSorted());
  });

  test.each(Object.entries(OPERATIONS))(
    "%s changes no row of another account or of the other mode, and is in the audit log",
    async (name, operation) => {
      const account = await startFull();
      const { app, mode } = account;
      const prepared = await operation.prepare?.(account);
      const params = (of: FullAccount) => ({ ...operation.params?.(of), ...prepared });
      const actor = { accountId: app.accountId(), mode: operation.mode ?? mode };
      const key = operation.mode === undefined ? account.key : app.newKey({ mode: operation.mode });
      const work = () => perform(account, name, { ...operation, params }, key);
      const isRecorded = operation.changes !== null && !UNRECORDED.has(name);
      if (isRecorded) {
        const { value: failed, rows } = await changedWithoutEntry(app.db.sqlite, async () => {
          const response = await work();
          // Of a list that was not accepted.
          await app.service.bulk.jobs.removed();
          return response;
        });
        expect([rows, failed.status]).toEqual([[], 500]);
      }
      const { value: sent, changed } = await changesNothingOfOthers(app.db.sqlite, actor, () =>
        entriesAddedBy(app.db.sqlite, work),
      );
      const { value, entries } = sent;
      expect([value.status < 300, value.text]).toEqual([true, value.text]);
      if (operation.changes !== null) expect(changed).toContain(operation.changes);
      else expect(changed.filter((table) => table !== "api_keys")).toEqual([]);
      const [first = null] = Object.values(operation.params?.(account) ?? {});
      const { subject = first } = operation;
      const action = entries[0]?.action ?? "";
      const entry = { user: `key ${key.id}`, action, accountId: actor.accountId, subject };
      requireEntry({ changed, entries }, isRecorded ? entry : null);
      if (isRecorded) expect(action).toMatch(/^api\.[a-z]+[A-Z]/);
    },
  );
});
