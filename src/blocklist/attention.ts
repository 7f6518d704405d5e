import { type AttentionItem, byUrgency } from "../foundation/base/attention.ts";
import type { ListingView } from "./listings.ts";
import type { Overview } from "./overview.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";
import type { TargetFigures, TargetTable, TargetTableStore } from "./target-table.ts";
import type { Targets } from "./targets.ts";
import type { Owner } from "../foundation/base/secrets.ts";

export interface BlocklistAttention {
  /** Open problems, the worst first. */
  readonly items: readonly AttentionItem[];
  readonly figures: TargetFigures;
}

export interface BlocklistAttentionDeps {
  readonly store: Pick<TargetTableStore, "worstFirst">;
  readonly blocklists: Pick<BlocklistStore, "targetsById">;
  readonly table: Pick<TargetTable, "figures">;
  readonly targets: Pick<Targets, "listingsOf">;
  readonly overview: Pick<Overview, "listsInTrouble">;
}

/** Listed targets that are read: more are summed up in one item. */
const LISTED_READ = 20;
const UNKNOWN_NAMED_MAX = 3;
/** Up to this number of lists with trouble are one item each; more have one cause and are one item. */
const LISTS_APART_MAX = 2;

/** Open problems on the home page: listed targets, lists that cannot be believed, targets that could not be checked. */
export const createBlocklistAttention =
  (deps: BlocklistAttentionDeps) =>
  (owner: Owner): BlocklistAttention => {
    const figures = deps.table.figures(owner);
    if (figures.total === 0) return { items: [], figures };
    const items = [
      ...listedItems(deps, owner, figures),
      ...listItems(deps, owner),
      ...unknownItems(deps, owner, figures),
    ];
    return { items: items.toSorted(byUrgency), figures };
  };

const numbers = new Intl.NumberFormat("en");
const grouped = (count: number) => numbers.format(count);

const listedItems = (
  { store, blocklists, targets }: BlocklistAttentionDeps,
  owner: Owner,
  { listed }: TargetFigures,
): AttentionItem[] => {
  const rows = blocklists.targetsById(store.worstFirst(owner, { state: "listed" }, { offset: 0, limit: LISTED_READ }));
  const listings = targets.listingsOf(rows, owner.mode);
  const items = rows.flatMap((row) => listedItem(row, listings.get(row.id) ?? []) ?? []);
  const more = listed - rows.length;
  if (more <= 0) return items;
  return [
    ...items,
    {
      severity: "warn",
      label: "Listed",
      title: `${grouped(more)} more targets are listed`,
      detail: `These are the ${LISTED_READ} most severe of ${grouped(listed)}.`,
      action: { text: "See all", path: "/blocklists?state=listed" },
      sinceMs: null,
    },
  ];
};

/** Null when somebody knows about every listing: acknowledged ones need nobody. */
const listedItem = ({ id, value }: TargetRow, listings: readonly ListingView[]): AttentionItem | null => {
  const open = listings.filter(({ acknowledged }) => acknowledged === null);
  const [worst] = open;
  if (worst === undefined) return null;
  const names = [...new Set(open.map(({ name }) => name))];
  const others = names.length - 1;
  const isRequested = open.every(({ delisting_requested }) => delisting_requested !== null);
  const isMinor = worst.severity === "low" || worst.severity === "info";
  return {
    severity: isRequested || isMinor ? "warn" : "bad",
    label: isRequested ? "Requested" : "Listed",
    title: `${worst.address ?? value} is on ${names[0] ?? worst.id}${others === 0 ? "" : ` and ${others} more`}`,
    detail: `${worst.meaning} ${wayOut(worst)}`.trim(),
    action: { text: "See why", path: `/blocklists/${id}` },
    sinceMs: Math.min(...open.map(({ since }) => Date.parse(since))),
  };
};

/** How a listing ends, in one or two sentences. */
export const wayOut = ({
  delist_url,
  delisting_requested,
}: Pick<ListingView, "delist_url" | "delisting_requested">) => {
  if (delisting_requested !== null) return "Removal was requested; the next checks show whether the list agreed.";
  const page = delist_url === null ? null : hostOf(delist_url);
  if (page === null) return "Find and fix the cause. This list has no page for removal requests.";
  return `Find and fix the cause first; removal requests go to ${page}.`;
};

/** The host of a page without `www.`; null for what is no URL. */
export const hostOf = (url: string): string | null => {
  const { hostname = null } = URL.parse(url) ?? {};
  return hostname === null ? null : hostname.replace(/^www\./, "");
};

const listItems = ({ overview }: BlocklistAttentionDeps, owner: Owner): AttentionItem[] => {
  const byList = [...Map.groupBy(overview.listsInTrouble(owner), ({ list }) => list).values()];
  const troubled = byList.flatMap(([first]) => (first === undefined ? [] : [first]));
  const item = (title: string, detail: string, path: string): AttentionItem => ({
    severity: "warn",
    label: "Lists",
    title,
    detail,
    sinceMs: null,
    action: { text: "What to do", path },
  });
  if (troubled.length <= LISTS_APART_MAX)
    return troubled.map(({ list, name, state, reason, remedy }) => {
      const title = state === "refused" ? `${name} refuses our queries` : `${name} cannot be used`;
      return item(title, [reason, remedy].filter((text) => text !== null).join(" "), `/blocklists/lists/${list}`);
    });
  const names = troubled.slice(0, UNKNOWN_NAMED_MAX).map(({ name }) => name);
  const more = troubled.length - names.length;
  const isRefused = troubled.every(({ state }) => state === "refused");
  return [
    item(
      `${troubled.length} blocklists ${isRefused ? "refuse our queries" : "cannot be used"}`,
      `${names.join(", ")}${more === 0 ? "" : ` and ${more} more`}. Most lists refuse public resolvers: use a recursive resolver of your own.`,
      "/blocklists/lists",
    ),
  ];
};

const unknownItems = (
  { store, blocklists }: BlocklistAttentionDeps,
  owner: Owner,
  { unknown }: TargetFigures,
): AttentionItem[] => {
  if (unknown === 0) return [];
  const page = { offset: 0, limit: UNKNOWN_NAMED_MAX };
  const rows = blocklists.targetsById(store.worstFirst(owner, { state: "unknown" }, page));
  const names = rows.map(({ value }) => value);
  const more = unknown - names.length;
  const [only] = rows;
  const isOne = unknown === 1 && only !== undefined;
  return [
    {
      severity: "unknown",
      label: "Unknown",
      sinceMs: null,
      title: isOne ? `${only.value} could not be checked` : `${grouped(unknown)} targets could not be checked`,
      detail: isOne
        ? "No list gave a usable response. It is checked again within the hour."
        : `${names.join(", ")}${more === 0 ? "" : ` and ${grouped(more)} more`}: no list gave a usable response. They are checked again within the hour.`,
      action: { text: "See which", path: isOne ? `/blocklists/${only.id}` : "/blocklists?state=unknown" },
    },
  ];
};
