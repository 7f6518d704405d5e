// Loaded before the first test: a test must not wait for the disk while it advances its clock.
import { afterEach } from "bun:test";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { IssuedKey, NewKey } from "../accounts/keys.ts";
import type { PasswordCosts } from "../accounts/passwords.ts";
import { createLog } from "../foundation/base/log.ts";
import { newId } from "../foundation/base/secrets.ts";
import type { PlanName } from "../accounts/billing/store.ts";
import { createApplications, type ApplicationOf } from "../service/applications.ts";
import { Service } from "../service/compose.ts";
import { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { createServer, type HttpApp } from "../service/server.ts";
import { type Config, readConfig } from "../service/config.ts";
import { openDb, openImage, type DatabaseImage, type Db } from "../foundation/db/open.ts";
import { createDirectConnector, type Connector } from "../foundation/net/connector.ts";
import { err } from "../foundation/base/errors.ts";
import { createTestClock } from "./clock.ts";
import { createZoneResolver, type Zone, type ZoneResolver } from "./dns-zone.ts";
import type { SmtpStub } from "./smtp-stub.ts";
import type { DoctorFinding } from "../doctor/doctor-check.ts";

import "../service/api.ts";
import "../service/pages.ts";

/** By default the service resolves no domain and reaches no host. */
export interface TestAppOptions {
  readonly zone?: Zone;
  /** Mail hosts listen where this stub does; without one, no connection succeeds. */
  readonly stub?: SmtpStub;
  /** Replaces the connections of both. */
  readonly connector?: Connector;
  /** Settings without their prefix. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A file, to open the same database again; default: one in memory. */
  readonly path?: string;
  /** The database begins as that of another service (`image`), in memory. */
  readonly image?: DatabaseImage;
}

export interface TestRequest {
  readonly key?: IssuedKey | string;
  /** Text, bytes and streams are sent unchanged, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A complete response. `body` is the JSON, or `{}` when there is none. */
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

/** A platform on which a check of `…@example.com` never ends: its mail host neither accepts nor refuses connections. */
export const ENDLESS: TestAppOptions = {
  zone: { "example.com": { MX: [[10, "mx.example.com"]] }, "mx.example.com": { A: ["8.8.8.8"] } },
  connector: () => Promise.withResolvers<never>().promise,
};

/** What threads run. */
const MAIN = new URL("../main.ts", import.meta.url).pathname;

/** What every check of the machine finds. */
const FINDINGS: readonly DoctorFinding[] = [
  { area: "Data", check: "database", state: "ok", message: "Writable." },
  { area: "Data", check: "backup", state: "warn", message: "No scheduled backups. Set POSTWARDEN_BACKUP_DIR to one." },
  { area: "Egress", check: "port", state: "fail", message: "Port 25 is closed." },
];

/** The least that argon2id can cost: `accounts/passwords.test.ts` tests the costs of production. */
const CHEAP_PASSWORDS: PasswordCosts = {
  memoryCost: 8,
  timeCost: 1,
  unknownUserHash:
    "$argon2id$v=19$m=8,t=1,p=1$aIpP6zgkcIOdZJcrTSGH5AusS78awVcuZQecEw1lfeA$YkBCzPjluRv4mymdCLmmPTY/lCFvAAqVz1TSUTOKv3o",
};

const MAIN_ACCOUNT = "main";
/** Holds uploads for a moment; the databases of tests are elsewhere. */
const DATA_DIR = join(tmpdir(), `postwarden-app-${process.pid}`);

const unreachable: Connector = async () => err("refused_or_unreachable");

const configs = new Map<string, Config>();

/** Configurations follow from their settings alone: each is read once. */
const configOf = (settings: Readonly<Record<string, string>>): Config => {
  const name = JSON.stringify(settings);
  const known = configs.get(name);
  if (known !== undefined) return known;
  const config = readConfig(
    Object.fromEntries(Object.entries(settings).map(([key, value]) => [`POSTWARDEN_${key}`, value])),
  );
  if (!config.ok) throw new Error(config.error.join("\n"));
  configs.set(name, config.value);
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

const readResponse = async (response: Response): Promise<TestResponse> => {
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

/** The real service over `app.handle`, with a manual clock, a constant random source and a literal DNS zone. */
export class TestApp {
  readonly clock = createTestClock();
  readonly resolver: ZoneResolver;
  readonly db: Db;
  readonly service: Service;
  readonly applicationOf: ApplicationOf;
  /** Every line that was logged. */
  readonly logged: string[] = [];

  readonly #server: HttpApp;

  constructor({ zone = {}, stub, connector, settings, path = ":memory:", image }: TestAppOptions = {}) {
    const { clock } = this;
    this.resolver = createZoneResolver(zone);
    this.db = image === undefined ? openOrThrow(path) : openImage(image);
    const direct = stub ? createDirectConnector({ clock, mayConnect: () => true }) : unreachable;
    const config = configOf({
      DATA_DIR,
      HELO_NAME: "probe.example",
      // Blocklist queries are paced, and the clock does not advance.
      DNSBL_SIGNAL: "off",
      WORKERS: "0",
      ...(stub ? { SMTP_PORT: String(stub.port), PROBE_ALLOW_NETWORKS: "127.0.0.0/8" } : {}),
      ...settings,
    });
    const log = createLog("warn", clock, (line) => this.logged.push(line));
    const clients = new ClientAddresses(config.trustedProxies, log);
    const options = {
      ...{ config, log, db: this.db },
      platform: { clock, random: { integer: () => 0 }, resolver: this.resolver, connector: connector ?? direct },
      baseUrl: config.baseUrl ?? "http://localhost",
      examine: async () => FINDINGS,
      program: MAIN,
      passwordCosts: CHEAP_PASSWORDS,
    };
    this.service = new Service(options);
    this.applicationOf = createApplications(this.service, options, clients);
    const { applicationOf } = this;
    const countRequest = (method: string, status: number) => this.service.metrics.countRequest(method, status);
    this.#server = createServer({ log, clock, clients, applicationOf, countRequest });
  }

  /** Handles a request as the server does. */
  handle(request: Request): Promise<Response> {
    return this.#server.handle(request);
  }

  async request(method: string, target: string, request: TestRequest = {}): Promise<TestResponse> {
    return readResponse(await this.handle(requestOf(method, target, request)));
  }

  /** `POST /v1/email-verifications` for one address; `query` such as `?timeout=1`. */
  verify(key: IssuedKey, email: string, query = "", headers: Record<string, string> = {}): Promise<TestResponse> {
    return this.request("POST", `/v1/email-verifications${query}`, { key, body: { email }, headers });
  }

  /** Creates a key, by default of test mode; its account is created if necessary (plan Scale, 100 credits). */
  newKey({ account = MAIN_ACCOUNT, mode = "test", ...rest }: TestKey = {}): IssuedKey {
    const { store, keys } = this.service.accounts;
    if (store.findAccountByName(account) === undefined) this.newAccount(account, "scale");
    const issued = keys.create({ account, mode, ...rest });
    if (!issued.ok) throw new Error(issued.error);
    return issued.value;
  }

  newAccount(name: string, plan: PlanName): string {
    const created = this.service.accounts.accounts.create(name, plan);
    if (!created.ok) throw new Error(created.error);
    return created.value.id;
  }

  /** Id of the account of this name. */
  accountId(name = MAIN_ACCOUNT): string {
    const account = this.service.accounts.store.findAccountByName(name);
    if (account === undefined) throw new Error(`no account ${name}`);
    return account.id;
  }

  credits(name?: string): { readonly available: number; readonly held: number } {
    return this.service.accounts.ledger.balance(this.accountId(name));
  }

  /** Spends credits until `left` are left. */
  leaveCredits(left: number, name?: string): void {
    const { ledger } = this.service.accounts;
    const accountId = this.accountId(name);
    this.db.transact((tx) => {
      while (ledger.balance(accountId).available > left) {
        const move = { accountId, reference: newId(), atMs: this.clock.nowMs() };
        if (!ledger.hold(tx, move).ok) throw new Error("an available credit cannot be held");
        ledger.settle(tx, move);
      }
    });
  }

  /** How many rows the verifications of all keys have. */
  countVerifications(): number {
    const row = this.db.sqlite.query<{ count: number }, []>("SELECT count(*) AS count FROM verifications").get();
    return row?.count ?? 0;
  }

  advance(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** The content of the database, as others may begin with. */
  image(): DatabaseImage {
    return { bytes: this.db.sqlite.serialize(), migrated: this.db.migrated };
  }

  close(): void {
    this.db.close();
  }
}

/** Starts services for the tests of one file, and closes them after each test. */
export const createApps = (): ((options?: TestAppOptions) => TestApp) => {
  const apps: TestApp[] = [];
  afterEach(() => {
    for (const app of apps.splice(0)) app.close();
    rmSync(DATA_DIR, { recursive: true, force: true });
  });
  return (options) => {
    const app = new TestApp(options);
    apps.push(app);
    return app;
  };
};
