/**
 * What happened at a small company in the last ninety days, told to the binary day by day with its clock set back: keys, credits,
 * verifications, lists, blocklist targets, DMARC domains and webhooks. A real service would have written the same data.
 */
import { Api } from "./api.ts";
import { HOSTILE, HOSTILE_LINE } from "./hostile.ts";
import type { DashboardService } from "./service.ts";
import { Dice, customersCsv } from "./story-addresses.ts";
import { BlocklistStory } from "./story-blocklists.ts";
import { DmarcStory } from "./story-dmarc.ts";
import { LISTS, completeList, reportBounces, startPresent, verifyEveryReason, verifyForADay } from "./story-verify.ts";
import type { World } from "./world.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** The account that the first start creates, and the one that must see nothing of it. */
export const ACCOUNT = "default";
export const OTHER_ACCOUNT = "neighbour";
const DAYS = 90;
const VERIFY_DAYS = 30;
/** Days on which the jobs of every five minutes run: their alerts are about the days before. */
const JOB_DAYS = [88, 61, 33, 24, 11, 10, 2, 1];
const JOBS_MS = 3_500;
const FAST_RATE = ["--rate", "2000", "--burst", "4000"];

/** Who signs in: an owner of the account who also runs the service, a colleague, and the owner of the other account. */
export const USERS = {
  owner: { email: "ops@kaffeewerk-lab.com", account: ACCOUNT, role: "owner" },
  member: { email: "marketing@kaffeewerk-lab.com", account: ACCOUNT, role: "member" },
  other: { email: "owner@neighbour-lab.com", account: OTHER_ACCOUNT, role: "owner" },
} as const;
export const PASSWORD = "correct horse battery 90";

interface IssuedKey {
  readonly id: string;
  readonly key: string;
}

export interface Told {
  /** A live and a test key of the account with the history, and a live key of the other account. */
  readonly live: string;
  readonly test: string;
  readonly other: string;
}

export class Story {
  readonly #dice = new Dice(7);
  readonly #nowMs = Date.now();

  constructor(
    private readonly service: DashboardService,
    private readonly world: World,
    /** How many verifications there are on a usual day. */
    private readonly perDay: number,
  ) {}

  /** Tells everything; afterwards the service runs at the real time. */
  async tell(): Promise<Told> {
    const { service, world } = this;
    service.setClock(this.#at(DAYS));
    await service.start();
    const keys = this.#accounts();
    const api = (key: IssuedKey) => new Api(() => service.url, key.key);
    const [live, test, other] = [api(keys.shop), api(keys.test), api(keys.other)];
    const blocklists = new BlocklistStory(live, world);
    const dmarc = new DmarcStory(live, world, this.#nowMs);
    await live.patch("/v1/notifications", {
      webhook_url: world.webhooks.url("/orders"),
      recipients: ["ops@kaffeewerk-lab.com"],
    });
    await blocklists.begin();
    for (let daysAgo = DAYS; daysAgo > 0; daysAgo--) {
      service.setClock(this.#at(daysAgo));
      await dmarc.day(daysAgo);
      await blocklists.day(daysAgo);
      await this.#customers(daysAgo, [live, api(keys.crm)]);
      if (JOB_DAYS.includes(daysAgo)) await this.#runJobs(daysAgo);
    }
    await this.#end(live, dmarc, blocklists);
    await this.#others(test, other);
    await this.#present(live, dmarc);
    return { live: live.key, test: test.key, other: other.key };
  }

  /** In the morning of a day before now; today: ten minutes ago. */
  #at(daysAgo: number): number {
    return this.#nowMs - daysAgo * DAY_MS - (daysAgo === 0 ? 600_000 : (daysAgo % 5) * HOUR_MS);
  }

  #accounts() {
    const { service } = this;
    const create = (account: string, mode: "live" | "test", ...more: string[]) =>
      service.command<IssuedKey>("keys", "create", "--account", account, "--mode", mode, ...more);
    service.command("accounts", "set-plan", ACCOUNT, "scale", ...FAST_RATE);
    service.command("credits", "grant", ACCOUNT, "50000", "--note", "Invoice 2026-118, 50,000 credits");
    service.command("accounts", "create", OTHER_ACCOUNT, "--plan", "scale");
    for (const { email, account, role } of Object.values(USERS)) {
      service.commandWith(PASSWORD, "users", "add", email, "--account", account, "--role", role, "--password-stdin");
    }
    const expired = new Date(this.#at(30)).toISOString();
    create(ACCOUNT, "live", "--name", "old importer", "--expires", expired);
    create(ACCOUNT, "live", "--name", HOSTILE.attribute, "--scopes", "verifications:read,bulk:read");
    const revoked = create(ACCOUNT, "live", "--name", "lost laptop");
    service.command("keys", "revoke", revoked.id);
    return {
      shop: create(ACCOUNT, "live", "--name", "web shop"),
      crm: create(ACCOUNT, "live", "--name", "CRM import", "--scopes", "verifications:read,verifications:write"),
      test: create(ACCOUNT, "test", "--name", "integration tests"),
      other: create(OTHER_ACCOUNT, "live", "--name", "neighbour's key"),
    };
  }

  async #customers(daysAgo: number, apis: readonly Api[]): Promise<void> {
    if (daysAgo > VERIFY_DAYS) return;
    const [live] = apis;
    if (live === undefined) return;
    const weekday = new Date(this.#at(daysAgo)).getUTCDay();
    const isWeekend = weekday === 0 || weekday === 6;
    const count = isWeekend ? this.perDay / 4 : this.perDay * (0.7 + this.#dice.roll(60) / 100);
    await verifyForADay(apis, this.#dice, Math.ceil(count));
    if (daysAgo === 6) await verifyEveryReason(live);
    if (daysAgo === 14)
      this.service.command("credits", "grant", ACCOUNT, "1000", "--note", `Goodwill ${HOSTILE_LINE}`.slice(0, 200));
    for (const list of LISTS) if (list.daysAgo === daysAgo) await list.run(live, this.#dice, this.world);
  }

  /** A start shortly before a full five minutes, after which all jobs are due within seconds. */
  async #runJobs(daysAgo: number): Promise<void> {
    await this.service.stop();
    const fiveMinutesMs = 300_000;
    const dueMs = Math.ceil(this.#at(daysAgo) / fiveMinutesMs) * fiveMinutesMs;
    this.service.setClock(dueMs - 2_000);
    await this.service.start();
    await Bun.sleep(JOBS_MS);
  }

  async #end(live: Api, dmarc: DmarcStory, blocklists: BlocklistStory): Promise<void> {
    this.service.setClock(this.#at(0));
    await dmarc.day(0);
    await dmarc.end();
    await blocklists.day(0);
    await blocklists.end();
    await verifyForADay([live], this.#dice, this.perDay / 2);
    await reportBounces(live, this.#dice, this.#at(0));
    for (const path of ["/orders", "/crm", "/gone", "/hostile"] as const) {
      await live.post("/v1/webhooks/test", { url: this.world.webhooks.url(path) });
    }
    const suppressed = ["spamtraps.example", "former.customer@hotelmar-lab.com"];
    this.service.command(
      "suppress",
      "add",
      ...suppressed,
      "--note",
      `Asked on the phone not to be written to ${HOSTILE.script}`,
    );
    await this.#runJobs(0);
  }

  /** Test data, and what belongs to another account. */
  async #others(test: Api, other: Api): Promise<void> {
    for (const reason of ["mailbox_exists", "mailbox_not_found", "catch_all", "greylisted", "pending"]) {
      await test.post("/v1/email-verifications?timeout=1", { email: `${reason}@any.example` });
    }
    await completeList(test, customersCsv(this.#dice, 30), { name: "test list" });
    for (const target of ["listed.example", "refused.example", "1.2.3.4"]) {
      const { id } = await test.post("/v1/blacklist/targets", { target });
      await test.post(`/v1/blacklist/targets/${id}/check?timeout=10`);
    }
    const enrolled = await test.post<{ domain: { id: string } }>("/v1/dmarc/domains", { domain: "merge.example" });
    await test.post(`/v1/dmarc/domains/${enrolled.domain.id}/verify`);
    await other.post("/v1/email-verifications?timeout=10", { email: "secret.person@acme-lab.com" });
    await other.post("/v1/blacklist/targets", { target: "85.13.130.200", label: "secret target" });
    await other.post("/v1/dmarc/domains", { domain: "secret-domain-lab.com" });
    await completeList(other, "email\nsecret.row@acme-lab.com\n", { name: "secret list" });
  }

  /** What is under way at the real time. */
  async #present(live: Api, dmarc: DmarcStory): Promise<void> {
    const { service } = this;
    service.command("accounts", "set-plan", ACCOUNT, "scale");
    await service.stop();
    service.useRealClock();
    await service.start();
    await dmarc.others();
    await startPresent(live, this.#dice);
  }
}
