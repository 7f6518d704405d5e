import { describe, expect, test } from "bun:test";
import { Secret, TOTP } from "otpauth";
import { ROLES } from "../dashboard/roles.ts";
import { createApps } from "../testing/app.ts";
import { changedWithoutEntry, entriesAddedBy, requireEntry } from "../testing/audit-entries.ts";
import { Browser } from "../testing/dashboard-browser.ts";
import { type Fields, signIn, type TestPage, type Visitor } from "../testing/dashboard.ts";
import { sampleReportXml } from "../testing/dmarc-reports.ts";
import { createFullAccounts, type FullAccount, FULL_SETTINGS } from "../testing/full-account.ts";
import { changesNothingOfOthers, type SharedChanges } from "../testing/other-account.ts";

const startAccount = createFullAccounts(createApps(), { ...FULL_SETTINGS, BACKUP_DIR: "/tmp" });

interface Session {
  readonly id: string;
  readonly user: string;
}

const startFull = async () => {
  const account = await startAccount();
  const { app } = account;
  const visitor = await signIn(app);
  const { id: colleague } = invite(account, "colleague@example.com");
  const own = app.db.sqlite.query<Session, []>("SELECT id, user_id AS user FROM sessions").get() ?? {
    id: "",
    user: "",
  };
  const client = { address: "192.0.2.9", userAgent: "other" };
  app.db.transact((tx) => app.service.accounts.sessions.open(tx, own.user, client));
  const others = app.db.sqlite.query<Session, [string]>("SELECT id, user_id AS user FROM sessions WHERE id <> ?");
  const { id: formKeyId } = app.newKey({ forms: { origins: ["https://shop.example"] } });
  const ids = { formKeyId, ownSession: own.id, session: others.get(own.id)?.id ?? "", keyId: keyIdOf(account) };
  return { ...account, visitor, colleague, user: own.user, ...ids };
};

type FormAccount = Awaited<ReturnType<typeof startFull>>;

interface FormCase {
  /** Parameters of the path by name. */
  readonly params?: (account: FormAccount) => Readonly<Record<string, string>>;
  readonly fields?: Fields;
  /** Sends something else than a form. */
  readonly send?: (account: FormAccount, path: string, fields: Fields) => Promise<TestPage>;
  readonly shared?: SharedChanges;
  /** A table that must change: otherwise the form did nothing. Null for one that changes no row. */
  readonly changes: string | null;
  /** Where the action in the audit log is not that of the roles table. Null: there is no entry. */
  readonly action?: string | null;
  /** Of the entry. Default: the user who is signed in. */
  readonly by?: (account: FormAccount) => string;
  /** Of the entry. Default: the first parameter of the path. */
  readonly subject?: ((account: FormAccount) => string) | null;
  /** What has to happen before it can be sent again. */
  readonly again?: (account: FormAccount) => Promise<unknown>;
  /** What has to exist before: further parameters and fields. */
  readonly prepare?: (account: FormAccount) => Promise<{ readonly values?: Values; readonly fields?: Fields }>;
}

type Values = Readonly<Record<string, string>>;

const PASSWORD = "four plain words here";

/** Gives the user a password without ending its session. */
const withPassword = async ({ app, user }: FormAccount) => {
  const accountId = app.newAccount("of the password", "scale");
  const email = "password@example.com";
  const created = await app.service.accounts.users.create(
    { accountId, email, role: "member", isOperator: false, password: PASSWORD },
    null,
  );
  if (!created.ok) throw new Error(created.error.message);
  app.db.sqlite.run("UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE email = ?) WHERE id = ?", [
    email,
    user,
  ]);
  return { fields: { present: PASSWORD } };
};

/** Begins the set-up of codes, and returns the first one. */
const withEnrolment = async (account: FormAccount) => {
  const { fields } = await withPassword(account);
  const secret = account.app.service.accounts.profiles.enrol(account.user)?.secret ?? "";
  const timestamp = account.app.clock.nowMs();
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp });
  return { fields: { ...fields, code }, secret };
};

const withCodes = async (account: FormAccount) => {
  const { fields, secret } = await withEnrolment(account);
  const own = { userId: account.user, sessionId: account.ownSession };
  const confirmed = await account.app.service.accounts.profiles.confirmCodes(own, {
    present: PASSWORD,
    code: fields.code,
  });
  if (!confirmed.ok) throw new Error(confirmed.error.message);
  await account.app.advance(30_000);
  return { fields, secret };
};

/** Enters the password of a user with codes, and returns the next code. */
const withChallenge = async (account: FormAccount) => {
  const { secret } = await withCodes(account);
  const browser = new Browser(account.app);
  await browser.get("/sign-in");
  const { html } = await browser.post("/sign-in", { email: "main@example.com", password: PASSWORD, next: "" });
  const challenge = /name="challenge" value="(\w+)"/.exec(html)?.[1] ?? "";
  const timestamp = account.app.clock.nowMs();
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp });
  return { fields: { challenge, code, next: "" } };
};

/** A link by which a user who was invited sets a password. */
const withInvitation = async (account: FormAccount) => ({
  values: { token: invite(account, "invited@example.com").token },
});

/** The link in a mail to a recipient; `isOn`: whether the mail is sent. */
const withMailLink =
  (isOn: boolean) =>
  async ({ app }: FormAccount) => {
    const topic = { accountId: app.accountId(), recipient: "ops@example.com", kind: "dmarc_alerts" } as const;
    return { values: { token: (await app.service.notifications.outbound.subscriptions.set(topic, isOn)).token } };
  };

const withDraft = async ({ visitor }: FormAccount) => {
  const sent = await visitor.upload("/test/lists/upload", fileForm("file", "email\nmailbox_exists@b.example\n"));
  return { fields: { draft: sent.location?.split("draft=")[1] ?? "", header: "auto" } };
};

const withMute = async ({ visitor, target }: FormAccount) => {
  await visitor.post(`/test/blocklists/${target}/listings/test-list/mute`, { days: "7", reason: "x" });
  return {};
};

const fileForm = (field: string, content: string): FormData => {
  const form = new FormData();
  form.append(field, new File([content], "file"));
  return form;
};

const withAlert = async ({ app, visitor, domain }: FormAccount) => {
  await visitor.post(`/test/dmarc/${domain}/record/check`);
  const alert = app.db.sqlite.query<{ id: string }, []>("SELECT id FROM dmarc_alerts LIMIT 1").get()?.id ?? "";
  return { values: { alert } };
};

/** Sends a form as a visitor who is not signed in, with the token of its own page or of that at `from`. */
const asVisitor =
  (from?: string) =>
  async ({ app }: FormAccount, path: string, fields: Fields): Promise<TestPage> => {
    const browser = new Browser(app);
    const own = path.replace(/^\/test/, "");
    await browser.get(from ?? own);
    return browser.post(own, fields);
  };

const invite = (account: FullAccount, email: string): { readonly id: string; readonly token: string } => {
  const { users } = account.app.service.accounts;
  const invited = users.invite({ accountId: account.app.accountId(), email, role: "member", isOperator: false }, null);
  if (!invited.ok) throw new Error("not invited");
  return { id: invited.value.user.id, token: invited.value.token };
};

const keyIdOf = ({ app }: FullAccount): string =>
  app.db.sqlite.query<{ id: string }, []>("SELECT id FROM api_keys WHERE name = 'first'").get()?.id ?? "";

const id = (name: keyof FormAccount) => (account: FormAccount) => ({ id: String(account[name]) });
/** The row that the form has added. */
const newest =
  (table: "users" | "api_keys") =>
  ({ app }: FormAccount): string =>
    app.db.sqlite.query<{ id: string }, []>(`SELECT id FROM ${table} ORDER BY rowid DESC LIMIT 1`).get()?.id ?? "";
/** The user of `withInvitation`. */
const invited = ({ app }: FormAccount): string =>
  app.service.accounts.users.findByEmail("invited@example.com")?.id ?? "";
const userIn = ({ user }: FormAccount): string => user;
const listing = (account: FormAccount) => ({ id: account.target, listing: "test-list" });
const source = (account: FormAccount) => ({ id: account.domain, key: "own" });

const upload =
  (field: string, content: string) =>
  ({ visitor }: FormAccount, path: string) =>
    (visitor as Visitor).upload(path, fileForm(field, content));

const SETTINGS_OF_DOMAIN = {
  ...{ label: "x", sends_mail: "unset", webhook_url: "", recipients: "", retention_days: "400" },
  ...{ raw_retention_days: "90", digest: "off", new_source_messages: "5", new_source_percent: "0.5" },
  ...{ failure_spike_messages: "20", failure_spike_percent: "15", spoofing_messages: "100" },
  ...{ volume_spike_messages: "500", volume_spike_factor: "5", volume_spike_addresses: "20" },
};

const BLOCKLISTS: Readonly<Record<string, FormCase>> = {
  "/blocklists/new": { fields: { targets: "1.2.3.4" }, changes: "blocklist_targets" },
  "/blocklists/found": { fields: { found: "1.2.3.4" }, changes: "blocklist_targets" },
  "/blocklists/:id/check": { params: id("target"), changes: "blocklist_checks" },
  "/blocklists/bulk": {
    prepare: async ({ target }) => ({ fields: { ids: target, act: "pause", back: "" } }),
    ...{ changes: "blocklist_targets", action: "targets.pause" },
  },
  "/blocklists/discover": { fields: { domain: "example.com" }, changes: null },
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
  "/blocklists/:id/unmute": {
    ...{ params: id("target"), prepare: withMute, fields: { muted: "test-list" } },
    changes: "blocklist_mutes",
  },
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
  "/lists/new": { prepare: withDraft, changes: "bulk_jobs" },
  "/lists/upload": { send: upload("file", "email\nmailbox_exists@b.example\n"), changes: null },
  "/lists/new/discard": { prepare: withDraft, changes: null },
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
  "/dmarc/reporters/:reporter/accept": {
    params: () => ({ reporter: "partner-mail.net" }),
    changes: "dmarc_accepted_reporters",
  },
  "/dmarc/reporters/:reporter/withdraw": {
    params: () => ({ reporter: "accepted-mail.net" }),
    changes: "dmarc_accepted_reporters",
  },
  "/dmarc/:id/sources/:key/class": {
    params: source,
    fields: { classification: "threat" },
    changes: "dmarc_source_words",
  },
  "/dmarc/:id/mta-sts": {
    params: id("domain"),
    fields: { mode: "testing" },
    prepare: async ({ domain, visitor }) => {
      await visitor.post(`/test/dmarc/${domain}/record/check`);
      return {};
    },
    changes: "dmarc_mta_sts",
  },
  "/dmarc/tags/:tag": {
    params: () => ({ tag: "client-a" }),
    fields: { digest: "weekly", recipients: "it@client-a.example" },
    prepare: async ({ request, domain }) => {
      await request("PATCH", `/v1/dmarc/domains/${domain}`, { tags: ["client-a"] });
      return {};
    },
    changes: "dmarc_tag_digests",
  },
  "/dmarc/:id/shares": { params: id("domain"), fields: { days: "7", note: "x" }, changes: "dmarc_shares" },
  "/dmarc/:id/shares/:share/revoke": {
    prepare: async ({ app, visitor, domain }) => {
      await visitor.post(`/test/dmarc/${domain}/shares`, { days: "7", note: "" });
      const share = app.db.sqlite.query<{ id: string }, []>("SELECT id FROM dmarc_shares").get()?.id ?? "";
      return { values: { share } };
    },
    params: id("domain"),
    changes: "dmarc_shares",
  },
  "/dmarc/:id/sources/:key/bulk": { params: source, fields: { is: "yes" }, changes: "dmarc_domains" },
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
  "/dmarc/:id/alerts/:alert/acknowledge": { params: id("domain"), prepare: withAlert, changes: "dmarc_alerts" },
  "/dmarc/:id/health/run": { params: id("domain"), changes: null },
  "/dmarc/:id/rules/remove": {
    params: id("domain"),
    prepare: async ({ domain, visitor }) => {
      const rule = { country: "FR", classification: "threat" };
      const { status } = await visitor.post(`/test/dmarc/${domain}/rules`, rule);
      return { fields: status < 400 ? { rule: JSON.stringify(rule) } : {} };
    },
    changes: "dmarc_domains",
  },
  "/dmarc/:id/record/check": { params: id("domain"), changes: "dmarc_domains" },
};

/** What a recipient does by the link in a mail, who is no user. Mail is sent in live mode. */
const BY_LINK = {
  changes: null,
  shared: { mail_subscriptions: 1 },
  subject: null,
  by: () => "link in a mail",
} as const;

const FORM_KEY_FIELDS = { visitor_per_hour: "20", per_day: "500", check: "domain" };

const ACCOUNT: Readonly<Record<string, FormCase>> = {
  "/settings/keys": {
    fields: { name: "x", mode: "test", scopes: "bulk:read", expires: "" },
    ...{ changes: "api_keys", subject: newest("api_keys") },
  },
  "/settings/keys/publishable": {
    fields: { name: "x", mode: "test", origins: "https://shop.example", ...FORM_KEY_FIELDS },
    ...{ changes: "api_keys", subject: newest("api_keys") },
  },
  "/settings/keys/:id/publishable": {
    params: id("formKeyId"),
    fields: { origins: "https://shop.example https://www.example.com", ...FORM_KEY_FIELDS },
    changes: "api_keys",
  },
  "/settings/keys/:id/rotate": { params: id("keyId"), fields: { grace: "3600000" }, changes: "key_secrets" },
  "/settings/keys/:id/revoke": { params: id("keyId"), fields: { sure: "on" }, changes: "api_keys" },
  "/settings/account": { fields: { name: "renamed" }, changes: "accounts", subject: () => "main" },
  "/settings/account/credits": { fields: { credits: "5" }, changes: "ledger", subject: () => "main" },
  "/settings/account/plan": {
    fields: { plan: "growth", rate: "", burst: "" },
    ...{ changes: "accounts", subject: () => "main" },
  },
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
  "/settings/users": {
    fields: { email: "new@example.com", role: "member" },
    changes: "users",
    subject: newest("users"),
  },
  "/settings/users/:id/role": { params: id("colleague"), fields: { role: "owner" }, changes: "users" },
  "/settings/users/:id/reset": { params: id("colleague"), changes: "setup_links" },
  "/settings/users/:id/remove": { params: id("colleague"), changes: "users" },
  "/settings/profile/time-zone": { fields: { time_zone: "Europe/Berlin" }, changes: "users" },
  "/sign-in": {
    prepare: withPassword,
    fields: { email: "main@example.com", password: PASSWORD, next: "" },
    send: asVisitor(),
    ...{ changes: "sessions", action: "users.sign-in", subject: userIn },
  },
  "/sign-in/code": {
    prepare: withChallenge,
    send: asVisitor("/sign-in"),
    ...{ changes: "sessions", action: "users.sign-in", subject: userIn },
  },
  "/setup/:token": {
    prepare: withInvitation,
    fields: { password: PASSWORD, repeat: PASSWORD },
    send: asVisitor(),
    ...{ changes: "users", action: "users.set-up", subject: invited, by: invited },
  },
  "/notifications/off/:token": {
    prepare: withMailLink(true),
    send: asVisitor(),
    ...BY_LINK,
    action: "notifications.stop",
  },
  "/notifications/on/:token": {
    prepare: withMailLink(false),
    send: async (account, path, fields) =>
      asVisitor(path.replace(/^\/test(.*)\/on\//, "$1/off/"))(account, path, fields),
    ...{ ...BY_LINK, action: "notifications.resume" },
  },
  "/theme": { fields: { theme: "dark", back: "/" }, send: asVisitor("/sign-in"), changes: null },
  "/settings/profile/password": {
    prepare: withPassword,
    fields: { password: "five other plain words", repeat: "five other plain words" },
    ...{ changes: "users", subject: userIn },
  },
  "/settings/profile/codes/enrol": { changes: "users" },
  "/settings/profile/codes/cancel": { prepare: withEnrolment, changes: "users" },
  "/settings/profile/codes/confirm": { prepare: withEnrolment, changes: "users", subject: userIn },
  "/settings/profile/codes": {
    prepare: withCodes,
    fields: { change: "off" },
    ...{ changes: "users", action: "users.second-factor.off", subject: userIn },
  },
  "/settings/profile/sessions/:id/end": { params: id("session"), changes: "sessions" },
  "/settings/notifications": {
    fields: { webhook_url: "https://hooks.example/", recipients: "", severity: "", digest: "off" },
    ...{ changes: "account_notifications", subject: null },
  },
  "/settings/notifications/mail": {
    fields: { recipient: "anna@example.com", kind: "dmarc_digest", enabled: "false" },
    send: ({ visitor }, _path, fields) => visitor.post("/settings/notifications/mail", fields),
    shared: { mail_subscriptions: 1 },
    ...{ changes: null, action: "notifications.stop", subject: null },
  },
  "/settings/notifications/windows": {
    prepare: async ({ app }) => {
      const tomorrow = new Date(app.clock.nowMs() + 86_400_000).toISOString();
      return { fields: { day: tomorrow.slice(0, 10), until: "06:00" } };
    },
    ...{ changes: "maintenance_windows", action: "notifications.windows.add", subject: null },
  },
  "/settings/notifications/windows/weekly": {
    fields: { days: "mon", from: "22:00", to: "06:00", time_zone: "UTC" },
    ...{ changes: "maintenance_windows", action: "notifications.windows.add", subject: null },
  },
  "/settings/notifications/windows/remove": {
    prepare: async ({ window }) => ({ fields: { id: window } }),
    ...{ changes: "maintenance_windows", action: "notifications.windows.remove", subject: null },
  },
  "/settings/notifications/test-mail": { changes: null },
  "/settings/personal-data/find": { fields: { address: "nobody@nowhere.example" }, changes: null },
  "/settings/personal-data/export": { changes: null },
  "/settings/personal-data/erase": {
    fields: { address: "nobody@nowhere.example", again: "nobody@nowhere.example" },
    ...{ changes: null, shared: { audit_log: 1 } },
  },
  "/webhooks/test": { fields: { url: "http://127.0.0.1:1024/", type: "webhook.test" }, changes: "webhook_secrets" },
  "/webhooks/secret/show": { changes: null },
  "/settings/service/backup": { changes: null },
  "/settings/sender": { changes: null, again: ({ app }) => app.advance(30_000) },
  "/welcome/check": { changes: null, again: ({ app }) => app.advance(30_000) },
  "/welcome/report-mail": { fields: { host: "reports.example.com", act: "check" }, changes: null },
  "/welcome/hide": { fields: { steps: ["key", "list"] }, changes: "users" },
  "/welcome/show": {
    changes: "users",
    prepare: async ({ app }) => {
      app.db.sqlite.run("UPDATE users SET hidden_steps = '[\"key\"]'");
      return {};
    },
  },
  "/machine/:warning/acknowledge": {
    fields: { reason: "Copied by the provider.", days: "30" },
    changes: null,
    shared: { machine_acknowledgements: 1 },
    prepare: async ({ app }) => ({ values: { warning: await warningOf(app) } }),
  },
  "/machine/:warning/withdraw": {
    changes: null,
    shared: { machine_acknowledgements: 1 },
    prepare: async ({ app }) => {
      const warning = await warningOf(app);
      await app.service.machine.acknowledge({ warning, reason: "Copied.", days: 7, by: "user:u" });
      return { values: { warning } };
    },
  },
  "/sign-out": { changes: "sessions" },
  "/sign-out/everywhere": { changes: "sessions" },
  "/webhooks/deliveries/:id/redeliver": { params: id("failedDelivery"), changes: "webhook_deliveries" },
  "/webhooks/deliveries/:id/cancel": { params: id("pendingDelivery"), changes: "webhook_deliveries" },
  "/webhooks/default": { fields: { webhook_url: "https://hooks.example/" }, changes: "account_notifications" },
  "/webhooks/secret/rotate": { changes: "webhook_secrets", subject: () => "test" },
};

/** The key of the first warning that the doctor finds. */
const warningOf = async ({ service }: FormAccount["app"]): Promise<string> => {
  await service.doctor.run();
  return service.machine.state().warnings[0]?.key ?? "";
};

const FORMS: Readonly<Record<string, FormCase>> = { ...BLOCKLISTS, ...LISTS, ...DMARC, ...ACCOUNT };

/** Changes nothing: one query of a list, for which the clock must advance. dashboard/blocklists/pages.test.ts sends it. */
const NOT_HERE = "/blocklists/lists/:list/test";

const RECORDED = new Map(ROLES.flatMap(({ forms }) => Object.entries(forms)));

/** What the audit log calls a form, by the table of the roles. */
const actionOf = (path: string, { action }: FormCase): string | null => {
  const rule = RECORDED.get(path);
  if (action !== undefined || rule === undefined) return action ?? null;
  if ("action" in rule) return rule.action;
  return "useCase" in rule ? rule.useCase : null;
};

const perform = (account: FormAccount, path: string, { params, fields, send }: FormCase): Promise<TestPage> => {
  const values = params?.(account) ?? {};
  const target = `/test${path.replaceAll(/:(\w+)/g, (_, of: string) => encodeURIComponent(values[of] ?? ""))}`;
  return send === undefined ? account.visitor.post(target, fields) : send(account, target, fields ?? {});
};

describe("forms of the dashboard", () => {
  test("are all here but one", async () => {
    const { app } = await startFull();
    const { routes } = await app.applicationOf("/");
    const posted = routes
      .filter(({ method, path }) => method === "POST" && !path.startsWith("/test"))
      .map(({ path }) => path);
    expect([...Object.keys(FORMS), NOT_HERE].toSorted()).toEqual(posted.toSorted());
  });

  test.each(Object.entries(FORMS))(
    "%s changes no row of another account or of the other mode, and is in the audit log",
    async (path, form) => {
      const account = await startFull();
      const { app } = account;
      for (const n of [1, 2, 3])
        app.db.sqlite.run("INSERT INTO suppressions VALUES (?, NULL, 1)", [`kept${n}@b.example`]);
      const prepared = await form.prepare?.(account);
      const values = { ...form.params?.(account), ...prepared?.values };
      const filled = { ...form, fields: { ...form.fields, ...prepared?.fields }, params: () => values };
      const actor = { accountId: app.accountId(), mode: "test" } as const;
      const of = actionOf(path, form);
      if (of !== null) {
        const { value: failed, rows } = await changedWithoutEntry(app.db.sqlite, async () => {
          const response = await perform(account, path, filled);
          // Of a list that was not accepted.
          await app.service.bulk.jobs.removed();
          return response;
        });
        expect([rows, failed.status]).toEqual([[], 500]);
        await form.again?.(account);
      }
      const work = () => entriesAddedBy(app.db.sqlite, () => perform(account, path, filled));
      const { value: sent, changed } = await changesNothingOfOthers(app.db.sqlite, actor, work, form.shared);
      const { value, entries } = sent;
      expect([value.status < 400, value.text]).toEqual([true, value.text]);
      if (form.changes !== null) expect(changed).toContain(form.changes);
      else if (of === null) expect(changed).toEqual([]);
      const [first = null] = Object.values(values);
      const subject = form.subject === undefined ? first : (form.subject?.(account) ?? null);
      const by = form.by?.(account) ?? account.user;
      const user = form.by === BY_LINK.by ? by : `user ${by}`;
      const entry = { user, action: of ?? "", accountId: actor.accountId, subject };
      requireEntry({ changed, entries }, of === null ? null : entry);
    },
  );
});
