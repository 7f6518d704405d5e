import { Elysia } from "elysia";
import { AppError } from "../base/errors.ts";
import type { Allowance, Rate, TokenBuckets } from "../base/limits.ts";
import type { KeyMode } from "../base/secrets.ts";
import { abortIfClientGone } from "./client-gone.ts";
import { type Budgets, trackRequest } from "./request-memory.ts";
import { refuseOtherParameters } from "./query.ts";
import { allows, type Scope } from "./scopes.ts";

/** The API key of a request: its account, mode, scopes and rate limit. */
export interface Caller {
  readonly keyId: string;
  readonly accountId: string;
  readonly mode: KeyMode;
  readonly scopes: readonly string[];
  readonly rate: Rate;
}

export interface GuardDeps {
  /** Finds the caller by the `Authorization` header. */
  readonly authenticate: (authorization: string | null) => Caller | undefined;
  readonly buckets: TokenBuckets;
  readonly budgets: Budgets;
}

/** What a route asks of its caller. `scope: null` is content with any key. */
export interface Demand {
  readonly scope: Scope | null;
  /** Takes one token of the key's bucket for every request that passes the key and the scope. */
  readonly rateLimited?: boolean;
  /** Names of the query parameters that the route reads; any other is 400 `Invalid query`. Default: none. */
  readonly query?: readonly string[];
}

const REALM = 'Bearer realm="postwarden"';

const unauthorized = () =>
  new AppError("unauthorized", {
    message: "Missing or invalid API key. Send it as: Authorization: Bearer <API_KEY>",
    headers: { "www-authenticate": REALM },
  });

const insufficientScope = (required: Scope) =>
  new AppError("insufficient_scope", {
    message: `The API key does not have the scope ${required}.`,
    body: { required },
  });

const rateLimited = (retryAfterS: number) =>
  new AppError("rate_limited", { body: { retry_after: retryAfterS }, headers: { "retry-after": String(retryAfterS) } });

const setRateHeaders = (headers: Record<string, string | number>, rate: Rate, allowance: Allowance): void => {
  headers["ratelimit-limit"] = String(rate.perSecond);
  headers["ratelimit-remaining"] = String(allowance.remaining);
  headers["ratelimit-reset"] = String(allowance.resetS);
};

/** Those who need no key share what one account may hold. */
const NOBODY = "";

/** The checks before a route, in this order: key (401), scope (403), rate limit (429). */
export const createGuard = ({ authenticate, buckets, budgets }: GuardDeps) => {
  const admit = (
    request: Request,
    set: { headers: Record<string, string | number> },
    {
      scope,
      rateLimited: isRateLimited = false,
    }: { readonly scope: Scope | null | "open"; readonly rateLimited?: boolean },
  ): Caller => {
    const caller = authenticate(request.headers.get("authorization"));
    if (caller === undefined) throw unauthorized();
    if (scope !== null && scope !== "open" && !allows(caller.scopes, scope)) throw insufficientScope(scope);
    if (isRateLimited) {
      const allowance = buckets.take(caller.keyId, caller.rate);
      setRateHeaders(set.headers, caller.rate, allowance);
      if (!allowance.allowed) throw rateLimited(allowance.retryAfterS);
    }
    trackRequest(request, caller.accountId, budgets);
    return caller;
  };
  const plugin = new Elysia({ name: "guard" }).macro({
    demand: ({ scope, rateLimited = false, query = [] }: Demand) => ({
      async resolve({ request, set }) {
        const caller = admit(request, set, { scope, rateLimited });
        refuseOtherParameters(request, query);
        if (request.method !== "GET" && request.method !== "HEAD") await abortIfClientGone(request);
        return { caller };
      },
    }),
  });
  return Object.assign(plugin, {
    admit,
    /** For a route that needs no key. */
    admitAnyone: (request: Request): void => trackRequest(request, NOBODY, budgets),
  });
};

export type Guard = ReturnType<typeof createGuard>;
