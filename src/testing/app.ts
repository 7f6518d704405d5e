import { afterEach } from "bun:test";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { IssuedKey, NewKey } from "../accounts/keys.ts";
import { createLog } from "../base/log.ts";
import { newId } from "../base/secrets.ts";
import type { PlanName } from "../billing/plans.ts";
import { composeService, type Service } from "../compose.ts";
import { readConfig } from "../config.ts";
import { type Db, openDb } from "../db/open.ts";
import type { Connector } from "../net/connector.ts";
import { createDirectConnector } from "../net/connector.ts";
import { err } from "../base/errors.ts";
import { createTestClock, type TestClock } from "./clock.ts";
import { createZoneResolver, type Zone, type ZoneResolver } from "./dns-zone.ts";
import type { SmtpStub } from "./smtp-stub.ts";

/** What may differ from a service that knows no domain and reaches no host. */
export interface TestAppOptions {
  readonly zone?: Zone;
  /** Mail hosts listen where this stub does; without one, no connection succeeds. */
  readonly stub?: SmtpStub;
  /** In place of both of the above ways out. */
  readonly connector?: Connector;
  /** Settings without their prefix. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A file, to open the same database again; default: one in memory. */
  readonly path?: string;
}

export interface TestRequest {
  readonly key?: IssuedKey | string;
  /** Text, bytes and streams are sent as they are, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer that has been read to its end. `body` is the JSON, or `{}` where there is none. */
export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The `id` of the body; throws when there is none. */
  readonly id: string;
}

export interface TestKey extends Partial<Omit<NewKey, "account">> {
  readonly account?: string;
}

/** The real service over `app.handle`, with a clock that stands still, one kind of chance, and a literal DNS zone. */
export interface TestApp {
  readonly service: Service;
  readonly db: Db;
  readonly clock: TestClock;
  readonly resolver: ZoneResolver;
  /** Every line that was logged. */
  readonly logged: readonly string[];
  request(method: string, target: string, request?: TestRequest): Promise<TestResponse>;
  /** `POST /v1/email-verifications` for one address; `query` such as `?timeout=1`. */
  verify(key: IssuedKey, email: string, query?: string, headers?: Record<string, string>): Promise<TestResponse>;
  /** A new key, of a test mode unless told; its account is made where it does not exist (plan Scale, 100 credits). */
  newKey(key?: TestKey): IssuedKey;
  newAccount(name: string, plan: PlanName): string;
  /** Id of the account of this name. */
  accountId(name?: string): string;
  credits(name?: string): { readonly available: number; readonly held: number };
  /** Spends credits until so many are left. */
  leaveCredits(left: number, name?: string): void;
  /** How many rows the verifications of all keys have. */
  countVerifications(): number;
  advance(ms: number): Promise<void>;
  close(): void;
}

/** A platform in which every check of `…@example.com` goes on for ever: its mail host neither takes nor refuses. */
export const ENDLESS: TestAppOptions = {
  zone: { "example.com": { MX: [[10, "mx.example.com"]] }, "mx.example.com": { A: ["8.8.8.8"] } },
  connector: () => Promise.withResolvers<never>().promise,
};

const MAIN_ACCOUNT = "main";
/** Where uploads lie for a moment; the databases of tests stand elsewhere. */
const DATA_DIR = join(tmpdir(), `postwarden-app-${process.pid}`);

const unreachable: Connector = async () => err("refused_or_unreachable");

const configOf = (settings: Readonly<Record<string, string>>) => {
  const given = Object.entries({ DNSBL_SIGNAL: "off", ...settings }).map(([name, value]) => [
    `POSTWARDEN_${name}`,
    value,
  ]);
  const config = readConfig(Object.fromEntries(given));
  if (!config.ok) throw new Error(config.error.join("\n"));
  return config.value;
};

const openOrThrow = (path: string): Db => {
  const opened = openDb(path);
  if (!opened.ok) throw new Error(opened.error.kind);
  return opened.value;
};

const isRaw = (body: unknown): body is string | Uint8Array<ArrayBuffer> | ReadableStream =>
  typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;

const requestOf = (method: string, target: string, { key, body, headers = {} }: TestRequest): Request => {
  const authorization = key === undefined ? {} : { authorization: `Bearer ${typeof key === "string" ? key : key.key}` };
  return new Request(`http://localhost${target}`, {
    method,
    headers: { ...authorization, ...headers },
    ...(body === undefined ? {} : { body: isRaw(body) ? body : JSON.stringify(body) }),
  });
};

const readAnswer = async (response: Response): Promise<TestResponse> => {
  const text = await response.text();
  const body: Record<string, unknown> = text === "" ? {} : JSON.parse(text);
  return {
    status: response.status,
    headers: response.headers,
    text,
    body,
    get id() {
      if (typeof body.id !== "string") throw new Error(`no id in ${text}`);
      return body.id;
    },
  };
};

/** Starts services for the tests of one file, and closes them after each test. */
export const createApps = (): ((options?: TestAppOptions) => TestApp) => {
  const apps: TestApp[] = [];
  afterEach(() => {
    for (const app of apps.splice(0)) app.close();
    rmSync(DATA_DIR, { recursive: true, force: true });
  });
  return (options) => {
    const app = createTestApp(options);
    apps.push(app);
    return app;
  };
};

const createTestApp = (options: TestAppOptions = {}): TestApp => {
  const clock = createTestClock();
  const db = openOrThrow(options.path ?? ":memory:");
  const logged: string[] = [];
  const resolver = createZoneResolver(options.zone ?? {});
  const overStub = options.stub && createDirectConnector({ clock, mayConnect: () => true });
  const service = composeService({
    config: configOf({
      DATA_DIR,
      HELO_NAME: "probe.example",
      // Blocklists are asked at their own pace, which the clock that stands still would hold up.
      DNSBL_SIGNAL: "off",
      ...(options.stub ? { SMTP_PORT: String(options.stub.port), PROBE_ALLOW_NETWORKS: "127.0.0.0/8" } : {}),
      ...options.settings,
    }),
    db,
    log: createLog("warn", clock, (line) => logged.push(line)),
    platform: {
      clock,
      random: { integer: () => 0 },
      resolver,
      connector: options.connector ?? overStub ?? unreachable,
    },
    baseUrl: "http://localhost",
  });
  const { accounts, keys, store, ledger } = service;

  const accountId = (name = MAIN_ACCOUNT): string => {
    const account = store.findAccountByName(name);
    if (account === undefined) throw new Error(`no account ${name}`);
    return account.id;
  };
  const newAccount = (name: string, plan: PlanName): string => {
    const created = accounts.create(name, plan);
    if (!created.ok) throw new Error(created.error);
    return created.value.id;
  };
  const request = async (method: string, target: string, given: TestRequest = {}): Promise<TestResponse> =>
    readAnswer(await service.app.handle(requestOf(method, target, given)));

  return {
    service,
    db,
    clock,
    resolver,
    logged,
    request,
    verify: (key, email, query = "", headers = {}) =>
      request("POST", `/v1/email-verifications${query}`, { key, body: { email }, headers }),
    newKey({ account = MAIN_ACCOUNT, mode = "test", ...rest } = {}) {
      if (store.findAccountByName(account) === undefined) newAccount(account, "scale");
      const issued = keys.create({ account, mode, ...rest });
      if (!issued.ok) throw new Error(issued.error);
      return issued.value;
    },
    newAccount,
    accountId,
    credits: (name) => ledger.balance(accountId(name)),
    leaveCredits(left, name) {
      const id = accountId(name);
      db.transact((tx) => {
        while (ledger.balance(id).available > left) {
          const move = { accountId: id, reference: newId(), atMs: clock.nowMs() };
          if (!ledger.hold(tx, move).ok) throw new Error("a credit that is there cannot be held");
          ledger.settle(tx, move);
        }
      });
    },
    countVerifications() {
      const row = db.sqlite.query<{ count: number }, []>("SELECT count(*) AS count FROM verifications").get();
      return row?.count ?? 0;
    },
    advance: (ms) => clock.advance(ms),
    close: () => db.close(),
  };
};
