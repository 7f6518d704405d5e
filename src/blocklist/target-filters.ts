import type { z } from "zod";
import { AppError } from "../foundation/base/errors.ts";
import { nearestName } from "../foundation/base/nearest.ts";
import { isId } from "../foundation/base/secrets.ts";
import type { Blocklist } from "./lists/blocklist.ts";
import type { TARGET_FILTERS } from "./schemas.ts";
import { isSeverityCursor, severityRankOf } from "./severity.ts";
import { unknownListMessage } from "./muting.ts";
import type { TargetFilters } from "./store.ts";

/** Whether a text can be a cursor of targets: an id; in the order by severity, a rank and an id. */
export const isTargetCursor = (text: string): boolean => isId(text) || isSeverityCursor(text);

/** Throws `Invalid cursor` for a cursor of the other order. */
export const refuseOtherCursor = (after: string | null, sort: "created" | "severity"): void => {
  if (after !== null && isSeverityCursor(after) !== (sort === "severity")) throw new AppError("Invalid cursor");
};

/** The listings with this id, or all listings of the list with this id. Throws `Invalid query` for an unknown id. */
const listingsNamed = (id: string, lists: readonly Blocklist[]): readonly string[] => {
  const ids = lists.flatMap((list) =>
    [...new Set(list.codes.map((code) => code.id))].map((listing) => ({ list: list.id, listing })),
  );
  const named = ids.filter(({ list, listing }) => list === id || listing === id).map(({ listing }) => listing);
  if (named.length > 0) return named;
  const near = nearestName(id, new Set(ids.flatMap(({ list, listing }) => [list, listing])));
  throw new AppError("Invalid query", { issues: [{ path: "list", message: unknownListMessage(near) }] });
};

type TargetQuery = Partial<Omit<z.output<z.ZodObject<typeof TARGET_FILTERS>>, "sort">>;

/** The filters of a query, for the store. `lists`: the whole catalogue of the caller's mode. */
export const readTargetFilters = (
  { target: value, monitoring_enabled: monitoringEnabled, severity, list, ...rest }: TargetQuery,
  lists: readonly Blocklist[],
): TargetFilters => ({
  ...rest,
  value,
  monitoringEnabled,
  severityRankMin: severity === undefined ? undefined : severityRankOf(severity),
  listings: list === undefined ? undefined : listingsNamed(list, lists),
});
