import { isIP } from "node:net";
import { isInNetworks, parseCidrs, parseIp } from "../base/cidr.ts";
import { err, ok, type Result } from "../base/errors.ts";
import { createAddressPolicy } from "./public-address.ts";

/** A URL that may be posted to, in its normal form. */
export interface PolicyUrl {
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
export interface UrlProblem {
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
  const mayConnect = (address: string, isSecure: boolean): boolean =>
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
