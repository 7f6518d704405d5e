import type { Clock } from "../../foundation/base/clock.ts";
import type { TargetDiscovery } from "../../blocklist/discovery.ts";
import type { ListStatuses } from "../../blocklist/list-status.ts";
import type { ListingNotesEditor } from "../../blocklist/listing-notes.ts";
import type { BlocklistMonitor } from "../../blocklist/monitor.ts";
import type { Mutes } from "../../blocklist/mutes.ts";
import type { RangeChecks } from "../../blocklist/range-check.ts";
import type { TargetActions } from "../../blocklist/target-actions.ts";
import type { TargetHistory } from "../../blocklist/target-history.ts";
import type { TargetTable } from "../../blocklist/target-table.ts";
import type { Targets } from "../../blocklist/targets.ts";
import { listsByMode } from "../../blocklist/test-list.ts";
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
