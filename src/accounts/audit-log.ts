import { hostname } from "node:os";
import { isoTime } from "../base/clock.ts";
import { ownUserId, userNameOf } from "../base/os-user.ts";
import type { Tx } from "../db/open.ts";
import type { Runtime } from "../db/runtime.ts";
import type { AuditEntry, AuditFilters, AuditStore } from "./audit-store.ts";

/** Who acts: a user of the operating system, and the process. */
export interface Actor {
  readonly user: string;
  readonly host: string;
  readonly pid: number;
}

type Values = Readonly<Record<string, unknown>>;

/** An action, with the values that it changed. Never put a secret or an email address in: entries cannot be erased. */
export interface AuditedAction {
  readonly action: string;
  readonly accountId: string | null;
  readonly subject: string | null;
  readonly before?: Values;
  readonly after?: Values;
  /** Who acted, where it was not the process: a user of the dashboard, by its id. */
  readonly by?: string | undefined;
  /** The same for an API key, by its id. */
  readonly byKey?: string;
}

/** The actor of this process. `caller` is the user who used sudo. */
export const actorOfProcess = (caller?: string): Actor => {
  const user = userNameOf(ownUserId());
  const isSudo = caller !== undefined && caller !== "" && caller !== user;
  return { user: isSudo ? `${caller} (as ${user})` : user, host: hostname(), pid: process.pid };
};

const jsonOf = (values: Values | undefined): string | null => (values === undefined ? null : JSON.stringify(values));
const valuesOf = (text: string | null): unknown => (text === null ? null : JSON.parse(text));

/** An entry as it is shown. */
export const auditView = ({ id, atMs, user, host, pid, action, accountId, subject, before, after }: AuditEntry) => ({
  ...{ id, at: isoTime(atMs), user, host, pid, action, account_id: accountId, subject },
  before: valuesOf(before),
  after: valuesOf(after),
});

/** The append-only log of administrative actions: who did what, when, and the values before and after. */
export class AuditLog {
  readonly #clock: Runtime["clock"];
  readonly #store: AuditStore;
  readonly #actor: Actor;

  constructor(clock: Runtime["clock"], store: AuditStore, actor: Actor) {
    this.#clock = clock;
    this.#store = store;
    this.#actor = actor;
  }

  /** Appends an entry in the transaction of the action, so that neither exists without the other. */
  append(tx: Tx, { before, after, by, byKey, ...action }: AuditedAction): void {
    const user = by === undefined ? (byKey === undefined ? this.#actor.user : `key ${byKey}`) : `user ${by}`;
    const actor = { ...this.#actor, user };
    const atMs = this.#clock.nowMs();
    this.#store.insert(tx, { ...actor, ...action, atMs, before: jsonOf(before), after: jsonOf(after) });
  }

  /** The newest entries first. */
  list(filters: AuditFilters, page: { readonly before: number | null; readonly limit: number }): AuditEntry[] {
    return this.#store.list(filters, page);
  }
}
