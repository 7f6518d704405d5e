import { DAY_MS } from "../base/days.ts";
import type { FormRules } from "../base/form-rules.ts";
import { clientKey } from "../base/cidr.ts";
import { BoundedMap } from "../base/bounded-map.ts";
import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import type { Allowance, TokenBuckets } from "../base/limits.ts";
import type { ClientAddresses } from "./client-addresses.ts";

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
const POLL_RATE = { perSecond: 2, burst: 20 };
const KEYS_COUNTED_MAX = 10_000;
const PREFLIGHT_S = 600;
const HOUR_S = 3_600;

const foreignOrigin = () =>
  new AppError("insufficient_scope", {
    message: "This publishable key may not be used from this origin. Add the origin to those of the key.",
    body: { required: "an allowed Origin" },
  });

export const onlyForForms = () =>
  new AppError("insufficient_scope", {
    message: "A publishable key may only verify an address, and poll that verification.",
    body: { required: "a secret key" },
  });

type Headers = Record<string, string | number>;

interface FormGateDeps {
  readonly clock: Clock;
  readonly buckets: TokenBuckets;
  /** How many verifications a key began since a time. */
  readonly countSince: (keyId: string, sinceMs: number) => number;
  /** Whether a valid key lists the origin. */
  readonly knowsOrigin: (origin: string) => boolean;
}

/** Admits requests of sign-up forms: they come from pages of others, with a key that anyone can read there. */
export class FormGate {
  #clients: Pick<ClientAddresses, "of"> | null = null;
  readonly #days = new BoundedMap<string, { readonly day: number; count: number }>(KEYS_COUNTED_MAX);

  constructor(private readonly deps: FormGateDeps) {}

  /** Sets what names the visitors; without it all visitors are one. */
  attach(clients: Pick<ClientAddresses, "of">): void {
    this.#clients = clients;
  }

  /** Response of a preflight: 204 for an origin that a key lists, else 403. No credentials are ever allowed. */
  preflight(request: Request, headers: Headers): void {
    headers.vary = "Origin";
    const origin = request.headers.get("origin");
    if (origin === null || !this.deps.knowsOrigin(origin)) throw foreignOrigin();
    headers["access-control-allow-origin"] = origin;
    headers["access-control-allow-methods"] = "GET, POST";
    headers["access-control-allow-headers"] = "authorization, content-type";
    headers["access-control-max-age"] = PREFLIGHT_S;
  }

  /** 403 for a foreign origin. Otherwise the page may read the response, whatever it becomes. */
  admitOrigin({ origins }: FormRules, request: Request, headers: Headers): void {
    headers.vary = "Origin";
    const origin = request.headers.get("origin");
    if (origin === null || !origins.includes(origin)) throw foreignOrigin();
    headers["access-control-allow-origin"] = origin;
    headers["access-control-expose-headers"] = "location, retry-after";
  }

  /** Takes one of the visitor's requests of this hour, or one of its polls. */
  takeVisitor(keyId: string, { visitorPerHour }: FormRules, request: Request): Allowance {
    const visitor = clientKey(this.#clients?.of(request) ?? "");
    if (request.method !== "POST") return this.deps.buckets.take(`poll:${keyId}:${visitor}`, POLL_RATE);
    const rate = { perSecond: visitorPerHour / HOUR_S, burst: Math.min(VISITOR_BURST_MAX, visitorPerHour) };
    return this.deps.buckets.take(`form:${keyId}:${visitor}`, rate);
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
