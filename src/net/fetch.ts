import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import type { DnsResolver } from "./dns.ts";
import { isDefinite } from "./dns.ts";
import type { OutgoingRules, OutgoingUrl } from "./fetch-url.ts";

export interface Post {
  readonly url: string;
  /** Lower-case names. `host` and `content-length` are set here. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Gives up the attempt; whether the receiver read it is then not known. */
  readonly signal?: AbortSignal;
}

/** What the receiver answered, of whatever status: redirects are not followed. */
export interface PostAnswer {
  readonly status: number;
  /** The beginning of the answer as UTF-8: 64 KiB at most, less when the rest did not come. */
  readonly body: string;
  /** The header of that name as it stands (RFC 9110 §10.2.3); null when there is none. */
  readonly retryAfter: string | null;
}

/**
 * Why there is no answer.
 *
 * - `url_refused`, `address_refused`: nothing was sent, for the rules forbid it.
 * - `dns`: the host's addresses are not to be had.
 * - `timeout`: no answer within 15 seconds, DNS included.
 * - `aborted`: the caller gave it up.
 * - `connection`: refused, reset, no valid certificate for the host.
 */
export interface PostFailure {
  readonly kind: "url_refused" | "address_refused" | "dns" | "timeout" | "aborted" | "connection";
  /** A sentence. */
  readonly problem: string;
}

export type Poster = (post: Post) => Promise<Result<PostAnswer, PostFailure>>;

export interface PosterDeps {
  readonly resolver: DnsResolver;
  readonly rules: OutgoingRules;
  readonly clock: Clock;
  /** Certificates (PEM) to trust in place of the usual ones. */
  readonly ca?: string;
}

export const POST_TIMEOUT_MS = 15_000;
export const ANSWER_BYTES_MAX = 64 * 1024;
/** What `localhost` is, without asking anybody (RFC 6761 §6.3). */
const LOOPBACK = "127.0.0.1";
/** Only a refused connection leads to the next address: whatever else happens, the receiver may have read the request. */
const ADDRESSES_TRIED_MAX = 4;

/**
 * Builds the one way by which users' URLs are posted to. At every call the URL is judged, every A and AAAA record of its
 * host is asked for and has to be allowed, and the connection goes to an address that was judged: there is no second
 * look at the DNS that somebody could answer differently. It never rejects for anything that the other side does.
 */
export const createPoster = (deps: PosterDeps): Poster => {
  const { resolver, rules, clock } = deps;

  const addressesOf = async (
    url: OutgoingUrl,
    signal: AbortSignal,
  ): Promise<Result<readonly string[], PostFailure>> => {
    if (url.isLiteral) return ok([url.host]);
    if (/(^|\.)localhost$/.test(url.host)) return ok([LOOPBACK]);
    const [a, aaaa] = await Promise.all([
      resolver.resolve(url.host, "A", { signal }),
      resolver.resolve(url.host, "AAAA", { signal }),
    ]);
    const addresses = [...a.records, ...aaaa.records];
    if (addresses.length > 0) return ok(addresses);
    const isKnown = isDefinite(a.outcome) && isDefinite(aaaa.outcome);
    return fail("dns", isKnown ? `${url.host} has no address.` : `The DNS has no answer about ${url.host}.`);
  };

  /** The certificate has to be that of the host's name; an address has none to tell (RFC 6066 §3). */
  const tlsFor = ({ isLiteral, host }: OutgoingUrl) => ({
    // Said, because NODE_TLS_REJECT_UNAUTHORIZED=0 would turn it off.
    rejectUnauthorized: true,
    ...(isLiteral ? {} : { serverName: host }),
    ...(deps.ca === undefined ? {} : { ca: deps.ca }),
  });

  const send = async (url: OutgoingUrl, { headers, body }: Post, addresses: readonly string[], signal: AbortSignal) => {
    let last: Result<PostAnswer, PostFailure> = fail("connection", "There is no address to connect to.");
    for (const address of addresses.slice(0, ADDRESSES_TRIED_MAX)) {
      try {
        const response = await fetch(urlAt(url, address), {
          method: "POST",
          headers: { ...headers, host: hostHeader(url) },
          body,
          signal,
          redirect: "manual",
          // A kept connection could be used again for another host at the same address.
          keepalive: false,
          // Not unpacked, so that a small answer stays small.
          decompress: false,
          ...(url.isSecure ? { tls: tlsFor(url) } : {}),
        });
        const retryAfter = response.headers.get("retry-after");
        return ok({ status: response.status, body: await readStart(response), retryAfter });
      } catch (error) {
        if (signal.aborted) return endOf(signal);
        last = fail("connection", sentenceOf(error));
        if (!isRefusal(error)) return last;
      }
    }
    return last;
  };

  return async (post) => {
    const parsed = rules.parse(post.url);
    if (!parsed.ok) return err(parsed.error);
    const url = parsed.value;
    const patience = new AbortController();
    const cancel = clock.after(POST_TIMEOUT_MS, () => patience.abort(TIMED_OUT));
    const giveUp = () => patience.abort(GIVEN_UP);
    post.signal?.addEventListener("abort", giveUp);
    try {
      const addresses = await addressesOf(url, patience.signal);
      if (patience.signal.aborted) return endOf(patience.signal);
      if (!addresses.ok) return addresses;
      const refused = addresses.value.find((address) => !rules.mayConnect(address, url.isSecure));
      if (refused !== undefined) {
        return fail("address_refused", `${url.host} leads to ${refused}, which may not be connected to.`);
      }
      return await send(url, post, addresses.value, patience.signal);
    } finally {
      cancel();
      post.signal?.removeEventListener("abort", giveUp);
    }
  };
};

const fail = (kind: PostFailure["kind"], problem: string) => err({ kind, problem });

const TIMED_OUT = fail("timeout", `There was no answer within ${POST_TIMEOUT_MS / 1000} seconds.`);

const GIVEN_UP = fail("aborted", "The attempt was given up.");

const endOf = ({ reason }: AbortSignal): typeof TIMED_OUT => (reason === GIVEN_UP ? GIVEN_UP : TIMED_OUT);

const urlAt = ({ isSecure, port, path }: OutgoingUrl, address: string): string =>
  `${isSecure ? "https" : "http"}://${address.includes(":") ? `[${address}]` : address}:${port}${path}`;

const hostHeader = ({ href }: OutgoingUrl): string => new URL(href).host;

const isRefusal = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ConnectionRefused" || error.code === "ECONNREFUSED");

const sentenceOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
  return `The connection failed${code}: ${text.replace(/\.?$/, ".")}`;
};

/** The status has been heard: a body that does not end takes nothing from it. */
const readStart = async (response: Response): Promise<string> => {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  try {
    while (bytes < ANSWER_BYTES_MAX) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
      bytes += value.byteLength;
    }
    await reader.cancel();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
  return Buffer.concat(chunks).subarray(0, ANSWER_BYTES_MAX).toString("utf8");
};
