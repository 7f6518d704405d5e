import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";

const MIB = 1024 * 1024;
/**
 * Request bodies in memory: a list as JSON has 8 MiB at most. The runtime keeps each body as it arrives: 64 MiB at once hold
 * the event loop for a third of a second.
 */
const BODY_LIMITS = { all: 256 * MIB, each: 16 * MIB };
/** Responses not sent yet: a page has at most 4 MiB. */
const ANSWER_LIMITS = { all: 256 * MIB, each: 64 * MIB };
const RETRY_S = 5;

/** Memory for request bodies and responses, over all callers. */
export interface Budgets {
  readonly bodies: ByteBudget;
  readonly answers: ByteBudget;
  readonly clock: Clock;
}

export const createBudgets = (clock: Clock): Budgets => ({
  bodies: new ByteBudget(BODY_LIMITS),
  answers: new ByteBudget(ANSWER_LIMITS),
  clock,
});

/** Memory of one request, and the account that it counts for. */
interface Holdings {
  readonly owner: string;
  readonly budgets: Budgets;
  bodyBytes: number;
}

const holdings = new WeakMap<Request, Holdings>();

/** From now on the bytes of a request count for `owner`: an account id, or "" for routes without a key. */
export const trackRequest = (request: Request, owner: string, budgets: Budgets): void =>
  void holdings.set(request, { owner, budgets, bodyBytes: 0 });

/** The account that a request counts for; null outside the service and for routes without a key. */
export const accountOfRequest = (request: Request): string | null => holdings.get(request)?.owner || null;

const unavailable = (message: string, headers: Readonly<Record<string, string>> = {}) =>
  new AppError("unavailable", { message, headers: { "retry-after": String(RETRY_S), ...headers } });

/** The rest of a larger body is not read: the connection closes after the response. */
const DRAINED_BYTES_MAX = 64 * 1024;

/** Counts bytes of a body until the response is sent; 503 above the limit. */
export const reserveBody = (request: Request, bytes: number): void => {
  const held = holdings.get(request);
  if (held === undefined) return;
  if (!held.budgets.bodies.take(held.owner, bytes))
    throw unavailable(
      "Too many large requests are in progress. Try again later.",
      bytes > DRAINED_BYTES_MAX ? { connection: "close" } : {},
    );
  held.bodyBytes += bytes;
};

/** The clock for the deadline of a request body; undefined outside the service. */
export const clockOf = (request: Request): Clock | undefined => holdings.get(request)?.budgets.clock;

/** Releases the memory of a request body, when the response is sent. */
export const releaseBody = (request: Request): void => {
  const held = holdings.get(request);
  if (held === undefined || held.bodyBytes === 0) return;
  held.budgets.bodies.give(held.owner, held.bodyBytes);
  held.bodyBytes = 0;
};

/** Bytes of a response, counted from when they are written until they are sent. */
export interface ResponseReservation {
  /** Counts more bytes; 503 above the limit. */
  add(bytes: number): void;
  /** Releases some bytes, or all that are left. */
  release(bytes?: number): void;
}

export const reserveResponse = (request: Request): ResponseReservation => {
  const held = holdings.get(request);
  let bytes = 0;
  return {
    add(more) {
      if (held !== undefined && !held.budgets.answers.take(held.owner, more))
        throw unavailable("Too many large responses are being sent. Read the open ones first.");
      bytes += more;
    },
    release(some = bytes) {
      const given = Math.min(some, bytes);
      bytes -= given;
      held?.budgets.answers.give(held.owner, given);
    },
  };
};

/** Limits in bytes: over all callers, and for each. */
interface ByteLimits {
  readonly all: number;
  readonly each: number;
}

/** Counts bytes held for callers, so that neither one nor all together exhaust the memory of the process. */
class ByteBudget {
  readonly #byOwner = new Map<string, number>();
  #held = 0;

  constructor(private readonly limits: ByteLimits) {}

  /** Bytes held now, over all callers. */
  get held(): number {
    return this.#held;
  }

  /** Returns false and takes nothing if that would exceed a limit. */
  take(owner: string, bytes: number): boolean {
    const own = (this.#byOwner.get(owner) ?? 0) + bytes;
    if (own > this.limits.each || this.#held + bytes > this.limits.all) return false;
    this.#byOwner.set(owner, own);
    this.#held += bytes;
    return true;
  }

  /** Releases bytes that were taken. */
  give(owner: string, bytes: number): void {
    const own = (this.#byOwner.get(owner) ?? 0) - bytes;
    if (own === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, own);
    this.#held -= bytes;
  }
}
