/** Everything around a Postwarden whose dashboard is looked at: DNS with blocklists, mail hosts, a relay and webhook receivers, on loopback. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type NameRecords, freePort } from "../harness/world.ts";
import { HOSTILE_LINE } from "./hostile.ts";
import { MailHosts } from "./mail-hosts.ts";
import { WorldZone } from "./zone.ts";
import embedded from "../../fixtures/blocklists.json" with { type: "json" };

const SLOW_MS = 400;

/** Receivers of webhooks on loopback: one that accepts, one that fails for a while, one that never accepts, one that is slow. */
class WebhookHosts {
  readonly #server: Bun.Server<undefined>;
  /** Paths and events of all requests. */
  readonly received: string[] = [];

  constructor() {
    this.#server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.#receive(request) });
  }

  url(path: "/orders" | "/crm" | "/gone" | "/slow" | "/hostile"): string {
    return `http://127.0.0.1:${this.#server.port}${path}`;
  }

  stop(): void {
    void this.#server.stop(true);
  }

  async #receive(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    await request.text();
    this.received.push(pathname);
    switch (pathname) {
      case "/crm":
        return new Response("upstream connect error or disconnect/reset before headers", { status: 502 });
      case "/gone":
        return new Response("This integration was removed.", { status: 410 });
      case "/hostile":
        return new Response(HOSTILE_LINE, { status: 500, headers: { "content-type": "text/html" } });
      case "/slow":
        await Bun.sleep(SLOW_MS);
        return new Response(null, { status: 204 });
      default:
        return new Response(null, { status: 204 });
    }
  }
}

export const REPORT_HOST = "reports.mailroom-lab.com";
const QUERIES_PER_DAY = 100_000_000;

export class World {
  readonly zone = new WorldZone();
  readonly mail = new MailHosts();
  readonly webhooks = new WebhookHosts();
  readonly reports = { ip: "127.0.0.1", port: freePort() };

  async start(): Promise<void> {
    await this.zone.start();
    this.zone.publish(this.mail.records());
    this.zone.publish({
      [REPORT_HOST]: { MX: [[10, "mail.kaffeewerk-lab.com"]] },
      "mail.kaffeewerk-lab.com": { A: ["203.0.113.20"] },
    });
  }

  /** The binary's settings in this world. Lists are queried without their pauses, so that checks take no time. One service only can receive report mail. */
  settings(directory: string, hasReceiver = true): Readonly<Record<string, string>> {
    const catalogue = join(directory, "catalogue.json");
    const budget = { queries_per_day: QUERIES_PER_DAY, spacing_ms: 0 };
    writeFileSync(
      catalogue,
      JSON.stringify({ ...embedded, lists: embedded.lists.map((list) => ({ ...list, budget })) }),
    );
    return {
      POSTWARDEN_DATA_DIR: join(directory, "data"),
      POSTWARDEN_BACKUP_DIR: join(directory, "backups"),
      POSTWARDEN_PORT: "0",
      POSTWARDEN_DNS_SERVERS: this.zone.setting,
      POSTWARDEN_SMTP_PORT: String(this.mail.port),
      POSTWARDEN_PROBE_ALLOW_NETWORKS: "127.30.0.0/16",
      POSTWARDEN_SMTP_CONNECT_TIMEOUT_MS: "1000",
      POSTWARDEN_SMTP_REPLY_TIMEOUT_MS: "2000",
      POSTWARDEN_HELO_NAME: "mail.kaffeewerk-lab.com",
      POSTWARDEN_WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8",
      POSTWARDEN_BLOCKLIST_CATALOGUE: catalogue,
      POSTWARDEN_DNSBL_SIGNAL: "off",
      POSTWARDEN_REPORT_HOST: REPORT_HOST,
      ...(hasReceiver ? { POSTWARDEN_REPORT_LISTEN: `${this.reports.ip}:${this.reports.port}` } : {}),
      POSTWARDEN_NOTIFY_SMTP_URL: this.mail.relayUrl,
      POSTWARDEN_NOTIFY_FROM: "postwarden@kaffeewerk-lab.com",
    };
  }

  stop(): void {
    this.zone.stop();
    this.mail.stop();
    this.webhooks.stop();
  }
}

/** What a test asks for. */
export type ControlRequest =
  | { readonly kind: "publish"; readonly records: Readonly<Record<string, NameRecords>> }
  | { readonly kind: "list" | "delist"; readonly list: string; readonly target: string }
  | { readonly kind: "mails" };

const perform = ({ zone, mail }: World, request: ControlRequest): readonly string[] => {
  switch (request.kind) {
    case "publish":
      zone.publish(request.records);
      return [];
    case "list":
      zone.list(request.list, request.target);
      return [];
    case "delist":
      zone.delist(request.list, request.target);
      return [];
    case "mails":
      return mail.messages;
    default:
      return request satisfies never;
  }
};

/**
 * Lets the tests, which run in a process of their own, change the world: records in the DNS, blocklists, and the mails that were
 * sent. Listens on loopback until it is stopped.
 */
export const startControl = (world: World): { readonly url: string; stop(): void } => {
  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    fetch: async (request) => Response.json(perform(world, (await request.json()) as ControlRequest)),
  });
  return { url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) };
};
