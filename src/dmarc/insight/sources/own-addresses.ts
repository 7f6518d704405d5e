import type { Clock } from "../../../foundation/base/clock.ts";
import { dayOfTime } from "../../../foundation/base/days.ts";
import type { Owner } from "../../../foundation/base/secrets.ts";
import type { Db } from "../../../foundation/db/open.ts";
import { RANGE_DAYS } from "../../../foundation/http/day-range.ts";
import { DomainStore } from "../../records/domains/domain-store.ts";
import { DomainSources } from "./domain-sources.ts";
import { RollupStore } from "./rollup-store.ts";

/**
 * Finds the addresses of a domain's own servers in the reports of the last 30 days on which decisions rely, those with the most messages
 * first: anybody can send a report about any address. Null for a domain that the account does not monitor.
 */
export const createOwnAddressFinder = (db: Db, clock: Clock) => {
  const domains = new DomainStore(db);
  const rollups = new RollupStore(db, { trustedOnly: true });
  return async (owner: Owner, domain: string): Promise<readonly string[] | null> => {
    const found = domains.findSame(owner, domain);
    if (found === undefined) return null;
    const toDay = dayOfTime(clock.nowMs());
    const range = { fromDay: toDay - RANGE_DAYS + 1, toDay };
    const hosts = await DomainSources.read(rollups, found, (all) => all.ownHosts(range));
    return hosts.toSorted((a, b) => b.messages - a.messages).map(({ ip }) => ip);
  };
};
