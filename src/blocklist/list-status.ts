import { DAY_MS } from "../foundation/base/days.ts";
import { AppError } from "../foundation/base/errors.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import {
  type Blocklist,
  isEnabled,
  type TargetKind,
  type Catalogue,
  severityOf,
  zoneOf,
  maskKey,
  CATEGORIES,
  CONFIDENCES,
  TARGET_KINDS,
} from "./lists/blocklist.ts";
import { queriesPerDayOf, type HealthState } from "./lists/list-client.ts";
import type { DnsblHealth, ListHealth } from "./lists/health.ts";
import type { BudgetReader } from "./listing-store.ts";
import type { ListedOnCount, TargetTableStore } from "./target-table.ts";
import { type ListsByMode, TEST_LIST } from "./target-lookup.ts";
import { isoTime } from "../foundation/base/clock.ts";
import { SEVERITIES } from "../foundation/base/severity.ts";
import { delistUrl } from "./schemas.ts";
import {
  flagField,
  nullableText,
  nullableTime,
  textField,
  enumField,
  listField,
  namedResponse,
  textsField,
} from "../foundation/http/schema-fields.ts";
import { z } from "zod";
import type { Owner } from "../foundation/base/secrets.ts";

/** A list of the catalogue as it works here. */
export interface ListStatus {
  readonly list: Blocklist;
  readonly isEnabled: boolean;
  /** For each kind of target; empty for a list that is not in use and for the test list. */
  readonly health: readonly ListHealth[];
  /** The state of the list as a whole; null when it is not tested. */
  readonly state: HealthState | null;
  /** Queries of today (UTC) that are sent or reserved, and how many may be sent a day. */
  readonly queriesToday: number;
  readonly queriesPerDay: number;
  /** Targets of the owner that are on it, a range counted once. */
  readonly targets: number;
}

/** How a list in use responded to its own test: the worst of its kinds. */
export interface TestedList extends Pick<ListHealth, "state" | "reason" | "remedy"> {
  readonly name: string;
}

/** The queries that further targets take of one list. */
export interface ListCost {
  readonly name: string;
  readonly queriesPerDay: number;
  /** Queries of today (UTC) that are sent or reserved, for all targets of this service. */
  readonly queriesToday: number;
  /** How many may be sent a day. */
  readonly most: number;
  /** The limit in the words of the list; null where it publishes none. */
  readonly published: string | null;
  readonly share: number;
}

/** The queries that monitoring further targets takes. */
export interface CheckCost {
  /** Domains and addresses, those of ranges included. */
  readonly targets: number;
  readonly queriesPerDay: number;
  /** The list of which it takes the largest share of the queries allowed a day comes first. */
  readonly lists: readonly ListCost[];
}

/** How many targets of each kind there are. */
export type TargetCounts = Partial<Readonly<Record<TargetKind, number>>>;

/** Of the kinds of a list: trouble first, but one kind that is proven is worth more than another that cannot be. */
const STATES: readonly HealthState[] = ["refused", "wildcard", "unreachable", "silent", "healthy", "unknown"];
/** What needs a look first. */
const ORDER: readonly HealthState[] = [...STATES.slice(0, 4), "unknown", "healthy"];
/** A list that was tested so recently is not tested again: operators count every query. */
const TEST_EVERY_MS = 60_000;
/** Targets that are not listed are checked every six hours. */
const CHECKS_A_DAY = 4;

/** Which lists can be believed through the resolver of this service, and what they have about the targets of an owner. */
export class ListStatuses {
  constructor(
    private readonly runtime: Pick<Runtime, "clock">,
    private readonly deps: {
      catalogue: ListsByMode;
      health: Pick<DnsblHealth, "of" | "testAgain">;
      budgets: BudgetReader;
      store: Pick<TargetTableStore, "countListedOn">;
    },
  ) {}

  /** Every list: those in use first, of these the ones with trouble. */
  all(owner: Owner): ListStatus[] {
    const counts = this.deps.store.countListedOn(owner);
    const used = this.deps.budgets(this.#today());
    return this.deps.catalogue[owner.mode]
      .map((list) => this.#statusOf(owner, list, { counts, used }))
      .toSorted((a, b) => Number(b.isEnabled) - Number(a.isEnabled) || rankOf(a) - rankOf(b) || b.targets - a.targets);
  }

  /** The tests of the lists in use; null before the first. */
  tested(): readonly TestedList[] | null {
    const { catalogue, health } = this.deps;
    const tested = catalogue.live
      .filter(isEnabled)
      .map((list) => ({ list, known: list.kinds.map((kind) => health.of(list, kind)) }));
    if (!tested.some(({ known }) => known.some(({ testedAtMs }) => testedAtMs !== null))) return null;
    return tested.flatMap(({ list, known }) => {
      const worst = STATES.map((state) => known.find((one) => one.state === state)).find((one) => one !== undefined);
      return worst === undefined
        ? []
        : [{ name: list.name, state: worst.state, reason: worst.reason, remedy: worst.remedy }];
    });
  }

  /** Throws `not_found` for an id that is not in the catalogue. */
  find(owner: Owner, id: string): ListStatus {
    const found = this.all(owner).find(({ list }) => list.id === id);
    if (found === undefined) throw new AppError("not_found", { message: "There is no such list." });
    return found;
  }

  /** The ids of the listings of a list, or that one listing; empty for what is neither. */
  listingsOf(owner: Owner, id: string): string[] {
    const codes = this.deps.catalogue[owner.mode].flatMap((list) =>
      list.codes.filter((code) => list.id === id || code.id === id),
    );
    return [...new Set(codes.map((code) => code.id))];
  }

  /** Tests a list now, unless it was tested within the last minute. Throws `conflict` for a list that is not in use. */
  async test(owner: Owner, id: string): Promise<ListStatus> {
    const { list, health, isEnabled: isUsed } = this.find(owner, id);
    if (!isUsed || owner.mode === "test")
      throw new AppError("conflict", { message: `${list.name} is not queried, so it cannot be tested.` });
    const nowMs = this.runtime.clock.nowMs();
    const due = health.filter(({ testedAtMs }) => testedAtMs === null || nowMs - testedAtMs >= TEST_EVERY_MS);
    await Promise.all(due.map(({ kind }) => this.deps.health.testAgain(list, kind)));
    return this.find(owner, id);
  }

  /** The queries a day for targets that are on no list. */
  costOf(owner: Owner, counts: TargetCounts): CheckCost {
    const used = this.deps.budgets(this.#today());
    const sum = (kinds: readonly TargetKind[]) => kinds.reduce((total, kind) => total + (counts[kind] ?? 0), 0);
    const lists = this.deps.catalogue[owner.mode]
      .filter((list) => isInUse(list, owner))
      .map((list): ListCost => {
        const [queriesPerDay, most] = [sum(list.kinds) * CHECKS_A_DAY, queriesPerDayOf(list)];
        const published = list.usage?.volume ?? null;
        const queriesToday = used.get(list.id) ?? 0;
        return { name: list.name, queriesPerDay, queriesToday, most, published, share: queriesPerDay / most };
      })
      .filter(({ queriesPerDay }) => queriesPerDay > 0)
      .toSorted((a, b) => b.share - a.share);
    const queriesPerDay = lists.reduce((total, list) => total + list.queriesPerDay, 0);
    return { targets: sum(TARGET_KINDS), queriesPerDay, lists };
  }

  #today() {
    return Math.floor(this.runtime.clock.nowMs() / DAY_MS);
  }

  #statusOf(
    owner: Owner,
    list: Blocklist,
    known: { counts: readonly ListedOnCount[]; used: ReadonlyMap<string, number> },
  ): ListStatus {
    const isUsed = isInUse(list, owner);
    const health = isUsed && owner.mode === "live" ? list.kinds.map((kind) => this.deps.health.of(list, kind)) : [];
    const isOnIt = ({ listedOn }: ListedOnCount) => list.codes.some(({ id }) => listedOn.includes(id));
    return {
      list,
      isEnabled: isUsed,
      health,
      state: STATES.find((state) => health.some((one) => one.state === state)) ?? null,
      queriesToday: known.used.get(list.id) ?? 0,
      queriesPerDay: queriesPerDayOf(list),
      targets: known.counts.filter(isOnIt).reduce((sum, { count }) => sum + count, 0),
    };
  }
}

/** The test list is in no catalogue, but always used by test keys. */
const isInUse = (list: Blocklist, { mode }: Owner) => mode === "test" || isEnabled(list);

const rankOf = ({ state }: ListStatus) => (state === null ? ORDER.length : ORDER.indexOf(state));

/** The listings of a list, each id once, most severe first. */
const listingsIn = ({ codes }: Blocklist) => {
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
    listings: listingsIn(list),
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

const listListingSchema = z.object({
  id: textField("The id of the listing, as in `listed_on`."),
  name: textField("The name of the listing."),
  meanings: textsField("What the return codes of the list mean."),
  category: enumField(CATEGORIES, "Why something is on this list."),
  severity: enumField(SEVERITIES, "How much it affects mail delivery."),
});

const healthStateSchema = enumField(
  ["healthy", "refused", "silent", "wildcard", "unreachable", "unknown"],
  "`healthy`: the test points respond as documented.",
);

const usageSchema = z.object({
  terms: textField("Who may use the list."),
  volume: nullableText("How many queries are allowed."),
  cost: nullableText("What it costs."),
  registration: nullableText("How to register."),
  url: nullableText("The page with the terms."),
});

/** Response of `GET /v1/blacklist/lists`. */
export const listsSchema = namedResponse("BlacklistCatalogue", {
  version: textField("The version of the catalogue."),
  lists: listField(
    namedResponse("Blacklist", {
      id: textField("The id of the list."),
      name: textField("The name of the list."),
      operator: textField("Who operates it."),
      kinds: listField(z.enum(TARGET_KINDS), "What it has entries for."),
      zone: nullableText("The DNS zone; null if the list requires a key that is not set."),
      enabled: flagField("Whether the list is queried."),
      severity: enumField(SEVERITIES, "The severity of its most severe listing."),
      confidence: enumField(
        CONFIDENCES,
        "How reliable this data is: A verified recently, B documented by the operator, C from catalogues.",
      ),
      usage: usageSchema.nullable().meta({ description: "The operator's terms; null if none are published." }),
      listings: listField(listListingSchema, "What the list can report, most severe first."),
      delist_url: delistUrl,
      lookup_url: nullableText("A page about one target, with the placeholder `{value}`."),
      notes: nullableText("Further remarks."),
      health: listField(
        z.object({
          kind: enumField(TARGET_KINDS, "The kind of target that was tested."),
          state: healthStateSchema,
          reason: nullableText("Why the list is not healthy."),
          remedy: nullableText("What the operator of this service can do."),
          tested_at: nullableTime("When the last test finished; null before the first."),
        }),
        "Whether the list works through the resolver of this service.",
      ),
    }),
    "The lists.",
  ),
});

export const CATALOGUE_EXAMPLE = {
  version: "2026-01-01",
  lists: [
    {
      id: "spamhaus-zen",
      name: "Spamhaus ZEN",
      operator: "The Spamhaus Project",
      kinds: ["ipv4"],
      zone: "zen.spamhaus.org",
      enabled: true,
      severity: "critical",
      confidence: "A",
      usage: { terms: "Open to everybody.", volume: null, cost: "Free", registration: null, url: null },
      listings: [
        {
          id: "spamhaus-sbl",
          name: "Spamhaus SBL",
          meanings: ["Listed manually as a sender or supporter of spam."],
          category: "spam",
          severity: "critical",
        },
      ],
      delist_url: "https://check.spamhaus.org/",
      lookup_url: null,
      notes: null,
      health: [{ kind: "ipv4", state: "healthy", reason: null, remedy: null, tested_at: "2026-01-01T00:00:00.500Z" }],
    },
  ],
};

/** The list of test keys. */
export const testListView = () => ({ ...listView(TEST_LIST), enabled: true, health: [] });
