import type { LogFields } from "../../foundation/base/log.ts";
import type { AttemptOrder, MadeAttempt } from "../attempts.ts";
import type { LoopDelay } from "../open.ts";
import type { EgressState } from "../smtp/open.ts";
import type { PausedReason } from "../smtp/outages.ts";
import type { TalliedNetwork } from "./network-tally.ts";

/** An order with the number that its outcome bears. */
export interface NumberedOrder extends AttemptOrder {
  readonly number: number;
}

/** What the service tells the thread. `drain`: make no further attempt, close every session, and say when that is done. */
export type ToThread =
  { readonly kind: "orders"; readonly orders: readonly NumberedOrder[] } | { readonly kind: "drain" };

/** How an order ended: made, not made because of `drain` (`closed`), or by a bug. */
export type OrderOutcome = { readonly number: number } & (
  | { readonly kind: "made"; readonly made: MadeAttempt }
  | { readonly kind: "closed" }
  | { readonly kind: "bug"; readonly error: Error }
);

/** What pages, metrics and lists read of the sessions with mail hosts. Plain data. */
export interface EngineState {
  readonly paused: PausedReason | null;
  /** A sentence about each outage, and about each egress that is broken. */
  readonly outages: readonly string[];
  readonly brokenEgresses: readonly string[];
  readonly egresses: readonly EgressState[];
  readonly cooldowns: number;
  readonly connections: number;
  readonly waiting: number;
  readonly hosts: number;
  /** How long ago a socket could last not be opened; null: never. Clocks of threads have different zeros. */
  readonly shortageAgoMs: number | null;
}

/** Before anything was done. */
export const IDLE_STATE: EngineState = {
  paused: null,
  outages: [],
  brokenEgresses: [],
  egresses: [],
  cooldowns: 0,
  connections: 0,
  waiting: 0,
  hosts: 0,
  shortageAgoMs: null,
};

/** What the thread tells the service. */
export type FromThread =
  /** Everything of one turn of its loop. */
  | { readonly kind: "outcomes"; readonly outcomes: readonly OrderOutcome[]; readonly delay: LoopDelay | null }
  /** `mayTry`: during an outage, one address may be tried now. */
  | {
      readonly kind: "state";
      readonly state: EngineState;
      readonly mayTry: boolean;
      /** What was counted and measured since the last time, for the metrics. */
      readonly tally: TalliedNetwork;
    }
  | {
      readonly kind: "log";
      readonly level: "debug" | "info" | "warn" | "error";
      readonly message: string;
      readonly fields: LogFields;
    }
  | { readonly kind: "drained" };
