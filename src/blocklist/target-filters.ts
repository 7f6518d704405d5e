import type { z } from "zod";
import { AppError } from "../base/errors.ts";
import { nearestName } from "../base/nearest.ts";
import { isId, type KeyMode } from "../base/secrets.ts";
import type { Blocklist } from "../dnsbl/blocklist.ts";
import { listsFor } from "./monitor.ts";
import type { targetFiltersSchema } from "./schemas.ts";
import { severityRankOf } from "./severity.ts";
import type { TargetFilters } from "./store.ts";

/** Whether a text can be a cursor of targets: an id, or in the order by severity a rank and an id. */
export const isTargetCursor = (text: string): boolean => isId(text) || isSeverityCursor(text);

const isSeverityCursor = (text: string): boolean => /^[0-5]\./.test(text) && isId(text.slice(2));

/** A cursor of the other order is no cursor. */
export const refuseOtherCursor = (after: string | null, sort: "created" | "severity"): void => {
  if (after !== null && isSeverityCursor(after) !== (sort === "severity")) throw new AppError("Invalid cursor");
};

/** The listings that an id stands for: that of a list for all of its own. Throws `Invalid query` for an id that the catalogue has not. */
const listingsNamed = (id: string, lists: readonly Blocklist[]): readonly string[] => {
  const ids = lists.flatMap((list) =>
    [...new Set(list.codes.map((code) => code.id))].map((listing) => ({ list: list.id, listing })),
  );
  const named = ids.filter(({ list, listing }) => list === id || listing === id).map(({ listing }) => listing);
  if (named.length > 0) return named;
  const near = nearestName(id, new Set(ids.flatMap(({ list, listing }) => [list, listing])));
  const advice = near === null ? "GET /v1/blacklist/lists names them all" : `Did you mean "${near}"?`;
  throw new AppError("Invalid query", {
    issues: [{ path: "list", message: `There is no such list or listing. ${advice}` }],
  });
};

/** The filters of a query as the store takes them; `lists` is the whole catalogue. */
export const readTargetFilters = (
  {
    target: value,
    monitoring_enabled: monitoringEnabled,
    severity,
    list,
    sort: _,
    ...rest
  }: z.output<typeof targetFiltersSchema>,
  lists: readonly Blocklist[],
  mode: KeyMode,
): TargetFilters => ({
  ...rest,
  value,
  monitoringEnabled,
  severityRankMin: severity === undefined ? undefined : severityRankOf(severity),
  listings: list === undefined ? undefined : listingsNamed(list, listsFor(mode, lists)),
});
