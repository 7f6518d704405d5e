import type { ServedPolicies } from "../dmarc/records/sts/served-policies.ts";
import type { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { requestIdOf } from "../foundation/http/request-log.ts";
import { pathOf, targetOf } from "../foundation/http/request-target.ts";
import type { HttpApplication } from "./http-application.ts";

const POLICY_PATH = "/.well-known/mta-sts.txt";
/** Caddy asks here before it obtains a certificate for a name (`on_demand_tls`). */
const ASK_PATH = "/mta-sts/ask";
const POLICY_HOST = /^mta-sts\./i;

/** The name in a Host header or a question, in lower case without port and final dot. */
const nameOf = (host: string): string => host.toLowerCase().replace(/:\d+$/, "").replace(/\.$/, "");

interface PolicyApplication extends HttpApplication {
  /** Whether a request is for this application: the paths above at any host, and every path at the hosts of policies. */
  serves(path: string, host: string): boolean;
}

/** Serves MTA-STS policies (RFC 8461 §3.3), from memory. Needs no key. */
export const createPolicyApplication = (
  served: Pick<ServedPolicies, "textOf">,
  clients: Pick<ClientAddresses, "isFromThisSide">,
): PolicyApplication => ({
  routes: [
    { method: "GET", path: POLICY_PATH },
    { method: "GET", path: ASK_PATH },
  ],
  serves: (path, host) =>
    path === POLICY_PATH || path === ASK_PATH || (POLICY_HOST.test(host) && served.textOf(nameOf(host)) !== null),
  fetch(request) {
    const headers = { "x-request-id": requestIdOf(request), "content-type": "text/plain" };
    const respond = (status: number, text: string, more: Readonly<Record<string, string>> = {}) =>
      new Response(text, { status, headers: { ...headers, ...more } });
    if (request.method !== "GET" && request.method !== "HEAD")
      return respond(405, "This path supports GET, HEAD.\n", { allow: "GET, HEAD" });
    const path = pathOf(request);
    if (path === ASK_PATH) {
      const name = new URLSearchParams(targetOf(request).split("?")[1] ?? "").get("domain") ?? "";
      const isKnown = clients.isFromThisSide(request) && served.textOf(nameOf(name)) !== null;
      return isKnown ? respond(200, "") : respond(404, "");
    }
    const text = path === POLICY_PATH ? served.textOf(nameOf(request.headers.get("host") ?? "")) : null;
    return text === null ? respond(404, "Not found.\n") : respond(200, text);
  },
});
