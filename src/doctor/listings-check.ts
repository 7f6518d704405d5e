import { isIP } from "node:net";
import { waitFor } from "../foundation/base/wait.ts";
import type { Clock } from "../foundation/base/clock.ts";
import type { Blocklist } from "../blocklist/lists/blocklist.ts";
import type { ListOutcome } from "../blocklist/lists/lookup.ts";
import type { Target } from "../blocklist/lists/query-name.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";

const listingsCheck = doctorFindings("egress_listed", "Own address on blocklists", "sender-reputation#egress-ips");

const TIMEOUT_MS = 10_000;
const NAMED_MAX = 3;

/** Looks up a target in lists. */
export type LookUp = (target: Target, lists: readonly Blocklist[]) => Promise<readonly ListOutcome[]>;

/** The enabled lists, and how addresses are looked up in them. */
export interface ListingLookup {
  readonly lists: readonly Blocklist[];
  readonly lookUp: LookUp;
  readonly clock: Clock;
}

/** Whether an egress address is on a blocklist. */
export const checkListings = async (address: string, { lists, lookUp, clock }: ListingLookup): Promise<DoctorCheck> => {
  const kind = isIP(address) === 6 ? "ipv6" : "ipv4";
  const waited = await waitFor(clock, lookUp({ kind, value: address }, lists), { timeoutMs: TIMEOUT_MS });
  const again = `Run: postwarden blocklist check ${address}`;
  if (!waited.ok)
    return listingsCheck.warn(
      `It is not known whether ${address} is on a blocklist: not every list responded within ${TIMEOUT_MS / 1_000} seconds. ${again}`,
    );
  const asked = waited.value.filter(({ outcome }) => outcome !== "skipped");
  const listed = asked.filter(({ outcome }) => outcome === "listed");
  const clean = asked.filter(({ outcome }) => outcome === "not_listed").length;
  if (listed.length > 0) {
    const named = listed.slice(0, NAMED_MAX).map((one) => describeListing(one, lists));
    return listingsCheck.warn(
      `${address} is on ${listed.length} of ${asked.length} blocklists: ${named.join("; ")}. ${again}`,
    );
  }
  if (clean === 0)
    return listingsCheck.warn(
      `It is not known whether ${address} is on a blocklist: no list gave a usable response. ${again}`,
    );
  return listingsCheck.ok(`${address} is on none of the ${clean} blocklists that gave a usable response.`);
};

const describeListing = ({ list, listings }: ListOutcome, lists: readonly Blocklist[]): string => {
  const { name = list, delistUrl = null } = lists.find(({ id }) => id === list) ?? {};
  const what = listings.map((listing) => listing.name).join(", ");
  return delistUrl === null ? `${name} (${what})` : `${name} (${what}; delisting: ${delistUrl})`;
};
