import { isIP } from "node:net";
import { isInNetworks, parseCidrs, parseIp } from "../base/cidr.ts";
import { err, ok, type Result, errorCode, errorText } from "../base/errors.ts";
import { createAddressPolicy } from "./public-address.ts";
import type { Clock } from "../base/clock.ts";
import { withDeadline } from "../base/wait.ts";
import { type DnsResolver, isDefinite } from "./dns.ts";

/** A URL that may be posted to, in its normal form. */
interface PolicyUrl {
  /** As WHATWG writes it: host in A-labels, an IPv4 address in dotted form whatever notation it came in. */
  readonly href: string;
  readonly isSecure: boolean;
  /** A host name, or an IP address without brackets. */
  readonly host: string;
  readonly isLiteral: boolean;
  readonly port: number;
  /** Path and query. */
  readonly path: string;
}

/** Why a URL is refused. `problem` is a sentence. */
interface UrlProblem {
  readonly kind: "url_refused";
  readonly problem: string;
}

/** What may be posted to from here. */
export interface UrlPolicy {
  /** Reads a URL and judges all of it that needs no DNS. */
  parse(text: string): Result<PolicyUrl, UrlProblem>;
  /** Whether an address may be connected to; without TLS only inside the allowed networks. */
  mayConnect(address: string, isSecure: boolean): boolean;
}

const URL_CHARACTERS_MAX = 2_048;
/** Below this, only 80 and 443: other well-known services do not expect HTTP, and some can be attacked with it. */
const FIRST_FREE_PORT = 1_024;
const HTTPS_PORT = 443;
const HTTP_PORT = 80;

/**
 * The rules for URLs that users give: https on the public internet; inside `allowNetworks` also http and addresses that
 * are not public. No credentials, no fragment, no port below 1024 but 443 and 80.
 */
export const createUrlPolicy = (allowNetworks: readonly string[]): UrlPolicy => {
  const policy = createAddressPolicy(allowNetworks);
  const networks = parseCidrs(allowNetworks);
  const isAllowedNetwork = (address: string) => isInNetworks(networks, parseIp(address));
  const mayConnect = (address: string, isSecure: boolean) =>
    policy.isAllowed(address) && (isSecure || isAllowedNetwork(address));

  return {
    mayConnect,
    parse(text) {
      const read = readUrl(text);
      if (!read.ok) return read;
      const { host, isLiteral, isSecure } = read.value;
      if (!isSecure && (isLiteral ? !isAllowedNetwork(host) : networks.length === 0)) {
        return refuse("An https URL is needed: http is for hosts in the networks that the operator allowed.");
      }
      if (isLiteral && !mayConnect(host, isSecure)) return refuse(`The address ${host} is not public.`);
      const isSingleLabel = !isLiteral && !host.replace(/\.$/, "").includes(".");
      if (isSingleLabel && networks.length === 0) return refuse(`"${host}" is not the name of a public host.`);
      return read;
    },
  };
};

const refuse = (problem: string) => err({ kind: "url_refused", problem } as const);

const readUrl = (text: string): Result<PolicyUrl, UrlProblem> => {
  // The URL parser drops white space and turns backslashes: what is judged must be what was written.
  const isPlain = text.length <= URL_CHARACTERS_MAX && !/[\s\p{Cc}\\]/u.test(text);
  const url = isPlain && /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null)
    return refuse(`A URL such as https://example.com/hook of up to ${URL_CHARACTERS_MAX} characters is needed.`);
  if (url.username !== "" || url.password !== "") return refuse("A URL with a user name or password is not accepted.");
  if (text.includes("#")) return refuse("A URL with a fragment (#…) is not accepted.");
  const isSecure = url.protocol === "https:";
  const ownPort = isSecure ? HTTPS_PORT : HTTP_PORT;
  const port = url.port === "" ? ownPort : Number(url.port);
  if (port !== ownPort && port < FIRST_FREE_PORT) {
    return refuse(`The port ${port} is not accepted: leave it out, or use one from ${FIRST_FREE_PORT} on.`);
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const isLiteral = isIP(host) !== 0;
  return ok({ href: url.href, isSecure, host, isLiteral, port, path: url.pathname + url.search });
};

export interface Post {
  readonly url: string;
  /** Lower-case names. `host` and `content-length` are set here. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Gives up the attempt; whether the receiver read it is then not known. */
  readonly signal?: AbortSignal;
}

/** The response of the receiver, of any status: redirects are not followed. */
interface PostResponse {
  readonly status: number;
  /** The beginning of the response as UTF-8: 64 KiB at most, less when the connection ended early. */
  readonly body: string;
  /** The header of that name, unparsed (RFC 9110 §10.2.3); null when there is none. */
  readonly retryAfter: string | null;
}

/**
 * Why there is no response.
 *
 * - `url_refused`, `address_refused`: not allowed; nothing was sent.
 * - `dns`: the addresses of the host could not be resolved.
 * - `timeout`: no response within 15 seconds, DNS included.
 * - `aborted`: the caller cancelled it.
 * - `connection`: refused, reset, no valid certificate for the host.
 */
interface PostFailure {
  readonly kind: "url_refused" | "address_refused" | "dns" | "timeout" | "aborted" | "connection";
  /** A sentence. */
  readonly problem: string;
}

export type Poster = (post: Post) => Promise<Result<PostResponse, PostFailure>>;

/** The response of a server to a GET, of any status: redirects are not followed. */
interface GetResponse {
  readonly status: number;
  /** As UTF-8: 64 KiB at most. */
  readonly body: string;
  /** False when the body is longer, or its rest did not arrive. */
  readonly isWhole: boolean;
  /** Of the header, in lower case and without parameters; null when there is none. */
  readonly contentType: string | null;
}

/** `certificate`: the server was reached, and its certificate is not valid for the host. Else as for a post. */
interface GetFailure {
  readonly kind: PostFailure["kind"] | "certificate";
  /** A sentence. */
  readonly problem: string;
}

export type Getter = (get: Pick<Post, "url" | "headers" | "signal">) => Promise<Result<GetResponse, GetFailure>>;

interface PosterDeps {
  readonly resolver: DnsResolver;
  readonly rules: UrlPolicy;
  readonly clock: Clock;
  /** Certificates (PEM) to trust in place of the usual ones. */
  readonly ca?: string;
}

export const POST_TIMEOUT_MS = 15_000;
export const RESPONSE_BYTES_MAX = 64 * 1024;
/** The address of `localhost`, without a DNS query (RFC 6761 §6.3). */
const LOOPBACK = "127.0.0.1";
/** Only a refused connection leads to the next address: whatever else happens, the receiver may have read the request. */
const ADDRESSES_TRIED_MAX = 4;

/**
 * Builds the one way by which users' URLs are posted to. At every call the URL is judged, every A and AAAA record of its
 * host is resolved and has to be allowed, and the connection goes to an address that was checked: there is no second
 * DNS lookup with another result. It never rejects for anything that the other side does.
 */
export const createPoster = (deps: PosterDeps): Poster => {
  const exchange = createExchange(deps);
  return async (post) => {
    const exchanged = await exchange({ ...post, method: "POST" });
    if (!exchanged.ok) {
      const { kind, problem } = exchanged.error;
      return err({ kind: kind === "certificate" ? "connection" : kind, problem });
    }
    const { response, body } = exchanged.value;
    return ok({ status: response.status, body, retryAfter: response.headers.get("retry-after") });
  };
};

/** Builds the one way by which documents of other domains are fetched, with the same checks as `createPoster`. */
export const createGetter = (deps: PosterDeps): Getter => {
  const exchange = createExchange(deps);
  return async (get) => {
    const exchanged = await exchange({ ...get, method: "GET" });
    if (!exchanged.ok) return exchanged;
    const { response, body, isWhole } = exchanged.value;
    const contentType = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
    return ok({ status: response.status, body, isWhole, contentType: contentType ?? null });
  };
};

interface Exchange extends Omit<Post, "body"> {
  readonly method: "GET" | "POST";
  readonly body?: string;
}

interface Exchanged {
  readonly response: Response;
  readonly body: string;
  readonly isWhole: boolean;
}

const createExchange = ({ resolver, rules, clock, ca }: PosterDeps) =>
  async function exchange(order: Exchange): Promise<Result<Exchanged, GetFailure>> {
    const parsed = rules.parse(order.url);
    if (!parsed.ok) return err(parsed.error);
    const url = parsed.value;
    return withDeadline(clock, { timeoutMs: POST_TIMEOUT_MS, signal: order.signal }, async (signal) => {
      const addresses = await addressesOf(resolver, url, signal);
      if (signal.aborted) return failureOf(signal);
      if (!addresses.ok) return addresses;
      const refused = addresses.value.find((address) => !rules.mayConnect(address, url.isSecure));
      if (refused !== undefined) {
        return fail("address_refused", `${url.host} resolves to ${refused}, which is not an allowed address.`);
      }
      return await send({ ...order, url, signal, tls: tlsFor(url, ca) }, addresses.value);
    });
  };

const addressesOf = async (
  resolver: DnsResolver,
  url: PolicyUrl,
  signal: AbortSignal,
): Promise<Result<readonly string[], GetFailure>> => {
  if (url.isLiteral) return ok([url.host]);
  if (/(^|\.)localhost$/.test(url.host)) return ok([LOOPBACK]);
  const [a, aaaa] = await Promise.all([
    resolver.resolve(url.host, "A", { signal }),
    resolver.resolve(url.host, "AAAA", { signal }),
  ]);
  const addresses = [...a.records, ...aaaa.records];
  if (addresses.length > 0) return ok(addresses);
  const isKnown = isDefinite(a.outcome) && isDefinite(aaaa.outcome);
  return fail("dns", isKnown ? `${url.host} has no address.` : `${url.host} could not be resolved.`);
};

/** The certificate has to be valid for the host name; an address has none (RFC 6066 §3). */
const tlsFor = ({ isLiteral, host }: PolicyUrl, ca: string | undefined) => ({
  // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would disable it.
  rejectUnauthorized: true,
  ...(isLiteral ? {} : { serverName: host }),
  ...(ca === undefined ? {} : { ca }),
});

/** A request whose URL and addresses have been checked. */
interface JudgedExchange extends Omit<Exchange, "url"> {
  readonly url: PolicyUrl;
  readonly signal: AbortSignal;
  readonly tls: ReturnType<typeof tlsFor>;
}

const send = async (
  { url, method, headers, body, signal, tls }: JudgedExchange,
  addresses: readonly string[],
): Promise<Result<Exchanged, GetFailure>> => {
  let last: Result<Exchanged, GetFailure> = fail("connection", "There is no address to connect to.");
  for (const address of addresses.slice(0, ADDRESSES_TRIED_MAX)) {
    try {
      const response = await fetch(urlAt(url, address), {
        method,
        headers: { ...headers, host: hostHeader(url) },
        ...(body === undefined ? {} : { body }),
        signal,
        redirect: "manual",
        // A kept connection could be used again for another host at the same address.
        keepalive: false,
        // Not decompressed, so that a small response stays small.
        decompress: false,
        ...(url.isSecure ? { tls } : {}),
      });
      return ok({ response, ...(await readStart(response)) });
    } catch (error) {
      if (signal.aborted) return failureOf(signal);
      last = fail(isCertificateError(error) ? "certificate" : "connection", sentenceOf(error));
      if (!isRefusal(error)) return last;
    }
  }
  return last;
};

const fail = (kind: GetFailure["kind"], problem: string) => err({ kind, problem });

const failureOf = ({ reason }: AbortSignal) =>
  reason === "timeout"
    ? fail("timeout", `There was no response within ${POST_TIMEOUT_MS / 1000} seconds.`)
    : fail("aborted", "The request was cancelled.");

const urlAt = ({ isSecure, port, path }: PolicyUrl, address: string) =>
  `${isSecure ? "https" : "http"}://${address.includes(":") ? `[${address}]` : address}:${port}${path}`;

const hostHeader = ({ href }: PolicyUrl) => new URL(href).host;

const isRefusal = (error: unknown) => ["ConnectionRefused", "ECONNREFUSED"].includes(errorCode(error));

/** Certificate errors of BoringSSL, as Bun and Node name them. */
const CERTIFICATE_CODES = /CERT|SELF_SIGNED|ALTNAME|UNABLE_TO_(?:VERIFY|GET_ISSUER)/;

const isCertificateError = (error: unknown) => CERTIFICATE_CODES.test(errorCode(error));

/** What the most frequent certificate errors mean. */
const CERTIFICATE_WORDS: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: "the certificate is for another name",
  CERT_HAS_EXPIRED: "the certificate has expired",
  CERT_NOT_YET_VALID: "the certificate is not valid yet",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "an unknown authority issued the certificate",
  UNABLE_TO_GET_ISSUER_CERT: "the chain of the certificate is incomplete, or its authority unknown",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "the chain of the certificate is incomplete, or its authority unknown",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the chain of the certificate is incomplete, or its authority unknown",
};

/** Advice of the runtime to programmers. */
const HINT = / (?:Is the computer able to access the url\?|For more information, pass `verbose: true`).*$/s;

const sentenceOf = (error: unknown) => {
  const code = errorCode(error);
  const text = errorText(error).replace(HINT, "").replace(`${code}: `, "");
  return `The connection failed${code && ` (${code})`}: ${CERTIFICATE_WORDS[code] ?? text.replace(/\.?$/, "")}.`;
};

/** The status is known: a body that does not end does not change it. */
const readStart = async (response: Response): Promise<Pick<Exchanged, "body" | "isWhole">> => {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reader = response.body?.getReader();
  if (reader === undefined) return { body: "", isWhole: true };
  let isWhole = false;
  try {
    while (bytes < RESPONSE_BYTES_MAX) {
      const { done, value } = await reader.read();
      isWhole = done;
      if (done) break;
      chunks.push(value);
      bytes += value.byteLength;
    }
    await reader.cancel();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
  return { body: Buffer.concat(chunks).subarray(0, RESPONSE_BYTES_MAX).toString("utf8"), isWhole };
};
