import { isoTime } from "../foundation/base/clock.ts";
import { type Blocklist, type Catalogue, isEnabled, severityOf, zoneOf } from "./lists/blocklist.ts";
import { SEVERITIES } from "../foundation/base/severity.ts";
import type { DnsblHealth } from "./lists/health.ts";
import { maskKey } from "./lists/list-keys.ts";
import { TEST_LIST } from "./test-list.ts";

/** The listings of a list, each id once, most severe first. */
const listingsOf = ({ codes }: Blocklist) => {
  const byId = Map.groupBy(codes, ({ id }) => id);
  return [...byId.entries()]
    .flatMap(([id, same]) => {
      const worst = same.toSorted((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity))[0];
      if (worst === undefined) return [];
      const { name, category, severity } = worst;
      return [{ id, name, meanings: [...new Set(same.map(({ meaning }) => meaning))], category, severity }];
    })
    .toSorted((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
};

const healthOf = (list: Blocklist, health: DnsblHealth) => {
  if (!isEnabled(list)) return [];
  return list.kinds.map((kind) => {
    const { state, reason, remedy, testedAtMs } = health.of(list, kind);
    return { kind, state, reason, remedy, tested_at: testedAtMs === null ? null : isoTime(testedAtMs) };
  });
};

const listView = (list: Blocklist) => {
  const zone = zoneOf(list);
  return {
    id: list.id,
    name: list.name,
    operator: list.operator,
    kinds: list.kinds,
    zone: zone === null ? null : maskKey(list, zone),
    enabled: isEnabled(list),
    severity: severityOf(list),
    confidence: list.confidence,
    usage: list.usage,
    listings: listingsOf(list),
    delist_url: list.delistUrl,
    lookup_url: list.lookupUrl,
    notes: list.notes,
  };
};

/** The catalogue as the API returns it, with the known health of each list. Sends no queries. Keys are masked. */
export const catalogueView = ({ version, lists }: Catalogue, health: DnsblHealth) => ({
  version,
  lists: lists.map((list) => ({ ...listView(list), health: healthOf(list, health) })),
});

/** The list of test keys. */
export const testListView = () => ({ ...listView(TEST_LIST), enabled: true, health: [] });
