import type { JobPace } from "../../bulk/job-queries.ts";
import type { Preview } from "../../bulk/arrival/preview.ts";
import type { RowsPanelProps } from "./list-rows.tsx";
import type { ListFacts } from "./list-table.tsx";

/** What can be confirmed on the page of a list. */
export const CONFIRMATIONS = ["cancel", "delete", "retry"] as const;

export interface AddressListPageProps extends ListFacts {
  readonly pace: JobPace;
  /** Finished rows with an address by sub_status, most first. */
  readonly reasons: ReadonlyArray<{ readonly subStatus: string; readonly rows: number }>;
  readonly format: Preview["format"];
  readonly credits: { readonly held: number; readonly charged: number; readonly released: number };
  /** Rows whose result may be different another day. */
  readonly unsettledRows: number;
  readonly confirm: Confirmation | null;
  readonly rows: RowsPanelProps;
  readonly isTest: boolean;
}

/** What is asked before something is done that costs or cannot be undone. */
export type Confirmation =
  | { readonly kind: "cancel" }
  | { readonly kind: "delete" }
  | { readonly kind: "retry"; readonly addresses: number; readonly available: number };

/** Whether a list has not ended. */
export const isOpenList = ({ job }: Pick<ListFacts, "job">): boolean =>
  job.status === "running" || job.status === "queued";
