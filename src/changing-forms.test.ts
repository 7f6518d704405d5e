import { describe, expect, test } from "bun:test";
import { createApps } from "./testing/app.ts";
import { type Fields, signIn, type TestPage, type Visitor } from "./testing/dashboard.ts";
import { sampleReportXml } from "./testing/dmarc-reports.ts";
import { type FullAccount, FULL_SETTINGS, fillAccount } from "./testing/full-account.ts";
import { changesNothingOfOthers, type SharedChanges } from "./testing/other-account.ts";

const start = createApps();

const startFull = async () => {
  const app = start({ settings: FULL_SETTINGS });
  const account = await fillAccount(app);
  const visitor = await signIn(app);
  const { id: colleague } = invite(account, "colleague@example.com");
  const [own, other] = app.db.sqlite.query<{ id: string }, []>("SELECT id FROM sessions ORDER BY rowid").all();
  return { ...account, visitor, colleague, session: other?.id ?? own?.id ?? "", keyId: keyIdOf(account) };
};

type FormAccount = Awaited<ReturnType<typeof startFull>>;

interface FormCase {
  /** Parameters of the path by name. */
  readonly params?: (account: FormAccount) => Readonly<Record<string, string>>;
  readonly fields?: Fields;
  /** Sends something else than a form. */
  readonly send?: (account: FormAccount, path: string) => Promise<TestPage>;
  readonly shared?: SharedChanges;
  /** A table that must change: otherwise the form did nothing. Null for one that changes no row. */
  readonly changes: string | null;
}

const invite = (account: FullAccount, email: string): { readonly id: string } => {
  const { users } = account.app.service;
  const invited = users.invite({ accountId: account.app.accountId(), email, role: "member", isOperator: false }, null);
  if (!invited.ok) throw new Error("not invited");
  return invited.value.user;
};

const keyIdOf = ({ app }: FullAccount): string =>
  app.db.sqlite.query<{ id: string }, []>("SELECT id FROM api_keys WHERE name = 'first'").get()?.id ?? "";

const id = (name: keyof FormAccount) => (account: FormAccount) => ({ id: String(account[name]) });
const listing = (account: FormAccount) => ({ id: account.target, listing: "test-list" });
const source = (account: FormAccount) => ({ id: account.domain, key: "own" });

const upload =
  (field: string, content: string) =>
  ({ visitor }: FormAccount, path: string) => {
    const form = new FormData();
    form.append(field, new File([content], "file"));
    return (visitor as Visitor).upload(path, form);
  };

const SETTINGS_OF_DOMAIN = {
  ...{ label: "x", sends_mail: "unset", webhook_url: "", recipients: "", retention_days: "400" },
  ...{ raw_retention_days: "90", digest: "off", new_source_messages: "5", new_source_percent: "0.5" },
  ...{ failure_spike_messages: "20", failure_spike_percent: "15", spoofing_messages: "100" },
};

const BLOCKLISTS: Readonly<Record<string, FormCase>> = {
  "/blocklists/new": { fields: { targets: "1.2.3.4" }, changes: "blocklist_targets" },
  "/blocklists/found": { fields: { found: "1.2.3.4" }, changes: "blocklist_targets" },
  "/blocklists/:id/check": { params: id("target"), changes: "blocklist_checks" },
  "/blocklists/:id/monitoring": { params: id("target"), fields: { is: "no" }, changes: "blocklist_targets" },
  "/blocklists/:id/settings": { params: id("target"), fields: { label: "x" }, changes: "blocklist_targets" },
  "/blocklists/:id/listings/:listing/requested": {
    params: listing,
    fields: { is: "yes" },
    changes: "blocklist_listings",
  },
  "/blocklists/:id/listings/:listing/acknowledged": {
    params: listing,
    fields: { is: "yes" },
    changes: "blocklist_listings",
  },
  "/blocklists/:id/listings/:listing/note": { params: listing, fields: { note: "x" }, changes: "blocklist_listings" },
  "/blocklists/:id/listings/:listing/mute": {
    params: listing,
    fields: { days: "7", reason: "x" },
    changes: "blocklist_mutes",
  },
};

const LISTS: Readonly<Record<string, FormCase>> = {
  "/lists/:id/cancel": { params: id("runningList"), changes: "bulk_jobs" },
  "/lists/:id/retry": { params: id("endedList"), changes: "bulk_jobs" },
  "/lists/:id/delete": { params: id("endedList"), changes: "bulk_jobs" },
  "/verify": { fields: { email: "mailbox_exists@b.example" }, changes: "verifications" },
  "/verify/:id/delete": { params: id("verification"), changes: "verifications" },
};

const DMARC: Readonly<Record<string, FormCase>> = {
  "/dmarc/:id/pause": { params: id("domain"), fields: { monitoring: "off" }, changes: "dmarc_domains" },
  "/dmarc/:id/rules": {
    params: id("domain"),
    fields: { country: "FR", classification: "threat" },
    changes: "dmarc_domains",
  },
  "/dmarc/:id/sources/:key/class": {
    params: source,
    fields: { classification: "threat" },
    changes: "dmarc_source_words",
  },
  "/dmarc/:id/classify": {
    params: id("domain"),
    fields: { keys: "own", classification: "threat" },
    changes: "dmarc_source_words",
  },
  "/dmarc/:id/alerts/rules": {
    params: id("domain"),
    fields: { rule: "new_subdomain", turn: "off" },
    changes: "dmarc_domains",
  },
  "/dmarc/:id/settings": { params: id("domain"), fields: SETTINGS_OF_DOMAIN, changes: "dmarc_domains" },
  "/dmarc/:id/delete": { params: id("domain"), changes: "dmarc_domains" },
  "/dmarc/new": { fields: { domains: "shop.example" }, changes: "dmarc_domains" },
  "/dmarc/intake": { send: upload("file", sampleReportXml({ reportId: "2" })), changes: "dmarc_reports" },
  "/dmarc/intake/retry": { changes: "dmarc_ingestions" },
  "/dmarc/intake/:ingestion/retry": { params: ({ ingestion }) => ({ ingestion }), changes: "dmarc_ingestions" },
  "/dmarc/:id/record/check": { params: id("domain"), changes: "dmarc_domains" },
};

const ACCOUNT: Readonly<Record<string, FormCase>> = {
  "/settings/keys": { fields: { name: "x", mode: "test", scopes: "bulk:read", expires: "" }, changes: "api_keys" },
  "/settings/keys/:id/rotate": { params: id("keyId"), fields: { grace: "3600000" }, changes: "key_secrets" },
  "/settings/keys/:id/revoke": { params: id("keyId"), fields: { sure: "on" }, changes: "api_keys" },
  "/settings/account": { fields: { name: "renamed" }, changes: "accounts" },
  "/settings/suppressions": {
    fields: { entries: "x@b.example", note: "" },
    shared: { suppressions: 1, audit_log: 1 },
    changes: null,
  },
  "/settings/suppressions/remove": {
    fields: { entry: "kept1@b.example" },
    shared: { suppressions: 1, audit_log: 1 },
    changes: null,
  },
  "/settings/users": { fields: { email: "new@example.com", role: "member" }, changes: "users" },
  "/settings/users/:id/role": { params: id("colleague"), fields: { role: "owner" }, changes: "users" },
  "/settings/users/:id/reset": { params: id("colleague"), changes: "setup_links" },
  "/settings/users/:id/remove": { params: id("colleague"), changes: "users" },
  "/settings/profile/time-zone": { fields: { time_zone: "Europe/Berlin" }, changes: "users" },
  "/sign-out": { changes: "sessions" },
  "/sign-out/everywhere": { changes: "sessions" },
  "/welcome/keys": { fields: { mode: "test" }, changes: "api_keys" },
  "/webhooks/deliveries/:id/redeliver": { params: id("failedDelivery"), changes: "webhook_deliveries" },
  "/webhooks/deliveries/:id/cancel": { params: id("pendingDelivery"), changes: "webhook_deliveries" },
  "/webhooks/default": { fields: { webhook_url: "https://hooks.example/" }, changes: "account_notifications" },
  "/webhooks/secret/rotate": { changes: "webhook_secrets" },
};

const FORMS: Readonly<Record<string, FormCase>> = { ...BLOCKLISTS, ...LISTS, ...DMARC, ...ACCOUNT };

/** Forms that are not sent here, and why. */
const NOT_HERE: Readonly<Record<string, string>> = {
  "/theme": "changes a cookie",
  "/sign-in": "its tests stand beside it, with the password that it needs",
  "/sign-in/code": "the same",
  "/setup/:token": "the same",
  "/settings/profile/password": "the same",
  "/settings/profile/codes/enrol": "the same",
  "/settings/profile/codes/cancel": "the same",
  "/settings/profile/codes/confirm": "the same",
  "/settings/profile/codes": "the same",
  "/settings/profile/sessions/:id/end": "the same",
  "/blocklists/bulk": "the use cases of the single forms",
  "/blocklists/discover": "looks up, and changes nothing",
  "/blocklists/:id/unmute": "the use case of the settings",
  "/blocklists/lists/:list/test": "queries a list, and changes nothing",
  "/lists/upload": "changes a file; the next step has the row",
  "/lists/new": "the use case of POST /v1/bulk-verifications",
  "/lists/new/discard": "changes a file",
  "/dmarc/:id/alerts/:alert/acknowledge": "needs an alert; its test stands beside it",
  "/dmarc/:id/rules/remove": "the use case of /dmarc/:id/rules",
  "/dmarc/:id/health/run": "begins a run; its test stands beside it",
  "/webhooks/test": "the use case of POST /v1/webhooks/test",
  "/webhooks/secret/show": "changes nothing",
  "/settings/notifications": "mail is for live keys; the use case of PATCH /v1/notifications",
  "/settings/notifications/mail": "the same",
  "/settings/sender": "checks the machine",
  "/settings/service/backup": "writes a file",
  "/notifications/off/:token": "the token is that of one row; its test stands beside it",
  "/notifications/on/:token": "the same",
  "/welcome/check": "checks the machine",
};

const perform = (account: FormAccount, path: string, { params, fields, send }: FormCase): Promise<TestPage> => {
  const values = params?.(account) ?? {};
  const target = `/test${path.replaceAll(/:(\w+)/g, (_, of: string) => encodeURIComponent(values[of] ?? ""))}`;
  return send === undefined ? account.visitor.post(target, fields) : send(account, target);
};

describe("forms of the dashboard", () => {
  test("are all here, or have a reason why not", async () => {
    const { app } = await startFull();
    const { routes } = await app.service.applicationOf("/");
    const posted = routes
      .filter(({ method, path }) => method === "POST" && !path.startsWith("/test"))
      .map(({ path }) => path);
    expect([...Object.keys(FORMS), ...Object.keys(NOT_HERE)].toSorted()).toEqual(posted.toSorted());
  });

  test.each(Object.entries(FORMS))("%s changes no row of another account or of the other mode", async (path, form) => {
    const account = await startFull();
    const { app } = account;
    for (const n of [1, 2, 3])
      app.db.sqlite.run("INSERT INTO suppressions VALUES (?, NULL, 1)", [`kept${n}@b.example`]);
    const actor = { accountId: app.accountId(), mode: "test" } as const;
    const work = () => perform(account, path, form);
    const { value, changed } = await changesNothingOfOthers(app.db.sqlite, actor, work, form.shared);
    expect([value.status < 400, value.text]).toEqual([true, value.text]);
    if (form.changes !== null) expect(changed).toContain(form.changes);
  });
});
