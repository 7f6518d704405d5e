/** Ninety days of blocklist monitoring: listings that come and go, targets that cannot be checked, notes and mutes. */
import { inTurns } from "../harness/world.ts";
import type { Api } from "./api.ts";
import { HOSTILE_LINE } from "./hostile.ts";
import type { World } from "./world.ts";

const AT_ONCE = 8;
const CHECK_S = 60;

interface TargetPlan {
  readonly target: string;
  readonly label?: string;
}

const TARGETS: readonly TargetPlan[] = [
  { target: "81.169.10.20", label: "mail server 1" },
  { target: "81.169.10.21", label: "mail server 2" },
  { target: "81.169.10.64/28", label: "newsletter pool" },
  { target: "85.13.130.7", label: "web server" },
  { target: "85.13.130.8", label: "shop" },
  { target: "85.13.130.9", label: HOSTILE_LINE.slice(0, 200) },
  { target: "2a01:238:4000::20", label: "mail server 1, IPv6" },
  { target: "kaffeewerk-lab.com", label: "main domain" },
  { target: "ticketo-lab.com" },
  { target: "hotelmar-lab.com" },
  { target: "old-shop-lab.com", label: "retired" },
];

/** From day to day before now: `until` 0 is today and still listed. */
const LISTINGS: ReadonlyArray<{ list: string; target: string; from: number; until: number | null; code?: string }> = [
  { list: "spamcop", target: "81.169.10.20", from: 62, until: 58 },
  { list: "psbl", target: "81.169.10.20", from: 61, until: 47 },
  { list: "uceprotect-1", target: "81.169.10.20", from: 30, until: 23 },
  { list: "spamcop", target: "81.169.10.20", from: 1, until: null },
  { list: "spamhaus-zen", target: "85.13.130.7", from: 20, until: null, code: "127.0.0.4" },
  { list: "blocklist-de", target: "85.13.130.7", from: 21, until: null, code: "127.0.0.15" },
  { list: "s5h", target: "85.13.130.8", from: 70, until: 12 },
  { list: "nordspam-bl", target: "85.13.130.9", from: 9, until: null },
  { list: "mailspike-bl", target: "81.169.10.70", from: 5, until: null, code: "127.0.0.10" },
  { list: "spamhaus-dbl", target: "ticketo-lab.com", from: 45, until: 41, code: "127.0.1.2" },
];

interface Added {
  readonly id: string;
  readonly plan: TargetPlan;
}

export class BlocklistStory {
  readonly #targets: Added[] = [];
  #lastDay = Number.POSITIVE_INFINITY;

  constructor(
    private readonly api: Api,
    private readonly world: World,
  ) {}

  async begin(): Promise<void> {
    for (const [at, plan] of TARGETS.entries()) {
      const webhook = at % 2 === 0 ? this.world.webhooks.url("/orders") : this.world.webhooks.url("/crm");
      const { id } = await this.api.post("/v1/blacklist/targets", { ...plan, webhook_url: webhook });
      this.#targets.push({ id, plan });
    }
    await this.#check();
  }

  /** Checks everything on days on which something changes, and every ninth. */
  async day(daysAgo: number): Promise<void> {
    const passed = (day: number) => day < this.#lastDay && day >= daysAgo;
    const begun = LISTINGS.filter(({ from }) => passed(from));
    const ended = LISTINGS.filter(({ until }) => until !== null && passed(until));
    this.#lastDay = daysAgo;
    for (const { list, target, code } of begun) this.world.zone.list(list, target, code);
    for (const { list, target } of ended) this.world.zone.delist(list, target);
    if (begun.length + ended.length > 0 || daysAgo % 9 === 0) await this.#check();
  }

  /** A list refuses, another does not respond, and nothing can be said of IPv6; what people noted and muted. */
  async end(): Promise<void> {
    const { zone } = this.world;
    zone.treat("uribl-multi", "refuses");
    zone.treat("barracuda-brbl", "fails");
    zone.refuseIpv6();
    const idOf = (target: string) => this.#targets.find(({ plan }) => plan.target === target)?.id ?? "";
    const web = idOf("85.13.130.7");
    await this.#check();
    await this.api.patch(`/v1/blacklist/targets/${web}/listings/blocklist-de`, {
      ...{
        acknowledged: true,
        delisting_requested: true,
        note: `Ticket 4711, waiting for the provider ${HOSTILE_LINE}`.slice(0, 400),
      },
    });
    await this.api.patch(`/v1/blacklist/targets/${idOf("85.13.130.9")}`, { muted_lists: ["nordspam-bl"] });
    await this.api.patch(`/v1/blacklist/targets/${idOf("old-shop-lab.com")}`, { monitoring_enabled: false });
  }

  #check(): Promise<void> {
    return inTurns(this.#targets, AT_ONCE, ({ id }) =>
      this.api.post(`/v1/blacklist/targets/${id}/check?timeout=${CHECK_S}`),
    );
  }
}
