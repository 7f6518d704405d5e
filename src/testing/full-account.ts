import { type KeyMode, newId } from "../foundation/base/secrets.ts";
import type { IssuedKey } from "../accounts/keys.ts";
import { TestApp, type TestAppOptions } from "./app.ts";
import { sampleReportXml } from "./dmarc-reports.ts";

/** The settings with which every operation is possible. */
export const FULL_SETTINGS = {
  REPORT_HOST: "reports.example.net",
  BASE_URL: "http://localhost",
  WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8",
  NOTIFY_SMTP_URL: "smtp://127.0.0.1:1",
  NOTIFY_FROM: "postwarden@postwarden.example",
} as const;

/** On the test list. */
const LISTED_TARGET = "listed.example";
const HOOK = "http://127.0.0.1:1024/hook";

/** Puts a row into a table. */
const insert = (app: TestApp, table: string, row: Readonly<Record<string, string | number | null>>): void => {
  const names = Object.keys(row);
  const statement = `INSERT INTO "${table}" (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
  app.db.sqlite.query(statement).run(...Object.values(row));
};

const addWindow = (app: TestApp, owner: { account_id: string; mode: string }): string => {
  const id = newId();
  const times = { days: "mon,tue", from_minute: 1_320, to_minute: 360, time_zone: "UTC" };
  insert(app, "maintenance_windows", { id, ...owner, ...times, created_at_ms: app.clock.nowMs() });
  return id;
};

const addDelivery = (app: TestApp, owner: { account_id: string; mode: string }, status: string): string => {
  const [id, atMs] = [newId(), app.clock.nowMs()];
  const common = { ...owner, url: HOOK, type: "webhook.test", subject: `job:${id}` };
  insert(app, "outbox", {
    ...owner,
    ...{
      id,
      type: common.type,
      subject: common.subject,
      data: "{}",
      url: HOOK,
      created_at_ms: atMs,
      delivered_at_ms: atMs,
    },
  });
  insert(app, "webhook_deliveries", {
    ...common,
    ...{
      id,
      event_id: id,
      status,
      attempts: 1,
      body: JSON.stringify({ type: common.type, timestamp: "2026-01-01T00:00:00.000Z", data: {} }),
    },
    ...{
      created_at_ms: atMs,
      finished_at_ms: status === "pending" ? null : atMs,
      due_at_ms: status === "pending" ? atMs + 1e6 : null,
    },
  });
  insert(app, "webhook_attempts", {
    ...owner,
    delivery_id: id,
    url: HOOK,
    at_ms: atMs,
    http_status: 500,
    problem: "HTTP 500",
  });
  return id;
};

/** Requests with a key that must succeed. */
const requester =
  (app: TestApp, key: IssuedKey) =>
  async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await app.request(method, path, { key, body, headers });
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${response.text}`);
    return response;
  };

/** An account in which everything exists that an operation of the API or the dashboard changes. Ids by what they are of. */
export const fillAccount = async (app: TestApp, mode: KeyMode = "test") => {
  // Older rows than the account's: what looks up any row finds these.
  app.newKey({ mode, account: "elder", name: "elder" });
  const key = app.newKey({ mode, name: "first" });
  const request = requester(app, key);
  const list = async (name: string) =>
    (
      await request("POST", "/v1/bulk-verifications", {
        name,
        emails: [`${name}@a.example`, `smtp_timeout@${name}.example`],
      })
    ).id;
  const owner = { account_id: app.accountId(), mode };
  const verification = (await app.verify(key, "mailbox_exists@a.example", "", { "idempotency-key": "one" })).id;
  await app.verify(key, "pending@a.example", "?timeout=0");
  const [queuedList, runningList, endedList] = [await list("queued"), await list("running"), await list("ended")];
  app.db.sqlite.run(
    "UPDATE bulk_jobs SET status = 'completed', completed_at_ms = 1, rows_finished = 2, addresses_finished = 2 WHERE id = ?",
    [endedList],
  );
  app.db.sqlite.run(
    `UPDATE bulk_addresses SET sub_status = iif(position = 0, 'mailbox_exists', 'smtp_timeout'), quality_score = 0, confidence = 0, signals = 'uuuuuuuuuu', verified_at_ms = 1
     WHERE job = (SELECT number FROM bulk_jobs WHERE id = ?)`,
    [endedList],
  );
  app.db.sqlite.run(
    "INSERT INTO bulk_counts SELECT number, column2, 1 FROM bulk_jobs, (VALUES ('', 'mailbox_exists'), ('', 'smtp_timeout')) WHERE id = ?",
    [endedList],
  );
  const target = (await request("POST", "/v1/blacklist/targets", { target: LISTED_TARGET, webhook_url: HOOK })).id;
  await request("POST", `/v1/blacklist/targets/${target}/check`);
  const enrolled = await request("POST", "/v1/dmarc/domains", { domain: "example.com" });
  await request("POST", "/v1/dmarc/reporters", { reporter: "accepted-mail.net" });
  const domain = String((enrolled.body.domain as { id?: unknown }).id);
  await request("POST", "/v1/dmarc/reports", sampleReportXml());
  const unread = await request("POST", "/v1/dmarc/reports", sampleReportXml({ domain: "unknown.example" }));
  const [ingestion] = unread.body.ingestions as readonly { readonly id: string }[];
  return {
    ...{ app, key, request, mode, verification, queuedList, runningList, endedList, target, domain },
    ingestion: ingestion?.id ?? "",
    pendingDelivery: addDelivery(app, owner, "pending"),
    failedDelivery: addDelivery(app, owner, "failed"),
    window: addWindow(app, owner),
  };
};

export type FullAccount = Awaited<ReturnType<typeof fillAccount>>;

/** Starts services with a full account each, for the tests of one file: it is filled once, and each begins with a copy of its database. */
export const createFullAccounts = (
  start: (options: TestAppOptions) => TestApp,
  settings: Readonly<Record<string, string>> = FULL_SETTINGS,
): (() => Promise<FullAccount>) => {
  const fill = async () => {
    const app = new TestApp({ settings });
    try {
      return { account: await fillAccount(app), image: app.image() };
    } finally {
      app.close();
    }
  };
  let filled: ReturnType<typeof fill> | null = null;
  return async () => {
    filled ??= fill();
    const { account, image } = await filled;
    const app = start({ settings, image });
    return { ...account, app, request: requester(app, account.key) };
  };
};
