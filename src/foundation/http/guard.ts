import { AppError } from "../base/errors.ts";
import type { Allowance, Rate, TokenBuckets } from "../base/limits.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { FormRules } from "../base/form-rules.ts";
import { type FormGate, onlyForForms } from "./form-gate.ts";
import { type Budgets, trackRequest } from "./request-memory.ts";
import { allows, type Scope } from "./scopes.ts";

/** The API key of a request: its account, mode, scopes and rate limit. */
export interface Caller {
  readonly keyId: string;
  readonly accountId: string;
  readonly mode: KeyMode;
  readonly scopes: readonly string[];
  readonly rate: Rate;
  /** Only domains with this tag exist for it; absent or null: all of the account. */
  readonly onlyTag?: string | null;
  /** Of a publishable key; absent or null for a secret one. */
  readonly forms?: FormRules | null;
}

/** Finds the caller by the `Authorization` header: `"disabled"` when the account is, undefined without a valid key. */
export type Authenticate = (authorization: string | null) => Caller | "disabled" | undefined;

const REALM = 'realm="postwarden"';

const BASIC_CHARACTERS_MAX = 1_000;

/** HTTP Basic (RFC 7617) whose password is an API key, as Bearer; every other header as it is. */
const asBearer = (authorization: string | null): string | null => {
  const encoded = /^Basic +([\w+/-]+=*) *$/i.exec(authorization?.slice(0, BASIC_CHARACTERS_MAX) ?? "")?.[1];
  if (encoded === undefined) return authorization;
  const pair = Buffer.from(encoded, "base64").toString("utf8");
  return `Bearer ${pair.slice(pair.indexOf(":") + 1)}`;
};

/** A header of all requests of Amazon SNS, which sends a password only after a challenge that it knows. */
const SNS_HEADER = "x-amz-sns-message-type";

const unauthorized = (scheme: "Bearer" | "Basic") =>
  new AppError("unauthorized", {
    message: "Missing or invalid API key. Send it as: Authorization: Bearer <API_KEY>",
    headers: { "www-authenticate": `${scheme} ${REALM}` },
  });

const accountDisabled = () =>
  new AppError("account_disabled", {
    message: "The account of this API key is disabled. Ask the operator to enable it.",
  });

export const insufficientScope = (required: Scope) =>
  new AppError("insufficient_scope", {
    message: `The API key does not have the scope ${required}.`,
    body: { required },
  });

const rateLimited = (retryAfterS: number, what = "Too many requests.") =>
  new AppError("rate_limited", {
    message: `${what} Try again in ${retryAfterS} s.`,
    body: { retry_after: retryAfterS },
    headers: { "retry-after": String(retryAfterS) },
  });

const setRateHeaders = (headers: Record<string, string | number>, rate: Rate, allowance: Allowance) => {
  headers["ratelimit-limit"] = String(rate.perSecond);
  headers["ratelimit-remaining"] = String(allowance.remaining);
  headers["ratelimit-reset"] = String(allowance.resetS);
};

/** Requests without a key share the memory of one account. */
const NOBODY = "";

interface GuardOptions {
  readonly buckets: TokenBuckets;
  readonly budgets: Budgets;
  /** Admits publishable keys; without it none is. */
  readonly formGate?: FormGate | null;
  /** Called for every request that is refused with 429. */
  readonly onRateLimited?: (caller: Caller) => void;
  /** Performs what a key changes, with its entry in the audit log. */
  readonly perform?: <T>(caller: Caller, done: Done, act: Act<T>) => Promise<T>;
}

/** A change for the audit log: what was done, and the id in the path of the request. */
export interface Done {
  readonly action: string;
  readonly subject: string | null;
}

/** What a request does. */
export interface Act<T> {
  readonly work: () => Promise<T>;
  /** Whether the audit log also has it when it changed no row. */
  readonly isRecordedUnchanged: (value: T) => boolean;
}

const nothing = () => undefined;

/** The checks before a route, in this order: key (401), account and scope (403), rate limit (429). */
export class Guard {
  readonly #buckets: TokenBuckets;
  readonly #budgets: Budgets;
  readonly #formGate: FormGate | null;
  readonly #onRateLimited: (caller: Caller) => void;
  readonly #perform: NonNullable<GuardOptions["perform"]>;

  constructor(
    private readonly authenticate: Authenticate,
    {
      buckets,
      budgets,
      formGate = null,
      onRateLimited = nothing,
      perform = (_caller, _done, { work }) => work(),
    }: GuardOptions,
  ) {
    this.#formGate = formGate;
    this.#perform = perform;
    this.#buckets = buckets;
    this.#budgets = budgets;
    this.#onRateLimited = onRateLimited;
  }

  /** The caller of a request to a route that needs a key. Sets the rate limit headers of a rate-limited route. */
  admit(
    request: Request,
    set: { readonly headers: Record<string, string | number> },
    route: {
      readonly scope: Scope | null | "open";
      readonly rateLimited?: boolean;
      readonly acceptsBasic?: true;
      readonly forForms?: boolean;
    },
  ): Caller {
    const given = request.headers.get("authorization");
    const caller = this.authenticate(route.acceptsBasic === true ? asBearer(given) : given);
    if (caller === undefined)
      throw unauthorized(route.acceptsBasic === true && request.headers.has(SNS_HEADER) ? "Basic" : "Bearer");
    if (caller === "disabled") throw accountDisabled();
    const { scope } = route;
    const { forms = null } = caller;
    if (forms !== null) this.#admitForm(caller, forms, { request, set, route });
    if (scope !== null && scope !== "open" && !allows(caller.scopes, scope)) throw insufficientScope(scope);
    if (route.rateLimited === true) {
      const allowance = this.#buckets.take(caller.keyId, caller.rate);
      setRateHeaders(set.headers, caller.rate, allowance);
      if (!allowance.allowed) {
        this.#onRateLimited(caller);
        throw rateLimited(allowance.retryAfterS);
      }
      if (forms !== null) {
        const what = `The publishable key has verified its ${forms.perDay} addresses of this day (UTC).`;
        this.#requireTime(caller, this.#formGate?.takeOfDay(caller.keyId, forms) ?? 0, what);
      }
    }
    trackRequest(request, caller.accountId, this.#budgets);
    return caller;
  }

  /** The checks of a publishable key: the route and the origin (403), and the limit of the visitor (429). */
  #admitForm(
    caller: Caller,
    forms: FormRules,
    {
      request,
      set,
      route,
    }: {
      readonly request: Request;
      readonly set: { readonly headers: Record<string, string | number> };
      readonly route: { readonly forForms?: boolean };
    },
  ) {
    if (this.#formGate === null || route.forForms !== true) throw onlyForForms();
    this.#formGate.admitOrigin(forms, request, set.headers);
    const what = "Too many requests from this visitor or its network.";
    this.#requireTime(caller, this.#formGate.takeVisitor(caller.keyId, forms, request), what);
  }

  #requireTime(caller: Caller, retryAfterS: number, what: string) {
    if (retryAfterS === 0) return;
    this.#onRateLimited(caller);
    throw rateLimited(retryAfterS, what);
  }

  /** Responds to the question of a browser whether a page of another origin may verify: 429 above the limit of its visitor. */
  admitPreflight(request: Request, headers: Record<string, string | number>): void {
    this.admitAnyone(request);
    const retryAfterS = this.#formGate?.takePreflight(request) ?? 0;
    if (retryAfterS > 0) throw rateLimited(retryAfterS);
    if (this.#formGate === null) throw onlyForForms();
    this.#formGate.preflight(request, headers);
  }

  /** The change of a request and its entry in the audit log are one transaction. */
  perform<T>(caller: Caller, done: Done, act: Act<T>): Promise<T> {
    return this.#perform(caller, done, act);
  }

  /** For a page of the dashboard: its memory counts for the account. */
  admitUser(request: Request, accountId: string): void {
    trackRequest(request, accountId, this.#budgets);
  }

  /** The rate limit of verifications that are requested on the dashboard, counted per account; 429 above it. */
  limitUser({ accountId, rate }: Pick<Caller, "accountId" | "rate">): void {
    const { allowed, retryAfterS } = this.#buckets.take(`account:${accountId}`, rate);
    if (!allowed) throw rateLimited(retryAfterS);
  }

  /** For a route that needs no key. */
  admitAnyone(request: Request): void {
    trackRequest(request, NOBODY, this.#budgets);
  }
}
