import { DAY_MS } from "../base/days.ts";
import type { FormRules } from "../base/form-rules.ts";
import { clientKey, networkKey } from "../base/cidr.ts";
import { BoundedMap } from "../base/bounded-map.ts";
import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { createTokenBuckets, type Rate, type TokenBuckets } from "../base/limits.ts";
import type { ClientAddresses } from "./client-addresses.ts";
import type { UrlOfRequest } from "./request-target.ts";

export const ORIGINS_MAX = 20;
const ORIGIN_CHARACTERS_MAX = 260;
const LOCAL_HOSTS: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** The origin as browsers send it: `https://name[:port]`, or http for this machine. Null for anything else. */
export const readOrigin = (text: string): string | null => {
  if (text.length > ORIGIN_CHARACTERS_MAX || !URL.canParse(text)) return null;
  const { origin, protocol, hostname, pathname, search, hash, username, password } = new URL(text);
  if (pathname !== "/" || `${search}${hash}${username}${password}` !== "" || hostname.includes("*")) return null;
  return protocol === "https:" || (protocol === "http:" && LOCAL_HOSTS.has(hostname)) ? origin : null;
};

const VISITOR_BURST_MAX = 10;
/** Polls of a visitor, and preflights, which browsers repeat after `PREFLIGHT_S`. */
const READ_RATE = { perSecond: 2, burst: 20 };
/** All visitors of a network, a /24 or the /48 of IPv6 addresses, have together what this many visitors have. */
const NETWORK_VISITORS = 10;
const BUCKETS_MAX = 20_000;
const KEYS_COUNTED_MAX = 10_000;
const PREFLIGHT_S = 600;
const ORIGINS_MS = 1_000;
const HOUR_S = 3_600;

const foreignOrigin = () =>
  new AppError("origin_not_allowed", {
    message: "This origin is not one of the publishable key. Add the origin of the page to the key.",
  });

export const onlyForForms = () =>
  new AppError("insufficient_scope", {
    message: "A publishable key may only verify an address, and poll that verification.",
    body: { required: "a secret key" },
  });

type Headers = Record<string, string | number>;

interface FormGateDeps {
  readonly clock: Clock;
  /** How many verifications a key began since a time. */
  readonly countSince: (keyId: string, sinceMs: number) => number;
  /** The origins of all valid keys. */
  readonly readOrigins: () => ReadonlySet<string>;
}

/** Admits requests of sign-up forms: they come from pages of others, with a key that anyone can read there. */
export class FormGate {
  #clients: Pick<ClientAddresses, "of"> | null = null;
  #urlOf: UrlOfRequest | null = null;
  #known: { readonly origins: ReadonlySet<string>; readonly atMs: number } | null = null;
  readonly #days = new BoundedMap<string, { readonly day: number; count: number }>(KEYS_COUNTED_MAX);
  readonly #visitors: TokenBuckets;
  readonly #networks: TokenBuckets;

  constructor(private readonly deps: FormGateDeps) {
    this.#visitors = createTokenBuckets(deps.clock, BUCKETS_MAX);
    this.#networks = createTokenBuckets(deps.clock, BUCKETS_MAX);
  }

  /** Sets what names the visitors, without which all are one, and the service itself, whose own pages may try a key. */
  attach(clients: Pick<ClientAddresses, "of">, urlOf: UrlOfRequest | null = null): void {
    this.#clients = clients;
    this.#urlOf = urlOf;
  }

  /** Takes one of the preflights of a visitor: 0, or the seconds until the next one. */
  takePreflight(request: Request): number {
    return this.#take("preflight", READ_RATE, request);
  }

  /** Response of a preflight: 204 for an origin that a key lists, else 403. No credentials are ever allowed. */
  preflight(request: Request, headers: Headers): void {
    headers.vary = "Origin";
    const origin = request.headers.get("origin");
    if (origin === null || !this.#origins().has(origin)) throw foreignOrigin();
    headers["access-control-allow-origin"] = origin;
    headers["access-control-allow-methods"] = "GET, POST";
    headers["access-control-allow-headers"] = "authorization, content-type";
    headers["access-control-max-age"] = PREFLIGHT_S;
  }

  /** Anyone can send preflights without a key, so they read the origins of all keys once a second at most. */
  #origins(): ReadonlySet<string> {
    const nowMs = this.deps.clock.monotonicMs();
    if (this.#known === null || nowMs - this.#known.atMs >= ORIGINS_MS)
      this.#known = { origins: this.deps.readOrigins(), atMs: nowMs };
    return this.#known.origins;
  }

  /** 403 for a foreign origin. Otherwise the page may read the response, whatever it becomes. */
  admitOrigin({ origins }: FormRules, request: Request, headers: Headers): void {
    headers.vary = "Origin";
    const origin = request.headers.get("origin");
    if (origin === null || !(origins.includes(origin) || this.#isOwn(origin, request))) throw foreignOrigin();
    headers["access-control-allow-origin"] = origin;
    headers["access-control-expose-headers"] = "location, retry-after";
  }

  #isOwn(origin: string, request: Request): boolean {
    const url = this.#urlOf?.(request);
    return url !== undefined && URL.parse(url)?.origin === origin;
  }

  /** Takes one of the visitor's requests of this hour, or one of its polls: 0, or the seconds until the next one. */
  takeVisitor(keyId: string, { visitorPerHour }: FormRules, request: Request): number {
    if (request.method !== "POST") return this.#take(`poll ${keyId}`, READ_RATE, request);
    const rate = { perSecond: visitorPerHour / HOUR_S, burst: Math.min(VISITOR_BURST_MAX, visitorPerHour) };
    return this.#take(`form ${keyId}`, rate, request);
  }

  /** How many visitors and networks are counted. */
  counted(): { readonly visitors: number; readonly networks: number } {
    return { visitors: this.#visitors.size(), networks: this.#networks.size() };
  }

  /** Takes from the visitor, then from its network: one that has many addresses leaves the others their share. */
  #take(purpose: string, { perSecond, burst }: Rate, request: Request): number {
    const client = this.#clients?.of(request) ?? "";
    const visitor = this.#visitors.take(`${purpose} ${clientKey(client)}`, { perSecond, burst });
    if (!visitor.allowed) return visitor.retryAfterS;
    const shared = { perSecond: perSecond * NETWORK_VISITORS, burst: burst * NETWORK_VISITORS };
    return this.#networks.take(`${purpose} ${networkKey(client)}`, shared).retryAfterS;
  }

  /** Takes one of the key's verifications of the day: 0, or the seconds until the next day when none is left. */
  takeOfDay(keyId: string, { perDay }: FormRules): number {
    const nowMs = this.deps.clock.nowMs();
    const day = Math.floor(nowMs / DAY_MS);
    let counted = this.#days.get(keyId);
    if (counted?.day !== day) {
      counted = { day, count: this.deps.countSince(keyId, day * DAY_MS) };
      this.#days.set(keyId, counted);
    }
    if (counted.count >= perDay) return Math.ceil(((day + 1) * DAY_MS - nowMs) / 1_000);
    counted.count += 1;
    return 0;
  }
}
