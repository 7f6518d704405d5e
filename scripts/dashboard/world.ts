/** Everything around a Postwarden whose dashboard is looked at: DNS with blocklists, mail hosts, a relay and webhook receivers, on loopback. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import embedded from "../../fixtures/blocklists.json" with { type: "json" };
import { freePort } from "../bench/stage.ts";
import { MailHosts } from "./mail-hosts.ts";
import { WebhookHosts } from "./webhook-hosts.ts";
import { WorldZone } from "./zone.ts";

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
