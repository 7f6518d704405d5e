import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { ByteBudget } from "./byte-budget.ts";

const MIB = 1024 * 1024;
/** Request bodies in memory: a list as JSON has 8 MiB at most. */
const BODY_LIMITS = { all: 256 * MIB, each: 64 * MIB };
/** Answers that are being written or that nobody has read yet: a page has 4 MiB at most. */
const ANSWER_LIMITS = { all: 256 * MIB, each: 64 * MIB };
const RETRY_S = 5;

/** What the requests of all callers hold in memory. */
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

/** What one request holds, on whose account. */
interface Holdings {
  readonly owner: string;
  readonly budgets: Budgets;
  bodyBytes: number;
}

const holdings = new WeakMap<Request, Holdings>();

/** From here on the bytes of a request count for `owner`: an account, or "" for those who need no key. */
export const holdFor = (request: Request, owner: string, budgets: Budgets): void =>
  void holdings.set(request, { owner, budgets, bodyBytes: 0 });

/** The account that a request is counted for; null outside of the service and for those who need no key. */
export const ownerOf = (request: Request): string | null => holdings.get(request)?.owner || null;

const unavailable = (message: string, headers: Readonly<Record<string, string>> = {}) =>
  new AppError("unavailable", { message, headers: { "retry-after": String(RETRY_S), ...headers } });

/** What is left of a larger body is not read only to be thrown away: the connection ends with the answer. */
const DRAINED_BYTES_MAX = 64 * 1024;

/** Counts bytes of a body until the request is answered; 503 when too many are open. */
export const holdBody = (request: Request, bytes: number): void => {
  const held = holdings.get(request);
  if (held === undefined) return;
  if (!held.budgets.bodies.take(held.owner, bytes))
    throw unavailable(
      "Too many large requests are open. Wait until some are answered.",
      bytes > DRAINED_BYTES_MAX ? { connection: "close" } : {},
    );
  held.bodyBytes += bytes;
};

/** The clock by which a request's body is late; undefined outside of the service. */
export const clockOf = (request: Request): Clock | undefined => holdings.get(request)?.budgets.clock;

/** Gives back what the body of a request took: it is answered. */
export const releaseBody = (request: Request): void => {
  const held = holdings.get(request);
  if (held === undefined || held.bodyBytes === 0) return;
  held.budgets.bodies.give(held.owner, held.bodyBytes);
  held.bodyBytes = 0;
};

/** Bytes of an answer, from when they are written until they are sent. */
export interface HeldAnswer {
  /** Counts some more; 503 when too much is unsent. */
  add(bytes: number): void;
  /** Gives back some, or all that is left. */
  release(bytes?: number): void;
}

export const holdAnswer = (request: Request): HeldAnswer => {
  const held = holdings.get(request);
  let bytes = 0;
  return {
    add(more) {
      if (held !== undefined && !held.budgets.answers.take(held.owner, more))
        throw unavailable("Too many large responses are being sent. Read those that are open.");
      bytes += more;
    },
    release(some = bytes) {
      const given = Math.min(some, bytes);
      bytes -= given;
      held?.budgets.answers.give(held.owner, given);
    },
  };
};
