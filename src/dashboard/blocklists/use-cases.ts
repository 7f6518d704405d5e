import type { Clock } from "../../foundation/base/clock.ts";
import type { TargetDiscovery } from "../../blocklist/discovery.ts";
import type { ListStatuses } from "../../blocklist/list-status.ts";
import type { ListingNotesEditor } from "../../blocklist/listings.ts";
import type { BlocklistMonitor, RangeChecks } from "../../blocklist/monitor.ts";
import type { Mutes } from "../../blocklist/muting.ts";
import type { TargetActions, Targets } from "../../blocklist/targets.ts";
import type { TargetHistory } from "../../blocklist/target-history.ts";
import type { TargetTable } from "../../blocklist/target-table.ts";
import { listsByMode } from "../../blocklist/target-lookup.ts";
import type { KeyMode } from "../../foundation/base/secrets.ts";
import type { Catalogue } from "../../blocklist/lists/blocklist.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";

/** What the pages about blocklists use. */
export interface BlocklistUseCases {
  readonly clock: Clock;
  /** Which webhook URLs are allowed. */
  readonly rules: UrlPolicy;
  readonly catalogue: Catalogue;
  readonly targets: Targets;
  readonly table: TargetTable;
  readonly history: TargetHistory;
  readonly statuses: ListStatuses;
  readonly mutes: Mutes;
  readonly actions: TargetActions;
  readonly notes: ListingNotesEditor;
  readonly monitor: BlocklistMonitor;
  readonly rangeChecks: RangeChecks;
  readonly discovery: TargetDiscovery;
}

/** List or listing → name. */
export const namesIn = ({ lists }: Catalogue, mode: KeyMode): ReadonlyMap<string, string> =>
  new Map(
    listsByMode(lists)[mode].flatMap(({ id, name, codes }) => [
      ...codes.map((code) => [code.id, code.name] as const),
      [id, name] as const,
    ]),
  );
